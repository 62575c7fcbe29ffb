"""Which rows to sacrifice: the adversary's use of the share of rows that may violate.

Rows that nothing can mend go first. The rest of the budget goes to the violating rows that would
cost most to mend, each judged by itself. This is a heuristic: the moves are the exact optimum for
the choice made, but another choice may cost less.
"""

from dataclasses import dataclass

import numpy as np

from sluice.arrays import Floats, Ints
from sluice.lab.attacks.projection.assembly import Assembly
from sluice.lab.attacks.projection.collisions import collisions
from sluice.lab.attacks.projection.demands import Limits
from sluice.lab.attacks.projection.elastic import mended
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
    """Give up what must be, then what may be, and solve."""
    programme = assembly.programme
    found = collisions(assembly)
    conflicts, forced = found.conflicts, found.grade.copy()
    forced[: programme.rows] = np.maximum(forced[: programme.rows], assembly.demands.counted)
    while True:
        grade = _spent(assembly, forced)
        try:
            solution = solve(programme, programme.bounds(grade))
        except NoMovesError:
            found = mended(assembly, forced)
            conflicts, forced = conflicts + found.conflicts, found.grade
        else:
            return SacrificePlan(grade=grade, solution=solution, conflicts=conflicts)


def _spent(assembly: Assembly, forced: Ints) -> Ints:
    """Spend what the forced sacrifices leave of each budget."""
    programme, demands = assembly.programme, assembly.demands
    grade = forced.copy()
    rows = np.arange(programme.rows)
    saved = _mending(programme, kept=True) - _mending(programme, kept=False)
    for most, groups in ((demands.rows, rows), *assembly.anchors):
        left = most - int(np.count_nonzero(forced[groups]))
        grade[_dearest(saved, groups[forced[groups] == Grade.KEPT], left)] = Grade.SACRIFICED
    left = demands.severe - int(np.count_nonzero(forced[rows] == Grade.LET_GO))
    severe = _mending(programme, kept=False)
    grade[_dearest(severe, rows[grade[rows] == Grade.SACRIFICED], left)] = Grade.LET_GO
    return grade


def _dearest(costs: Floats, groups: Ints, most: int) -> Ints:
    order = np.argsort(-costs[groups], kind="stable")[: max(0, most)]
    dearest = groups[order]
    return dearest[costs[dearest] > 0]


def _mending(programme: Programme, *, kept: bool) -> Floats:
    """Estimate what it costs to bring each group, by itself, within its limits.

    A reading goes to its limit: v^2 / 2. So does a chain, but for its neighbours: a level's jump v
    beyond the tolerance e is made up for over v / e rows on either side, which adds v^3 / 12 e.
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
