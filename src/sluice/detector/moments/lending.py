"""Tails that members lend to a plant with few clean rows.

A plant that has just joined knows how a voter usually scores on its rows. It does not know yet how
high clean operation rises in a rare week. A member knows this of its own detector on its own rows,
and lends it: how far clean peaks lie above the median clean score, without a unit.

The tail of a member serves its own voter only. So a member that lies about its tail controls its
own vote, as it does in any case, and nothing else: the vote and its certificate stay as they are.
"""

import math
import struct
from dataclasses import dataclass

import numpy as np

from sluice.arrays import Floats, Ints
from sluice.detector.tails import (
    FEWEST_PEAKS,
    FURTHEST,
    SHAPES,
    WEEK_S,
    Pareto,
    cautious_share,
    fit_pareto,
    peaks_of,
)
from sluice.errors import SettingError

__all__ = ["LENT_BYTES", "LentTail", "lend_tail"]

MAGIC = b"\xffsluice-tail-1\0\0"
"""No name of a member begins with this byte, so an encoding with tails has one reading."""
ENCODING = struct.Struct("<16sQdddd")
LENT_BYTES = ENCODING.size
MOST_PEAKS = 1_000
MOST_WEEKS = 5_200.0
LARGEST = 50.0  # of a logarithm: no score of a plant is so far from its median
HIGHEST = 650.0  # of a logarithm, so that a threshold stays finite


@dataclass(frozen=True, slots=True, kw_only=True)
class LentTail:
    """How far clean scores of one member's own detector rise above their median, in logarithms."""

    peaks: int  # clean events to whose peaks it is fitted
    weeks: float  # of clean rows that hold them
    level: float  # that these events exceed: the logarithm of its score over the median
    scale: float  # of the generalised Pareto distribution of what exceeds the level
    shape: float

    def __post_init__(self) -> None:
        if not (FEWEST_PEAKS <= self.peaks <= MOST_PEAKS and 0 < self.weeks <= MOST_WEEKS):
            raise SettingError(
                f"a lent tail is of {FEWEST_PEAKS} to {MOST_PEAKS:,} peaks in at most "
                f"{MOST_WEEKS:,.0f} weeks; got {self.peaks} in {self.weeks:g}"
            )
        if not (
            0 <= self.level <= LARGEST
            and 0 < self.scale <= LARGEST
            and SHAPES[0] <= self.shape <= SHAPES[1]
        ):
            raise SettingError(
                f"a lent tail of level {self.level:g}, scale {self.scale:g} and shape "
                f"{self.shape:g} cannot be; expected 0 to {LARGEST:g}, above 0 to {LARGEST:g}, and "
                f"{SHAPES[0]:g} to {SHAPES[1]:g}"
            )

    @property
    def rarest_rate(self) -> float:
        """The fewest false alarms a week that the member's rows set a threshold for."""
        return 1 / (FURTHEST * self.weeks)

    def threshold(self, median: float, *, false_alarms_per_week: float) -> float:
        """Return the score for so many false alarms a week, where the median clean score is this.

        It is cautious by the sampling error of the member's peaks, as an own threshold is. If the
        member's rows are too few for such rare alarms, it is the score of their `rarest_rate`.
        """
        if not 0 < false_alarms_per_week < math.inf:
            raise SettingError(
                f"the number of false alarms a week must be above 0, got {false_alarms_per_week}"
            )
        wanted = max(false_alarms_per_week, self.rarest_rate) * self.weeks
        excess = Pareto(scale=self.scale, shape=self.shape).excess(
            cautious_share(wanted, self.peaks)
        )
        return median * math.exp(min(self.level + excess, HIGHEST))

    def canonical(self) -> bytes:
        """Return the one encoding of this tail."""
        return ENCODING.pack(MAGIC, self.peaks, self.weeks, self.level, self.scale, self.shape)

    @classmethod
    def read(cls, raw: bytes) -> "LentTail":
        """Read the one encoding of a tail; refuse any other bytes."""
        tail = cls.at(raw)
        if tail is None or tail.canonical() != raw:
            raise SettingError(f"these {len(raw)} bytes are no lent tail")
        return tail

    @classmethod
    def at(cls, raw: bytes) -> "LentTail | None":
        """Read the tail that begins here; None if there is none."""
        if raw[: len(MAGIC)] != MAGIC:
            return None
        if len(raw) < ENCODING.size:
            raise SettingError(f"a lent tail has {ENCODING.size} bytes, got {len(raw)}")
        _, peaks, weeks, level, scale, shape = ENCODING.unpack_from(raw)
        return cls(peaks=peaks, weeks=weeks, level=level, scale=scale, shape=shape)


def lend_tail(scores: Floats, last_rows: Ints, *, stride_s: float) -> LentTail:
    """Return the tail of clean scores; the detector must not have been fitted to these windows."""
    median = float(np.median(scores))
    level, peaks = peaks_of(scores, last_rows)
    if not 0 < median <= level < math.inf:
        raise SettingError(
            f"clean scores with a median of {median:g} and peaks above {level:g} give no tail: "
            "peaks must lie above the median, and the median above 0; take a longer batch"
        )
    pareto = fit_pareto(np.log(peaks / level))
    return LentTail(
        peaks=len(peaks),
        weeks=len(scores) * stride_s / WEEK_S,
        level=math.log(level / median),
        scale=pareto.scale,
        shape=pareto.shape,
    )
