"""The smallest moves: the solver gets the links that matter, the certificate checks all."""

from dataclasses import dataclass

import numpy as np

from sluice.arrays import Bools, Floats
from sluice.lab.attacks.projection.certificate import Certificate, certify
from sluice.lab.attacks.projection.demands import Limits
from sluice.lab.attacks.projection.engine import SolverTask, minimise
from sluice.lab.attacks.projection.programme import Bounds, Programme

__all__ = ["NoMovesError", "Solution", "solve"]

ACCURACY = 1e-11
BROKEN = 1e-10  # in spreads: less is the solver's rounding
STILL = 1e-9  # in spreads: a smaller move is the solver's noise
MANY = 0.4  # share of the links above which the solver gets all of them
REACH_ROWS = 32
"""Links this near to a broken one are added with it: levels are repaired over many rows."""


class NoMovesError(Exception):
    """No moves are within all limits, or the solver finds none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """Moves with the multipliers that prove them, and the links that the solver got."""

    moves: Floats
    on_moves: Floats
    on_links: Floats
    working: Bools

    @property
    def cost(self) -> float:
        """Half the sum of squared moves."""
        return 0.5 * float(self.moves @ self.moves)

    def certificate(self, programme: Programme, bounds: Bounds) -> Certificate:
        """Return the certificate over all limits."""
        return certify(programme, bounds, self.moves, self.on_moves, self.on_links)


def solve(programme: Programme, bounds: Bounds) -> Solution:
    """Return the smallest moves within the limits.

    The solver gets the links that are broken without it and those near them. If its answer breaks
    none of the others, it solves the whole programme; otherwise the solver gets more links.
    """
    demanded = bounds.links.finite
    solution = _solve_with(programme, bounds, np.zeros(len(demanded), bool))
    reach = REACH_ROWS
    while True:
        broken = programme.broken_links(solution.moves, bounds, beyond=BROKEN)
        broken &= ~solution.working
        if not broken.any():
            return solution
        working = solution.working | (_near(programme, broken, reach) & demanded)
        if np.count_nonzero(working) > MANY * len(working):
            working = demanded
        solution = _solve_with(programme, bounds, working)
        reach *= 2


def _near(programme: Programme, broken: Bools, reach: int) -> Bools:
    """Return the links of rows near a broken one."""
    edges = np.zeros(programme.rows + 1, np.int64)
    rows = programme.links.row[broken]
    np.add.at(edges, np.maximum(rows - reach, 0), 1)
    np.add.at(edges, np.minimum(rows + reach + 1, programme.rows), -1)
    near = np.cumsum(edges[:-1]) > 0
    return np.asarray(near[programme.links.row])


def _solve_with(programme: Programme, bounds: Bounds, working: Bools) -> Solution:
    """Solve with these links only; a move that none of them reads goes to its nearest limit."""
    moves = np.clip(0.0, bounds.moves.low, bounds.moves.high)
    on_moves, on_links = -moves, np.zeros(len(working))
    matrix = programme.links.matrix[working]
    read = np.unique(matrix.indices)
    if read.size:
        task = SolverTask(
            squares=np.ones(len(read)),
            prices=np.zeros(len(read)),
            moves=Limits(low=bounds.moves.low[read], high=bounds.moves.high[read]),
            matrix=matrix[:, read].tocsc(),
            links=Limits(low=bounds.links.low[working], high=bounds.links.high[working]),
        )
        minimum = minimise(task, accuracy=ACCURACY)
        if minimum is None:
            raise NoMovesError
        moves[read] = np.where(np.abs(minimum.moves) > STILL, minimum.moves, 0.0)
        on_moves[read], on_links[working] = minimum.on_moves, minimum.on_links
    return Solution(moves=moves, on_moves=on_moves, on_links=on_links, working=working)
