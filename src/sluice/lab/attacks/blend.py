"""The update-aware blend: as much poison in an update as the aggregation rule takes for ordinary.

The liar trains twice, on its clean rows and on its poison, and sends a mixture. The rule itself
tells it how far it may go: it is run on what all clients would send.

What the attacker knows: the other clients' updates, the rule and the rule's state.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

import numpy as np

from sluice.aggregation import Aggregate, Rule, State, Update, Vector
from sluice.arrays import Floats
from sluice.errors import SettingError

__all__ = ["Blend", "Blended", "TwoFaces"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TwoFaces:
    """What one liar trained in one round: on the rows it should have used, and on its poison."""

    client: str
    clean: Vector
    poisoned: Vector
    weight: float  # how many windows it claims


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Blended:
    """What the liars send, the poison's share in it, and whether the rule finds it ordinary.

    Where it is not, the rule would not even hear an update without poison.
    """

    updates: tuple[Update, ...]
    share: float
    ordinary: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Blend:
    """All liars mix in one share of poison, the largest that passes for ordinary.

    An update is ordinary if the rule hears the liars, and no less than the median of the clients
    it hears, or than it would hear them without poison; and if it lets in as many of them as it
    would then, or half. Shares are tried from the whole poison downwards, then bisected. Where a
    clean update of one's own is not heard (Krum takes a single one), the others' mean is tried in
    its place.
    """

    grid: int = 8
    bisections: int = 6

    def __post_init__(self) -> None:
        if self.grid < 1 or self.bisections < 0:
            raise SettingError(
                "a blend tries at least 1 share and bisects no fewer than 0 times, got "
                f"{self.grid} and {self.bisections}"
            )

    def __call__(
        self,
        liars: Sequence[TwoFaces],
        others: Sequence[Update],
        *,
        rule: Rule,
        state: State,
    ) -> Blended:
        """Return what each liar sends; nothing is drawn."""
        if not liars or not others:
            raise SettingError(
                f"a blend hides liars among others, got {len(liars)} of them among {len(others)}"
            )
        mean = np.mean([_double(update.vector) for update in others], axis=0)
        for covers in ([_double(liar.clean) for liar in liars], [mean] * len(liars)):
            oracle = _Oracle(liars, covers, others, rule, state)
            if oracle.bar.own > 0:
                share = self._largest(oracle)
                return Blended(updates=oracle.updates(share), share=share, ordinary=True)
        clean = tuple(
            Update(client=liar.client, vector=liar.clean, weight=liar.weight) for liar in liars
        )
        return Blended(updates=clean, share=0.0, ordinary=False)

    def _largest(self, oracle: "_Oracle") -> float:
        """Return the largest share found ordinary; 0 is."""
        too_much = 1.0
        for step in range(self.grid, -1, -1):
            share = step / self.grid
            if step == 0 or oracle.ordinary(share):
                break
            too_much = share
        if share == 1.0:
            return share
        for _ in range(self.bisections):
            middle = (share + too_much) / 2
            if oracle.ordinary(middle):
                share = middle
            else:
                too_much = middle
        return share


class _Treatment(NamedTuple):
    """How a rule treats the liars, and the clients among which they hide."""

    own: float  # mean influence of a liar
    usual: float  # median influence of the others that have any
    passed: float  # share of liars let in


class _Oracle:
    """The rule, asked what it would make of a share of poison."""

    def __init__(
        self,
        liars: Sequence[TwoFaces],
        covers: Sequence[Floats],
        others: Sequence[Update],
        rule: Rule,
        state: State,
    ) -> None:
        self._liars = liars
        self._covers = covers
        self._others = others
        self._rule = rule
        self._state = state
        self.bar = self._treated(0.0)

    def updates(self, share: float) -> tuple[Update, ...]:
        """Return what the liars would send."""
        return tuple(
            Update(
                client=liar.client,
                vector=(1 - share) * cover + share * _double(liar.poisoned),
                weight=liar.weight,
            )
            for liar, cover in zip(self._liars, self._covers, strict=True)
        )

    def ordinary(self, share: float) -> bool:
        """Whether the rule treats them as it treats others, or them without poison."""
        found = self._treated(share)
        enough = min(found.usual, self.bar.own) * (1 - ROUNDING)
        return 0 < found.own >= enough and found.passed >= min(0.5, self.bar.passed)

    def _treated(self, share: float) -> _Treatment:
        aggregate, _ = self._rule([*self._others, *self.updates(share)], self._state)
        lying = [liar.client for liar in self._liars]
        heard = [part for part in _parts(aggregate, [u.client for u in self._others]) if part > 0]
        return _Treatment(
            own=sum(_parts(aggregate, lying)) / len(lying),
            usual=median(heard) if heard else 0.0,
            passed=sum(client in aggregate.admitted for client in lying) / len(lying),
        )


ROUNDING = 1e-9  # equal shares of one round may differ by this much


def _parts(aggregate: Aggregate, clients: Sequence[str]) -> list[float]:
    return [aggregate.influence.get(client, 0.0) for client in clients]


def _double(vector: Vector) -> Floats:
    return np.asarray(vector, dtype=np.float64)
