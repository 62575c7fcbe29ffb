"""A record as a source: history, as fast as it can be judged or at a chosen pace."""

import time
from typing import final

import numpy as np

from sluice.telemetry import Record
from sluice.watch.rows import StreamRows
from sluice.watch.sources.source import SourceState, no_rows
from sluice.watch.subject import Subject, columns_of

__all__ = ["HistorySource"]

CHUNK_ROWS = 256


@final
class HistorySource:
    """Gives the rows of a record, in order."""

    unreadable = 0

    def __init__(
        self,
        record: Record,
        subject: Subject,
        *,
        pace: float | None = None,
        chunk: int = CHUNK_ROWS,
    ) -> None:
        self.name = record.name
        columns = columns_of(record.names, subject, source=record.name)
        self._values = np.ascontiguousarray(record.values[:, columns])
        self._times = record.times.astype("datetime64[us]").astype(np.int64)
        self._pace = pace  # rows a second
        self._chunk = chunk if pace is None else max(1, min(chunk, int(pace / 10)))
        self._at = 0
        self._next = time.monotonic()

    @property
    def state(self) -> SourceState:
        """Whether rows are left."""
        return SourceState.READING if self._at < len(self._times) else SourceState.OVER

    @property
    def left(self) -> int:
        """How many rows are left."""
        return len(self._times) - self._at

    def take(self, wait_s: float) -> StreamRows:
        """Return the next rows."""
        if self._pace is not None:
            pause = self._next - time.monotonic()
            if pause > wait_s:
                time.sleep(wait_s)
                return no_rows(self._values.shape[1])
            time.sleep(max(0.0, pause))
            self._next = max(self._next, time.monotonic() - 1.0) + self._chunk / self._pace
        part = slice(self._at, self._at + self._chunk)
        self._at = min(self._at + self._chunk, len(self._times))
        return StreamRows(times=self._times[part], values=self._values[part])

    def confirm(self) -> None:
        """Nothing to confirm."""

    def close(self) -> None:
        """Nothing to release."""
