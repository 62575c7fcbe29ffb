"""A file or a folder that grows: appended lines, new files, rotated files, whole Parquet files."""

import hashlib
import json
import os
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import final

import numpy as np
from pydantic import TypeAdapter, ValidationError

from sluice.errors import RecordError, SettingError
from sluice.telemetry import PlantFile, read_rows
from sluice.watch.rows import StreamRows
from sluice.watch.sources.source import SourceState, no_rows
from sluice.watch.sources.text import TextReader
from sluice.watch.subject import Subject, columns_of

__all__ = ["GrowingFiles"]

SUFFIXES = (".csv", ".tsv", ".txt", ".parquet", ".xlsx")
WHOLE = (b"PAR1", b"PK\x03\x04", b"\x1f\x8b")  # Parquet, Excel, gzip: read only as whole files
READ_BYTES = 1 << 18
POLL_S = 0.05
CHECKED_BYTES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePosition:
    """How far a file was read: bytes of text, or the last time in a whole file."""

    inode: int
    offset: int
    check: str  # hash of the bytes before the offset: the same number can be another file
    last: int | None = None  # microseconds
    stamp: tuple[int, int] = (0, 0)  # size and time of change of a whole file


_POSITIONS = TypeAdapter(tuple[FilePosition, ...])


@final
class GrowingFiles:
    """Follows one file by its name, or all records in a folder, by what they contain."""

    def __init__(  # noqa: PLR0913 - what is read, how, and from where
        self,
        path: Path,
        subject: Subject,
        *,
        plant: PlantFile,
        format_name: str | None = None,
        position: str = "",
        from_end: bool = False,
    ) -> None:
        self.name = str(path)
        self.path = path
        self._subject = subject
        self._plant = plant
        self._format = format_name
        self._followers: dict[int, _Follower] = {}
        self._closed_unreadable = 0
        self._positions = {each.inode: each for each in _positions(position)}
        if from_end and not position:
            for file in self._files():
                follower = self._follower(file)
                if follower is not None:
                    follower.skip()

    @property
    def state(self) -> SourceState:
        """A file that grows is never over."""
        return SourceState.READING

    @property
    def unreadable(self) -> int:
        """Lines that could not be read."""
        return self._closed_unreadable + sum(f.unreadable for f in self._followers.values())

    def take(self, wait_s: float) -> StreamRows:
        """Return the rows that were added since the last call."""
        deadline = time.monotonic() + wait_s
        while True:
            for file in self._files():
                follower = self._follower(file)
                rows = follower.take() if follower is not None else None
                if rows is not None and len(rows):
                    return StreamRows(
                        times=rows.times, values=rows.values, position=self._position()
                    )
            self._close_gone()
            left = deadline - time.monotonic()
            if left <= 0:
                return no_rows(len(self._subject.names))
            time.sleep(min(POLL_S, left))

    def _files(self) -> list[Path]:
        """Return the files to read: those already begun first, then the others by name."""
        folder = self.path if self.path.is_dir() else self.path.parent
        known = {*self._followers, *self._positions}
        begun, new = [], []
        try:
            entries = sorted(os.scandir(folder), key=lambda entry: entry.name)
        except OSError:
            return []  # the folder is away for a moment
        for entry in entries:
            if entry.name.startswith((".", "~$")) or not entry.is_file():
                continue
            wanted = (
                entry.name.lower().endswith(SUFFIXES)
                if self.path.is_dir()
                else entry.name == self.path.name
            )
            if entry.inode() in known:
                begun.append(Path(entry.path))
            elif wanted:
                new.append(Path(entry.path))
        return begun + new

    def _follower(self, file: Path) -> "_Follower | None":
        try:
            inode = file.stat().st_ino
            if inode not in self._followers:
                begun = _Follower(file, self._subject, plant=self._plant, format_name=self._format)
                position = self._positions.pop(inode, None)
                if position is not None:
                    begun.resume(position)
                self._followers[inode] = begun
        except OSError:
            return None  # removed between the listing and here
        return self._followers[inode]

    def _close_gone(self) -> None:
        """Forget files that were removed, after their last row was read."""
        for inode, follower in tuple(self._followers.items()):
            if follower.removed:
                self._closed_unreadable += follower.unreadable
                follower.close()
                del self._followers[inode]

    def _position(self) -> str:
        known = [asdict(follower.position) for follower in self._followers.values()]
        known += [asdict(position) for position in self._positions.values()]
        return json.dumps(known)

    def confirm(self) -> None:
        """The position is kept with the rows."""

    def close(self) -> None:
        """Close the files."""
        for follower in self._followers.values():
            follower.close()


