"""Candidates judged out of fold: each block by numbers fitted to all other blocks."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sluice.arrays import Bools, Floats
from sluice.invariants.mining.folds import CleanFold
from sluice.invariants.mining.refit import refitted
from sluice.invariants.mining.tails import Tail, tail_of
from sluice.invariants.mining.windows import sliding_residuals, window_of
from sluice.invariants.relations import (
    Balance,
    Coupling,
    Evidence,
    Invariant,
    Relation,
    Window,
)
from sluice.invariants.residuals import residuals
from sluice.telemetry import Record

__all__ = ["Candidate", "CrossJudged", "judged", "window_candidates"]

UNKNOWN = Evidence()
APART = 12  # rows between peaks that count as two
ROWS_FOR_TAIL = 1_000
DRIFT_BLOCKS = 20
LEAST_TOLERANCE = 1e-12
MOST_WINDOWS = 3
SHORTEST, LONGEST = 4, 1_024
LONGEST_SHARE = 1 / 20  # of the clean rows
SHARPER = 2.0  # a longer window must detect ramps this much slower than the one before


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A relation fitted to all clean rows, with the finest step its tolerance may be."""

    relation: Relation
    floor: float
    evidence: Evidence = UNKNOWN


@dataclass(frozen=True, slots=True, kw_only=True)
class CrossJudged:
    """A candidate, its numbers without each fold, and its residuals on that fold."""

    candidate: Candidate
    relations: tuple[Relation, ...]
    residuals: tuple[Floats, ...]
    tails: tuple[Tail, ...]  # without each fold, then of all
    steady: tuple[Tail, ...] = ()  # of a coupling: of rows that do not lead to a switch
    ending: tuple[Tail, ...] = ()  # and of those that do
    ending_largest: tuple[float, ...] = ()  # of each fold

    @classmethod
    def of(
        cls, candidate: Candidate, relations: tuple[Relation, ...], folds: Sequence[CleanFold]
    ) -> "CrossJudged":
        """Judge each fold by the relation that was fitted without it."""
        found = tuple(
            _residuals(relation, fold.held_out)
            for relation, fold in zip(relations, folds, strict=True)
        )
        sizes = [np.abs(part) for part in found]
        relation = candidate.relation
        apart = relation.rows if isinstance(relation, Window) else APART
        whole = cls(
            candidate=candidate, relations=relations, residuals=found, tails=_tails(sizes, apart)
        )
        if not isinstance(relation, Coupling):
            return whole
        leads = [_leads_to_switch(relation, fold.held_out) for fold in folds]
        steady, ending = (
            [size[lead == wanted] for size, lead in zip(sizes, leads, strict=True)]
            for wanted in (False, True)
        )
        share = sum(part.size for part in ending) / max(1, sum(part.size for part in sizes))
        return replace(
            whole,
            steady=_tails(steady, apart),
            ending=tuple(
                replace(tail, per_size=tail.per_size * share) for tail in _tails(ending, apart)
            ),
            ending_largest=tuple(float(part.max(initial=0.0)) for part in ending),
        )

    def relation(self, without: int | None) -> Relation:
        """Return the relation as fitted without a fold, or to all rows."""
        return self.candidate.relation if without is None else self.relations[without]

    def tail(self, without: int | None) -> Tail:
        """Return the tail of its residuals on all folds but one."""
        return self.tails[-1 if without is None else without]

    def farthest(self, without: int | None, *, share: float) -> float:
        """Return the residual that a share of clean rows is expected to exceed.

        A valve that begins to close still reports that it is open, and its flow is already smaller.
        Such rows lead to a switch and miss at most all of the flow, however far the tail of the few
        of them reaches. If the other folds do not foretell those of one fold, they may miss all of
        it. Every other row of a coupling counts by its own tail.
        """
        relation = self.relation(without)
        if not isinstance(relation, Coupling):
            return self.tail(without).level(share)
        at = -1 if without is None else without
        foretold = all(
            largest <= max(steady.level(share), ending.level(share))
            for largest, steady, ending in zip(
                self.ending_largest, self.steady[:-1], self.ending[:-1], strict=True
            )
        )
        brief = self.ending[at].level(share) if foretold else relation.nominal
        return max(self.steady[at].level(share), min(brief, relation.nominal))

    def invariant(self, without: int | None, *, share: float, slack: float = 1.0) -> Invariant:
        """Return the rule with a tolerance that a share of clean rows is expected to exceed."""
        tolerance = self.tail(without).level(share)
        if isinstance(self.candidate.relation, Coupling):
            tolerance = max(tolerance, _drifting(np.concatenate(self._parts(without))))
        rows = sum(part.size for part in self._parts(without))
        return Invariant(
            relation=self.relation(without),
            tolerance=max(tolerance * slack, self.candidate.floor, LEAST_TOLERANCE),
            evidence=replace(
                self.candidate.evidence, judged_rows=rows, few_rows=rows < ROWS_FOR_TAIL
            ),
        )

    def _parts(self, without: int | None) -> list[Floats]:
        return [part for at, part in enumerate(self.residuals) if at != without]


