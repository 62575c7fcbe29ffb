"""Rows from a pipe: text with a header, as another program writes it."""

import os
import select
from typing import final

from sluice.telemetry import PlantFile
from sluice.watch.rows import StreamRows
from sluice.watch.sources.source import SourceState, no_rows
from sluice.watch.sources.text import TextReader
from sluice.watch.subject import Subject

__all__ = ["PipeSource"]

READ_BYTES = 1 << 18


@final
class PipeSource:
    """Reads text from a file descriptor until its writer closes it."""

    def __init__(
        self,
        descriptor: int,
        subject: Subject,
        *,
        plant: PlantFile,
        format_name: str | None = None,
        name: str = "stdin",
    ) -> None:
        self.name = name
        self._descriptor = descriptor
        self._subject = subject
        self._reader = TextReader(name, subject, plant=plant, format_name=format_name)
        self._over = False

    @property
    def state(self) -> SourceState:
        """Whether the pipe is open, or lines are left."""
        done = self._over and not self._reader.pending
        return SourceState.OVER if done else SourceState.READING

    @property
    def unreadable(self) -> int:
        """Lines that could not be read."""
        return self._reader.unreadable

    def take(self, wait_s: float) -> StreamRows:
        """Return the rows of the lines that have come."""
        if not self._over and not self._ready(0.0 if self._reader.pending else wait_s):
            if not self._reader.pending:
                return no_rows(len(self._subject.names))
        elif not self._over:
            data = os.read(self._descriptor, READ_BYTES)
            self._reader.feed(data)
            if not data:
                self._over = True
                self._reader.end()
        return self._reader.rows(final=self._over)

    def _ready(self, wait_s: float) -> bool:
        return bool(select.select([self._descriptor], [], [], wait_s)[0])

    def confirm(self) -> None:
        """A pipe has no way back."""

    def close(self) -> None:
        """Remove the scratch files."""
        self._reader.close()
