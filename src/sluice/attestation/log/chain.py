"""The log: hash-chained JSON lines that only grow, which anyone can verify offline.

One line is one `Entry` in canonical form. The last line is the coordinator's signed head of the
entries before it, so that a log that was cut short or changed does not verify. An append replaces
that line by the new entry and its head, and returns after both are on disk.

A crash during an append leaves a log without a whole last entry or without its head. `mend` moves
torn bytes to a file of their own and signs the head again.
"""

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from sluice.attestation.log.entries import ENTRIES, Body, Entry, KeyRotated, LogOpened, entry_digest
from sluice.attestation.log.heads import COORDINATOR, EMPTY_LOG, HEADS, Head, refuse_fork
from sluice.attestation.log.ledger import Ledger
from sluice.attestation.log.snapshots import LedgerSnapshot, load_snapshot, save_snapshot
from sluice.attestation.messages import (
    RotationSigned,
    Signed,
    SigningKey,
    instant,
    rotate,
    sign,
)
from sluice.errors import DocumentError, SettingError, VerificationError
from sluice.files import atomically, public_file, sync_folder

__all__ = [
    "Log",
    "LogCopy",
    "LogReader",
    "chained_lines",
    "compare_logs",
    "copy_log",
    "demand_head",
    "demand_log",
    "lines_of",
    "mend",
    "read_head",
    "read_log",
]

STEP = "7"
ENTRY_BEGINS = b'{"body":'
"""How every entry begins: in canonical JSON its first key is `body`."""
SNAPSHOT_EVERY = 4_096
"""Entries after which a log that is written takes a snapshot of its ledger."""


class LogReader:
    """A log that is read and verified; `catch_up` verifies only the entries since the last call.

    With a snapshot, reading starts at the entries that follow it. Without one, the whole log is
    verified.
    """

    def __init__(self, path: Path, *, snapshot: LedgerSnapshot | None = None) -> None:
        self._path = path
        self._begin(snapshot)

    def _begin(self, snapshot: LedgerSnapshot | None) -> None:
        self.ledger = Ledger(snapshot.state if snapshot else None)
        self._length = snapshot.length if snapshot else 0  # bytes of the entries
        self._last_length = snapshot.last_length if snapshot else 0  # bytes of the last entry
        self.head: Signed[Head] | None = None

    def catch_up(self, *, unsigned: bool = False) -> Ledger:
        """Verify the entries that were appended since the last call, and the signed head.

        The head may be missing only if `unsigned`: then entries may be missing too.
        """
        with _opened(self._path, fcntl.LOCK_SH) as handle:
            self._catch_up(handle, unsigned=unsigned)
        return self.ledger

    def _catch_up(self, handle: int, *, unsigned: bool = False) -> None:
        """Verify new entries; the head may be missing only if `unsigned`."""
        self._refuse_rewritten(handle)
        head: bytes | None = None
        with os.fdopen(os.dup(handle), "rb") as opened:
            opened.seek(self._length)
            while line := opened.readline(ENTRIES.largest + 2):
                if not line.endswith(b"\n"):
                    raise VerificationError(STEP, _unfinished(self._path, line, self.ledger.size))
                if head is not None:
                    raise VerificationError(
                        STEP, f"{self._path}: bytes follow the signed head of the log"
                    )
                if line.startswith(ENTRY_BEGINS):
                    self._take(line[:-1])
                else:
                    head = line[:-1]
        if self.ledger.size == 0:
            raise VerificationError(
                STEP, f"the log {self._path} is empty; its first entry must name its coordinator"
            )
        if head is not None or not unsigned:
            self._check_head(head or b"", self.ledger.coordinator)

    def _take(self, line: bytes) -> None:
        entry = _entry(line, self.ledger.size)
        self.ledger.check(entry)
        self._note(entry, line)

    def _note(self, entry: Entry, line: bytes) -> None:
        self._length += len(line) + 1
        self._last_length = len(line) + 1
        self.ledger.note(entry, entry_digest(line))

    def _check_head(self, line: bytes, signer: str) -> None:
        size = self.ledger.size
        if not line:
            raise VerificationError(
                STEP,
                f"{self._path} ends after entry {size - 1} without the coordinator's signed head: "
                "entries may be missing. Get the whole file again; the coordinator itself repairs "
                "an interrupted write with 'sluice coordinator resume'",
            )
        try:
            head = HEADS.read(line)
        except DocumentError as error:
            raise VerificationError(STEP, f"the last line of {self._path}: {error}") from None
        head.verify(signer, step=STEP)
        if head.content != self.ledger.head(COORDINATOR):
            raise VerificationError(
                STEP,
                f"the coordinator signed a log of {head.content.size} entries that ends with "
                f"{head.content.last[:12]}...; {self._path} has {size} entries and ends with "
                f"{self.ledger.head(COORDINATOR).last[:12]}...: entries are missing or forged",
            )
        self.head = head

    def _refuse_rewritten(self, handle: int) -> None:
        """Raise if the last entry that was verified is no longer where it was."""
        if not self._last_length:
            return
        at = self._length - self._last_length
        line = os.pread(handle, self._last_length, at)
        last = self.ledger.head(COORDINATOR).last
        if not line.endswith(b"\n") or entry_digest(line[:-1]) != last:
            raise VerificationError(
                STEP,
                f"{self._path} does not have entry {self.ledger.size - 1} any more: the log was "
                "truncated, rewritten or restored from an older copy",
            )


