"""FLTrust: the server trains its own small update and trusts clients with the same direction."""

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

ROUNDING = 1e-12  # a smaller cosine counts as zero: normalised, it would decide the whole round


@dataclass(frozen=True, slots=True, kw_only=True)
class FLTrust:
    """The mean of the updates at the root update's length, weighted by trust.

    Cao, Fang, Liu and Gong (NDSS 2021). Trust is the cosine to the root update, zero where it is
    negative. If no client is trusted, the round changes nothing. Without a root update the rule
    refuses to run: a silent fallback would be a different rule under the same name.
    """

    admitting_cosine: float = 0.05  # the paper counts a client above it as admitted
    needs_root: ClassVar[bool] = True

    def __call__(self, updates: Sequence[Update], state: State) -> tuple[Aggregate, Fresh]:
        """Aggregate one round with its root update, which is not kept for the next round."""
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
        """Return each client's trust before normalising, as in the paper's traces."""
        stack = stacked(updates)
        trust = _trust(_cosines(stack, root))
        return dict(zip(stack.clients, trust.tolist(), strict=True))


def _root(state: State) -> RootUpdate:
    if not isinstance(state, RootUpdate):
        raise SettingError(
            "FLTrust compares updates with the server's own update of the round, got "
            f"{type(state).__name__} instead; train one on the root slice and pass it as RootUpdate"
        )
    return state


def _trust(cosines: Floats) -> Floats:
    return np.where(cosines > ROUNDING, cosines, 0.0)


def _cosines(stack: Stack, root: RootUpdate) -> Floats:
    if root.vector.size != stack.matrix.shape[1]:
        raise SettingError(
            f"the root update has {root.vector.size} weights and the clients' have "
            f"{stack.matrix.shape[1]}; all must train the same model"
        )
    towards = directions(root.vector.astype(np.float64)[np.newaxis])[0]
    return np.asarray(directions(stack.matrix) @ towards, dtype=np.float64)
