"""One input file: its bytes, encoding, delimiter and first lines."""

import codecs
import csv
import gzip
import hashlib
import zlib
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from sluice.errors import RecordError, UnknownFormatError
from sluice.files import read_bounded
from sluice.telemetry.limits import LARGEST_RECORD, ReadLimits

__all__ = ["Container", "Source", "cut", "find_record_file"]

HEAD_LINES = 8
OPENING_BYTES = 1 << 18
READ_BYTES = 1 << 20
LARGEST_COMPANION = 16 << 20
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
        lines = self._decoded(self.opening, errors="ignore").splitlines()[:HEAD_LINES]
        return tuple(line.decode("utf-8", errors="replace") for line in lines)

    def _decoded(self, data: bytes, *, errors: str) -> bytes:
        if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            try:
                data = data.decode("utf-16", errors=errors).encode()
            except UnicodeError:
                raise RecordError(
                    f"{self.path.name} is truncated or damaged UTF-16 text; fetch it again"
                ) from None
        elif b"\x00" in self.opening:
            raise UnknownFormatError(
                f"{self.path.name} is neither text, .xlsx nor Parquet; give a plant record"
            )
        data = data.removeprefix(codecs.BOM_UTF8)
        if data[:OPENING_BYTES].isspace() or not data:
            raise RecordError(f"{self.path.name} is empty; a record has a header and rows")
        return data

    @cached_property
    def delimiter(self) -> str:
        """The delimiter that splits one of the first lines most often; a comma if none does."""
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


def find_record_file(path: Path) -> Path:
    """Return the record file at a path: the file itself, or the only record in a folder."""
    if not path.exists():
        raise RecordError(f"{path} does not exist; give the file or folder of a plant record")
    if path.is_file():
        return path
    candidates = sorted(_records_in(path))
    if not candidates:
        raise UnknownFormatError(
            f"{path} holds no plant record; expected a file ending in {', '.join(RECORD_SUFFIXES)}"
        )
    if len(candidates) > 1:
        names = ", ".join(str(file.relative_to(path)) for file in candidates[:6])
        raise RecordError(f"{path} holds {len(candidates)} records ({names}); name one of them")
    return candidates[0]


def _records_in(folder: Path) -> Iterator[Path]:
    for file in folder.rglob("*"):
        name = file.name.lower()
        hidden = name.startswith((".", "~$"))
        companion = any(word in name for word in COMPANION_WORDS)
        if file.is_file() and name.endswith(RECORD_SUFFIXES) and not hidden and not companion:
            yield file
