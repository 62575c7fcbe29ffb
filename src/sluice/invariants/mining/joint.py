"""Joint calibration: widens tolerances until few whole clean batches would be refused.

Many rules at 0.04 % each add up to more than 1 %. The share of clean batches that would be refused
is estimated on hold-out rows by a block bootstrap. While it is above a target, the worst rule is
widened, or dropped once it would be vacuous.
"""

from dataclasses import replace

import numpy as np

from sluice.arrays import Bools, Floats, Ints
from sluice.invariants.encoding import encode
from sluice.invariants.integers import Judged, evaluate
from sluice.invariants.measure import block_ranges, measure
from sluice.invariants.relations import Coupling, RelationKind
from sluice.invariants.ruleset import CleanFacts, CleanShare, Dropped, Liveness, RuleSet
from sluice.seeding import stream
from sluice.telemetry import Record, Role

__all__ = ["calibrate_jointly", "clean_facts"]

ALPHA = 0.01
TARGET = 0.01
DRAWS = 400
BATCH_ROWS = 1_000
LEAST_BATCHES = 4
LEAST_ROWS = 200  # in a shorter batch, the first row alone comes close to alpha
WIDEN = 1.25
MOST_ROUNDS = 60
VACUOUS = 0.5  # of nominal flow: a looser coupling cannot tell on from off
FEWEST_BLOCKS = 20
SHORTEST_BLOCK = 8
LIVELY = (0.5, 3.0)  # a block's smallest range, in multiples of the range of noise alone


def calibrate_jointly(rules: RuleSet, clean: Record, *, fit: Record) -> RuleSet:
    """Return rules that refuse few clean batches, with the facts about clean rows."""
    batch, starts = _draws(clean)
    for _ in range(MOST_ROUNDS):
        judged = [found for found in evaluate(encode(rules), clean) if not found.anchors.size]
        refused = _refused(_any(judged, len(clean)), starts, batch)
        if refused.mean() <= TARGET:
            break
        rules = _loosened(rules, judged, starts[refused], batch)
    liveness = tuple(
        fact
        for level in rules.channels
        if level.role is Role.LEVEL and level.span
        for fact in _liveness(level.name, fit, clean)
    )
    return replace(rules, clean=clean_facts(rules, clean, liveness=liveness))


def _any(judged: list[Judged], rows: int) -> Bools:
    violating = np.zeros(rows, bool)
    for found in judged:
        violating |= found.violating
    return violating


def _counts(marked: Bools, starts: Ints, batch: int) -> Ints:
    total = np.concatenate(([0], np.cumsum(marked)))
    return total[starts + batch] - total[starts]


def _refused(violating: Bools, starts: Ints, batch: int) -> Bools:
    """Mark the batches with more violating rows than alpha allows; the first row always counts.

    Two rows are allowed even in a batch so short that alpha allows fewer.
    """
    counted = _counts(violating, starts, batch) + 1
    return np.asarray(counted > max(ALPHA * batch, 2))


def _loosened(rules: RuleSet, judged: list[Judged], starts: Ints, batch: int) -> RuleSet:
    worst = max(judged, key=lambda found: int(_counts(found.violating, starts, batch).sum())).rule
    wider = replace(worst, tolerance=worst.tolerance * WIDEN)
    relation = worst.relation
    kept = [wider if rule is worst else rule for rule in rules.invariants]
    if isinstance(relation, Coupling) and wider.tolerance >= VACUOUS * relation.nominal:
        why = "vacuous: wide enough for clean batches, it cannot tell on from off"
        kept = [rule for rule in rules.invariants if rule is not worst]
        gone = Dropped(name=worst.name, why=why)
        return replace(rules, invariants=tuple(kept), dropped=(*rules.dropped, gone))
    return replace(rules, invariants=tuple(kept))


def _draws(clean: Record) -> tuple[int, Ints]:
    """Return the length of bootstrap batches and where they begin."""
    rows = len(clean)
    batch = min(rows, max(LEAST_ROWS, min(BATCH_ROWS, rows // LEAST_BATCHES)))
    return batch, stream(0, "joint calibration").integers(0, rows - batch + 1, DRAWS)


def clean_facts(rules: RuleSet, clean: Record, *, liveness: tuple[Liveness, ...]) -> CleanFacts:
    """Return the facts about clean hold-out rows under the rules."""
    batch, starts = _draws(clean)
    encoding = encode(rules)
    measured = measure(rules, clean, encoding=encoding)
    violating = measured.violating.copy()
    violating[0] = False  # the slice's first row is the first row of few batches
    refused = _refused(violating, starts, batch)
    effective = len(clean) / batch
    return CleanFacts(
        batch_rows=batch,
        batches=DRAWS,
        effective_batches=effective,
        refused_share=float(refused.mean()),
        refused_upper=float(max(refused.mean(), min(1.0, 3 / effective))),
        violating_share=float(measured.violating.mean()),
        segments_per_row=(measured.segments - 1) / len(clean),
        severe=tuple(
            CleanShare(rule=found.rule.name, share=float(found.excess.max(initial=0.0)))
            for found in measured.judged
            if found.rule.kind in (RelationKind.COUPLING, RelationKind.BALANCE, RelationKind.RATE)
        ),
        envelope=tuple(
            CleanShare(
                rule=found.rule.name,
                share=float(_counts(found.envelope, starts, batch).max()) / batch,
            )
            for found in measured.judged
            if found.rule.kind is RelationKind.COUPLING
        ),
        anchors=tuple(
            CleanShare(rule=found.rule.name, share=float(found.violating[found.anchors].mean()))
            for found in measured.judged
            if found.anchors.size
        ),
        liveness=liveness,
        repeats=tuple(
            CleanShare(rule=name, share=float(_counts(rows, starts, batch).max()) / batch)
            for name, rows in measured.repeated
        ),
    )


def _liveness(level: str, *clean: Record) -> tuple[Liveness, ...]:
    """Return the shortest blocks in which the level always moved, then clearly moved.

    All clean rows are used: a rare calm stretch decides, and no fit depends on the result.
    """
    parts = [record.column(level) for record in clean]
    noise = max(_noise(readings) for readings in parts)
    facts: list[Liveness] = []
    rows = SHORTEST_BLOCK
    while sum(map(len, parts)) // rows >= FEWEST_BLOCKS and len(facts) < len(LIVELY):
        smallest = float(min(block_ranges(part, rows).min(initial=np.inf) for part in parts))
        jitter = 2 * noise * np.sqrt(2 * np.log(rows))  # the range of noise alone over the block
        if np.isfinite(smallest) and smallest > max(0.0, LIVELY[len(facts)] * jitter):
            # A calm stretch slightly longer than any in clean rows must not count as still, so a
            # longer block has to show only the range of this one.
            facts.append(Liveness(level=level, rows=rows * 9 // 8, smallest_range=smallest))
        rows = rows * 5 // 4
    return tuple(facts)


def _noise(readings: Floats) -> float:
    """Return the standard deviation of the sensor's noise, from second differences when calm."""
    bends = np.abs(np.diff(readings[~np.isnan(readings)], n=2))
    return float(np.quantile(bends, 0.2)) / (0.2533 * np.sqrt(6)) if bends.size else 0.0
