"""FLTrust: the server trains a little itself and trusts whoever moves the same way."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sluice.aggregation.geometry import directions
from sluice.aggregation.rule import Aggregate, Fresh, RootUpdate, State, aggregated
from sluice.aggregation.update import Stack, Update, stacked
from sluice.arrays import Floats
from sluice.errors import SettingError

__all__ = ["FLTrust"]

ROUNDING = 1e-12  # a cosine this small is zero: normalised, it would steer the whole round


@dataclass(frozen=True, slots=True, kw_only=True)
class FLTrust:
    """The mean of the updates at the root update's length, weighted by trust.

    Cao, Fang, Liu and Gong (NDSS 2021). Trust is the cosine to the root update, zero where it is
    negative. If nobody is trusted the round changes nothing. Without a root update the rule
    refuses to run: a silent fall-back would be another rule under this one's name.
    """

    admitting_cosine: float = 0.05  # above it the paper counts a client as admitted
    needs_root: ClassVar[bool] = True

    def __call__(self, updates: Sequence[Update], state: State) -> tuple[Aggregate, Fresh]:
        """Aggregate one round against its root update, which is not carried over."""
        root = _root(state)
        stack = stacked(updates)
        cosines = _cosines(stack, root)
        trust = _trust(cosines)
        admitted = cosines > self.admitting_cosine
        total = trust.sum()
        if total == 0:
            return aggregated(stack, np.zeros(root.vector.size), trust, admitted), Fresh()
        update = (trust / total) @ directions(stack.matrix) * np.linalg.norm(root.vector)
        lengths = np.linalg.norm(stack.matrix, axis=1)
        coefficients = np.divide(trust, lengths, out=np.zeros_like(trust), where=trust > 0)
        return aggregated(stack, update, coefficients, admitted), Fresh()

    @staticmethod
    def trust(updates: Sequence[Update], root: RootUpdate) -> Mapping[str, float]:
        """Return each client's trust before normalising: what the paper's traces show."""
        stack = stacked(updates)
        trust = _trust(_cosines(stack, root))
        return dict(zip(stack.clients, trust.tolist(), strict=True))


def _root(state: State) -> RootUpdate:
    if not isinstance(state, RootUpdate):
        raise SettingError(
            "FLTrust weighs updates against the server's own update of the round, got "
            f"{type(state).__name__} instead; train one on the root slice and pass it as RootUpdate"
        )
    return state


def _trust(cosines: Floats) -> Floats:
    return np.where(cosines > ROUNDING, cosines, 0.0)


def _cosines(stack: Stack, root: RootUpdate) -> Floats:
    if root.vector.size != stack.matrix.shape[1]:
        raise SettingError(
            f"the root update has {root.vector.size} weights and the clients' have "
            f"{stack.matrix.shape[1]}; all train the same model"
        )
    towards = directions(root.vector.astype(np.float64)[np.newaxis])[0]
    return np.asarray(directions(stack.matrix) @ towards, dtype=np.float64)
