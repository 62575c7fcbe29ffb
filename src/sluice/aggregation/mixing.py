"""Nearest-neighbour mixing: average each update with its neighbours, then apply another rule."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sluice.aggregation.allowance import Allowance, AllowedShare, allowed, check_allowance
from sluice.aggregation.geometry import squared_distances
from sluice.aggregation.rule import Aggregate, Rule, State, aggregated
from sluice.aggregation.update import Stack, Update, stacked
from sluice.arrays import Floats

__all__ = ["NearestNeighbourMixing"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NearestNeighbourMixing:
    """Replace each update by the mean of its n - f nearest, itself included, then aggregate.

    Allouah and others (AISTATS 2023). The state is that of the wrapped rule. Influence is
    assigned to the clients whose updates were mixed.
    """

    rule: Rule
    f: Allowance = AllowedShare(0.3)  # noqa: RUF009 - frozen, so sharing it is safe

    def __post_init__(self) -> None:
        check_allowance(self.f, "nearest-neighbour mixing")

    @property
    def needs_root(self) -> bool:
        """Whether the wrapped rule needs a root update."""
        return self.rule.needs_root

    def __call__(self, updates: Sequence[Update], state: State) -> tuple[Aggregate, State]:
        """Aggregate one round with the wrapped rule."""
        stack = stacked(updates)
        f = allowed(self.f, len(stack), "nearest-neighbour mixing")
        mixing = _mixing(stack.matrix, len(stack) - f)
        inner, after = self.rule(_mixed(stack, mixing), state)
        influence = np.array([inner.influence.get(client, 0.0) for client in stack.clients])
        admitted = np.array([client in inner.admitted for client in stack.clients])
        return aggregated(stack, inner.update, influence @ mixing, admitted), after


def _mixing(matrix: Floats, keep: int) -> Floats:
    """Return one row per mixed update: the shares of the original updates in it."""
    apart = squared_distances(matrix)
    np.fill_diagonal(apart, -1)  # itself first, even if others are equal to it
    nearest = np.argsort(apart, axis=1, kind="stable")[:, :keep]
    shares = np.zeros_like(apart)
    np.put_along_axis(shares, nearest, 1 / keep, axis=1)
    return shares


def _mixed(stack: Stack, mixing: Floats) -> list[Update]:
    rows = mixing @ stack.matrix
    return [
        Update(client=client, vector=row, weight=float(weight))
        for client, row, weight in zip(stack.clients, rows, stack.weights, strict=True)
    ]
