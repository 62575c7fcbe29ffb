"""Finds the nearest record that obeys the rules."""

from collections.abc import Iterator

import numpy as np

from sluice.admission import Gate, HardenedPolicy, PaperPolicy, Verdict
from sluice.invariants import RelationKind, evaluate
from sluice.lab.attacks.projection.assembly import Assembly, assemble
from sluice.lab.attacks.projection.by_integers import hardened_demands
from sluice.lab.attacks.projection.by_paper import paper_demands
from sluice.lab.attacks.projection.demands import Chain, Demands
from sluice.lab.attacks.projection.outcome import Projection
from sluice.lab.attacks.projection.programme import Grade
from sluice.lab.attacks.projection.sacrifice import SacrificePlan, plan
from sluice.lab.attacks.projection.spectra import SpectrumTangents
from sluice.telemetry import Record

__all__ = ["nearest"]


OVER_ROWS = (RelationKind.WINDOW, RelationKind.MEAN, RelationKind.SWITCH_BAND)
"""Rules with a budget of their own that are affine."""
TANGENT_ROUNDS = 6
"""Solutions at most: each one takes tangents where the last one broke a spectrum."""


def nearest(gate: Gate, record: Record, *, fixed: tuple[str, ...]) -> Projection:
    """Return the nearest record that obeys the gate's rules, except for what its budgets allow.

    A spectrum is not affine: it is replaced by tangents until no block breaks it. If rounding
    breaks a row that was meant to hold, the search runs again with wider margins.
    """
    before = gate.judge(record)
    tangents = SpectrumTangents(gate)
    tangents.add(record)
    for wide_margins in (False, True):
        for _ in range(TANGENT_ROUNDS):
            demands = _demands(gate, record, tangents.chains(), wide_margins=wide_margins)
            assembly = assemble(record, gate.rules, demands, fixed=fixed)
            chosen = plan(assembly)
            moved = assembly.programme.moved(record, chosen.solution.moves)
            whole = not tangents.add(moved, given_up=_given_up(assembly, chosen))
            if whole or not _within_budgets(assembly, chosen):
                break  # more tangents demand more, and repair nothing that is given up
        after = before if moved is record else gate.judge(moved)
        if _as_planned(gate, assembly, chosen, moved, after):
            break
    return _outcome(assembly, chosen, moved, before, after, whole=whole)


def _given_up(assembly: Assembly, chosen: SacrificePlan) -> Iterator[tuple[str, int]]:
    """Yield the rule and the row of each link that is sacrificed or let go."""
    links = assembly.programme.links
    for link in np.flatnonzero(chosen.grade[links.group] != Grade.KEPT):
        yield links.rules[links.rule[link]], int(links.row[link])


def _as_planned(
    gate: Gate, assembly: Assembly, chosen: SacrificePlan, moved: Record, after: Verdict
) -> bool:
    """Return whether all kept rows, windows and switches hold."""
    kept = chosen.grade == Grade.KEPT
    if (after.violating & kept[: len(moved)]).any():
        return False
    links = assembly.programme.links
    own = np.flatnonzero(links.group >= len(moved))
    if gate.encoding is None or not own.size:
        return True
    names = np.array(links.rules)[links.rule[own]]
    for judged in evaluate(gate.encoding, moved):
        if judged.rule.kind in OVER_ROWS:
            at = own[names == judged.rule.name]
            if (judged.violating[links.row[at]] & kept[links.group[at]]).any():
                return False
    return True


def _demands(
    gate: Gate, record: Record, tangents: tuple[Chain, ...], *, wide_margins: bool
) -> Demands:
    match gate.policy:
        case PaperPolicy() as paper:
            return paper_demands(
                gate.rules, paper, record, wide_margins=wide_margins, tangents=tangents
            )
        case HardenedPolicy() as hardened:
            assert gate.encoding is not None
            return hardened_demands(
                gate.rules,
                hardened,
                record,
                gate.encoding,
                wide_margins=wide_margins,
                tangents=tangents,
            )


def _within_budgets(assembly: Assembly, chosen: SacrificePlan) -> bool:
    """Return whether the plan gives up no more than the budgets allow."""
    rows = chosen.grade[: assembly.programme.rows]
    demands = assembly.demands
    return (
        int(np.count_nonzero(rows)) <= demands.rows
        and int(np.count_nonzero(rows == Grade.LET_GO)) <= demands.severe
        and all(
            int(np.count_nonzero(chosen.grade[groups])) <= budget
            for budget, groups in assembly.anchors
        )
    )


def _outcome(  # noqa: PLR0913 - what the search found, and both verdicts
    assembly: Assembly,
    chosen: SacrificePlan,
    record: Record,
    before: Verdict,
    after: Verdict,
    *,
    whole: bool,
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
        feasible=whole and _within_budgets(assembly, chosen),
        verdict=after,
    )
