"""Entries of the log: one line each, chained by the hash of the line before."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Discriminator, StringConstraints

from sluice.attestation.acts import Act
from sluice.attestation.documents import STRICT, Commitment, Count, Form, Hex32, Instant, Name
from sluice.attestation.heads import Head
from sluice.attestation.messages import Approval, Challenge, Commit, Registration
from sluice.attestation.packing import digest
from sluice.attestation.signed import Signed
from sluice.attestation.tokens import Token

__all__ = [
    "ENTRIES",
    "BatchAttested",
    "BatchChallenged",
    "BatchCommitted",
    "Body",
    "ClientExcluded",
    "ClientRegistered",
    "Entry",
    "HeadCountersigned",
    "LogOpened",
    "ModelAggregated",
    "PledgesClosed",
    "RoundBody",
    "RoundOpened",
    "UpdatePledged",
    "UpdateRevealed",
    "entry_digest",
]

LARGEST_ENTRY = 65_536

Step = Annotated[str, StringConstraints(pattern=r"^[1-7](\.[1-8])?$")]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOpened:
    """The first entry: whose log this is, and whose approval counts."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["opened"] = "opened"
    protocol: Literal[1] = 1
    federation: Name
    coordinator: Hex32  # its key
    approvers: tuple[Hex32, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRegistered:
    """Step 1: a client with accepted rules."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["registered"] = "registered"
    registration: Signed[Registration]
    looser: bool  # than the last accepted rules of this client
    approvals: tuple[Signed[Approval], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchCommitted:
    """Step 2: a commitment."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["committed"] = "committed"
    commit: Signed[Commit]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchChallenged:
    """Step 3: the nonce that decides which rows of a commitment are opened; there is one only."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["challenged"] = "challenged"
    challenge: Challenge


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchAttested:
    """Step 5: the first proof of a commitment that verified, by its hash."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["attested"] = "attested"
    client: Name
    commitment: Commitment
    attestation: Hex32


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundOpened:
    """Step 6: a round, the model it starts from, and until when pledges are taken."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["round opened"] = "round opened"
    round: Count
    model: Hex32
    deadline: Instant


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdatePledged:
    """Step 6: a client's token, with the hash of the update it will send."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["pledged"] = "pledged"
    token: Signed[Token]


@dataclass(frozen=True, slots=True, kw_only=True)
class PledgesClosed:
    """Step 6: from here on updates are revealed, and no token is taken."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["pledges closed"] = "pledges closed"
    round: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class UpdateRevealed:
    """Step 6: an update whose hash is the pledged one."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["revealed"] = "revealed"
    round: Count
    client: Name
    update: Hex32


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientExcluded:
    """Step 6: a client that has no part in the round, and the step at which that was decided."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["excluded"] = "excluded"
    round: Count
    client: Name
    step: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAggregated:
    """Step 6: the model that the revealed updates of these clients gave."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["aggregated"] = "aggregated"
    round: Count
    model: Hex32
    clients: tuple[Name, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadCountersigned:
    """Step 7: a client has seen the log up to here."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["countersigned"] = "countersigned"
    head: Signed[Head]


RoundBody = (
    RoundOpened | UpdatePledged | PledgesClosed | UpdateRevealed | ClientExcluded | ModelAggregated
)
BatchBody = BatchCommitted | BatchChallenged | BatchAttested
Body = LogOpened | ClientRegistered | BatchBody | RoundBody | Act | HeadCountersigned


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line of the log."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    schema: Literal[1] = 1
    index: Count
    previous: Hex32  # digest of the line before; zeros before the first
    time: Instant
    body: Annotated[Body, Discriminator("kind")]


ENTRIES: Form[Entry] = Form.of(Entry, "log entry", largest=LARGEST_ENTRY)


def entry_digest(line: bytes) -> str:
    """Return the hash that chains the next entry to this line, given without its line feed."""
    return digest("log entry", line).hex()
