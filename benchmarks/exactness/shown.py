"""Every check that a batch fails, in more detail than the gate's reasons give."""

from dataclasses import dataclass

import numpy as np

from benchmarks.exactness.cases import Case
from sluice.invariants import Coupling, Measurement, RelationKind

__all__ = ["Shown", "shown"]

OWN = {
    RelationKind.WINDOW: "windows",
    RelationKind.SWITCH_BAND: "switches",
    RelationKind.SPECTRUM: "blocks",
    RelationKind.MEAN: "windows",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Checks that a batch fails by the evaluator's measurement, each with its cause."""

    checks: frozenset[str]
    violating: int
    segments: int


def shown(case: Case, measured: Measurement) -> Shown:
    """Name every failed check, and for budgets of rows the kind of rule that uses them."""
    budgets, rows = case.budgets, measured.rows
    failed: set[str] = set()
    if measured.segments > budgets.segments:
        failed.add("segments")
    severe = np.zeros(rows, bool)
    families, extreme = set(), set()
    for judged in measured.judged:
        name, kind = judged.rule.name, judged.rule.kind.value
        if judged.own_budget:
            if judged.violating.sum() > budgets.own[name]:
                failed.add(OWN[judged.rule.kind])
            continue
        beyond = judged.size > budgets.severe[name]
        severe |= beyond
        families |= {kind} if judged.violating.any() else set()
        extreme |= {kind} if beyond.any() else set()
        coupled = isinstance(judged.rule.relation, Coupling)
        if coupled and judged.envelope.sum() > budgets.envelope_rows[name]:
            failed.add("transition")
    families |= {"illegal code"} if measured.illegal.any() else set()
    families |= {"missing reading"} if measured.missing.any() else set()
    violating = int(measured.violating.sum())
    if violating > budgets.violating_rows:
        failed.add(f"violating rows: {_one(families)}")
    if severe.sum() > budgets.severe_rows:
        failed.add(f"severe rows: {_one(extreme)}")
    for fact, ranges in measured.quietest:
        if (ranges < budgets.quietest[fact.level, fact.rows]).any():
            failed.add("stillness")
    return Shown(checks=frozenset(failed), violating=violating, segments=measured.segments)


def _one(families: set[str]) -> str:
    return next(iter(families), "segment starts") if len(families) < 2 else "several kinds"