class SavedLog(LogReader):
    """A log whose holder saves signed snapshots beside it, so that opening it is fast.

    `use` replaces the holder's key: a snapshot is read only with the key that signed it.
    """

    def __init__(
        self, path: Path, key: SigningKey, *, snapshot: LedgerSnapshot | None = None
    ) -> None:
        super().__init__(path, snapshot=snapshot)
        self._key = key

    def _begin(self, snapshot: LedgerSnapshot | None) -> None:
        super()._begin(snapshot)
        self._snapshot_size = self.ledger.size

    def use(self, key: SigningKey) -> None:
        """Sign snapshots with another key of the holder from now on."""
        self._key = key
        self.snapshot()

    def snapshot(self) -> None:
        """Save the ledger's state under the holder's signature."""
        snapshot = LedgerSnapshot(
            state=self.ledger.state, length=self._length, last_length=self._last_length
        )
        save_snapshot(self._path, snapshot, self._key)
        self._snapshot_size = self.ledger.size

    def _snapshot_if_due(self) -> None:
        if self.ledger.size - self._snapshot_size >= SNAPSHOT_EVERY:
            with suppress(
                SettingError
            ):  # the entry is on disk; without a snapshot, opening is slow
                self.snapshot()


class Log(SavedLog):
    """A log that can be appended to, by the coordinator whose key it names."""

    @classmethod
    def create(cls, path: Path, opened: LogOpened, key: SigningKey, *, at: datetime) -> "Log":
        """Create a log; an existing file is not changed."""
        if opened.coordinator != key.public:
            raise SettingError(
                f"the log names coordinator key {opened.coordinator[:12]}..., the key given is "
                f"{key.public[:12]}...; create a log with the key that it names"
            )
        try:
            public_file(path, new=True)
            sync_folder(path.parent)
        except OSError as error:
            raise SettingError(f"cannot create the log {path}: {error.strerror}") from None
        log = cls(path, key)
        log.append(opened, at=at)
        return log

    @classmethod
    def open(cls, path: Path, key: SigningKey, *, replay: bool = False) -> "Log":
        """Verify a log and open it for appending.

        Entries before the coordinator's own last signed snapshot are not verified again, unless
        with `replay`.
        """
        snapshot = None if replay else load_snapshot(path, key.public)
        log = cls(path, key, snapshot=snapshot)
        log.catch_up()
        if log.ledger.coordinator != key.public:
            raise SettingError(
                f"the log {path} belongs to another coordinator; give the key that it names"
            )
        return log

    def append(self, body: Body, *, at: datetime) -> Entry:
        """Check an entry against all earlier ones, write it, and return it once it is on disk."""
        return self._append(body, self._key, at=at)

    def rotate(self, new: SigningKey, *, at: datetime) -> None:
        """Replace the coordinator's key; from now on the log is signed with the new one."""
        signed = rotate(self.ledger.opened.federation, self._key, new)
        self._append(KeyRotated(signed=signed), new, at=at)
        self._key = new

    def _append(self, body: Body, key: SigningKey, *, at: datetime) -> Entry:
        with _opened(self._path, fcntl.LOCK_EX) as handle:
            if self.ledger.size or os.fstat(handle).st_size:
                self._catch_up(handle)
                self._refuse_old_key(body, key)
            entry = self.check(body, at=at)
            line = ENTRIES.write(entry)
            ENTRIES.read(line)  # an entry that cannot be read back is not written
            federation = body.federation if isinstance(body, LogOpened) else None
            head = sign(
                Head(
                    federation=federation or self.ledger.opened.federation,
                    signer=COORDINATOR,
                    size=entry.index + 1,
                    last=entry_digest(line),
                ),
                key,
            )
            self._write(handle, line, head)
            self._note(entry, line)
            self.head = head
        self._snapshot_if_due()
        return entry

    def _refuse_old_key(self, body: Body, key: SigningKey) -> None:
        """Raise unless this key is the coordinator's after the entry: it signs the head."""
        in_force = self.ledger.coordinator
        if isinstance(body, KeyRotated) and body.signed.rotation.old == in_force:
            in_force = body.signed.rotation.new
        if key.public != in_force:
            raise SettingError(
                f"key {key.public[:12]}... does not sign the log {self._path} any more, "
                f"{in_force[:12]}... does; open the log with that key"
            )

    def _write(self, handle: int, line: bytes, head: Signed[Head]) -> None:
        """Write an entry and its head in place of the last head, or restore that one."""
        try:
            content = line + b"\n" + HEADS.write(head) + b"\n"
            _write_at(handle, content, self._path, at=self._length)
        except SettingError:
            os.ftruncate(handle, self._length)
            if self.head is not None:
                before = HEADS.write(self.head) + b"\n"
                _write_at(handle, before, self._path, at=self._length)
            raise

    def check(self, body: Body, *, at: datetime) -> Entry:
        """Raise a `VerificationError` if this cannot be the next entry; write nothing.

        The log's time does not go back: if the clock does, the entry has the time of the last one.
        """
        last = self.ledger.head(COORDINATOR).last if self.ledger.size else EMPTY_LOG
        time = max(instant(at), self.ledger.time)
        entry = Entry(index=self.ledger.size, previous=last, time=time, body=body)
        self.ledger.check(entry)
        return entry

    def sign_again(self, handle: int) -> None:
        """Sign the head of a log that a crash left without one; the caller holds the lock."""
        self._catch_up(handle, unsigned=True)
        if self.ledger.coordinator != self._key.public:
            raise SettingError(
                f"the log {self._path} belongs to another coordinator; give the key that it names"
            )
        if self.head is None:
            head = HEADS.write(self.signed_head()) + b"\n"
            _write_at(handle, head, self._path, at=self._length)

    def signed_head(self) -> Signed[Head]:
        """Return the head, signed by the coordinator, for plants to countersign."""
        return sign(self.ledger.head(COORDINATOR), self._key)


