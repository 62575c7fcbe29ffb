"""How a batch is cut into segments: by the memory that a prover may use."""

from dataclasses import dataclass
from typing import Final

from sluice.errors import SettingError

__all__ = ["Cut", "cut_of"]

LEAST_LOG: Final = 8  # of the rows of a segment; the core's limit
USUAL_LOG: Final = 12
"""Segments of 4,096 rows: longer ones need more memory, shorter ones larger proofs."""
MOST_SEGMENTS: Final = 12
"""With more segments than this, none is shorter than usual: the proof would be too large."""
CELL_BYTES: Final = 40
"""Memory for each cell of a trace: the cell, two coefficients, two values on one coset."""
PAIR: Final = 2  # segments that are in memory at a time
ROW_BYTES: Final = 320
"""Memory for each row of the batch: its readings, twice."""
PROCESS_BYTES: Final = 48 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How a batch is proven."""

    log_rows: int | None = None  # of a segment; none: one proof about the whole batch

    def segments(self, rows: int) -> int:
        """Return how many segments a batch has."""
        if self.log_rows is None:
            return 1
        return 1 + (rows - 1) // ((1 << self.log_rows) - 1)

    def height(self, rows: int) -> int:
        """Return the rows of all traces, padding included: what the time to prove grows with."""
        if self.log_rows is None:
            return max(1 << LEAST_LOG, 1 << (rows - 1).bit_length())
        return ((self.segments(rows) - 1) << self.log_rows) + self._last_height(rows)

    def rows_in(self, segments: int, rows: int) -> int:
        """Return how many rows of a batch the first segments cover."""
        if self.log_rows is None or segments == 0:
            return rows if segments else 0
        return min(rows, 1 + segments * ((1 << self.log_rows) - 1))

    def memory(self, rows: int, columns: int) -> int:
        """Return about how many bytes the prover needs."""
        if self.log_rows is None:
            return PROCESS_BYTES + CELL_BYTES * columns * self.height(rows)
        full = 1 << self.log_rows
        beside = full if self.segments(rows) > PAIR else self._last_height(rows)
        height = full + beside
        return PROCESS_BYTES + CELL_BYTES * columns * height + ROW_BYTES * rows

    def _last_height(self, rows: int) -> int:
        """Return the height of the last segment: the rows that are left, and padding."""
        assert self.log_rows is not None
        left = rows - (self.segments(rows) - 1) * ((1 << self.log_rows) - 1)
        return max(1 << LEAST_LOG, 1 << left.bit_length())


def cut_of(rows: int, columns: int, *, memory: int | None = None) -> Cut:
    """Return how to prove a batch of so many rows.

    Without a limit, more than 4,096 rows are a chain. Fewer rows are one proof, unless most of its
    padding can be left out: if they are just above a power of two, two segments have at most three
    quarters of its height, and make a proof of twice the size in less time. With one, the longest
    segments that fit into the memory are chosen, because shorter ones make larger proofs; if none
    fit, raise `SettingError`.
    """
    most = max(MOST_SEGMENTS, Cut(log_rows=USUAL_LOG).segments(rows))
    chains = [Cut(log_rows=log_rows) for log_rows in range(USUAL_LOG, LEAST_LOG - 1, -1)]
    first = [Cut()] if rows <= 1 << USUAL_LOG and not _padded(rows) else []
    ways = [
        cut
        for cut in (*first, *chains)
        if cut.log_rows is None or (rows >= 1 << cut.log_rows and cut.segments(rows) <= most)
    ] or [Cut()]
    if memory is None:
        return ways[0]
    needs = {cut: cut.memory(rows, columns) for cut in ways}
    fitting = [cut for cut in ways if needs[cut] <= memory]
    if not fitting:
        raise SettingError(
            f"{rows:,} rows need about {min(needs.values()) / 1e6:,.0f} MB to be proven, not "
            f"{memory / 1e6:,.0f} MB; allow more memory or commit to fewer rows"
        )
    return fitting[0]


def _padded(rows: int) -> bool:
    """Return whether one proof would be mostly padding beside two segments."""
    log_rows = rows.bit_length() - 1
    two = Cut(log_rows=log_rows)
    return log_rows >= LEAST_LOG and 4 * two.height(rows) <= 3 * Cut().height(rows)
