"""One input file: its bytes, encoding, delimiter and first lines."""

import codecs
import csv
import gzip
import hashlib
import re
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from sluice.errors import RecordError, UnknownFormatError
from sluice.files import read_bounded
from sluice.telemetry.exports import PROBED_LINES, best_delimiter
from sluice.telemetry.limits import LARGEST_RECORD, ReadLimits

__all__ = ["Container", "Source", "cut", "find_record_file", "find_record_files"]

HEAD_LINES = 8
OPENING_BYTES = 1 << 18
LONG_OPENING_BYTES = 4 << 20
FEWEST_LINES = 4
READ_BYTES = 1 << 20
LARGEST_COMPANION = 16 << 20
MOST_FILES = 4_096
UNMARKED_BYTES = 512
HIGH_BYTES = re.compile(rb"[\x80-\xff]+")
GZIP_MAGIC = b"\x1f\x8b"
DELIMITERS = (",", "\t", ";", "|")
RECORD_SUFFIXES = (".csv", ".tsv", ".txt", ".gz", ".xlsx", ".parquet", ".json", ".jsonl", ".state")
ATTACK_SHEETS = ("attack_description", "attacks.json")
COMPANION_WORDS = (*ATTACK_SHEETS, "list", "readme", "license")
"""Words in the names of files that describe a record; such a file is never a record itself."""


class Container(StrEnum):
    """The kind of file that contains the record."""

    TEXT = "text"
    EXCEL = "excel"
    PARQUET = "parquet"


@dataclass(frozen=True)
class Source:
    """One file, read once."""

    path: Path
    encoding: str = ""  # of text; detected if empty

    @cached_property
    def data(self) -> bytes:
        """The file's bytes, decompressed if gzipped."""
        return self._decompressed(-1)

    @cached_property
    def opening(self) -> bytes:
        """The first bytes, decompressed: enough to detect the format."""
        return self._decompressed(OPENING_BYTES)

    @cached_property
    def limits(self) -> ReadLimits:
        """How far the file may grow when it is read."""
        if self.size > LARGEST_RECORD:
            raise RecordError(
                f"{self.path.name} has {self.size:,} bytes; expected at most {LARGEST_RECORD:,}: "
                "split the record"
            )
        return ReadLimits(name=self.path.name, size=self.size)

    def _decompressed(self, count: int) -> bytes:
        limits = self.limits
        try:
            with self.path.open("rb") as file:
                if file.peek(2)[:2] != GZIP_MAGIC:
                    return file.read(count)
                most = limits.most_bytes + 1 if count < 0 else count
                data = bytearray()
                with gzip.GzipFile(fileobj=file) as archive:
                    while part := archive.read(min(READ_BYTES, most - len(data))):
                        data += part
                        limits.demand_bytes(len(data))
                return bytes(data)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            raise RecordError(
                f"{self.path.name} is a damaged gzip file ({error}); fetch it again"
            ) from None
        except OSError as error:
            raise RecordError(f"{self.path} cannot be read: {error.strerror}") from None

    @cached_property
    def size(self) -> int:
        """Bytes on disk."""
        return self.path.stat().st_size

    @cached_property
    def digest(self) -> str:
        """Hash of the content; part of the cache key."""
        with self.path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @cached_property
    def companions_digest(self) -> str:
        """Hash of the files in the same folder that describe this one (attack sheets and lists)."""
        digest = hashlib.blake2b(digest_size=20)
        for file in sorted(self.path.parent.iterdir()):
            if file.is_file() and any(word in file.name.lower() for word in ATTACK_SHEETS):
                content = read_bounded(
                    file, "attack list", largest=LARGEST_COMPANION, error=RecordError
                )
                digest.update(file.name.encode() + b"\x00" + content)
        return digest.hexdigest()

    @cached_property
    def container(self) -> Container:
        """The container, detected by the first bytes, not by the name."""
        if self.opening.startswith(b"PK\x03\x04"):
            return Container.EXCEL
        return Container.PARQUET if self.opening.startswith(b"PAR1") else Container.TEXT

    @cached_property
    def text(self) -> bytes:
        """The whole text as UTF-8 without byte order mark; raises if the file is not text."""
        return self._decoded(self.data, errors="strict")

    @cached_property
    def head(self) -> tuple[str, ...]:
        """The first lines, to detect the format."""
        return self.lines[:HEAD_LINES]

    @cached_property
    def lines(self) -> tuple[str, ...]:
        """The lines at the start, to detect the dialect."""
        lines = self._decoded(self.opening, errors="ignore").splitlines()
        whole = len(self.opening) < OPENING_BYTES
        if not whole and len(lines) < FEWEST_LINES:  # the header has thousands of long names
            longer = self._decompressed(LONG_OPENING_BYTES)
            lines = self._decoded(longer, errors="ignore").splitlines()
            whole = len(longer) < LONG_OPENING_BYTES
        if len(lines) > 1 and not whole:
            lines.pop()  # it may be incomplete
        return tuple(line.decode("utf-8", errors="replace") for line in lines[:PROBED_LINES])

    @cached_property
    def text_encoding(self) -> str:
        """The encoding of the text: as given, else by its marks and bytes."""
        if self.encoding:
            return self.encoding
        opening = self.opening
        if opening.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            return "utf-16"
        if b"\x00" in opening:
            # Text of Latin letters in UTF-16 without a mark has a zero in every second byte.
            start = opening[: UNMARKED_BYTES & ~1]
            for name, zeros, letters in (
                ("utf-16-le", start[1::2], start[::2]),
                ("utf-16-be", start[::2], start[1::2]),
            ):
                if len(start) > 16 and not any(zeros) and all(letters):
                    return name
            raise UnknownFormatError(
                f"{self.path.name} is neither text, .xlsx nor Parquet; give a plant record"
            )
        if opening.isascii():
            return "utf-8"
        runs = HIGH_BYTES.findall(opening)
        chinese = all(len(run) % 2 == 0 and min(run) >= 0xA1 for run in runs)
        if _is_utf8(opening):
            # Few Chinese words are also valid UTF-8, as letters of several alphabets in one word.
            return "gb18030" if chinese and any(map(_mixes_alphabets, runs)) else "utf-8"
        return "gb18030" if chinese and max(map(len, runs)) >= 4 else "cp1252"

    def _decoded(self, data: bytes, *, errors: str) -> bytes:
        encoding = self.text_encoding
        if encoding.startswith("utf-16"):
            try:
                data = data.decode(encoding, errors=errors).encode()
            except UnicodeError:
                raise RecordError(
                    f"{self.path.name} is truncated or damaged UTF-16 text; fetch it again"
                ) from None
        elif encoding != "utf-8":
            try:
                data = data.decode(encoding, errors="replace").encode()
            except LookupError:
                raise RecordError(
                    f"{self.path.name}: the plant file's encoding {encoding!r} is unknown; give "
                    "one such as 'utf-8' or 'cp1252'"
                ) from None
        data = data.removeprefix(codecs.BOM_UTF8)
        if data[:OPENING_BYTES].isspace() or not data:
            raise RecordError(f"{self.path.name} is empty; a record has a header and rows")
        if b"\r" in data[:OPENING_BYTES] and b"\n" not in data[:OPENING_BYTES]:
            data = data.replace(b"\r", b"\n")
        return data

    @cached_property
    def delimiter(self) -> str:
        """The delimiter that splits the first lines into equally many cells; else a comma.

        A decimal comma splits lines too. So the cells must look like data.
        """
        lines = [line for line in self.lines if line.strip() and not line.startswith("#")]
        marks = [mark for mark in DELIMITERS if any(mark in line for line in lines)]
        if len(marks) == 1:
            return marks[0]
        best = best_delimiter({mark: [cut(line, mark) for line in lines] for mark in marks})
        if best is not None:
            return best
        counts = {mark: max(line.count(mark) for line in self.head) for mark in DELIMITERS}
        return max(DELIMITERS, key=lambda mark: counts[mark])

    def cells(self, line: int) -> tuple[str, ...]:
        """One of the first lines, split into stripped cells; empty if there is no such line."""
        if self.container is not Container.TEXT or line >= len(self.head):
            return ()
        return cut(self.head[line], self.delimiter)


