"""Lines of text as rows: the same reading of dialects, clocks and words as of whole records.

The opening of the text shows how it is written. Later lines are read below the same header, under
the settings that the opening has shown, so that a single line cannot change them.
"""

import re
import tempfile
from pathlib import Path

import numpy as np

from sluice.errors import RecordError
from sluice.telemetry import PlantFile, ReadRows, read_rows
from sluice.watch.rows import StreamRows
from sluice.watch.sources.source import no_rows
from sluice.watch.subject import Subject, columns_of

__all__ = ["TextReader"]

MOST_LINES = 2_000  # read at once
OPENING_LINES = 3  # that show how the text is written, unless the plant file says it
LONGEST_LINE = 1 << 20  # bytes


class TextReader:
    """Turns bytes of a growing text into rows."""

    def __init__(
        self, name: str, subject: Subject, *, plant: PlantFile, format_name: str | None
    ) -> None:
        self.name = name
        self.unreadable = 0
        self._subject = subject
        self._plant = plant
        self._format = format_name
        self._settled = False
        self._header = b""
        self._rest = b""  # an incomplete line
        self._waiting: list[bytes] = []
        self._folder = tempfile.TemporaryDirectory(prefix="sluice-watch-")
        self._file = Path(self._folder.name, re.sub(r"[^\w.-]", "_", name)[-80:] or "rows")

    def feed(self, data: bytes) -> None:
        """Take more bytes."""
        whole, line_feed, self._rest = (self._rest + data).rpartition(b"\n")
        self._waiting += (whole + line_feed).splitlines(keepends=True)
        if len(self._rest) > LONGEST_LINE:
            raise RecordError(
                f"{self.name} has a line of more than {LONGEST_LINE:,} bytes; give text with rows "
                "in lines"
            )

    def open_with(self, opening: bytes) -> None:
        """Learn the header and the settings from the opening of the text, and drop its rows."""
        self.feed(opening)
        if self._waiting and not self._settle(final=True):
            return  # there was only a header
        self._waiting, self._rest = [], b""

    def end(self) -> None:
        """There is no more: the last line is complete even without a line feed."""
        if self._rest.strip():
            self._waiting.append(self._rest + b"\n")
        self._rest = b""

    @property
    def pending(self) -> bool:
        """Whether lines are waiting."""
        return bool(self._waiting)

    @property
    def held(self) -> int:
        """How many bytes were fed but are not part of a row yet."""
        return len(self._rest) + sum(map(len, self._waiting))

    def rows(self, *, final: bool = False) -> StreamRows:
        """Return the rows of the lines so far; `final` reads an opening of few lines too."""
        if not self._settled and not self._settle(final=final):
            return no_rows(len(self._subject.names))
        lines, self._waiting = self._waiting[:MOST_LINES], self._waiting[MOST_LINES:]
        parts = [part for part in self._read(lines) if len(part)]
        if not parts:
            return no_rows(len(self._subject.names))
        return StreamRows(
            times=np.concatenate([part.times for part in parts]),
            values=np.concatenate([part.values for part in parts]),
        )

    # -- the opening --------------------------------------------------------------------------

    def _settle(self, *, final: bool) -> bool:
        """Find the header and the settings; False if there are too few lines."""
        written = [line for line in self._waiting if line.strip()]
        enough = 2 if final or self._format or self._plant.time else 1 + OPENING_LINES
        if len(written) < enough:
            return False
        found = self._load(self._waiting[:MOST_LINES])
        columns_of(found.names, self._subject, source=self.name)
        self._plant = found.plant
        first = next(at for at, line in enumerate(self._waiting) if line.strip())
        head = max(self._plant.header_line, first + 1)
        self._header = b"".join(self._waiting[:head])
        self._waiting = self._waiting[head:]
        self._settled = True
        return True

    # -- lines --------------------------------------------------------------------------------

    def _read(self, lines: list[bytes]) -> list[StreamRows]:
        """Read lines; those that cannot be read are found by halving, counted and dropped."""
        written = [line for line in lines if line.strip()]
        if not written:
            return []
        try:
            found = self._load([self._header, *written])
            columns = columns_of(found.names, self._subject, source=self.name)
        except RecordError:
            if len(written) == 1:
                self.unreadable += 1
                return []
            half = len(written) // 2
            return self._read(written[:half]) + self._read(written[half:])
        return [StreamRows(times=found.times.astype(np.int64), values=found.values[:, columns])]

    def _load(self, lines: list[bytes]) -> ReadRows:
        self._file.write_bytes(b"".join(lines))
        return read_rows(self._file, plant=self._plant, format_name=self._format)

    def close(self) -> None:
        """Remove the scratch folder."""
        self._folder.cleanup()
