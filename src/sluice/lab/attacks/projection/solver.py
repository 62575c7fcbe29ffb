"""The smallest moves: the solver sees the links that matter, the certificate all of them."""

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
STILL = 1e-9  # in spreads: the solver's noise, no move
MANY = 0.4  # of the links: rather than so many and then more, all are shown at once
REACH_ROWS = 32
"""Links so near to a broken one come along at once: levels are mended over many rows."""


class NoMovesError(Exception):
    """No moves are within all limits, or the solver finds none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Solution:
    """Moves with the multipliers that prove them, and the links the solver was shown."""

    moves: Floats
    on_moves: Floats
    on_links: Floats
    working: Bools

    @property
    def cost(self) -> float:
        """Half the sum of squared moves."""
        return 0.5 * float(self.moves @ self.moves)

    def certificate(self, programme: Programme, bounds: Bounds) -> Certificate:
        """Return how good it is, over all limits."""
        return certify(programme, bounds, self.moves, self.on_moves, self.on_links)


def solve(programme: Programme, bounds: Bounds) -> Solution:
    """Return the smallest moves within the limits.

    The solver is shown the links that are broken without it and those near them. Where its answer
    breaks none of the others it is the answer to the whole; else it is shown more.
    """
    demanded = bounds.links.finite
    solution = _shown(programme, bounds, np.zeros(len(demanded), bool))
    reach = REACH_ROWS
    while True:
        broken = programme.broken_links(solution.moves, bounds, beyond=BROKEN)
        broken &= ~solution.working
        if not broken.any():
            return solution
        working = solution.working | (_near(programme, broken, reach) & demanded)
        if np.count_nonzero(working) > MANY * len(working):
            working = demanded
        solution = _shown(programme, bounds, working)
        reach *= 2


def _near(programme: Programme, broken: Bools, reach: int) -> Bools:
    """Tell the links of rows near a broken one."""
    edges = np.zeros(programme.rows + 1, np.int64)
    rows = programme.links.row[broken]
    np.add.at(edges, np.maximum(rows - reach, 0), 1)
    np.add.at(edges, np.minimum(rows + reach + 1, programme.rows), -1)
    near = np.cumsum(edges[:-1]) > 0
    return np.asarray(near[programme.links.row])


def _shown(programme: Programme, bounds: Bounds, working: Bools) -> Solution:
    """Solve with these links alone; a move that none of them reads goes to its nearest limit."""
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
        found = minimise(task, accuracy=ACCURACY)
        if found is None:
            raise NoMovesError
        moves[read] = np.where(np.abs(found.moves) > STILL, found.moves, 0.0)
        on_moves[read], on_links[working] = found.on_moves, found.on_links
    return Solution(moves=moves, on_moves=on_moves, on_links=on_links, working=working)
