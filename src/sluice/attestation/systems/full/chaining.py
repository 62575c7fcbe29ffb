"""How a batch is cut into segments: by the memory that a prover may use."""

from dataclasses import dataclass
from typing import Final

from sluice.errors import SettingError

__all__ = ["Cut", "cut_of"]

LEAST_LOG, MOST_LOG = 8, 17  # of the rows of a segment; the core's limits
USUAL_LOG: Final = 12
"""Segments of 4,096 rows: longer ones need more memory, shorter ones larger proofs."""
MOST_SEGMENTS: Final = 12
"""A longer chain could exceed the largest proof."""
CELL_BYTES: Final = 160
"""Memory for each cell of a trace: 16 words of masked codeword, a quarter more for the rest."""
WORD_BYTES: Final = 8
PROCESS_BYTES: Final = 48 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """How a batch is proven."""

    log_rows: int | None = None  # of a segment; none: one proof about the whole batch
    frugal: bool = False  # one segment in memory at a time, for more time

    def segments(self, rows: int) -> int:
        """Return how many segments a batch has."""
        if self.log_rows is None:
            return 1
        return 1 + (rows - 1) // ((1 << self.log_rows) - 1)

    def memory(self, rows: int, columns: int) -> int:
        """Return about how many bytes the prover needs."""
        if self.log_rows is None:
            height = max(1 << LEAST_LOG, 1 << (rows - 1).bit_length())
            return PROCESS_BYTES + CELL_BYTES * columns * height
        held = 1 if self.frugal else 2
        segments = CELL_BYTES * columns * held << self.log_rows
        return PROCESS_BYTES + segments + WORD_BYTES * columns * (rows + (1 << self.log_rows))


def cut_of(rows: int, columns: int, *, memory: int | None = None) -> Cut:
    """Return how to prove a batch of so many rows.

    Without a limit, up to 4,096 rows are one proof, and more rows a chain. With one, the fastest
    way that fits into the memory is chosen; if none does, raise `SettingError`.
    """
    chains = [
        Cut(log_rows=log_rows, frugal=frugal)
        for frugal in (False, True)
        for log_rows in range(USUAL_LOG, LEAST_LOG - 1, -1)
    ]
    longer = [Cut(log_rows=log_rows) for log_rows in range(USUAL_LOG + 1, MOST_LOG + 1)]
    first = [Cut()] if rows <= 1 << USUAL_LOG else []
    ways = [
        cut
        for cut in (*first, *chains, *longer)
        if cut.log_rows is None
        or (rows >= 1 << cut.log_rows and cut.segments(rows) <= MOST_SEGMENTS)
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
