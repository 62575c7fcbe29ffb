"""The helper: it holds the seeds of R, answers once for each, and releases whole groups only.

A folder holds its log and, until a group is over, the seeds of its members:

    helper.log             signed, chained entries; public
    shares/                one seed for each share of an open group, mode 0600
    sums/                  released sums, so that an answer that was lost can be given again

Every step is on disk before it is answered. A helper that was killed continues from its log.
"""

import fcntl
import hashlib
import os
from datetime import datetime
from functools import reduce
from pathlib import Path

from sluice.attestation.hidden.elements import Draw, Shape, added, element_bytes
from sluice.attestation.hidden.ledger import STEP, HelperLedger
from sluice.attestation.hidden.shares import KEY_BYTES, HelperShare
from sluice.attestation.messages import (
    HELPER_ENTRIES,
    EpochOpened,
    EpochOrder,
    GroupReleased,
    GroupRetired,
    HelperBody,
    HelperEntry,
    HelperOpened,
    MemberKey,
    MembersAccepted,
    ReleaseOrder,
    RetireOrder,
    ShareTaken,
    Signed,
    SigningKey,
    Submission,
    content_digest,
    instant,
    sign,
)
from sluice.errors import SettingError, VerificationError
from sluice.files import atomically, public_file, read_bounded, sync_folder

__all__ = ["Helper", "share_taken"]

SEALED_BYTES = 136


def share_taken(submission: Submission, shape: Shape) -> ShareTaken:
    """Check that a share opens its commitments, and return the helper's answer to it.

    An auditor to whom a plant shows its submission computes the same: another answer in the log
    means that the helper lied.
    """
    commit = submission.commit.content
    named = (commit.federation, commit.client)
    if named != (submission.federation, submission.client):
        raise VerificationError(STEP, "the commitment is of another client or federation")
    if hashlib.sha256(submission.sealed).hexdigest() != commit.statistic:
        raise VerificationError(STEP, "it is not the sealed statistic that the commitment names")
    share = HelperShare(seed=submission.share)
    if len(submission.sealed) != SEALED_BYTES or submission.sealed[-32:] != share.commitment:
        raise VerificationError(STEP, "the share does not open the sealed statistic")
    draw = Draw(
        identity=bytes.fromhex(submission.identity),
        commitment=bytes.fromhex(commit.commitment),
        context=bytes.fromhex(submission.context),
        sealed=submission.sealed,
    )
    return ShareTaken(
        epoch=submission.epoch,
        client=submission.client,
        commit=content_digest(commit),
        helper=share.commitment.hex(),
        interval=commit.interval,
        values=element_bytes(share.answer(shape, draw)).hex(),
    )


