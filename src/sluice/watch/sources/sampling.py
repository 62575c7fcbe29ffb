"""Readings that come tag by tag as rows: the last reading of each tag, once per stride."""

import math
import threading
import time
from collections.abc import Callable

import numpy as np

from sluice.watch.rows import StreamRows, microseconds
from sluice.watch.sources.source import no_rows

__all__ = ["Sampler"]

MOST_BEHIND = 2  # strides; after a longer pause the rows between are missing, not invented


class Sampler:
    """Keeps the last reading of each tag and makes a row at each stride of the clock (UTC)."""

    def __init__(
        self,
        names: tuple[str, ...],
        *,
        stride_s: float,
        max_age_s: float | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._column = {name: column for column, name in enumerate(names)}
        self._stride_s = stride_s
        self._max_age_s = max_age_s
        self._clock = clock
        self._lock = threading.Lock()
        self._values = np.full(len(names), np.nan)
        self._at = np.full(len(names), -math.inf)
        self._last = math.floor(clock() / stride_s)

    def put(self, tag: str, value: float) -> bool:
        """Take a reading; return whether the watch reads this tag."""
        column = self._column.get(tag)
        if column is None:
            return False
        with self._lock:
            self._values[column] = value
            self._at[column] = self._clock()
        return True

    def forget(self) -> None:
        """Forget all readings: after a lost connection they are no longer known."""
        with self._lock:
            self._values[:] = np.nan

    @property
    def wait_s(self) -> float:
        """How long it takes until the next row."""
        return max(0.0, (self._last + 1) * self._stride_s - self._clock())

    def row(self) -> StreamRows:
        """Return the row of the last stride that has passed, if it was not returned yet."""
        now = self._clock()
        step = math.floor(now / self._stride_s)
        if step <= self._last:
            return no_rows(len(self._values))
        if step - self._last <= MOST_BEHIND:
            step = self._last + 1
        self._last = step
        with self._lock:
            values = self._values.copy()
            if self._max_age_s is not None:
                values[now - self._at > self._max_age_s] = np.nan
        if np.isnan(values).all():
            return no_rows(len(values))
        return StreamRows(
            times=np.array([microseconds(step * self._stride_s)], np.int64), values=values[None, :]
        )
