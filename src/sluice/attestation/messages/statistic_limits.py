"""How many rows, and how much time, a shared statistic must cover: fewer would show too much."""

from dataclasses import dataclass
from typing import ClassVar

from pydantic import ConfigDict

from sluice.attestation.messages.context import Interval
from sluice.attestation.messages.documents import STRICT, Count
from sluice.errors import SettingError

__all__ = ["ROWS_MIN", "SPAN_MIN_S", "StatisticLimits"]

ROWS_MIN = 4_096
SPAN_MIN_S = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class StatisticLimits:
    """The shortest batch whose statistic may leave a plant: both limits apply.

    4,096 rows are 170 days at one row an hour, and less than 6 hours at one row in 5 seconds.
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    rows_min: Count = ROWS_MIN
    span_min_s: Count = SPAN_MIN_S  # from the first row to the last

    def __post_init__(self) -> None:
        if self.rows_min < 1 or self.span_min_s < 0:
            raise SettingError(
                f"a statistic covers at least 1 row and 0 s; got {self.rows_min} rows and "
                f"{self.span_min_s} s"
            )

    def objection(self, rows: int, interval: Interval) -> str:
        """Return why a batch is too short for a statistic; empty if it is long enough."""
        span_s = interval.microseconds / 1_000_000
        if rows < self.rows_min:
            return f"a statistic covers at least {self.rows_min:,} rows; the batch has {rows:,}"
        if span_s < self.span_min_s:
            return f"a statistic covers at least {self.span_min_s:,} s; the batch has {span_s:,.0f}"
        return ""

    @property
    def lowered(self) -> str:
        """Return which limits are below the defaults, in words; empty if none is."""
        parts = []
        if self.rows_min < ROWS_MIN:
            parts.append(f"statistic_rows_min is {self.rows_min:,} (default {ROWS_MIN:,})")
        if self.span_min_s < SPAN_MIN_S:
            parts.append(f"statistic_span_min is {self.span_min_s:,} s (default {SPAN_MIN_S:,} s)")
        return ", ".join(parts)