class Helper:
    """The second aggregator, in its folder."""

    def __init__(self, folder: Path, key: SigningKey) -> None:
        self._folder, self._key = folder, key
        self.ledger = HelperLedger()
        self._lock = _locked(folder)
        self._mend()
        self.ledger.read(self.lines(), key.public)
        if self.ledger.opened is None or self.ledger.opened.helper != key.public:
            raise SettingError(f"{folder} is not the folder of a helper with this key")
        self._erase_closed()

    @classmethod
    def create(cls, folder: Path, opened: HelperOpened, key: SigningKey, *, at: datetime) -> None:
        """Write the folder of a new helper."""
        for name in ("shares", "sums"):
            (folder / name).mkdir(parents=True, mode=0o700)
        public_file(folder / "helper.log", new=True)
        ledger = HelperLedger()
        _append(folder / "helper.log", ledger, opened, key, at=at)
        sync_folder(folder)

    def close(self) -> None:
        """Let another process use the folder."""
        os.close(self._lock)

    def lines(self, start: int = 0) -> list[bytes]:
        """Return the lines of the log from an entry on."""
        return (self._folder / "helper.log").read_bytes().splitlines()[start:]

    def accept(self, coordinator: str, members: tuple[MemberKey, ...], *, at: datetime) -> bool:
        """Accept these members, and this coordinator's key, from now on; return if that is new."""
        if (coordinator, members) == (self.ledger.coordinator, self.ledger.members):
            return False
        self._append(MembersAccepted(coordinator=coordinator, members=members), at=at)
        return True

    def open_epoch(self, order: Signed[EpochOrder], *, at: datetime) -> None:
        """Open an epoch; the groups of earlier epochs are over, and their shares are erased."""
        self.ledger.check_body(EpochOpened(order=order), time=self._time(at))
        for group in self.ledger.open_groups:
            self._retire(group, "a later epoch was opened", at=at)
        self._append(EpochOpened(order=order), at=at)

    def take(self, submission: Signed[Submission], *, at: datetime) -> ShareTaken:
        """Take a member's share, and answer for it. A share that was taken gets the same answer."""
        self.expire(at=at)
        content = submission.content
        assert self.ledger.opened is not None
        if content.federation != self.ledger.opened.federation:
            raise VerificationError(STEP, f"the share is of {content.federation!r}")
        key = self.ledger.key_of(content.client)
        submission.verify(key, step=STEP)
        content.commit.verify(key, step=STEP)
        if content.commit.content.key != key or self.ledger.epoch is None:
            raise VerificationError(STEP, "the commitment names another key, or no epoch is open")
        epoch = self.ledger.epoch
        if content.sealed[16:48].hex() != epoch.settings:
            raise VerificationError(STEP, "the share is of other settings than the epoch")
        taken = share_taken(content, Shape(channels=epoch.channels, lags=epoch.lags))
        if self.ledger.shares.get(content.client) == taken:
            return taken
        self.ledger.check_body(taken, time=self._time(at))
        with atomically(self._share(content.client), private=True) as draft:
            draft.write_bytes(content.share)
        self._append(taken, at=at)
        return taken

    def release(self, order: Signed[ReleaseOrder], *, at: datetime) -> tuple[GroupReleased, bytes]:
        """Release the sum of R of a whole group whose forms match; the same sum if asked again."""
        self.expire(at=at)
        content = order.content
        before = self.ledger.released.get(content.group)
        if before is not None and before.order == order:
            return before, self._sum_path(content).read_bytes()
        draft = GroupReleased(order=order, sum="0" * 64)
        self.ledger.check_body(draft, time=self._time(at))
        epoch = self.ledger.epoch
        assert epoch is not None
        shape = Shape(channels=epoch.channels, lags=epoch.lags)
        seeds = [
            read_bounded(self._share(client), "share", largest=KEY_BYTES, private=True)
            for client in self.ledger.groups[content.group]
        ]
        total = reduce(added, (HelperShare(seed=seed).sums(shape) for seed in seeds))
        raw = element_bytes(total)
        with atomically(self._sum_path(content)) as written:
            written.write_bytes(raw)
        released = GroupReleased(order=order, sum=hashlib.sha256(raw).hexdigest())
        self._append(released, at=at)
        self._erase_closed()
        return released, raw

    def retire(self, order: Signed[RetireOrder], *, at: datetime) -> None:
        """Give up a group on the coordinator's order; its shares are erased."""
        assert self.ledger.opened is not None
        order.verify(self.ledger.coordinator, step=STEP)
        content = order.content
        if content.federation != self.ledger.opened.federation:
            raise VerificationError(STEP, f"the order is of {content.federation!r}")
        body = GroupRetired(epoch=content.epoch, group=content.group, reason=content.reason)
        self._append(body, at=at)
        self._erase_closed()

    def expire(self, *, at: datetime) -> None:
        """Retire every group that is incomplete after the deadline; its shares are erased."""
        epoch = self.ledger.epoch
        if epoch is None or self._time(at) <= epoch.deadline:
            return
        for group in self.ledger.open_groups:
            if not self.ledger.complete(group):
                members = self.ledger.groups[group]
                missing = [client for client in members if client not in self.ledger.shares]
                self._retire(group, f"no share of {', '.join(missing)}"[:200], at=at)

    def _retire(self, group: int, reason: str, *, at: datetime) -> None:
        epoch = self.ledger.epoch
        assert epoch is not None
        self._append(GroupRetired(epoch=epoch.epoch, group=group, reason=reason), at=at)
        self._erase_closed()

    def _append(self, body: HelperBody, *, at: datetime) -> None:
        _append(self._folder / "helper.log", self.ledger, body, self._key, at=at)

    def _time(self, at: datetime) -> str:
        return max(instant(at), self.ledger.time)

    def _share(self, client: str) -> Path:
        return self._folder / "shares" / client

    def _sum_path(self, order: ReleaseOrder) -> Path:
        return self._folder / "sums" / f"{order.epoch}-{order.group}"

    def _erase_closed(self) -> None:
        """Erase the seeds of members whose group is over, or whose share is not in the log."""
        ledger = self.ledger
        kept = {
            client
            for group in ledger.open_groups
            for client in ledger.groups[group]
            if client in ledger.shares
        }
        for path in (self._folder / "shares").iterdir():
            if path.name not in kept:
                path.unlink()
        sync_folder(self._folder / "shares")

    def _mend(self) -> None:
        """Cut off an entry that a crash left torn: it was never answered."""
        path = self._folder / "helper.log"
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole < len(content):
            with path.open("r+b") as handle:
                handle.truncate(whole)
                os.fsync(handle.fileno())


def _append(
    path: Path, ledger: HelperLedger, body: HelperBody, key: SigningKey, *, at: datetime
) -> None:
    entry = HelperEntry(
        index=ledger.size,
        previous=ledger.last,
        time=max(instant(at), ledger.time),
        body=body,
    )
    ledger.check(entry)
    line = HELPER_ENTRIES.write(sign(entry, key))
    HELPER_ENTRIES.read(line)  # an entry that cannot be read back is not written
    with path.open("ab") as handle:
        handle.write(line + b"\n")
        handle.flush()
        os.fsync(handle.fileno())
    ledger.note(entry, line)


def _locked(folder: Path) -> int:
    """Hold the folder: two helpers could answer twice for one share."""
    try:
        handle = os.open(folder / "helper.log", os.O_RDONLY)
    except OSError as error:
        raise SettingError(f"{folder} is not a helper's folder: {error.strerror}") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise SettingError(f"another process uses the helper's folder {folder}") from None
    return handle
