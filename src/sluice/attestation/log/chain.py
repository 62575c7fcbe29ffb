"""The log: append-only, hash-chained JSON lines, which anyone can verify offline.

One line is one `Entry` in canonical form. An append returns after its line is on disk. A crash
during an append leaves a torn last line, which is reported and never dropped silently: `mend` moves
it to a file of its own.
"""

import fcntl
import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import BinaryIO

from sluice.attestation.log.entries import ENTRIES, Body, Entry, LogOpened, entry_digest
from sluice.attestation.log.heads import COORDINATOR, EMPTY_LOG, Head
from sluice.attestation.log.ledger import Ledger
from sluice.attestation.messages import Signed, SigningKey, instant, sign
from sluice.errors import DocumentError, SettingError, VerificationError
from sluice.files import public_file, sync_folder

__all__ = ["Log", "LogReader", "demand_log", "extended", "mend", "read_log"]

STEP = "7"
CHUNK_BYTES = 1 << 20
ENTRY_BEGINS = b'{"body":'
"""How every entry begins: in canonical JSON its first key is `body`."""


class Log:
    """A log that can be appended to, by the coordinator whose key its first entry names."""

    def __init__(self, path: Path, ledger: Ledger, length: int, key: SigningKey) -> None:
        self._path = path
        self._length = length  # bytes
        self._key = key
        self.ledger = ledger

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
        log = cls(path, Ledger(), 0, key)
        log.append(opened, at=at)
        return log

    @classmethod
    def open(cls, path: Path, key: SigningKey) -> "Log":
        """Verify a log from its first entry to its last and open it for appending."""
        ledger, length = _read(path)
        if ledger.opened.coordinator != key.public:
            raise SettingError(
                f"the log {path} belongs to another coordinator; give the key that it names"
            )
        return cls(path, ledger, length, key)

    def append(self, body: Body, *, at: datetime) -> Entry:
        """Check an entry against all earlier ones, write it, and return it once it is on disk."""
        with _locked(self._path) as handle:
            self._catch_up(os.fstat(handle).st_size)
            entry = self.check(body, at=at)
            line = ENTRIES.write(entry)
            ENTRIES.read(line)  # an entry that cannot be read back is not written
            _write(handle, line + b"\n", self._path, length=self._length)
            self._noted(entry, line)
        return entry

    def check(self, body: Body, *, at: datetime) -> Entry:
        """Raise a `VerificationError` if this cannot be the next entry; write nothing."""
        last = self.ledger.head(COORDINATOR).last if self.ledger.size else EMPTY_LOG
        entry = Entry(index=self.ledger.size, previous=last, time=instant(at), body=body)
        self.ledger.check(entry)
        return entry

    def catch_up(self) -> None:
        """Verify entries that another process of this coordinator appended, such as a waiver."""
        with _locked(self._path) as handle:
            self._catch_up(os.fstat(handle).st_size)

    def _catch_up(self, size: int) -> None:
        if size < self._length:
            raise SettingError(
                f"the log {self._path} was truncated by another process; open it again"
            )
        if size == self._length:
            return
        with self._path.open("rb") as opened:
            opened.seek(self._length)
            for line in opened:
                if not line.endswith(b"\n"):
                    raise VerificationError(STEP, _unfinished(self._path, line, self.ledger.size))
                entry = _entry(line[:-1], self.ledger.size)
                self.ledger.check(entry)
                self._noted(entry, line[:-1])

    def _noted(self, entry: Entry, line: bytes) -> None:
        self._length += len(line) + 1
        self.ledger.note(entry, entry_digest(line))

    def signed_head(self) -> Signed[Head]:
        """Return the head, signed by the coordinator, for plants to countersign."""
        return sign(self.ledger.head(COORDINATOR), self._key)


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
    """Verify a whole log offline and return its ledger."""
    path = Path(path)
    return _read(path)[0]


def extended(head: Head, lines: Iterable[bytes]) -> Head:
    """Return the head after these lines; each must follow the one before, from `head` on.

    A plant keeps the last head that it signed. With it, the plant checks that the log it sees now
    is the same log with entries added.
    """
    size, last = head.size, head.last
    for line in lines:
        entry = _entry(line, size)
        if entry.index != size or entry.previous != last:
            raise VerificationError(
                STEP, f"entry {size} does not follow the head that {head.signer!r} has seen"
            )
        size, last = size + 1, entry_digest(line)
    return Head(federation=head.federation, signer=head.signer, size=size, last=last)


def mend(path: Path) -> Path | None:
    """Move a torn last line into a file beside the log and return that file, if there was one."""
    with _locked(path) as handle:
        content = path.read_bytes()
        whole = content.rfind(b"\n") + 1
        if whole == len(content):
            return None
        aside = path.with_name(f"{path.name}.torn-{whole}")
        with aside.open("xb") as torn:
            torn.write(content[whole:])
            torn.flush()
            os.fsync(torn.fileno())
        sync_folder(path.parent)
        os.ftruncate(handle, whole)
        os.fsync(handle)
    return aside


