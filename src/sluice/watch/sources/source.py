"""The interface of a source of rows."""

from enum import StrEnum
from typing import Protocol

import numpy as np

from sluice.watch.rows import StreamRows

__all__ = ["RowSource", "SourceState", "no_rows"]


class SourceState(StrEnum):
    """What a source does."""

    STARTING = "starting"
    READING = "reading"
    LOST = "connection lost"  # it is tried again
    OVER = "over"  # there will be no more rows


class RowSource(Protocol):
    """Gives rows as they come; used by one thread."""

    @property
    def name(self) -> str:
        """What it reads, in messages."""
        ...

    @property
    def state(self) -> SourceState:
        """What it does now."""
        ...

    @property
    def unreadable(self) -> int:
        """How many lines or messages could not be read and were dropped."""
        ...

    def take(self, wait_s: float) -> StreamRows:
        """Return the rows that are there; wait for the first one, but not longer than `wait_s`."""
        ...

    def confirm(self) -> None:
        """Note that all rows so far are kept: they need not be sent again."""
        ...

    def close(self) -> None:
        """Release what it holds."""
        ...


def no_rows(channels: int) -> StreamRows:
    """Return zero rows."""
    return StreamRows(times=np.empty(0, np.int64), values=np.empty((0, channels)))
