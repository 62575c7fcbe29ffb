"""Finds the nearest record that obeys the rules."""

import numpy as np

from sluice.admission import Gate, HardenedPolicy, PaperPolicy, Verdict
from sluice.invariants import RelationKind, evaluate
from sluice.lab.attacks.projection.assembly import Assembly, assemble
from sluice.lab.attacks.projection.by_integers import hardened_demands
from sluice.lab.attacks.projection.by_paper import paper_demands
from sluice.lab.attacks.projection.demands import Demands
from sluice.lab.attacks.projection.outcome import Projection
from sluice.lab.attacks.projection.programme import Grade
from sluice.lab.attacks.projection.sacrifice import SacrificePlan, plan
from sluice.telemetry import Record

__all__ = ["nearest"]


def nearest(gate: Gate, record: Record, *, fixed: tuple[str, ...]) -> Projection:
    """Return the nearest record that obeys the gate's rules, except for what its budgets allow.

    If rounding breaks a row that was meant to hold, the search runs again with wider margins.
    """
    before = gate.judge(record)
    for wide_margins in (False, True):
        assembly = assemble(
            record, gate.rules, _demands(gate, record, wide_margins=wide_margins), fixed=fixed
        )
        chosen = plan(assembly)
        moved = assembly.programme.moved(record, chosen.solution.moves)
        after = before if moved is record else gate.judge(moved)
        if _as_planned(gate, assembly, chosen, moved, after):
            break
    return _outcome(assembly, chosen, moved, before, after)


def _as_planned(
    gate: Gate, assembly: Assembly, chosen: SacrificePlan, moved: Record, after: Verdict
) -> bool:
    """Return whether all kept rows and anchors hold."""
    kept = chosen.grade == Grade.KEPT
    if (after.violating & kept[: len(moved)]).any():
        return False
    links = assembly.programme.links
    own = np.flatnonzero(links.group >= len(moved))
    if gate.encoding is None or not own.size:
        return True
    for judged in evaluate(gate.encoding, moved):
        if judged.rule.kind is RelationKind.WINDOW:
            at = own[links.rule[own] == links.rules.index(judged.rule.name)]
            if (judged.violating[links.row[at]] & kept[links.group[at]]).any():
                return False
    return True


def _demands(gate: Gate, record: Record, *, wide_margins: bool) -> Demands:
    match gate.policy:
        case PaperPolicy() as paper:
            return paper_demands(gate.rules, paper, record, wide_margins=wide_margins)
        case HardenedPolicy() as hardened:
            assert gate.encoding is not None
            return hardened_demands(
                gate.rules, hardened, record, gate.encoding, wide_margins=wide_margins
            )


def _outcome(
    assembly: Assembly, chosen: SacrificePlan, record: Record, before: Verdict, after: Verdict
) -> Projection:
    programme, solution = assembly.programme, chosen.solution
    certificate = solution.certificate(programme, programme.bounds(chosen.grade))
    certificate.demand()
    shifts = np.abs(solution.moves)
    movable = int(assembly.cells.free.sum())
    return Projection(
        record=record,
        moved_rows=len(np.unique(programme.moves.row[shifts > 0])),
        mean_shift=float(shifts.sum()) / movable if movable else 0.0,
        max_shift=float(shifts.max(initial=0.0)),
        frobenius=float(np.sqrt(2 * certificate.cost)),
        sacrificed=np.flatnonzero(after.violating),
        budget=assembly.demands.rows,
        conflicts=chosen.conflicts,
        violating_before=before.violating_rows,
        violating_after=after.violating_rows,
        certificate=certificate,
        verdict=after,
    )