def judged(candidate: Candidate, folds: Sequence[CleanFold]) -> CrossJudged:
    """Judge each fold by the candidate fitted to the others."""
    relations = tuple(refitted(candidate.relation, fold.rest) for fold in folds)
    return CrossJudged.of(candidate, relations, folds)


def window_candidates(
    by_row: CrossJudged, folds: Sequence[CleanFold], shares: Sequence[float]
) -> list[CrossJudged]:
    """Return windows of a balance at lengths that detect ever slower ramps."""
    balance = by_row.candidate.relation
    assert isinstance(balance, Balance)
    chosen: list[CrossJudged] = []
    ramp, rows = by_row.tail(None).level(shares[0]), SHORTEST
    shortest = min(len(fold.held_out) for fold in folds)
    longest = min(LONGEST, LONGEST_SHARE * sum(len(f.held_out) for f in folds), shortest / 3)
    while rows <= longest and len(chosen) < MOST_WINDOWS:
        relations = tuple(
            window_of(relation, rows)
            for relation in by_row.relations
            if isinstance(relation, Balance)
        )
        candidate = replace(by_row.candidate, relation=window_of(balance, rows))
        window = CrossJudged.of(candidate, relations, folds)
        slower = window.tail(None).level(shares[1] * rows) / rows
        if slower * SHARPER <= ramp:
            chosen.append(window)
            ramp = slower
        rows *= 2
    return chosen


def _residuals(relation: Relation, held_out: Record) -> Floats:
    if isinstance(relation, Window):
        balance = Balance(
            name=relation.name,
            level=relation.level,
            terms=relation.terms,
            constant=relation.constant,
            averaged=relation.averaged,
        )
        return sliding_residuals(balance, held_out, relation.rows)
    found = residuals(relation, held_out)
    return np.asarray(found.values[found.applies & ~found.envelope])


def _tails(sizes: Sequence[Floats], apart: int) -> tuple[Tail, ...]:
    """Return the tail without each part, then of all parts."""
    return tuple(
        tail_of([size for at, size in enumerate(sizes) if at != without], apart=apart)
        for without in (*range(len(sizes)), None)
    )


def _leads_to_switch(relation: Coupling, record: Record) -> Bools:
    """Mark, among the judged rows of a coupling, those shortly before its actuator switches."""
    states = np.rint(record.column(relation.actuator))
    rows = len(record)
    switched = np.zeros(rows, bool)
    switched[1:] = states[1:] != states[:-1]
    switched[record.segment_starts] = False
    ahead = max(1, relation.settle)
    leads = np.zeros(rows, bool)
    for back in range(1, ahead + 1):
        leads[:-back] |= switched[back:]
    found = residuals(relation, record)
    return np.asarray(leads[found.applies & ~found.envelope])


def _drifting(residual: Floats) -> float:
    """Return the tolerance for a flow whose steady value drifts from hour to hour.

    The spread of block medians shows how far other hours may deviate.
    """
    if residual.size < DRIFT_BLOCKS * 8:
        return 0.0
    blocks = np.array_split(residual, DRIFT_BLOCKS)
    medians = np.array([np.median(block) for block in blocks])
    within = np.concatenate(
        [np.abs(block - median) for block, median in zip(blocks, medians, strict=True)]
    )
    drift = abs(float(medians.mean())) + 3 * float(medians.std(ddof=1))
    return drift + float(np.quantile(within, 0.999))
