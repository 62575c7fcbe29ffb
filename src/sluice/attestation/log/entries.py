"""Entries of the log: one line each, chained by the hash of the line before."""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Discriminator, Field, StringConstraints

from sluice.attestation.log.heads import Head
from sluice.attestation.messages import (
    STRICT,
    Approval,
    Challenge,
    Commit,
    Commitment,
    Consent,
    Count,
    EpochOrder,
    Form,
    HelperCard,
    HelperEntry,
    Hex32,
    Instant,
    Name,
    Recovery,
    Registration,
    RotationSigned,
    ShadowOrder,
    Signed,
    StatisticLimits,
    Token,
    Waiver,
    content_digest,
)
from sluice.attestation.packing import digest

__all__ = [
    "ENTRIES",
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
    "EpochDrawn",
    "FederationRecovered",
    "GateSet",
    "GroupBody",
    "GroupGivenUp",
    "GroupSummed",
    "HeadCountersigned",
    "KeyRotated",
    "LogOpened",
    "LogTerms",
    "ModelAggregated",
    "PledgesClosed",
    "RoundAbandoned",
    "RoundBody",
    "RoundOpened",
    "StatisticChannel",
    "StatisticTerms",
    "UpdatePledged",
    "UpdateRevealed",
    "WaiverGranted",
    "entry_digest",
    "unproven_id",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSet:
    """From this entry on, the gate refuses plants, or it is in shadow and only logs refusals.

    Shadow needs an order that approvers have signed, and ends when the order says so.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["gate"] = "gate"
    enforced: bool
    order: ShadowOrder | None = None
    approvals: tuple[Signed[Approval], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WaiverGranted:
    """A waiver that approvers have signed."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["waiver"] = "waiver"
    waiver: Waiver
    approvals: tuple[Signed[Approval], ...]


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

    The next round is opened on the model that the federation had after round `model_of`. If plants
    share statistics, no round is discarded: the model is that of the last round without the
    client's statistic, and `since` is 0.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["removed"] = "removed"
    client: Name
    since: Count  # the first round in doubt; 0: none, the client's statistic is taken out
    model_of: Count  # 0: the model that the first round was opened on
    model: Hex32


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyRotated:
    """The coordinator, an approver or a client signs with a new key from this entry on."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["key rotated"] = "key rotated"
    signed: RotationSigned


@dataclass(frozen=True, slots=True, kw_only=True)
class FederationRecovered:
    """A coordinator restored from a backup lost rounds; plants consent to continue without them."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["recovered"] = "recovered"
    recovery: Recovery
    consents: tuple[Signed[Consent], ...]


Act = GateSet | WaiverGranted | BatchExcused | ClientRemoved | KeyRotated | FederationRecovered


def unproven_id(commit: Commit) -> str:
    """Return the id that tokens use for a batch without a proof; no proof has this id."""
    return digest("unproven", bytes.fromhex(content_digest(commit))).hex()


LARGEST_ENTRY = 131_072

Step = Annotated[str, StringConstraints(pattern=r"^[1-7](\.[1-9]){0,2}$")]
"""Any step that a `VerificationError` names: one that does not fit would stop the coordinator."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogTerms:
    """What the log demands of time and of approvals; agreed when the log is opened."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    history: bool = False  # batches may be of any time in the past
    batch_days: Count = 30  # log time between the end of a batch and its commitment, at most
    attestation_days: Count = 30  # log time for which an attestation holds
    challenge_hours: Count = 24  # log time for which a challenge may be answered
    unanswered_max: Count = 3  # challenges of a client without an answer, at most
    approvals: Count = 1  # approvers that rules, waivers and shadow orders need
    approvals_looser: Count = 2  # approvers that looser rules need


Finite = Annotated[float, Field(allow_inf_nan=False)]


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticChannel:
    """How a channel is read: its scale, and its 16-bit register if its readings are summed."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    channel: str
    mean: Finite
    spread: Finite
    resolution: Finite
    low: Finite | None  # the reading of register 0; None: the channel is not summed
    step: Finite | None  # readings per register


HANDED_OUT = (
    "Members lend thresholds: the coordinator may hand all statistics to invited plants that have "
    "too few rows to join."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticTerms:
    """What plants sum, and how the sums become a vote; agreed before any plant has joined.

    If they are `bound`, a proof ties each statistic to its committed rows. Then the rules of each
    member decide which channels it sums and in which registers, so no channel has a register here.
    `limits` say how many rows and how much time a batch covers, at least.

    With a `helper`, members share in groups: the coordinator and the helper learn the sum of a
    group and nothing about one member. A group is one voter.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["moments"] = "moments"
    lags: Count
    stride_s: Finite
    channels: tuple[StatisticChannel, ...]
    rule: Literal["vote", "any-of-subsets"]
    malicious: Count  # members that the vote withstands
    bound: Annotated[bool, Field(exclude_if=lambda bound: not bound)] = False
    limits: Annotated[StatisticLimits | None, Field(exclude_if=lambda limits: limits is None)] = (
        None
    )
    lends: Annotated[bool, Field(exclude_if=lambda lends: not lends)] = False
    """Whether members lend the tails of their scores to plants with few clean rows."""
    helper: Annotated[HelperCard | None, Field(exclude_if=lambda helper: helper is None)] = None

    @property
    def sentence(self) -> str:
        """Whether statistics are bound and hidden, and how much they cover, for operators."""
        bound = "Statistics are bound by proofs" if self.bound else "Statistics are not bound"
        if self.helper is not None:
            bound += (
                f" and summed in groups of at least {self.malicious + 2} plants, with the helper "
                f"at {self.helper.url}"
            )
        handed_out = f" {HANDED_OUT}" if self.lends else ""
        if self.limits is None:
            return f"{bound}.{handed_out}"
        covers = f"{self.limits.rows_min:,} rows and {self.limits.span_min_s:,} s"
        lowered = f" (lowered: {self.limits.lowered})" if self.limits.lowered else ""
        return f"{bound}; each covers at least {covers}{lowered}.{handed_out}"


@dataclass(frozen=True, slots=True, kw_only=True)
class LogOpened:
    """The first entry: the federation, the coordinator's key, the approvers' keys, the terms.

    The first entry of a federation that trains in rounds has no field `statistic`.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["opened"] = "opened"
    protocol: Literal[2] = 2
    federation: Name
    coordinator: Hex32  # its key
    approvers: tuple[Hex32, ...]
    terms: LogTerms = field(default_factory=LogTerms)
    statistic: Annotated[
        StatisticTerms | None, Field(exclude_if=lambda statistic: statistic is None)
    ] = None


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
    """Step 6: an operator ends the round in progress; the model stays as it was."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["abandoned"] = "abandoned"
    round: Count


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochDrawn:
    """Step 6: the plants that share in groups in the next round; everyone draws the groups."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["epoch"] = "epoch"
    order: Signed[EpochOrder]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupSummed:
    """Step 6: the sum of a group, by its hash, and the entry in which the helper released it.

    The helper's entry holds the coordinator's order, with what it accepted of each member.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["group summed"] = "group summed"
    round: Count
    released: Signed[HelperEntry]
    statistic: Hex32


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupGivenUp:
    """Step 6: a group gets no sum in this epoch. The step says why."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["group given up"] = "group given up"
    epoch: Count
    group: Count
    step: Step


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
GroupBody = EpochDrawn | GroupSummed | GroupGivenUp
Body = LogOpened | ClientRegistered | BatchBody | RoundBody | GroupBody | Act | HeadCountersigned


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
