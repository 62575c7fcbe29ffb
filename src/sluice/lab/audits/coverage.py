"""Coverage (paper, appendix A): which labelled attacks of a plant the rules detect.

1. Segmentation: each contiguous run of labelled attack rows is one attack.
2. Scoring: the whole record is judged once; an attack is covered when more than 1 % of its rows are
   suspect. `chance` is the share of attack-free stretches of the same length that would also
   count as covered: one row in 75 is noise.
3. Honest rate: the share of suspect rows among normal rows, without the rows just after an attack,
   while the plant recovers.
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
    rule: str  # the rule with the most suspect rows in it; empty if no rule has any
    chance: float | None  # share of attack-free stretches this long that look covered; None: none


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Every labelled attack of a record under one gate."""

    segments: tuple[Segment, ...]
    honest_share: float | None  # None if no row is labelled normal
    recovery_rows: int  # after each attack
    honest_rows: int  # normal rows that the share is taken of
    honest_suspect_rows: int
    recovering_rows: int  # normal rows left out: they follow an attack too closely
    unlabelled_rows: int  # left out: nothing is known about them
    unread: tuple[str, ...]  # channels of the record that no rule reads

    @property
    def covered(self) -> int:
        """How many attacks are covered."""
        return sum(segment.covered for segment in self.segments)

    @property
    def attack_rows(self) -> int:
        """How many rows the attacks have."""
        return sum(segment.rows for segment in self.segments)

    @property
    def suspect_attack_rows(self) -> int:
        """How many of these rows are suspect."""
        return sum(segment.violating_rows for segment in self.segments)

    @property
    def missed(self) -> tuple[int, ...]:
        """The attacks that are not covered, by index."""
        return tuple(segment.index for segment in self.segments if not segment.covered)

    @property
    def total(self) -> int:
        """How many attacks there are."""
        return len(self.segments)


def coverage(record: Record, gate: Gate, *, recovery_rows: int | None = None) -> Coverage:
    """Score every labelled attack of a record.

    `recovery_rows` after each attack count as neither attack nor honest; the default is one hour
    of plant time, at least 60 rows.
    """
    if not record.attack_segments:
        raise RecordError(
            f"record {record.name!r} has no row labelled as attack; give a labelled record"
        )
    if recovery_rows is None:
        recovery_rows = max(RECOVERY_ROWS, round(RECOVERY_S / record.stride_s))
    suspect = gate.judge(record).suspect
    rule_masks = masks(gate, record)
    honest = _honest(record, recovery_rows)
    read = {name for rule in gate.rules.invariants for name in rule.relation.channels}
    return Coverage(
        segments=tuple(
            _segment(index, run, record, suspect, rule_masks, honest)
            for index, run in enumerate(record.attack_segments)
        ),
        honest_share=float(suspect[honest].mean()) if honest.any() else None,
        recovery_rows=recovery_rows,
        honest_rows=int(honest.sum()),
        honest_suspect_rows=int(suspect[honest].sum()),
        recovering_rows=int((record.labels == Label.NORMAL).sum() - honest.sum()),
        unlabelled_rows=int((record.labels == Label.UNLABELLED).sum()),
        unread=tuple(name for name in record.names if name not in read),
    )


def _segment(  # noqa: PLR0913, PLR0917 - one attack and what it is compared with
    index: int,
    run: Run,
    record: Record,
    suspect: Bools,
    rule_masks: tuple[RuleMask, ...],
    honest: Bools,
) -> Segment:
    rows = int(suspect[run.slice].sum())
    share = rows / run.rows
    counts = [int(mask.suspect[run.slice].sum()) for mask in rule_masks]
    worst = int(np.argmax(counts)) if any(counts) else None
    return Segment(
        index=index,
        start=_time(record, run.start),
        end=_time(record, run.stop - 1),
        rows=run.rows,
        violating_rows=rows,
        violating_share=share,
        covered=share > COVERED,
        rule="" if worst is None else rule_masks[worst].name,
        chance=_chance(suspect, honest, record, run.rows),
    )


def _honest(record: Record, recovery_rows: int) -> Bools:
    honest = np.asarray(record.labels == Label.NORMAL)
    for run in record.attack_segments:
        honest[run.stop : run.stop + recovery_rows] = False
    return honest


def _chance(suspect: Bools, honest: Bools, record: Record, rows: int) -> float | None:
    """Return the share of attack-free stretches of `rows` rows with more than 1 % suspect."""
    stretches, covered = 0, 0
    for segment in record.segments:  # a stretch crosses no time jump
        if segment.rows < rows:
            continue
        attack_free = _sums(honest[segment.slice], rows) == rows
        suspect_rows = _sums(suspect[segment.slice], rows)[attack_free]
        stretches += int(attack_free.sum())
        covered += int((suspect_rows > COVERED * rows).sum())
    return covered / stretches if stretches else None


def _sums(mask: Bools, rows: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    total = np.concatenate(([0], np.cumsum(mask)))
    sums: np.ndarray[tuple[int], np.dtype[np.int64]] = total[rows:] - total[:-rows]
    return sums


def _time(record: Record, row: int) -> str:
    return str(record.times[row].astype("datetime64[s]"))