class LogCopy(SavedLog):
    """A plant's copy of the log: it takes the coordinator's lines after checking each of them."""

    def __init__(self, path: Path, key: SigningKey, coordinator: str) -> None:
        super().__init__(path, key)
        self._coordinator = coordinator  # the key that the invitation names
        if path.exists():
            with _opened(path, fcntl.LOCK_EX) as handle:
                self._restore(handle)

    def extend(
        self,
        lines: tuple[bytes, ...],
        head: bytes,
        *,
        rotations: tuple[RotationSigned, ...] = (),
    ) -> None:
        """Check lines that follow this copy and the signed head after them, then write them.

        The head of a page that ends before the coordinator's key was rotated is signed with a later
        key; `rotations` leads from the key in force to that one. If any of it does not hold, raise
        and keep the copy as it was.
        """
        public_file(self._path)
        with _opened(self._path, fcntl.LOCK_EX) as handle:
            self._refuse_rewritten(handle)
            try:
                self._extend(handle, lines, head, rotations)
            except (VerificationError, SettingError):
                self._restore(handle)
                raise
        self._snapshot_if_due()

    def _extend(
        self,
        handle: int,
        lines: tuple[bytes, ...],
        head: bytes,
        rotations: tuple[RotationSigned, ...],
    ) -> None:
        at, headless = self._length, self.head is None
        for line in lines:
            self._take(line)
        self._refuse_other_coordinator()
        signer = self.signer(rotations)
        self._check_head(head, signer)
        if not lines and not headless:
            return
        content = b"".join(line + b"\n" for line in lines)
        if signer == self.ledger.coordinator:
            content += head + b"\n"
        else:
            self.head = None  # the file ends without one until the rotation is in it
        _write_at(handle, content, self._path, at=at)

    def signer(self, rotations: tuple[RotationSigned, ...]) -> str:
        """Return the coordinator's last key, following rotations that both keys have signed."""
        key = self.ledger.coordinator
        for signed in rotations:
            rotation = signed.rotation
            if (rotation.old, rotation.federation) == (key, self.ledger.opened.federation):
                signed.verify(step=STEP)
                key = rotation.new
        return key

    def _refuse_other_coordinator(self) -> None:
        if self.ledger.opened.coordinator != self._coordinator:
            raise VerificationError(
                STEP, "the log was opened by another coordinator than the invitation names"
            )

    def _restore(self, handle: int) -> None:
        """Read the copy on disk again; a crash may have left it empty or without a head."""
        self._begin(load_snapshot(self._path, self._key.public))
        _drop_torn(handle)
        if self.ledger.size or os.fstat(handle).st_size:
            self._catch_up(handle, unsigned=True)


