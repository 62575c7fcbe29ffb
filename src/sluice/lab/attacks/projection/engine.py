"""The one place that knows PIQP: a proximal interior-point method for sparse programmes."""

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
    """Where it is least, and the multipliers: positive at a high limit, negative at a low one."""

    moves: Floats
    on_moves: Floats
    on_links: Floats


ITERATIONS = 100
ROUGHER = 100.0
TRIES = 3


def minimise(task: SolverTask, *, accuracy: float) -> Minimum | None:
    """Return the minimum, or nothing where there is none or none was found.

    Where the solver's last digits do not settle it is asked for fewer; how good the answer is, its
    certificate measures.
    """
    # Loaded when needed: nothing but a projection needs it.
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
    found = solver.result
    return Minimum(moves=found.x, on_moves=found.z_bu - found.z_bl, on_links=found.z_u - found.z_l)
