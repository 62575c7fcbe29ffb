"""How good a solution is, worked out from the solution itself and not from what a solver says."""

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sluice.arrays import Floats
from sluice.errors import SolverError

if TYPE_CHECKING:  # so that naming a certificate does not load SciPy
    from sluice.lab.attacks.projection.demands import Limits
    from sluice.lab.attacks.projection.programme import Bounds, Programme

__all__ = ["Certificate", "certify"]

PRIMAL = 1e-8
DUAL = 1e-8
GAP = 1e-8


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificate:
    """Three numbers that prove an optimum, over every limit of the whole record.

    Moves within their limits can cost no less than the multipliers say (weak duality), whatever
    the multipliers are; where the two meet, nothing is nearer.
    """

    cost: float  # 1/2 sum of squared moves, in spreads
    least: float  # no record within the limits costs less
    primal: float  # furthest beyond a limit, in spreads
    dual: float  # furthest from moves and multipliers balancing, in spreads

    @property
    def gap(self) -> float:
        """The cost above the least possible one, as a share of it where it is more than 1."""
        return abs(self.cost - self.least) / max(1.0, abs(self.cost))

    @property
    def distance(self) -> float:
        """How far the true optimum may lie from these moves, in spreads (Euclidean)."""
        return math.sqrt(2 * abs(self.cost - self.least))

    def demand(self) -> None:
        """Raise unless it proves an optimum."""
        worst = (
            ("limits", self.primal, PRIMAL),
            ("balance of moves and multipliers", self.dual, DUAL),
            ("duality gap", self.gap, GAP),
        )
        for what, found, most in worst:
            if not found <= most:
                raise SolverError(
                    f"the projection is not a certified optimum: {what} {found:.3g}, at most "
                    f"{most:.3g} expected; the rules may hold tolerances far below the spread of "
                    "their channels"
                )


def certify(
    programme: "Programme", bounds: "Bounds", moves: Floats, on_moves: Floats, on_links: Floats
) -> Certificate:
    """Hold moves and multipliers (positive at a high limit, negative at a low one) to account."""
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
    """Return the most that the multipliers can make of values within the limits."""
    high, low = multipliers > 0, multipliers < 0
    total = multipliers[high] @ limits.high[high] + multipliers[low] @ limits.low[low]
    return float(total)
