"""A measured batch against a policy's budgets: the findings of each rule, and the reasons."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from sluice.admission.evidence import finding_of, operator_sentence, worst_rows
from sluice.admission.measured import MeasuredBatch
from sluice.admission.reasons import Reason, ReasonKind, ranked
from sluice.admission.verdict import Finding, Verdict, WorstRow
from sluice.arrays import Bools
from sluice.invariants import (
    Budgets,
    Coupling,
    RelationKind,
    RuleRows,
    block_starts,
    encode,
    residuals,
)
from sluice.telemetry import Record

if TYPE_CHECKING:
    from sluice.admission.policy import Policy

__all__ = ["judge_floats", "judge_integers", "rows_within"]

WORST_ROWS_UP_TO = 100_000
"""In a longer batch the search for the worst rows takes longer than judging all rows."""

_OWN_REASONS = {
    RelationKind.WINDOW: ReasonKind.WINDOWS,
    RelationKind.SWITCH_BAND: ReasonKind.SWITCHES,
    RelationKind.SPECTRUM: ReasonKind.BLOCKS,
    RelationKind.MEAN: ReasonKind.MEANS,
}


def judge_floats(measured: MeasuredBatch, *, alpha: float, policy: "Policy") -> Verdict:
    """Judge by equation 4 of the paper: the share of rows that break an applicable relation."""
    batch, check = measured.record, measured.floats
    most = rows_within(alpha, len(batch))
    return Verdict(
        reasons=tuple(_counted(ReasonKind.BROKEN_ROWS, "", batch, check.violating, most)),
        findings=tuple(_float_finding(rows, batch, alpha) for rows in check.rules),
        violating=check.violating,
        suspect=check.violating,
        measured=measured,
        policy=policy,
    )


def rows_within(alpha: float, rows: int) -> int:
    """Return the largest count whose share of the rows, in floats, is not above alpha."""
    near = round(alpha * rows)
    return near if near / rows <= alpha else near - 1


def judge_integers(
    measured: MeasuredBatch, budgets: Budgets, *, alpha: float, policy: "Policy"
) -> Verdict:
    """Compare what the integer evaluator measured with every budget of the hardened policy."""
    violating = measured.integers.violating
    reasons = ranked([*_reasons(measured, budgets)])
    suspect = violating.copy()
    for judged in measured.integers.judged:
        if judged.own_budget:
            suspect |= judged.violating
    for reason in reasons:
        if reason.kind.about_a_level:
            suspect |= reason.rows
    return Verdict(
        reasons=reasons,
        findings=tuple(
            finding_of(judged, measured.record, budgets, alpha)
            for judged in measured.integers.judged
        ),
        violating=violating,
        suspect=suspect,
        measured=measured,
        policy=policy,
    )


def _reasons(measured: MeasuredBatch, budgets: Budgets) -> Iterator[Reason]:
    """Yield a reason for each exceeded budget."""
    batch, integers = measured.record, measured.integers
    jumps = np.zeros(integers.rows, bool)
    jumps[batch.segment_starts[1:]] = True
    severe = np.zeros(integers.rows, bool)
    for judged in integers.judged:
        if not judged.own_budget:
            severe |= judged.size > budgets.severe[judged.rule.name]
    for kind, rows, most in (
        (ReasonKind.TIME_JUMPS, jumps, budgets.segments - 1),
        (ReasonKind.VIOLATING_ROWS, integers.violating, budgets.violating_rows),
        (ReasonKind.SEVERE_ROWS, severe, budgets.severe_rows),
    ):
        yield from _counted(kind, "", batch, rows, most)
    own = budgets.own
    for judged in integers.judged:
        name = judged.rule.name
        if judged.own_budget:
            kind, total = _OWN_REASONS[judged.rule.kind], judged.anchors.size
            yield from _counted(kind, name, batch, judged.violating, own[name], total=total)
        elif isinstance(judged.rule.relation, Coupling):
            most = budgets.envelope_rows[name]
            yield from _counted(ReasonKind.TRANSITION, name, batch, judged.envelope, most)
    yield from _still_levels(measured, budgets)
    for level, rows in integers.repeated:
        most = budgets.repeated_rows[level]
        yield from _counted(ReasonKind.REPEATED_READINGS, level, batch, rows, most)


def _counted(  # noqa: PLR0913 - one budget
    kind: ReasonKind, rule: str, batch: Record, rows: Bools, most: int, *, total: int | None = None
) -> Iterator[Reason]:
    """Yield a reason where more rows are marked than the budget allows."""
    count = int(np.count_nonzero(rows))
    if count > most:
        yield Reason(
            kind=kind,
            rule=rule,
            found=count,
            allowed=most,
            total=len(batch) if total is None else total,
            first=_time(batch, rows),
            rows=rows,
        )


def _still_levels(measured: MeasuredBatch, budgets: Budgets) -> Iterator[Reason]:
    """Yield a reason for each level that moves less over a block than in clean rows."""
    encoding = measured.encoding or encode(measured.rules)
    for fact, ranges in measured.integers.quietest:
        least = budgets.quietest[fact.level, fact.rows]
        still = np.flatnonzero(ranges < least)
        if still.size:
            rows = np.zeros(len(measured.record), bool)
            for start in block_starts(len(measured.record), fact.rows)[still]:
                rows[start : start + fact.rows] = True
            step = encoding.register(fact.level).step
            yield Reason(
                kind=ReasonKind.STILL_LEVEL,
                rule=fact.level,
                found=float(ranges[still].min() * step),
                allowed=float(least * step),
                total=fact.rows,
                first=_time(measured.record, rows),
                rows=rows,
            )


def _float_finding(checked: RuleRows, batch: Record, alpha: float) -> Finding:
    rule, rows = checked.rule, len(batch)
    worst: tuple[WorstRow, ...] = ()
    if checked.violating_rows and rows <= WORST_ROWS_UP_TO:
        excess = np.abs(residuals(rule.relation, batch).values) / rule.tolerance
        worst = worst_rows(rule, batch, checked.broken, np.nan_to_num(excess))
    return Finding(
        name=rule.name,
        kind=rule.kind,
        violating_rows=checked.violating_rows,
        violating_share=checked.violating_rows / rows,
        inapplicable_share=1 - checked.applicable_rows / rows,
        envelope_share=checked.envelope_rows / rows,
        limit=alpha,
        sentence=operator_sentence(rule, batch, checked.broken),
        worst=worst,
        violating=checked.broken,
    )


def _time(batch: Record, rows: Bools) -> str:
    """Return the time of the first marked row."""
    first = batch.times[int(rows.argmax())].astype("datetime64[s]")
    return str(first).replace("T", " ")
