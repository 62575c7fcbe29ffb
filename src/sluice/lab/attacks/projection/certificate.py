"""The certificate of a solution, computed from the solution and not from the solver's report."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sluice.arrays import Floats
from sluice.errors import SolverError

if TYPE_CHECKING:  # so that importing a certificate does not load SciPy
    from sluice.lab.attacks.projection.demands import Limits
    from sluice.lab.attacks.projection.programme import Bounds, Programme

__all__ = ["Certificate", "certify"]

PRIMAL = 1e-8
DUAL = 1e-8
GAP = 1e-8


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Three numbers (`primal`, `dual`, `gap`) prove an optimum over every limit of the record.

    By weak duality, moves within their limits cost at least `least`, for any multipliers. If `cost`
    equals `least`, no record is nearer.
    """

    cost: float  # 1/2 sum of squared moves, in spreads
    least: float  # no record within the limits costs less
    primal: float  # furthest beyond a limit, in spreads
    dual: float  # largest imbalance of moves and multipliers, in spreads

    @property
    def gap(self) -> float:
        """The cost less the least possible one, as a share of the cost if that is more than 1."""
        return abs(self.cost - self.least) / max(1.0, abs(self.cost))

    @property
    def distance(self) -> float:
        """How far the true optimum may lie from these moves, in spreads (Euclidean)."""
        return math.sqrt(2 * abs(self.cost - self.least))

    def demand(self) -> None:
        """Raise SolverError unless the numbers prove an optimum."""
        checks = (
            ("limits", self.primal, PRIMAL),
            ("balance of moves and multipliers", self.dual, DUAL),
            ("duality gap", self.gap, GAP),
        )
        for what, value, limit in checks:
            if not value <= limit:
                raise SolverError(
                    f"the projection is not a certified optimum: {what} {value:.3g}, at most "
                    f"{limit:.3g} expected; the rules may hold tolerances far below the spread of "
                    "their channels"
                )


def certify(
    programme: "Programme", bounds: "Bounds", moves: Floats, on_moves: Floats, on_links: Floats
) -> Certificate:
    """Certify moves by their multipliers (positive at a high limit, negative at a low one)."""
    matrix = programme.links.matrix
    pull = matrix.T @ on_links + on_moves
    sums = matrix @ moves
    support = _support(bounds.moves, on_moves) + _support(bounds.links, on_links)
    return Certificate(
        cost=0.5 * float(moves @ moves),
        least=-0.5 * float(pull @ pull) - support,
        primal=max(
            float(bounds.moves.beyond(moves).max(initial=0.0)),
            float(bounds.links.beyond(sums).max(initial=0.0)),
        ),
        dual=float(np.abs(moves + pull).max(initial=0.0)),
    )


def _support(limits: "Limits", multipliers: Floats) -> float:
    """Return the largest product of the multipliers with values within the limits."""
    high, low = multipliers > 0, multipliers < 0
    total = multipliers[high] @ limits.high[high] + multipliers[low] @ limits.low[low]
    return float(total)