def cut(line: str, delimiter: str) -> tuple[str, ...]:
    """Split a line into stripped cells; a delimiter inside quotes does not split."""
    cells = line.split(delimiter)
    if '"' in line:
        # A line that is not valid CSV stays split at every delimiter.
        with suppress(csv.Error):
            cells = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), cells)
    return tuple(cell.strip().strip('"').strip() for cell in cells)


def _mixes_alphabets(run: bytes) -> bool:
    letters = run.decode("utf-8", errors="ignore")
    return len({ord(letter) >> 8 for letter in letters if ord(letter) < 0x800}) > 1 and all(
        0x250 <= ord(letter) < 0x800 for letter in letters
    )


def _is_utf8(opening: bytes) -> bool:
    """Return whether bytes are UTF-8; the last character may be cut."""
    try:
        opening.decode("utf-8")
    except UnicodeDecodeError as error:
        return len(opening) == OPENING_BYTES and error.start > OPENING_BYTES - 4
    return True


def find_record_file(path: Path) -> Path:
    """Return the record file at a path: the file itself, or the only record in a folder."""
    candidates = find_record_files(path)
    if len(candidates) > 1:
        names = ", ".join(str(file.relative_to(path)) for file in candidates[:6])
        raise RecordError(f"{path} holds {len(candidates)} records ({names}); name one of them")
    return candidates[0]


def find_record_files(path: Path) -> tuple[Path, ...]:
    """Return the record files at a path: the file itself, or all records in a folder."""
    if not path.exists():
        raise RecordError(f"{path} does not exist; give the file or folder of a plant record")
    if path.is_file():
        return (path,)
    candidates = sorted(_records_in(path))
    if not candidates:
        raise UnknownFormatError(
            f"{path} holds no plant record; expected a file ending in {', '.join(RECORD_SUFFIXES)}"
        )
    if len(candidates) > MOST_FILES:
        raise RecordError(
            f"{path} holds {len(candidates):,} files; expected at most {MOST_FILES:,} in one "
            "record: give fewer"
        )
    return tuple(candidates)


def _records_in(folder: Path) -> Iterator[Path]:
    for file in folder.rglob("*"):
        name = file.name.lower()
        hidden = name.startswith((".", "~$"))
        companion = any(word in name for word in COMPANION_WORDS)
        if file.is_file() and name.endswith(RECORD_SUFFIXES) and not hidden and not companion:
            yield file
