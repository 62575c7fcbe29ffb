"""Rows on their way through a watch: times in microseconds and readings, one column per channel."""

from dataclasses import dataclass

import numpy as np

from sluice.arrays import Floats, Ints

__all__ = ["StreamRows", "clock", "microseconds"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StreamRows:
    """Consecutive rows; the columns are the channels of the watch, NaN where a reading is missing.

    `position` is where a source continues after these rows, in the source's own words.
    """

    times: Ints  # microseconds since 1970, in the plant's clock
    values: Floats  # rows x channels
    position: str = ""

    def __len__(self) -> int:
        return len(self.times)

    def take(self, start: int, stop: int) -> "StreamRows":
        """Return rows start..stop-1."""
        return StreamRows(
            times=self.times[start:stop], values=self.values[start:stop], position=self.position
        )


def clock(time: int) -> str:
    """Return a time in microseconds as text, such as 2016-09-13T23:00:00."""
    shown = np.datetime64(time, "us")
    return str(shown.astype("datetime64[s]") if time % 1_000_000 == 0 else shown)


def microseconds(seconds: float) -> int:
    """Return a duration in microseconds."""
    return round(seconds * 1e6)
