"""The only module that calls PIQP, a proximal interior-point method for sparse programmes."""

from dataclasses import dataclass

from scipy.sparse import csc_array, diags_array

from sluice.arrays import Floats
from sluice.lab.attacks.projection.demands import Limits

__all__ = ["Minimum", "SolverTask", "minimise"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SolverTask:
    """Minimise 1/2 squares z^2 + prices z, with z and the links A z within their limits."""

    squares: Floats
    prices: Floats
    moves: Limits
    matrix: csc_array
    links: Limits  # at least one side of each is finite


@dataclass(frozen=True, slots=True, kw_only=True)
class Minimum:
    """The minimiser, and the multipliers: positive at a high limit, negative at a low one."""

    moves: Floats
    on_moves: Floats
    on_links: Floats


ITERATIONS = 100
ROUGHER = 100.0
TRIES = 3


def minimise(task: SolverTask, *, accuracy: float) -> Minimum | None:
    """Return the minimum, or None if there is none or the solver finds none.

    If the solver's last digits do not converge, it runs again with a lower accuracy. The
    certificate measures how good the answer is.
    """
    # Imported here because only a projection needs it.
    import piqp  # noqa: PLC0415

    solver = piqp.SparseSolver()
    settings = solver.settings
    settings.kkt_solver = piqp.sparse_ldlt
    settings.max_iter = ITERATIONS
    solver.setup(
        diags_array(task.squares, format="csc"),
        task.prices,
        None,
        None,
        task.matrix,
        task.links.low,
        task.links.high,
        task.moves.low,
        task.moves.high,
    )
    for tried in range(TRIES):
        wanted = accuracy * ROUGHER**tried
        settings.eps_abs = settings.eps_rel = wanted
        settings.eps_duality_gap_abs = settings.eps_duality_gap_rel = wanted
        status = solver.solve()
        if status != piqp.PIQP_MAX_ITER_REACHED:
            break
    if status != piqp.PIQP_SOLVED:
        return None
    result = solver.result
    return Minimum(
        moves=result.x, on_moves=result.z_bu - result.z_bl, on_links=result.z_u - result.z_l
    )
