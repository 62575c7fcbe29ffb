"""Averages over whole updates: the plain mean, and two that bound the effect of one client."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sluice.aggregation.geometry import MedianLength, Threshold, check_threshold, clip_factors
from sluice.aggregation.rule import Aggregate, Centre, Fresh, State, aggregated, expect_fresh
from sluice.aggregation.update import Update, stacked
from sluice.arrays import Floats
from sluice.errors import SettingError

__all__ = ["CentredClipping", "FedAvg", "NormClipping"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FedAvg:
    """The mean of the updates, weighted by the rows of each client's admitted batch."""

    needs_root: ClassVar[bool] = False

    def __call__(self, updates: Sequence[Update], state: State) -> tuple[Aggregate, Fresh]:
        """Aggregate one round."""
        fresh = expect_fresh(state, "FedAvg")
        stack = stacked(updates)
        shares = stack.weights / stack.weights.sum()
        return aggregated(stack, shares @ stack.matrix, shares), fresh


@dataclass(frozen=True, slots=True, kw_only=True)
class NormClipping:
    """Shorten updates to a threshold, then take their unweighted mean.

    The paper mentions a threshold but gives no value; its code uses the lower median length of the
    round's updates, `MedianLength(lower=True)`.
    """

    tau: Threshold = MedianLength()  # noqa: RUF009 - frozen, so sharing it is safe
    needs_root: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_threshold(self.tau, "norm clipping")

    def __call__(self, updates: Sequence[Update], state: State) -> tuple[Aggregate, Fresh]:
        """Aggregate one round."""
        fresh = expect_fresh(state, "norm clipping")
        stack = stacked(updates)
        factors = clip_factors(stack.matrix, self.tau)
        return aggregated(stack, factors @ stack.matrix / len(stack), factors), fresh


@dataclass(frozen=True, slots=True, kw_only=True)
class CentredClipping:
    """Clip each update's distance to a centre, move the centre by the mean, repeat.

    Karimireddy, He and Jaggi (ICML 2021), without client momentum. The centre starts at the last
    round's aggregate; in the first round it starts at zero.
    """

    tau: Threshold = MedianLength()  # noqa: RUF009 - frozen, so sharing it is safe
    iterations: int = 5
    needs_root: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_threshold(self.tau, "centred clipping")
        if self.iterations < 1:
            raise SettingError(
                f"centred clipping must iterate at least once, got {self.iterations}"
            )

    def __call__(self, updates: Sequence[Update], state: State) -> tuple[Aggregate, Centre]:
        """Aggregate one round around the last centre; return the new one."""
        stack = stacked(updates)
        centre = self._start(state, stack.matrix.shape[1])
        coefficients = np.zeros(len(stack))
        for _ in range(self.iterations):
            apart = stack.matrix - centre
            steps = clip_factors(apart, self.tau) / len(stack)
            centre = centre + steps @ apart
            coefficients = (1 - steps.sum()) * coefficients + steps
        aggregate = aggregated(stack, centre, coefficients)
        return aggregate, Centre(vector=aggregate.update)

    @staticmethod
    def _start(state: State, size: int) -> Floats:
        if isinstance(state, Fresh):
            return np.zeros(size)
        if not isinstance(state, Centre):
            raise SettingError(
                f"centred clipping needs a Centre or Fresh() as state, got a {type(state).__name__}"
            )
        if state.vector.shape != (size,):
            raise SettingError(
                f"centred clipping remembers a centre of {state.vector.size} weights and got "
                f"updates of {size}; start from Fresh() when the model changes"
            )
        return state.vector
