"""Coverage (paper, appendix A): which of a plant's own labelled attacks the rules can see.

1. Segmentation: each contiguous run of labelled attack rows is one attack.
2. Scoring: the whole record is judged once; an attack is covered when more than 1 % of its rows are
   suspect. Beside it stands how often an attack-free stretch of the same length looks covered too:
   one row in 75 is noise.
3. Honest rate: the share of suspect rows among normal rows, skipping the rows just after an attack,
   where the plant still recovers.
"""

from dataclasses import dataclass

import numpy as np

from sluice.admission import Gate
from sluice.arrays import Bools, Run
from sluice.errors import RecordError
from sluice.lab.audits.masks import RuleMask, masks
from sluice.telemetry import Label, Record

__all__ = ["Coverage", "Segment", "coverage"]

COVERED = 0.01
RECOVERY_ROWS = 60
RECOVERY_S = 3_600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """One labelled attack; start and end are its first and last row's time."""

    index: int
    start: str
    end: str
    rows: int
    violating_rows: int
    violating_share: float
    covered: bool
    rule: str  # the one that finds most of its rows suspect; empty where none does
    chance: float | None  # that an attack-free stretch as long looks covered; None: there is none


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Every labelled attack of a record under one gate."""

    segments: tuple[Segment, ...]
    honest_share: float | None  # None where no row is labelled normal
    recovery_rows: int

    @property
    def covered(self) -> int:
        """How many attacks the rules see."""
        return sum(segment.covered for segment in self.segments)

    @property
    def total(self) -> int:
        """How many attacks there are."""
        return len(self.segments)


def coverage(record: Record, gate: Gate, *, recovery_rows: int | None = None) -> Coverage:
    """Score every labelled attack of a record.

    `recovery_rows` after each attack count as neither attack nor honest; by default an hour of
    plant time, sixty rows at least.
    """
    if not record.attack_segments:
        raise RecordError(
            f"record {record.name!r} has no row labelled as attack; give a labelled record"
        )
    if recovery_rows is None:
        recovery_rows = max(RECOVERY_ROWS, round(RECOVERY_S / record.stride_s))
    suspect = gate.judge(record).suspect
    found = masks(gate, record)
    honest = _honest(record, recovery_rows)
    return Coverage(
        segments=tuple(
            _segment(index, run, record, suspect, found, honest)
            for index, run in enumerate(record.attack_segments)
        ),
        honest_share=float(suspect[honest].mean()) if honest.any() else None,
        recovery_rows=recovery_rows,
    )


def _segment(  # noqa: PLR0913, PLR0917 - one attack and everything it is held against
    index: int,
    run: Run,
    record: Record,
    suspect: Bools,
    found: tuple[RuleMask, ...],
    honest: Bools,
) -> Segment:
    rows = int(suspect[run.slice].sum())
    share = rows / run.rows
    counts = [int(mask.suspect[run.slice].sum()) for mask in found]
    worst = int(np.argmax(counts)) if any(counts) else None
    return Segment(
        index=index,
        start=_time(record, run.start),
        end=_time(record, run.stop - 1),
        rows=run.rows,
        violating_rows=rows,
        violating_share=share,
        covered=share > COVERED,
        rule="" if worst is None else found[worst].name,
        chance=_chance(suspect, honest, record, run.rows),
    )


def _honest(record: Record, recovery_rows: int) -> Bools:
    honest = np.asarray(record.labels == Label.NORMAL)
    for run in record.attack_segments:
        honest[run.stop : run.stop + recovery_rows] = False
    return honest


def _chance(suspect: Bools, honest: Bools, record: Record, rows: int) -> float | None:
    """Return how many of all attack-free stretches of so many rows have more than 1 % suspect."""
    seen, looking = 0, 0
    for segment in record.segments:  # a stretch crosses no time jump
        flagged, allowed = suspect[segment.slice], honest[segment.slice]
        if segment.rows < rows:
            continue
        whole = _sums(allowed, rows) == rows
        seen += int(whole.sum())
        looking += int((_sums(flagged, rows)[whole] > COVERED * rows).sum())
    return looking / seen if seen else None


def _sums(mask: Bools, rows: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    total = np.concatenate(([0], np.cumsum(mask)))
    sums: np.ndarray[tuple[int], np.dtype[np.int64]] = total[rows:] - total[:-rows]
    return sums


def _time(record: Record, row: int) -> str:
    return str(record.times[row].astype("datetime64[s]"))
