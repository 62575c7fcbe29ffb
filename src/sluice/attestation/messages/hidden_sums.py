"""What coordinator, plants and helper send each other about hidden sums, and the helper's log."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Discriminator, StringConstraints

from sluice.attestation.messages.context import Interval
from sluice.attestation.messages.documents import (
    STRICT,
    Blob,
    Count,
    Form,
    Hex32,
    Instant,
    Name,
)
from sluice.attestation.messages.messages import Commit
from sluice.attestation.messages.signing import Signed

__all__ = [
    "CARDS",
    "EPOCHS",
    "HELPER_ENTRIES",
    "MOST_MEMBERS",
    "RELEASES",
    "RETIREMENTS",
    "SUBMISSIONS",
    "EpochOpened",
    "EpochOrder",
    "GroupReleased",
    "GroupRetired",
    "HelperBody",
    "HelperCard",
    "HelperEntry",
    "HelperOpened",
    "MemberAnswer",
    "MemberKey",
    "MembersAccepted",
    "ReleaseOrder",
    "RetireOrder",
    "ShareTaken",
    "Submission",
]

MOST_MEMBERS = 1_024
Values = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{48}$")]
"""Three elements of the field, little-endian."""
Reason = Annotated[str, StringConstraints(min_length=1, max_length=200)]


@dataclass(frozen=True, slots=True, kw_only=True)
class HelperCard:
    """What plants and the coordinator need to reach a helper and to check what it says."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    schema: Literal[1] = 1
    federation: Name
    host: Annotated[str, StringConstraints(min_length=1, max_length=253)]
    port: Count
    key: Hex32
    authority: Annotated[str, StringConstraints(max_length=8_192)]  # PEM

    @property
    def url(self) -> str:
        """Where the helper is."""
        return f"https://{self.host}:{self.port}"


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochOrder:
    """The coordinator opens an epoch: who takes part, what is summed, and until when to share.

    Members and the head of the coordinator's log decide the groups. Every party draws them itself.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    TAG: ClassVar[str] = "hidden sums epoch"

    schema: Literal[1] = 1
    federation: Name
    epoch: Count
    malicious: Count  # f: how many members may collude
    members: tuple[Name, ...]  # sorted
    settings: Hex32  # of the statistic
    channels: Count
    lags: Count
    deadline: Instant
    head: Hex32  # the last entry of the coordinator's log, after every registration


@dataclass(frozen=True, slots=True, kw_only=True)
class Submission:
    """A plant's share for the helper, with the signed commitment that it belongs to."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    TAG: ClassVar[str] = "hidden sums share"

    schema: Literal[1] = 1
    federation: Name
    epoch: Count
    client: Name
    commit: Signed[Commit]
    sealed: Blob
    identity: Hex32  # of the circuit's constraints
    context: Hex32
    share: Blob


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberAnswer:
    """What the coordinator expected of the helper for one member."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    client: Name
    commit: Hex32
    values: Values


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseOrder:
    """The coordinator accepted every proof of a group and asks for the sum of R."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    TAG: ClassVar[str] = "hidden sums release"

    schema: Literal[1] = 1
    federation: Name
    epoch: Count
    group: Count
    members: tuple[MemberAnswer, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RetireOrder:
    """The coordinator gives a group up until the next epoch."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    TAG: ClassVar[str] = "hidden sums retirement"

    schema: Literal[1] = 1
    federation: Name
    epoch: Count
    group: Count
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberKey:
    """A member that the helper's operator accepts, and its key."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    client: Name
    key: Hex32


@dataclass(frozen=True, slots=True, kw_only=True)
class HelperOpened:
    """The first entry: who the helper is, for whom, and which members it accepts."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["opened"] = "opened"
    federation: Name
    helper: Hex32
    coordinator: Hex32
    members: tuple[MemberKey, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class MembersAccepted:
    """From this entry on, the helper accepts these members, and orders of this coordinator's key.

    Its operator took them from a later copy of the federation's log.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["members"] = "members"
    coordinator: Hex32
    members: tuple[MemberKey, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EpochOpened:
    """An epoch that the helper accepted; groups of earlier epochs are over."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["epoch"] = "epoch"
    order: Signed[EpochOrder]


@dataclass(frozen=True, slots=True, kw_only=True)
class ShareTaken:
    """A member's share arrived and opens its commitment. `values` are the helper's answer."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["share"] = "share"
    epoch: Count
    client: Name
    commit: Hex32
    helper: Hex32  # the commitment to the share
    interval: Interval  # the time that the batch covers
    values: Values


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReleased:
    """The helper released the sum of R of a whole group; `sum` is its hash."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["released"] = "released"
    order: Signed[ReleaseOrder]
    sum: Hex32


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRetired:
    """A group is over without a sum; its shares are erased."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    kind: Literal["retired"] = "retired"
    epoch: Count
    group: Count
    reason: Reason


HelperBody = Annotated[
    HelperOpened | MembersAccepted | EpochOpened | ShareTaken | GroupReleased | GroupRetired,
    Discriminator("kind"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class HelperEntry:
    """One line of the helper's log, signed by the helper and chained to the line before."""

    __pydantic_config__: ClassVar[ConfigDict] = STRICT
    TAG: ClassVar[str] = "helper log entry"

    schema: Literal[1] = 1
    index: Count
    previous: Hex32
    time: Instant
    body: HelperBody


CARDS: Form[HelperCard] = Form.of(HelperCard, "helper's card", largest=16_384)
EPOCHS: Form[Signed[EpochOrder]] = Form.of(Signed[EpochOrder], "epoch order", largest=1 << 17)
SUBMISSIONS: Form[Signed[Submission]] = Form.of(
    Signed[Submission], "share for the helper", largest=1 << 14
)
RELEASES: Form[Signed[ReleaseOrder]] = Form.of(
    Signed[ReleaseOrder], "release order", largest=1 << 18
)
RETIREMENTS: Form[Signed[RetireOrder]] = Form.of(
    Signed[RetireOrder], "retirement order", largest=4_096
)
HELPER_ENTRIES: Form[Signed[HelperEntry]] = Form.of(
    Signed[HelperEntry], "helper's log entry", largest=1 << 19
)
