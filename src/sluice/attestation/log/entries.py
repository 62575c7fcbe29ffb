"""Entries of the log: one line each, chained by the hash of the line before."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Discriminator, StringConstraints

from sluice.attestation.log.heads import Head
from sluice.attestation.messages import (
    STRICT,
    Approval,
    Challenge,
    Commit,
    Commitment,
    Count,
    Form,
    Hex32,
    Instant,
    Interval,
    Name,
    Registration,
    Signed,
    Token,
    content_digest,
)
from sluice.attestation.packing import digest

__all__ = [
    "ENTRIES",
    "WAIVERS",
    "Act",
    "BatchAttested",
    "BatchChallenged",
    "BatchCommitted",
    "BatchExcused",
    "Body",
    "ClientExcluded",
    "ClientRegistered",
    "ClientRemoved",
    "Entry",
    "GateSet",
    "HeadCountersigned",
    "LogOpened",
    "ModelAggregated",
    "PledgesClosed",
    "Reason",
    "RoundAbandoned",
    "RoundBody",
    "RoundOpened",
    "UpdatePledged",
    "UpdateRevealed",
    "Waiver",
    "WaiverGranted",
    "entry_digest",
    "unproven_id",
]

Reason = Annotated[str, StringConstraints(pattern=r"^[ -~]{4,200}$")]
"""An operator's reason for an action, in printable ASCII."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSet:
    """From this entry on, the gate refuses plants, or it is in shadow and only logs refusals."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["gate"] = "gate"
    enforced: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiver:
    """A maintenance window: batches of this client within the interval need no proof.

    It waives step 4 only. A batch takes part under it until the waiver expires.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    TAG: ClassVar[str] = "waiver"

    schema: Literal[1] = 1
    protocol: Literal[1] = 1
    federation: Name
    client: Name
    interval: Interval  # on the plant's own clock, like a batch's interval
    expires: Instant
    reason: Reason


WAIVERS: Form[Signed[Waiver]] = Form.of(Signed[Waiver], "waiver", largest=4_096)


@dataclass(frozen=True, slots=True, kw_only=True)
class WaiverGranted:
    """A waiver, signed by the coordinator."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["waiver"] = "waiver"
    waiver: Signed[Waiver]


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchExcused:
    """A committed batch that takes part without a proof. If enforced, step 4 would refuse it."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["excused"] = "excused"
    client: Name
    commitment: Commitment
    attestation: Hex32  # the id that tokens use in place of an attestation
    step: Literal["4"] = "4"
    waiver: Hex32 | None  # its digest; None if the gate is in shadow


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientRemoved:
    """A compromised client: it is excluded from this entry on, and rounds are discarded.

    The next round is opened on the model that the federation had after round `model_of`.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["removed"] = "removed"
    client: Name
    since: Count  # the first round in doubt
    model_of: Count  # 0: the model that the first round was opened on
    model: Hex32


Act = GateSet | WaiverGranted | BatchExcused | ClientRemoved


def unproven_id(commit: Commit) -> str:
    """Return the id that tokens use for a batch without a proof; no proof has this id."""
    return digest("unproven", bytes.fromhex(content_digest(commit))).hex()


LARGEST_ENTRY = 65_536

Step = Annotated[str, StringConstraints(pattern=r"^[1-7](\.[1-8])?$")]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOpened:
    """The first entry: the federation, the coordinator's key and the approvers' keys."""

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
    """Step 3: the nonce that decides which rows of a commitment are opened; each has only one."""

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
    """Step 6: a round, the model it starts from, and the deadline for pledges."""

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
    """Step 6: from this entry on, updates are revealed and no token is accepted."""

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
    """Step 6: a client that is excluded from the round, and the step that excluded it."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["excluded"] = "excluded"
    round: Count
    client: Name
    step: Step


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelAggregated:
    """Step 6: the model aggregated from the revealed updates of these clients."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["aggregated"] = "aggregated"
    round: Count
    model: Hex32
    clients: tuple[Name, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundAbandoned:
    """Step 6: an operator ends the round in progress; the model stays the one it was opened on."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["abandoned"] = "abandoned"
    round: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadCountersigned:
    """Step 7: a client confirms that it has seen the log up to this head."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["countersigned"] = "countersigned"
    head: Signed[Head]


RoundBody = (
    RoundOpened
    | UpdatePledged
    | PledgesClosed
    | UpdateRevealed
    | ClientExcluded
    | ModelAggregated
    | RoundAbandoned
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
