"""FoolsGold: clients whose updates point in the same direction round after round lose weight."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sluice.aggregation.geometry import directions
from sluice.aggregation.rule import Aggregate, Fresh, RuleMemory, State, aggregated
from sluice.aggregation.update import Stack, Update, stacked
from sluice.arrays import Floats, frozen
from sluice.errors import SettingError

__all__ = ["FoolsGold"]

LEAST = 1e-6  # keeps the logit finite for a client that copies another
ALIKE = 1e-12  # rounding difference between histories with the same direction


@dataclass(frozen=True, slots=True, kw_only=True)
class FoolsGold:
    """This round's updates, weighted by how much the clients' summed histories differ.

    Fung, Yoon and Beschastnikh (RAID 2020), on all weights of the model. The memory is kept by
    client name, because a gate changes which clients take part; a client that misses a round keeps
    its history. Only clients present are compared.
    """

    kappa: float = 1.0
    needs_root: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if not (np.isfinite(self.kappa) and self.kappa > 0):
            raise SettingError(f"FoolsGold's confidence kappa must be above 0, got {self.kappa}")

    def __call__(self, updates: Sequence[Update], state: State) -> tuple[Aggregate, RuleMemory]:
        """Aggregate one round; return the memory with this round added."""
        stack = stacked(updates)
        before = _remembered(state, stack)
        histories = stack.matrix + before
        shares = self._shares(histories)
        admitted = shares > 0.5 / len(stack)
        aggregate = aggregated(stack, shares @ stack.matrix, shares, admitted)
        return aggregate, RuleMemory(sums=_sums(state) | _by_client(stack, histories))

    def _shares(self, histories: Floats) -> Floats:
        unlike = 1 - _pardoned(histories).max(axis=1)
        weights = np.zeros(len(histories))
        if unlike.max() > ALIKE:
            scaled = np.clip(unlike / unlike.max(), LEAST, 1)
            with np.errstate(divide="ignore"):  # the most different client: infinity, clipped to 1
                logits = np.log(scaled / (1 - scaled))
            weights = np.clip(self.kappa * (logits + 0.5), 0, 1)
        if weights.sum() == 0:
            return np.full(len(histories), 1 / len(histories))
        return np.asarray(weights / weights.sum(), dtype=np.float64)


def _pardoned(histories: Floats) -> Floats:
    """Return pairwise cosines, lowered where the other client has the larger maximum cosine."""
    towards = directions(histories)
    cosines = towards @ towards.T
    np.fill_diagonal(cosines, 0)
    largest = cosines.max(axis=1)
    own, other = largest[:, np.newaxis], largest[np.newaxis, :]
    pardon = np.divide(own, other, out=np.ones_like(cosines), where=other > own)
    return np.asarray(cosines * pardon, dtype=np.float64)


def _sums(state: State) -> dict[str, Floats]:
    if isinstance(state, Fresh):
        return {}
    if not isinstance(state, RuleMemory):
        raise SettingError(
            f"FoolsGold needs a RuleMemory or Fresh() as state, got a {type(state).__name__}"
        )
    return dict(state.sums)


def _remembered(state: State, stack: Stack) -> Floats:
    sums = _sums(state)
    size = stack.matrix.shape[1]
    for client, total in sums.items():
        if total.shape != (size,):
            raise SettingError(
                f"FoolsGold remembers {total.size} weights of client {client!r} and got updates of "
                f"{size}; start from Fresh() when the model changes"
            )
    return np.stack([sums.get(client, np.zeros(size)) for client in stack.clients])


def _by_client(stack: Stack, histories: Floats) -> dict[str, Floats]:
    return {client: frozen(row) for client, row in zip(stack.clients, histories, strict=True)}
