"""Batches at the limits of a case: one register inside, one beyond, and adversarial batches."""

import math
from collections.abc import Callable

import numpy as np

from benchmarks.exactness.cases import Case
from benchmarks.exactness.plants import Plant, Rows
from sluice.arrays import Ints
from sluice.invariants import (
    REGISTER_TOP,
    TOLERANCE,
    IntegerBalance,
    IntegerBound,
    IntegerConstant,
    IntegerCoupling,
    IntegerRate,
    IntegerSpectrum,
    IntegerSwitchBand,
    IntegerTie,
    anchors,
    block_ends,
)

__all__ = ["KINDS", "draw_batch"]

Change = Callable[[np.random.Generator, Case, Rows], None]


def draw_batch(rng: np.random.Generator, case: Case) -> tuple[str, Rows]:
    """Draw a kind of batch, and a batch of that kind."""
    kind = str(rng.choice(list(KINDS), p=[share for share, _ in KINDS.values()]))
    rows = (case.plant.rows if rng.random() < 0.93 else case.plant.other).copy()
    _, changes = KINDS[kind]
    for _ in range(rng.choice([1, 1, 1, 2, 3]) if kind == "edge" else 1):
        if changes:
            changes[rng.integers(len(changes))](rng, case, rows)
    np.clip(rows.registers, 0, REGISTER_TOP, out=rows.registers)
    return kind, rows


def _row(rng: np.random.Generator, rows: Rows) -> int:
    return int(rng.integers(1, rows.count))


def _crossing(rng: np.random.Generator, weight: int, offset: int, limit: int) -> int:
    """Return the register at which weight x register + offset reaches a limit, or a neighbour."""
    side = int(rng.choice([-1, 1])) * limit
    return (side - offset) // (weight or 1) + int(rng.choice([-1, 0, 0, 1, 1]))


def at_a_rules_edge(  # noqa: C901 - one case a kind
    rng: np.random.Generator, case: Case, rows: Rows
) -> None:
    """Move one reading to the limit of a random rule."""
    rule = case.statement.encoding.rules[rng.integers(len(case.statement.encoding.rules))]
    limit = TOLERANCE if rng.random() < 0.6 else case.budgets.severe[rule.rule.name]
    match rule:
        case IntegerCoupling():
            offsets = (rule.off_offset, rule.envelope_offset, *(at for _, at in rule.on_offsets))
            row, flow = int(rng.integers(0, rows.count)), case.plant.register(rule.relation.flow)
            offset = offsets[rng.integers(len(offsets))]
            if rng.random() < 0.6:  # the offset of the actuator's current code
                code = rows.codes[row, case.plant.actuator(rule.relation.actuator)]
                offset = dict(rule.on_offsets).get(code, rule.off_offset)
            rows.registers[row, flow] = _crossing(rng, rule.weight, offset, limit)
        case IntegerBound():
            edge = rng.choice([rule.low - 1, rule.low, rule.high, rule.high + 1])
            row = int(rng.integers(0, rows.count))
            rows.registers[row, case.plant.register(rule.channel)] = edge
        case IntegerRate():
            at, row = case.plant.register(rule.channel), _row(rng, rows)
            before = int(rows.registers[row - 1, at])
            reached = _crossing(rng, rule.weight, -rule.weight * before, limit)
            _move(rng, rows, row, at, reached)
        case IntegerBalance():
            _unbalance(rng, case, rows, rule, limit)
        case IntegerTie():
            row = int(rng.integers(0, rows.count))
            offset = -int(_summed(case.plant, rows, rule)[row])
            rows.registers[row, case.plant.register(rule.channel)] = _crossing(
                rng, rule.weight, offset, limit
            )
        case IntegerConstant():
            if not rule.code:
                edges = [rule.allowed.low - 1, rule.allowed.low, rule.allowed.high]
                row = int(rng.integers(0, rows.count))
                rows.registers[row, case.plant.register(rule.channel)] = rng.choice(
                    [*edges, rule.allowed.high + 1]
                )
        case IntegerSwitchBand():
            _switch_at_an_edge(rng, case, rows, rule)
        case IntegerSpectrum():
            _block_at_an_edge(rng, case, rows, rule)


def _switch_at_an_edge(
    rng: np.random.Generator, case: Case, rows: Rows, rule: IntegerSwitchBand
) -> None:
    """Move the reading that decides about a switch to an end of its band."""
    on = np.isin(rows.codes[:, case.plant.actuator(rule.relation.actuator)], rule.relation.on)
    switched_at = np.flatnonzero(on[1:] != on[:-1]) + 1
    if not switched_at.size:
        return
    row = int(rng.choice(switched_at))
    band = rule.on if on[row] else rule.off
    edge = rng.choice([band.low - 1, band.low, band.high, band.high + 1])
    at = case.plant.register(rule.relation.level)
    rows.registers[row - rule.relation.before, at] = edge


