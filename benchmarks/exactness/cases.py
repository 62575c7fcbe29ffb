"""Cases: a random plant whose budgets equal what its rows use, or differ by a little."""

from dataclasses import dataclass, replace

import numpy as np

from benchmarks.exactness.plants import ROWS, Plant, draw_plant
from sluice.admission import Gate, HardenedPolicy
from sluice.arrays import Ints
from sluice.attestation.systems.full import Statement, derive
from sluice.invariants import (
    Bound,
    Budgets,
    CleanFacts,
    CleanShare,
    Constant,
    Coupling,
    Liveness,
    Margins,
    Mean,
    Measurement,
    RuleSet,
    Spectrum,
    Window,
    block_ranges,
    budgets_for,
    measure,
)
from sluice.telemetry import Role

__all__ = ["Case", "draw_case"]

OFF_BY = {-1: 0.03, 0: 0.45, 1: 0.24, 2: 0.14, 5: 0.14}  # budget minus what the rows use
ROOM = (-1, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 2, 4, 4, 4, 8, 8)  # the same for violating rows
NO_LIMIT = 1.0  # the circuit does not check repeated stretches, so the gate must not either


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """A plant, and the policy that judges its batches."""

    plant: Plant
    rules: RuleSet
    policy: HardenedPolicy
    statement: Statement
    budgets: Budgets

    @property
    def jumps(self) -> bool:
        """Whether a batch may contain time jumps; the statement then has a column for them."""
        assert self.rules.clean is not None
        return self.rules.clean.segments_per_row > 0 or self.policy.margins.segment_points > 0

    @property
    def gate(self) -> Gate:
        """The gate, built directly because some random rule sets contain no physics."""
        return Gate(rules=self.rules, policy=self.policy, encoding=self.statement.encoding)

    def fitted(self, rng: np.random.Generator, measured: Measurement) -> "Case":
        """Return the case with budgets that a batch just meets, or with one of them one less.

        So every row counts: if circuit and evaluator differ on one row, their verdicts differ.
        With probability 0.15 the budgets stay unchanged.
        """
        if rng.random() < 0.15:
            return self
        counts = _counts(self, measured)
        used = [name for name, count in counts.items() if count > 0]
        less = used[rng.integers(len(used))] if used and rng.random() < 0.4 else ""
        return self._with({name: count - (name == less) for name, count in counts.items()})

    def _with(self, counts: dict[str, int]) -> "Case":
        """Return the case with exactly these budgets; those not named stay unchanged."""
        assert self.rules.clean is not None
        rows, facts, margins = self.plant.rows.count, self.rules.clean, self.policy.margins
        spans = {
            rule.name: rule.relation.rows
            for rule in self.rules.invariants
            if isinstance(rule.relation, Window | Mean)
        }
        blocks = {
            rule.name: rule.relation.blocks(rows)
            for rule in self.rules.invariants
            if isinstance(rule.relation, Spectrum)
        }
        facts = replace(
            facts,
            segments_per_row=0.0 if "segments" in counts else facts.segments_per_row,
            envelope=tuple(
                replace(each, share=_share(counts[each.rule], rows)) for each in facts.envelope
            ),
            anchors=tuple(
                replace(each, share=_share(counts[each.rule], rows) * spans[each.rule] / 2)
                for each in facts.anchors
            ),
            switches=tuple(
                replace(each, share=_share(counts[each.rule], rows)) for each in facts.switches
            ),
            blocks=tuple(
                replace(each, share=_share(counts[each.rule], blocks[each.rule]))
                for each in facts.blocks
            ),
        )
        margins = replace(
            margins,
            alpha=_share(counts["violating"], rows),
            severe_share=(
                _share(counts["severe"], rows) if "severe" in counts else margins.severe_share
            ),
            segment_points=(
                _share(counts["segments"], rows) if "segments" in counts else margins.segment_points
            ),
        )
        rules, policy = replace(self.rules, clean=facts), replace(self.policy, margins=margins)
        statement = replace(self.statement, rules=rules, policy=policy)
        budgets = statement.budgets(rows)
        return replace(self, rules=rules, policy=policy, statement=statement, budgets=budgets)

    def with_alpha(self, violating: int) -> "Case":
        """Return the case with a budget of `violating` violating rows."""
        margins = replace(self.policy.margins, alpha=_share(violating, self.plant.rows.count))
        policy = replace(self.policy, margins=margins)
        statement = derive(self.rules, policy)
        budgets = statement.budgets(self.plant.rows.count)
        return replace(self, policy=policy, statement=statement, budgets=budgets)


def _counts(case: Case, measured: Measurement) -> dict[str, int]:
    """Return what a batch uses of each budget that can change without a new statement."""
    assert case.rules.clean is not None
    counted = {each.rule for each in case.rules.clean.envelope}
    counts = {"violating": int(measured.violating.sum())}
    for judged in measured.judged:
        if judged.own_budget or judged.rule.name in counted:
            used = judged.violating if judged.own_budget else judged.envelope
            counts[judged.rule.name] = int(used.sum())
    severe = _severe(measured, case.budgets)
    if case.budgets.severe_rows > 0 and severe > 1:
        counts["severe"] = severe
    if case.jumps:
        counts["segments"] = measured.segments - 1
    return counts


