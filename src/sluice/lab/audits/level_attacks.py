"""Attacks on one level: hold it still with jitter, or let it drift at a window rule's limit.

Both change batches that the gate admits unchanged, so that the attack causes every refusal.
"""

from dataclasses import dataclass

import numpy as np

from sluice.admission import Gate, ReasonKind
from sluice.arrays import Ints
from sluice.invariants import Invariant, Window
from sluice.lab.audits.evaluation import Pool, Proportion
from sluice.seeding import stream

__all__ = ["FREEZE_JITTER", "Freeze", "RampAudit", "freeze", "ramp", "slowest_ramp"]

TURN_WINDOWS = 2
FREEZE_JITTER = 0.02  # of the standard deviation of the level's steps from row to row


@dataclass(frozen=True, slots=True, kw_only=True)
class Freeze:
    """One level held still for `rows` rows, in every batch."""

    level: str
    rows: int
    moved: float  # true movement of the level in these rows (median range, in its unit)
    refused: Proportion


def freeze(gate: Gate, pools: tuple[Pool, ...], *, level: str, rows: int, seed: int) -> Freeze:
    """Hold a level at its reading of a random row, with a little jitter, and judge the batch."""
    refused = 0
    moved: list[float] = []
    for nth, pool in enumerate(pools):
        step = float(np.nanstd(np.diff(pool.record.column(level))))
        for start in pool.starts:
            random = stream(seed, "freeze", level, rows, nth, start)
            batch = pool.batch(start)
            values = batch.values.copy()
            column = values[:, batch.index(level)]
            at = int(random.integers(1, pool.size - rows))
            moved.append(float(np.ptp(column[at : at + rows])))
            column[at : at + rows] = column[at] + random.normal(0, FREEZE_JITTER * step, rows)
            refused += not gate.judge(batch.with_values(values)).admitted
    return Freeze(
        level=level,
        rows=rows,
        moved=float(np.nanmedian(moved)) if moved else 0.0,
        refused=Proportion.counted(refused, len(moved)),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RampAudit:
    """One level drifting by `per_row` away and back again, in every batch."""

    level: str
    rule: str
    per_row: float
    multiple: float
    refused: Proportion
    by_window: int  # refusals that name a window rule of this level


def slowest_ramp(gate: Gate, level: str) -> Invariant | None:
    """Return the window rule of a level with the smallest detectable ramp; None without one."""
    window_rules = [
        rule
        for rule in gate.rules.invariants
        if isinstance(rule.relation, Window) and rule.relation.level == level
    ]
    return min(window_rules, key=_power, default=None)


def ramp(gate: Gate, pools: tuple[Pool, ...], *, rule: Invariant, multiple: float) -> RampAudit:
    """Let the rule's level drift at a multiple of its smallest detectable ramp, and judge.

    It drifts for two windows, then back for two, so that the drift itself stays as small as a
    window's tolerance allows. Every other batch starts downward.
    """
    assert isinstance(rule.relation, Window)
    level = rule.relation.level
    windows = tuple(
        other.name
        for other in gate.rules.invariants
        if isinstance(other.relation, Window) and other.relation.level == level
    )
    per_row = multiple * _power(rule)
    turn = TURN_WINDOWS * rule.relation.rows

    def drift(rows: int) -> Ints:
        phase = np.arange(rows) % (2 * turn)
        return np.minimum(phase, 2 * turn - phase)

    refused = judged = by_window = 0
    for pool in pools:
        for start in pool.starts:
            batch = pool.batch(start)
            values = batch.values.copy()
            sign = -1 if judged % 2 else 1
            values[:, batch.index(level)] += sign * per_row * drift(pool.size)
            verdict = gate.judge(batch.with_values(values))
            refused += not verdict.admitted
            by_window += any(
                reason.kind is ReasonKind.WINDOWS and reason.rule in windows
                for reason in verdict.reasons
            )
            judged += 1
    return RampAudit(
        level=level,
        rule=rule.name,
        per_row=per_row,
        multiple=multiple,
        refused=Proportion.counted(refused, judged),
        by_window=by_window,
    )


def _power(rule: Invariant) -> float:
    assert rule.evidence.smallest_offset is not None, f"window rule {rule.name!r} states no power"
    return rule.evidence.smallest_offset