def _positions(text: str) -> tuple[FilePosition, ...]:
    if not text:
        return ()
    try:
        return _POSITIONS.validate_json(text)
    except ValidationError:
        raise SettingError(
            "the state belongs to a watch of another source; give another --state"
        ) from None


class _Follower:
    """One file, held open: its rows are read to the end even if it is renamed meanwhile."""

    def __init__(
        self, path: Path, subject: Subject, *, plant: PlantFile, format_name: str | None
    ) -> None:
        self._path = path
        self._subject = subject
        self._plant = plant
        self._format = format_name
        self._file = path.open("rb", buffering=0)
        self._inode = os.fstat(self._file.fileno()).st_ino
        self._offset = 0
        self._last: int | None = None
        self._stamp = (0, 0)
        self._closed_unreadable = 0
        self._reader = self._new_reader()

    def _new_reader(self) -> TextReader:
        return TextReader(
            self._path.name, self._subject, plant=self._plant, format_name=self._format
        )

    @property
    def unreadable(self) -> int:
        return self._closed_unreadable + self._reader.unreadable

    @property
    def removed(self) -> bool:
        return os.fstat(self._file.fileno()).st_nlink == 0

    @property
    def position(self) -> FilePosition:
        offset = self._offset - self._reader.held
        return FilePosition(
            inode=self._inode,
            offset=offset,
            check=self._check(offset),
            last=self._last,
            stamp=self._stamp,
        )

    def _check(self, offset: int) -> str:
        start = max(0, offset - CHECKED_BYTES)
        return hashlib.sha256(os.pread(self._file.fileno(), offset - start, start)).hexdigest()

    def resume(self, position: FilePosition) -> None:
        """Continue behind the rows that an earlier process has kept."""
        size = os.fstat(self._file.fileno()).st_size
        if position.last is not None:
            self._last, self._stamp = position.last, position.stamp
        elif position.offset <= size and self._check(position.offset) == position.check:
            self._drop_until(position.offset)

    def skip(self) -> None:
        """Leave out all rows that are there now."""
        while len(self.take()):
            pass

    def _drop_until(self, offset: int) -> None:
        """Read the opening again, for the header and the dialect, and continue at an offset."""
        if offset:
            self._reader.open_with(os.pread(self._file.fileno(), min(READ_BYTES, offset), 0))
            self._offset = offset

    def take(self) -> StreamRows:
        """Return the rows that were added."""
        head = os.pread(self._file.fileno(), 4, 0)
        if head.startswith(WHOLE):
            return self._whole()
        size = os.fstat(self._file.fileno()).st_size
        if size < self._offset:  # truncated: a rotation that keeps the file
            self._closed_unreadable += self._reader.unreadable
            self._reader.close()
            self._reader = self._new_reader()
            self._offset = 0
        data = os.pread(self._file.fileno(), READ_BYTES, self._offset)
        self._offset += len(data)
        self._reader.feed(data)
        return self._reader.rows()

    def _whole(self) -> StreamRows:
        """Read a file that is only readable when it is complete; take what is newer."""
        found = self._path.stat()
        stamp = (found.st_size, found.st_mtime_ns)
        if stamp == self._stamp:
            return no_rows(len(self._subject.names))
        try:
            read = read_rows(self._path, plant=self._plant, format_name=self._format)
        except RecordError:
            if time.time_ns() - found.st_mtime_ns > 60_000_000_000:  # it is not being written
                self._stamp = stamp
                self._closed_unreadable += 1
            return no_rows(len(self._subject.names))
        self._stamp = stamp
        columns = columns_of(read.names, self._subject, source=self._path.name)
        times = read.times.astype(np.int64)
        newer = times > (np.iinfo(np.int64).min if self._last is None else self._last)
        if newer.any():
            self._last = int(times[newer].max())
        return StreamRows(times=times[newer], values=read.values[newer][:, columns])

    def close(self) -> None:
        self._file.close()
        self._reader.close()