def _block_at_an_edge(
    rng: np.random.Generator, case: Case, rows: Rows, rule: IntegerSpectrum
) -> None:
    """Move the last reading of a block so that one of its sums is at a limit."""
    relation = rule.relation
    ends = block_ends(rows.count, relation.rows, relation.offset)
    if not ends.size:
        return
    end, order = int(rng.choice(ends)), int(rng.integers(1, 3))
    at = case.plant.register(relation.channel)
    block = rows.registers[end - relation.rows + 1 : end + 1, at]
    limits = rule.first if order == 1 else rule.second
    limit = int(rng.choice([limits.low, limits.high])) + int(rng.choice([-1, 0, 0, 1]))
    rest = limit - int(np.square(np.diff(block[:-1], n=order)).sum())
    if rest < 0:
        return
    expected = block[-2] if order == 1 else 2 * block[-2] - block[-3]
    block[-1] = expected + int(rng.choice([-1, 1])) * (math.isqrt(rest) + int(rng.choice([0, 1])))


def _move(rng: np.random.Generator, rows: Rows, row: int, at: int, reached: int) -> None:
    """Set one register, and mostly shift all that follow, so that only one step changes."""
    if rng.random() < 0.75:
        rows.registers[row:, at] += reached - rows.registers[row, at]
    else:
        rows.registers[row, at] = reached


def _unbalance(
    rng: np.random.Generator, case: Case, rows: Rows, rule: IntegerBalance, limit: int
) -> None:
    """Move readings so that the balance of one row, or of one window or mean, is at its limit."""
    at = case.plant.register(rule.level)
    flow = _flow(case.plant, rows, rule)
    if rule.rows == 1:
        row = _row(rng, rows)
        before = int(rows.registers[row - 1, at])
        offset = -rule.level_weight * before - int(flow[row])
        _move(rng, rows, row, at, _crossing(rng, rule.level_weight, offset, limit))
        return
    ends = anchors(rows.count, rule.rows)
    if ends.size == 0:
        return
    end = int(ends[rng.integers(ends.size)])
    first = end - rule.rows
    if rule.level_weight == 0:  # a mean: one reading of the window takes the sum to its limit
        row = int(rng.integers(first + 1, end + 1))
        weight = -rule.terms[0].weight
        rest = -int(flow[first + 1 : end + 1].sum()) - weight * int(rows.registers[row, at])
        rows.registers[row, at] = _crossing(rng, weight, rest, TOLERANCE)
        return
    offset = -rule.level_weight * int(rows.registers[first, at]) - int(
        flow[first + 1 : end + 1].sum()
    )
    reached = _crossing(rng, rule.level_weight, offset, TOLERANCE)
    lifted = reached - int(rows.registers[end, at])
    ramp = lifted * np.arange(1, rule.rows + 1) // rule.rows
    rows.registers[first + 1 : end + 1, at] += ramp
    rows.registers[end + 1 :, at] += lifted


def _flow(plant: Plant, rows: Rows, rule: IntegerBalance) -> Ints:
    flow = _summed(plant, rows, rule)
    if rule.averaged:
        flow[1:] += flow[:-1].copy() - rule.constant
    return flow


def _summed(plant: Plant, rows: Rows, rule: IntegerBalance | IntegerTie) -> Ints:
    total = np.full(rows.count, rule.constant, np.int64)
    for term in rule.terms:
        if term.on:
            shown = np.isin(rows.codes[:, plant.actuator(term.channel)], term.on).astype(np.int64)
        else:
            shown = rows.registers[:, plant.register(term.channel)]
        total += term.weight * shown
    return total


def nearly_still(rng: np.random.Generator, case: Case, rows: Rows) -> None:
    """Flatten a block of a level to the smallest allowed range, or to one register less."""
    facts = list(case.budgets.quietest.items())
    if not facts:
        return
    (level, block), least = facts[rng.integers(len(facts))]
    first = int(rng.integers(0, max(1, rows.count - block + 1)))
    readings = rows.registers[first : first + block, case.plant.register(level)]
    low, wide = int(readings.min()), max(1, int(np.ptp(readings)))
    target = max(0, least + int(rng.choice([-1, 0])))
    readings[:] = low + (readings - low) * target // wide


def switched(rng: np.random.Generator, case: Case, rows: Rows) -> None:
    """Show another code for some rows: legal, unknown or not an integer."""
    at = int(rng.integers(len(case.plant.actuators)))
    codes = case.plant.actuators[at].codes
    assert codes is not None
    shown = rng.choice([*codes.legal, *codes.legal, *codes.legal, 44, 55, 99, codes.off + 0.4])
    first = int(rng.integers(0, rows.count))
    rows.codes[first : first + int(rng.choice([1, 1, 2, 3, 6])), at] = shown