def demand_log(path: str | Path) -> None:
    """Raise a `SettingError` where a file is no log at all, rather than a broken one."""
    path = Path(path)
    try:
        with path.open("rb") as opened:
            begins = opened.read(len(ENTRY_BEGINS))
    except OSError as error:
        raise SettingError(f"the log {path} cannot be read: {error.strerror}") from None
    if begins != ENTRY_BEGINS:
        raise SettingError(f"{path} is not a log of a federation; give the file log.jsonl")


def read_log(path: str | Path) -> Ledger:
    """Verify a whole log offline, with its signed head, and return its ledger."""
    return LogReader(Path(path)).catch_up()


def copy_log(path: Path, target: Path) -> int:
    """Write a verified copy of a log with its signed head; return the number of entries."""
    if target.exists() and target.samefile(path):
        raise SettingError(f"{target} is the log itself; write another file")
    with _opened(path, fcntl.LOCK_SH), atomically(target) as draft:
        shutil.copyfile(path, draft)
        return read_log(draft).size


def compare_logs(one: Path, other: Path) -> int:
    """Verify two logs and return how many entries they share, if one continues the other.

    Two logs that part are signed by the same coordinator: that is proof of a fork, and raises.
    """
    ledgers = [LogReader(path).catch_up() for path in (one, other)]
    sizes = [ledger.size for ledger in ledgers]
    if ledgers[0].opened != ledgers[1].opened:
        raise VerificationError(
            STEP,
            f"{one} and {other} are logs of different federations "
            f"({ledgers[0].opened.federation!r} and {ledgers[1].opened.federation!r}), or of "
            "different keys",
        )
    low, high = 0, min(sizes)
    while low < high:  # entries are chained, so they differ from a fork on
        middle = (low + high + 1) // 2
        if _digest_at(one, middle) == _digest_at(other, middle):
            low = middle
        else:
            high = middle - 1
    if low < min(sizes):
        first, second = (
            Head(
                federation=ledgers[0].opened.federation,
                signer=str(path),
                size=low + 1,
                last=_digest_at(path, low + 1),
            )
            for path in (one, other)
        )
        refuse_fork(first, second)
    return low