def draw_case(rng: np.random.Generator, *, rows: range = ROWS) -> Case:
    """Draw a plant and fit budgets to its rows."""
    plant = draw_plant(rng, rows=rows)
    count = plant.rows.count
    measured = measure(plant.rules, plant.record(plant.rows))
    facts = _facts(rng, plant, measured)
    margins = Margins(
        alpha=_share(int(measured.violating.sum()) + int(rng.choice(ROOM)), count),
        severe_multiple=float(rng.choice([1.0, 1.0, 1.7, 3.0, 20.0])),
        envelope_factor=1.0,
        envelope_points=0.0,
        anchor_factor=1.0,
        anchor_points=0.0,
        switch_factor=1.0,
        switch_points=0.0,
        block_factor=1.0,
        block_points=0.0,
        liveness_share=0.5,
        repeat_points=NO_LIMIT,
        segment_points=_share(1, count) if rng.choice([False, False, False, True]) else 0.0,
    )
    rules = replace(plant.rules, clean=facts)
    severe = _severe(measured, budgets_for(rules, facts, margins, rows=count))
    room = int(rng.choice([0, 0, 1, 4])) if severe == 0 else _off_by(rng)
    allowed = max(0, severe + room)
    margins = replace(margins, severe_share=_share(allowed, count) if allowed else 0.0)
    policy = HardenedPolicy(rows_min=2, margins=margins)
    statement = derive(rules, policy)
    return Case(
        plant=plant,
        rules=rules,
        policy=policy,
        statement=statement,
        budgets=statement.budgets(count),
    )


def _off_by(rng: np.random.Generator) -> int:
    return int(rng.choice(list(OFF_BY), p=list(OFF_BY.values())))


def _share(count: int, rows: int) -> float:
    """Return a share of rows that rounds down to a count; half a row above it, for safety."""
    return (max(0, count) + 0.5) / rows


def _severe(measured: Measurement, budgets: Budgets) -> int:
    severe = np.zeros(measured.rows, bool)
    for judged in measured.judged:
        if not judged.own_budget:
            severe |= judged.size > budgets.severe[judged.rule.name]
    return int(severe.sum())


def _facts(rng: np.random.Generator, plant: Plant, measured: Measurement) -> CleanFacts:
    rows = measured.rows
    envelope, anchors, severe = [], [], []
    switches, blocks = [], []
    for judged in measured.judged:
        relation, name = judged.rule.relation, judged.rule.name
        if isinstance(relation, Window | Mean):
            broken = int(judged.violating[judged.anchors].sum()) + _off_by(rng)
            share = (max(0, broken) + 0.5) * relation.rows / (2 * rows)
            anchors.append(CleanShare(rule=name, share=share))
            continue
        if judged.own_budget:
            broken = int(judged.violating.sum()) + _off_by(rng)
            if isinstance(relation, Spectrum):
                blocks.append(CleanShare(rule=name, share=_share(broken, relation.blocks(rows))))
            else:
                switches.append(CleanShare(rule=name, share=_share(broken, rows)))
            continue
        excess = float(judged.excess.max()) * float(rng.choice([0.0, 0.5, 0.7, 1.0]))
        if not isinstance(relation, Bound | Constant):
            severe.append(CleanShare(rule=name, share=excess))
        if isinstance(relation, Coupling):
            waiting = int(judged.envelope.sum()) + _off_by(rng)
            envelope.append(CleanShare(rule=name, share=_share(waiting, rows)))
    levels = [channel.name for channel in plant.rules.channels if channel.role is Role.LEVEL]
    return CleanFacts(
        batch_rows=rows,
        batches=100,
        effective_batches=10,
        refused_share=0.0,
        refused_upper=0.3,
        violating_share=0.0,
        segments_per_row=float(rng.choice([0.0, 0.0, 0.0, 1 / 64, 3 / 64])),
        severe=tuple(severe),
        envelope=tuple(envelope),
        anchors=tuple(anchors),
        switches=tuple(switches),
        blocks=tuple(blocks),
        liveness=tuple(fact for level in levels for fact in _liveness(rng, plant, level)),
        repeats=tuple(CleanShare(rule=level, share=0.0) for level in levels),
    )


def _liveness(rng: np.random.Generator, plant: Plant, level: str) -> list[Liveness]:
    registers: Ints = plant.rows.registers[:, plant.register(level)]
    step = plant.encoding.registers[plant.register(level)].step
    longest = min(40, plant.rows.count)
    blocks = rng.choice(np.arange(2, longest + 1), size=rng.integers(0, 3), replace=False)
    facts = []
    for block in blocks:
        ranges = block_ranges(registers.astype(np.float64), int(block))
        least = int(ranges.min())
        least += int(
            rng.choice([0, 0, 0, -1, -3, -least // 2, 1], p=[0.2] * 3 + [0.12] * 3 + [0.04])
        )
        smallest = 2 * (max(0, least) + 0.5) * step
        facts.append(Liveness(level=level, rows=int(block), smallest_range=smallest))
    return facts
