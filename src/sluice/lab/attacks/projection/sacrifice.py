"""Which rows to sacrifice: the adversary's use of the share of rows that may violate.

Rows that nothing can repair go first. The rest of the budget goes to the violating rows that would
cost most to repair, each estimated by itself. This is a heuristic: the moves are the exact optimum
for the choice made, but another choice may cost less.
"""

from dataclasses import dataclass

import numpy as np

from sluice.arrays import Floats, Ints
from sluice.lab.attacks.projection.assembly import Assembly
from sluice.lab.attacks.projection.collisions import collisions
from sluice.lab.attacks.projection.demands import Limits
from sluice.lab.attacks.projection.elastic import give_up_groups
from sluice.lab.attacks.projection.outcome import Conflict
from sluice.lab.attacks.projection.programme import Grade, Programme
from sluice.lab.attacks.projection.solver import NoMovesError, Solution, solve

__all__ = ["SacrificePlan", "plan"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SacrificePlan:
    """A choice of sacrifices, and the moves that are optimal under it."""

    grade: Ints  # per group
    solution: Solution
    conflicts: tuple[Conflict, ...]


def plan(assembly: Assembly) -> SacrificePlan:
    """Sacrifice the rows that must be, then those that the budgets allow, and solve."""
    programme = assembly.programme
    grading = collisions(assembly)
    conflicts, forced = grading.conflicts, grading.grade.copy()
    forced[: programme.rows] = np.maximum(forced[: programme.rows], assembly.demands.counted)
    while True:
        grade = _spent(assembly, forced)
        try:
            solution = solve(programme, programme.bounds(grade))
        except NoMovesError:
            grading = give_up_groups(assembly, forced)
            conflicts, forced = conflicts + grading.conflicts, grading.grade
        else:
            return SacrificePlan(grade=grade, solution=solution, conflicts=conflicts)


def _spent(assembly: Assembly, forced: Ints) -> Ints:
    """Spend what the forced sacrifices leave of each budget; return the grades."""
    programme, demands = assembly.programme, assembly.demands
    grade = forced.copy()
    rows = np.arange(programme.rows)
    saved = _repair_costs(programme, kept=True) - _repair_costs(programme, kept=False)
    for most, groups in ((demands.rows, rows), *assembly.anchors):
        left = most - int(np.count_nonzero(forced[groups]))
        grade[_costliest(saved, groups[forced[groups] == Grade.KEPT], left)] = Grade.SACRIFICED
    left = demands.severe - int(np.count_nonzero(forced[rows] == Grade.LET_GO))
    severe = _repair_costs(programme, kept=False)
    grade[_costliest(severe, rows[grade[rows] == Grade.SACRIFICED], left)] = Grade.LET_GO
    return grade


def _costliest(costs: Floats, groups: Ints, most: int) -> Ints:
    order = np.argsort(-costs[groups], kind="stable")[: max(0, most)]
    costliest = groups[order]
    return costliest[costs[costliest] > 0]


def _repair_costs(programme: Programme, *, kept: bool) -> Floats:
    """Estimate the cost of bringing each group, by itself, within its limits.

    A reading moves to its limit: v^2 / 2. A chain also moves its neighbours: a level's jump v
    beyond the tolerance e is spread over v / e rows on either side, which adds v^3 / 12 e.
    """
    links, moves = programme.links, programme.moves
    costs: Floats = np.zeros(programme.groups)
    for choice, group, spreads in (
        (links.limits, links.group, True),
        (moves.limits, moves.row, False),
    ):
        limits: Limits = choice.kept if kept else choice.sacrificed
        beyond = limits.beyond(np.zeros(len(group)))
        at = np.flatnonzero(beyond)
        cost = beyond[at] ** 2 / 2
        if spreads:
            cost += beyond[at] ** 3 / (6 * (limits.high[at] - limits.low[at]))
        np.add.at(costs, group[at], cost)
    return costs
