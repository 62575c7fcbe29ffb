"""PIQP on the links that matter, and a certificate over all of them."""

from dataclasses import dataclass

import numpy as np
from scipy.sparse import eye_array

from sluice.arrays import Bools, Floats
from sluice.attacks.projection.certificate import Certificate, certify
from sluice.attacks.projection.demands import Limits
from sluice.attacks.projection.programme import Bounds, Programme

__all__ = ["NoMovesError", "Solution", "solve"]

ACCURACY = 1e-11
BROKEN = 1e-10  # in spreads: less is the solver's rounding
STILL = 1e-9  # in spreads: the solver's noise, no move
FEW = 0.4  # of the links: with more of them, showing all is faster than showing twice
REACH_ROWS = 32
"""Links so near to a broken one come along at once: levels are mended over many rows."""


class NoMovesError(Exception):
    """No moves are within all limits, or the solver says so."""

    def __init__(self, working: Bools) -> None:
        super().__init__()
        self.working = working


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


def solve(programme: Programme, bounds: Bounds, *, shown: Bools | None = None) -> Solution:
    """Return the smallest moves within the limits.

    The solver is shown the links that are broken without it and those near them. Where its answer
    breaks none of the others it is the answer to the whole; else it is shown them all.
    """
    links = len(programme.links)
    bounded = np.isfinite(bounds.links.low) | np.isfinite(bounds.links.high)
    shown = np.zeros(links, bool) if shown is None else shown & bounded
    solution = _shown(programme, bounds, shown)
    reach = REACH_ROWS
    while True:
        broken = programme.broken_links(solution.moves, bounds, beyond=BROKEN)
        broken &= ~solution.working
        if not broken.any():
            return solution
        working = solution.working | (_near(programme, broken, reach) & bounded)
        if np.count_nonzero(working) > FEW * links:
            working = bounded
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
        part = matrix[:, read].tocsc()
        own, linked = _at(bounds.moves, read), _at(bounds.links, np.flatnonzero(working))
        found = _piqp(part, own, linked)
        if found is None:
            raise NoMovesError(working)
        moves[read], on_moves[read], on_links[working] = found
        still = read[np.abs(moves[read]) <= STILL]
        moves[still] = 0.0
    return Solution(moves=moves, on_moves=on_moves, on_links=on_links, working=working)


def _at(limits: Limits, at: Floats) -> Limits:
    return Limits(low=limits.low[at], high=limits.high[at])


def _piqp(matrix, moves: Limits, links: Limits) -> tuple[Floats, Floats, Floats] | None:
    """Return moves and multipliers of both kinds, or nothing where there is no solution."""
    import piqp

    solver = piqp.SparseSolver()
    solver.settings.kkt_solver = piqp.sparse_ldlt
    for name in ("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel"):
        setattr(solver.settings, name, ACCURACY)
    size = matrix.shape[1]
    solver.setup(
        eye_array(size, format="csc"),
        np.zeros(size),
        None, None,
        matrix,
        links.low,
        links.high,
        moves.low,
        moves.high,
    )
    if solver.solve() != piqp.PIQP_SOLVED:
        return None
    found = solver.result
    return found.x, found.z_bu - found.z_bl, found.z_u - found.z_l
