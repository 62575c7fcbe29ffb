"""What the helper's log says: which entries may follow, and what was shared, released, retired.

The helper applies it before it writes an entry. Everyone else applies it to the lines they read.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from sluice.attestation.messages import (
    HELPER_ENTRIES,
    MOST_MEMBERS,
    EpochOpened,
    EpochOrder,
    GroupReleased,
    GroupRetired,
    HelperBody,
    HelperEntry,
    HelperOpened,
    MemberKey,
    MembersAccepted,
    ShareTaken,
    Signed,
    groups_of,
)
from sluice.attestation.packing import digest
from sluice.errors import DocumentError, SettingError, VerificationError

__all__ = ["STEP", "HelperLedger", "helper_entry_digest"]

STEP = "hidden"
EMPTY = "0" * 64


def helper_entry_digest(line: bytes) -> str:
    """Return the hash that the next line of the helper's log names."""
    return digest("helper log", line).hex()


@dataclass(slots=True)
class HelperLedger:
    """The helper's log as read so far."""

    opened: HelperOpened | None = None
    coordinator: str = ""  # its key in force
    members: tuple[MemberKey, ...] = ()  # those that the helper accepts now
    epoch: EpochOrder | None = None
    groups: tuple[tuple[str, ...], ...] = ()
    shares: dict[str, ShareTaken] = field(default_factory=dict)  # of the epoch, by client
    released: dict[int, GroupReleased] = field(default_factory=dict)  # of the epoch, by group
    release_lines: dict[int, bytes] = field(default_factory=dict)  # signed, by group
    retired: dict[int, str] = field(default_factory=dict)  # of the epoch, by group: the reason
    size: int = 0
    last: str = EMPTY
    time: str = ""
    _seen: set[str] = field(default_factory=set)  # commitments to shares and batches, ever
    _covered: dict[str, str] = field(default_factory=dict)  # by client: the last row, ever

    def read(self, lines: Iterable[bytes], helper: str) -> list[HelperEntry]:
        """Verify lines that follow, each signed by the helper; raise `VerificationError`."""
        entries = []
        for line in lines:
            try:
                signed = HELPER_ENTRIES.read(line)
            except DocumentError as error:
                raise _refused(f"entry {self.size} of the helper's log: {error}") from None
            signed.verify(helper, step=STEP)
            self.check(signed.content)
            self.note(signed.content, line)
            entries.append(signed.content)
        return entries

    def note(self, entry: HelperEntry, line: bytes) -> None:
        """Take up an entry that was checked."""
        self.size, self.last, self.time = entry.index + 1, helper_entry_digest(line), entry.time
        body = entry.body
        match body:
            case HelperOpened():
                self.opened = body
                self.coordinator, self.members = body.coordinator, body.members
            case MembersAccepted():
                self.coordinator, self.members = body.coordinator, body.members
            case EpochOpened():
                self.epoch, self.groups = body.order.content, groups_of(body.order.content)
                self.shares, self.released, self.retired = {}, {}, {}
                self.release_lines = {}
            case ShareTaken():
                self.shares[body.client] = body
                self._seen |= {body.commit, body.helper}
                self._covered[body.client] = body.interval.end
            case GroupReleased():
                self.released[body.order.content.group] = body
                self.release_lines[body.order.content.group] = line
            case GroupRetired():
                self.retired[body.group] = body.reason

    def check(self, entry: HelperEntry) -> None:
        """Raise a `VerificationError` unless this entry may follow."""
        if (entry.index, entry.previous) != (self.size, self.last) or entry.time < self.time:
            raise _refused(f"entry {entry.index} does not follow entry {self.size - 1}")
        self.check_body(entry.body, time=entry.time)

    def check_body(self, body: HelperBody, *, time: str) -> None:
        """Raise a `VerificationError` unless this may be said at this time."""
        if isinstance(body, HelperOpened) != (self.size == 0):
            raise _refused("the first entry, and no other, opens the helper's log")
        match body:
            case HelperOpened() | MembersAccepted():
                names = [member.client for member in body.members]
                keys = {member.key for member in body.members}
                if names != sorted(set(names)) or len(keys) != len(names):
                    raise _refused("every member has one name and one key, in sorted order")
            case EpochOpened():
                self._check_epoch(body.order, time)
            case ShareTaken():
                self._check_share(body, time)
            case GroupReleased():
                self._check_release(body)
            case GroupRetired():
                self._demand_open(body.epoch, body.group)

    def key_of(self, client: str) -> str:
        """Return the key of a member that the helper accepts."""
        for member in self.members:
            if member.client == client:
                return member.key
        raise _refused(f"{client!r} is no member that this helper accepts")

    def group_of(self, client: str) -> int:
        """Return the number of a member's group in this epoch."""
        for at, group in enumerate(self.groups):
            if client in group:
                return at
        raise _refused(f"{client!r} is in no group of this epoch")

    def complete(self, group: int) -> bool:
        """Whether every member of a group has shared."""
        return all(client in self.shares for client in self.groups[group])

    @property
    def open_groups(self) -> list[int]:
        """The groups that are neither released nor retired."""
        return [
            at for at in range(len(self.groups)) if at not in self.released | self.retired.keys()
        ]

    def _check_epoch(self, order: Signed[EpochOrder], time: str) -> None:
        assert self.opened is not None
        order.verify(self.coordinator, step=STEP)
        content, earlier = order.content, self.epoch
        if content.federation != self.opened.federation:
            raise _refused(f"the epoch is of the federation {content.federation!r}")
        if earlier is not None and content.epoch <= earlier.epoch:
            raise _refused(f"epoch {content.epoch} does not follow epoch {earlier.epoch}")
        if content.deadline <= time or not 0 < len(content.members) <= MOST_MEMBERS:
            raise _refused("the epoch's deadline has passed, or it has no or too many members")
        if not (1 <= content.channels <= 256 and 1 <= content.lags <= 64):
            raise _refused("a statistic has 1 to 256 channels and 1 to 64 lags")
        for client in content.members:
            self.key_of(client)
        try:
            groups_of(content)
        except SettingError as error:
            raise _refused(str(error)) from None

    def _check_share(self, share: ShareTaken, time: str) -> None:
        group = self.group_of(share.client)
        self._demand_open(share.epoch, group)
        assert self.epoch is not None
        if time > self.epoch.deadline:
            raise _refused(f"the deadline of epoch {share.epoch} has passed")
        if share.client in self.shares:
            raise _refused(f"{share.client!r} has shared in epoch {share.epoch} before")
        if {share.commit, share.helper} & self._seen:
            raise _refused("this commitment or share was used before")
        if share.interval.start <= self._covered.get(share.client, ""):
            raise _refused(
                f"{share.client!r} has shared rows until {self._covered[share.client]}; a second "
                "sum of the same rows would show a difference: share later rows"
            )

    def _check_release(self, body: GroupReleased) -> None:
        assert self.opened is not None
        body.order.verify(self.coordinator, step=STEP)
        order = body.order.content
        if order.federation != self.opened.federation:
            raise _refused(f"the order is of the federation {order.federation!r}")
        self._demand_open(order.epoch, order.group)
        group = self.groups[order.group]
        missing = [client for client in group if client not in self.shares]
        if missing:
            raise _refused(
                f"group {order.group} is incomplete: {', '.join(missing)} has not shared"
            )
        if tuple(member.client for member in order.members) != group:
            raise _refused(f"a sum is released for the whole group {', '.join(group)} only")
        for member in order.members:
            share = self.shares[member.client]
            if (member.commit, member.values) != (share.commit, share.values):
                raise _refused(
                    f"the forms of {member.client!r} do not match: its shares are not those of "
                    "the rows that it proved"
                )

    def _demand_open(self, epoch: int, group: int) -> None:
        if self.epoch is None or epoch != self.epoch.epoch:
            raise _refused(f"epoch {epoch} is not open")
        if not 0 <= group < len(self.groups):
            raise _refused(f"epoch {epoch} has no group {group}")
        if group in self.released:
            raise _refused(f"the sum of group {group} was released; it is over until a next epoch")
        if group in self.retired:
            raise _refused(f"group {group} is retired: {self.retired[group]}")


def _refused(why: str) -> VerificationError:
    return VerificationError(STEP, why)