def demand_head(path: Path, ledger: Ledger, head: Signed[Head]) -> None:
    """Raise unless a verified log contains this head, which its coordinator or a client signed."""
    content = head.content
    if content.federation != ledger.opened.federation:
        raise VerificationError(STEP, f"the head is of federation {content.federation!r}")
    keys = ledger.keys_of(content.signer)
    for key in keys:
        try:
            head.verify(key, step=STEP)
            break
        except VerificationError:
            continue
    else:
        raise VerificationError(
            STEP, f"the head was not signed by {content.signer!r} of this federation"
        )
    if content.size > ledger.size:
        raise VerificationError(
            STEP,
            f"{content.signer!r} has signed a log of {content.size} entries; {path} has "
            f"{ledger.size}: entries are missing",
        )
    if content.size:
        shown = Head(
            federation=content.federation,
            signer=str(path),
            size=content.size,
            last=_digest_at(path, content.size),
        )
        refuse_fork(content, shown)


def read_head(path: Path) -> Signed[Head]:
    """Read a signed head: a file of its own, or the last line of a log."""
    with path.open("rb") as opened:
        size = opened.seek(0, os.SEEK_END)
        opened.seek(max(0, size - HEADS.largest - 1))
        raw = opened.read()
    return HEADS.read(raw.rstrip(b"\n").rpartition(b"\n")[2])


def _digest_at(path: Path, size: int) -> str:
    """Return the digest of the last of the first `size` entries."""
    return entry_digest(lines_of(path, start=size - 1, stop=size, largest=ENTRIES.largest)[0])


def lines_of(path: Path, *, start: int, stop: int, largest: int) -> tuple[bytes, ...]:
    """Return entries `start` to `stop` of a log as lines, as many as fit in `largest` bytes.

    The file is not verified here. At least one line is returned if there is one.
    """
    lines: list[bytes] = []
    size = 0
    with path.open("rb") as opened:
        opened.seek(_offset_of(opened, start))
        for line in opened:
            size += len(line)
            full = bool(lines) and size > largest
            whole = line.startswith(ENTRY_BEGINS) and line.endswith(b"\n")
            if full or not whole or start + len(lines) >= stop:
                break
            lines.append(line[:-1])
    return tuple(lines)


_PREVIOUS = re.compile(rb'"previous":"([0-9a-f]{64})","schema":1,"time":"[^"]*"}$')
"""How every entry ends: in canonical JSON its last keys are these."""


def chained_lines(path: Path, *, stop: int, last: str, most: int) -> tuple[tuple[bytes, ...], str]:
    """Return up to `most` entries before entry `stop` as lines, and the digest before them.

    `last` is the digest of the last of them, from a log that was verified. The hashes chain the
    others to it: a line that was changed raises.
    """
    start = max(0, stop - most)
    lines = lines_of(path, start=start, stop=stop, largest=most * ENTRIES.largest)
    if len(lines) != stop - start:
        raise VerificationError(
            STEP, f"{path} does not have entries {start} to {stop - 1} any more"
        )
    for index, line in zip(range(stop - 1, start - 1, -1), reversed(lines), strict=True):
        previous = _PREVIOUS.search(line)
        if entry_digest(line) != last or previous is None:
            raise VerificationError(
                STEP, f"entry {index} of {path} is not the one that later entries were chained to"
            )
        last = previous[1].decode()
    return lines, last