def _read(path: Path) -> tuple[Ledger, int]:
    ledger, length = Ledger(), 0
    try:
        with path.open("rb") as opened:
            while line := opened.readline(ENTRIES.largest + 2):
                if not line.endswith(b"\n"):
                    raise VerificationError(STEP, _unfinished(path, line, ledger.size))
                entry = _entry(line[:-1], ledger.size)
                ledger.check(entry)
                ledger.note(entry, entry_digest(line[:-1]))
                length += len(line)
    except OSError as error:
        raise SettingError(f"the log {path} cannot be read: {error.strerror}") from None
    if ledger.size == 0:
        raise VerificationError(
            STEP, f"the log {path} is empty; its first entry must name its coordinator"
        )
    return ledger, length


def _unfinished(path: Path, line: bytes, index: int) -> str:
    if len(line) > ENTRIES.largest:
        return f"entry {index} has more than {ENTRIES.largest:,} bytes"
    return (
        f"the last line of {path} is torn: the {len(line)} bytes after entry {index - 1} are not a "
        "whole entry. An append was interrupted, or bytes were lost. Move them to another file "
        "with sluice.attestation.log.mend, then check whether the message arrived again"
    )


def _entry(line: bytes, index: int) -> Entry:
    try:
        return ENTRIES.read(line)
    except DocumentError as error:
        raise VerificationError(STEP, f"entry {index}: {error}") from None


@contextmanager
def _locked(path: Path) -> Iterator[int]:
    """Open the log's file, locked against other processes."""
    try:
        handle = os.open(path, os.O_RDWR | os.O_APPEND)
    except OSError as error:
        raise SettingError(f"cannot write the log {path}: {error.strerror}") from None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)


def _write(handle: int, line: bytes, path: Path, *, length: int) -> None:
    """Write a whole line to disk, or restore the previous length."""
    rest = memoryview(line)
    try:
        while rest:
            rest = rest[os.write(handle, rest) :]
        os.fsync(handle)
    except OSError as error:
        os.ftruncate(handle, length)
        raise SettingError(f"cannot write the log {path}: {error.strerror}") from None


class LogReader:
    """Follows a growing log that another process writes; it only reads the file.

    It verifies each entry once. Of the entries that it has verified it keeps a hash of their bytes,
    so a log that was rewritten or truncated since then does not pass.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._length = 0  # bytes that are verified
        self._verified = hashlib.sha256()
        self._seen: tuple[int, ...] = ()  # identity, size and time of change when last verified
        self.ledger = Ledger()

    def catch_up(self) -> Ledger:
        """Verify the entries that were appended since the last call; return the ledger.

        Raise a `VerificationError` if the log was rewritten or truncated, or if a new entry does
        not verify. The ledger then holds the entries before it.
        """
        try:
            with self._path.open("rb") as opened:
                found = _settled(opened.fileno())
                seen = (found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns)
                if seen != self._seen or self._length != found.st_size:
                    self._demand_same(opened, found.st_size)
                    self._verify(opened, found.st_size)
                    self._seen = seen
        except OSError as error:
            raise SettingError(f"the log {self._path} cannot be read: {error.strerror}") from None
        if self.ledger.size == 0:
            raise VerificationError(
                STEP, f"the log {self._path} is empty; its first entry must name its coordinator"
            )
        return self.ledger

    def _demand_same(self, opened: BinaryIO, size: int) -> None:
        """Read what was verified before, and compare its hash."""
        if size < self._length:
            raise VerificationError(
                STEP,
                f"the log {self._path} was truncated: it has {size:,} bytes, and {self._length:,} "
                f"bytes with {self.ledger.size} entries were verified before",
            )
        again, left = hashlib.sha256(), self._length
        while part := opened.read(min(left, CHUNK_BYTES)):
            again.update(part)
            left -= len(part)
        if again.digest() != self._verified.digest():
            raise VerificationError(
                STEP,
                f"the log {self._path} was rewritten: its first {self.ledger.size} entries are not "
                "those that were verified before",
            )

    def _verify(self, opened: BinaryIO, size: int) -> None:
        while self._length < size:
            line = opened.readline(min(size - self._length, ENTRIES.largest + 2))
            if not line.endswith(b"\n"):
                raise VerificationError(STEP, _unfinished(self._path, line, self.ledger.size))
            entry = _entry(line[:-1], self.ledger.size)
            self.ledger.check(entry)
            self.ledger.note(entry, entry_digest(line[:-1]))
            self._length += len(line)
            self._verified.update(line)


def _settled(handle: int) -> os.stat_result:
    """Return the size of a log between two appends: an append locks the file."""
    fcntl.flock(handle, fcntl.LOCK_SH)
    try:
        return os.fstat(handle)
    finally:
        fcntl.flock(handle, fcntl.LOCK_UN)