def jumped(rng: np.random.Generator, case: Case, rows: Rows) -> None:
    """Insert a time jump before a row."""
    rows.jumps[_row(rng, rows)] = True


def missed(rng: np.random.Generator, case: Case, rows: Rows) -> None:
    """Remove a reading; the plant's software flags the row."""
    if rng.random() < 0.3:
        rows.codes[_row(rng, rows), rng.integers(rows.codes.shape[1])] = np.nan
    else:
        rows.missing[_row(rng, rows), rng.integers(rows.missing.shape[1])] = True


def rolled(rng: np.random.Generator, case: Case, rows: Rows) -> None:
    """Delay one channel."""
    at = int(rng.integers(rows.registers.shape[1]))
    rows.registers[:, at] = np.roll(rows.registers[:, at], _row(rng, rows))


def scaled(rng: np.random.Generator, case: Case, rows: Rows) -> None:
    """Scale one channel around its mean."""
    at = int(rng.integers(rows.registers.shape[1]))
    middle = int(rows.registers[:, at].mean())
    factor = float(rng.choice([0.5, 0.9, 0.99, 1.01, 1.1, 2.0]))
    rows.registers[:, at] = middle + np.rint((rows.registers[:, at] - middle) * factor)


def permuted(rng: np.random.Generator, case: Case, rows: Rows) -> None:
    """Show the rows in random order."""
    order = rng.permutation(rows.count)
    rows.registers[:], rows.codes[:] = rows.registers[order], rows.codes[order]


def spliced(rng: np.random.Generator, case: Case, rows: Rows) -> None:
    """Continue with rows of another stretch."""
    cut = _row(rng, rows)
    rows.registers[cut:], rows.codes[cut:] = (
        case.plant.other.registers[cut:],
        case.plant.other.codes[cut:],
    )


def replayed(rng: np.random.Generator, case: Case, rows: Rows) -> None:
    """Replace the second half by the first."""
    half = rows.count // 2
    rows.registers[half : 2 * half], rows.codes[half : 2 * half] = (
        rows.registers[:half],
        rows.codes[:half],
    )


def frozen(rng: np.random.Generator, case: Case, rows: Rows) -> None:
    """Freeze one channel for some rows."""
    at, first = int(rng.integers(rows.registers.shape[1])), int(rng.integers(0, rows.count))
    rows.registers[first : first + int(rng.integers(2, 40)), at] = rows.registers[first, at]


def toggling(rng: np.random.Generator, case: Case, rows: Rows) -> None:
    """Switch an actuator every few rows, to stay in transition."""
    at, every = int(rng.integers(rows.codes.shape[1])), int(rng.integers(1, 5))
    codes = case.plant.actuators[at].codes
    assert codes is not None
    turns = np.arange(rows.count) // every % 2 == 1
    rows.codes[turns, at] = rng.choice(sorted(codes.legal))


def out_of_range(rng: np.random.Generator, case: Case, rows: Rows) -> None:
    """Push a channel to the end of its registers."""
    at, row = int(rng.integers(rows.registers.shape[1])), int(rng.integers(0, rows.count))
    rows.registers[row : row + int(rng.integers(1, 5)), at] = rng.choice(
        [0, 1, REGISTER_TOP - 1, REGISTER_TOP]
    )


def anything(rng: np.random.Generator, case: Case, rows: Rows) -> None:
    """Replace every reading of one channel, or of all, by a random one."""
    drawn = rng.integers(0, REGISTER_TOP + 1, rows.registers.shape)
    if rng.random() < 0.3:
        rows.registers[:] = drawn
    else:
        at = rng.integers(rows.registers.shape[1])
        rows.registers[:, at] = drawn[:, at]


def wandering(rng: np.random.Generator, case: Case, rows: Rows) -> None:
    """Add noise of a few registers to every reading."""
    scale = 10 ** rng.uniform(0, 3)
    rows.registers[:] += np.rint(rng.normal(0, scale, rows.registers.shape)).astype(np.int64)


EDGES: tuple[Change, ...] = (
    *((at_a_rules_edge,) * 7),
    *(nearly_still, switched, switched, jumped, missed),
)
ATTACKS: tuple[Change, ...] = (
    *(rolled, scaled, permuted, spliced, spliced, replayed, frozen, frozen, toggling, toggling),
    out_of_range,
)
KINDS: dict[str, tuple[float, tuple[Change, ...]]] = {
    "as made": (0.05, ()),
    "edge": (0.65, EDGES),
    "adversarial": (0.2, ATTACKS),
    "random": (0.1, (anything, wandering)),
}