def _offset_of(opened: BinaryIO, index: int) -> int:
    """Return where an entry begins, by binary search: entries are numbered in order."""
    low, high = 0, opened.seek(0, os.SEEK_END)
    while low < high:
        middle = (low + high) // 2
        begins = _line_start(opened, middle)
        line = opened.readline()
        if line.startswith(ENTRY_BEGINS) and _index_of(line) < index:
            low = begins + len(line)
        else:
            high = middle
    return _line_start(opened, low)


def _line_start(opened: BinaryIO, place: int) -> int:
    """Go to the first line that begins at this place or after it."""
    opened.seek(max(0, place - 1))
    if place:
        opened.readline()
    return opened.tell()


def _index_of(line: bytes) -> int:
    """Return an entry's number without reading the rest of it."""
    number = line.rpartition(b',"index":')[2].partition(b",")[0]
    return int(number) if number.isdigit() else 0


def mend(path: Path, key: SigningKey) -> Path | None:
    """Repair a log after a crash: move torn bytes aside, and sign the head again.

    Return the file with the torn bytes, if there were any.
    """
    aside = None
    with _opened(path, fcntl.LOCK_EX) as handle:
        torn, whole = _torn(handle)
        if torn:
            aside = _unused(path.with_name(f"{path.name}.torn-{whole}"))
            with aside.open("xb") as kept:
                kept.write(torn)
                kept.flush()
                os.fsync(kept.fileno())
            sync_folder(path.parent)
            _drop_torn(handle)
        log = Log(path, key, snapshot=load_snapshot(path, key.public))
        log.sign_again(handle)
    return aside


def _unused(path: Path) -> Path:
    """Return a path that does not exist: this one, or this one with a number."""
    unused, number = path, 1
    while unused.exists():
        number += 1
        unused = path.with_name(f"{path.name}-{number}")
    return unused


def _torn(handle: int) -> tuple[bytes, int]:
    """Return the bytes after the last line feed, and the length of the file before them."""
    size = os.fstat(handle).st_size
    start = max(0, size - 2 * ENTRIES.largest)
    tail = os.pread(handle, size - start, start)
    whole = start + tail.rfind(b"\n") + 1
    return tail[whole - start :], whole


def _drop_torn(handle: int) -> None:
    torn, whole = _torn(handle)
    if torn:
        os.ftruncate(handle, whole)
        os.fsync(handle)


def _unfinished(path: Path, line: bytes, index: int) -> str:
    if len(line) > ENTRIES.largest:
        return f"entry {index} has more than {ENTRIES.largest:,} bytes"
    return (
        f"the last line of {path} is torn: the {len(line)} bytes after entry {index - 1} are not a "
        "whole entry. An append was interrupted, or bytes were lost. 'sluice coordinator resume' "
        "moves them to another file; then check whether the message arrived again"
    )


def _entry(line: bytes, index: int) -> Entry:
    try:
        return ENTRIES.read(line)
    except DocumentError as error:
        raise VerificationError(STEP, f"entry {index}: {error}") from None


@contextmanager
def _opened(path: Path, lock: int) -> Iterator[int]:
    """Open the log's file, locked against other processes; shared for readers."""
    writing = lock == fcntl.LOCK_EX
    try:
        handle = os.open(path, os.O_RDWR if writing else os.O_RDONLY)
    except OSError as error:
        what = "written" if writing else "read"
        raise SettingError(f"the log {path} cannot be {what}: {error.strerror}") from None
    try:
        fcntl.flock(handle, lock)
        yield handle
    finally:
        os.close(handle)


def _write_at(handle: int, content: bytes, path: Path, *, at: int) -> None:
    """Write bytes at this place in place of all that follow, on disk.

    The old bytes are cut off first. A crash then leaves a part of the new bytes, never a mixture.
    """
    rest = memoryview(content)
    try:
        os.ftruncate(handle, at)
        while rest:
            written = os.pwrite(handle, rest, at)
            rest, at = rest[written:], at + written
        os.fsync(handle)
    except OSError as error:
        raise SettingError(f"cannot write the log {path}: {error.strerror}") from None
