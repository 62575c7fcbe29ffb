"""The update-aware blend: as much poison in an update as the aggregation rule treats as ordinary.

A malicious client trains twice, on its clean rows and on its poison, and sends a mixture. It finds
the share of poison by running the rule on what all clients would send.

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

__all__ = ["Blend", "Blended", "CleanAndPoisoned"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CleanAndPoisoned:
    """Two updates of a malicious client in one round: one trained on clean rows, one on poison."""

    client: str
    clean: Vector
    poisoned: Vector
    weight: float  # rows of its admitted batch


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Blended:
    """The updates to send, their share of poison, and whether the rule treats them as ordinary.

    If they are not ordinary, the rule gives no influence even to updates without poison.
    """

    updates: tuple[Update, ...]
    share: float
    ordinary: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Blend:
    """All malicious clients mix in the same share of poison, the largest that is still ordinary.

    Updates are ordinary if both conditions hold:

    - The malicious clients have influence: at least the median of the other clients that have any,
      or at least as much as they have without poison.
    - The rule admits half of the malicious clients, or as many as it admits without poison.

    Shares are tried from 1 (only poison) downwards, then bisected. If the rule gives no influence
    to the malicious clients' clean updates (Krum selects a single update), the mean of the other
    clients' updates replaces them.
    """

    grid: int = 8
    bisections: int = 6

    def __post_init__(self) -> None:
        if self.grid < 1 or self.bisections < 0:
            raise SettingError(
                "a blend needs a grid of at least 1 share and at least 0 bisections, got "
                f"{self.grid} and {self.bisections}"
            )

    def __call__(
        self,
        malicious: Sequence[CleanAndPoisoned],
        others: Sequence[Update],
        *,
        rule: Rule,
        state: State,
    ) -> Blended:
        """Return the update that each malicious client sends; nothing is random."""
        if not malicious or not others:
            raise SettingError(
                "a blend needs at least 1 malicious client and 1 other client, got "
                f"{len(malicious)} malicious among {len(others)} others"
            )
        mean = np.mean([_double(update.vector) for update in others], axis=0)
        for covers in (
            [_double(attacker.clean) for attacker in malicious],
            [mean] * len(malicious),
        ):
            oracle = _Oracle(malicious, covers, others, rule, state)
            if oracle.without_poison.own > 0:
                share = self._largest(oracle)
                return Blended(updates=oracle.updates(share), share=share, ordinary=True)
        clean = tuple(
            Update(client=attacker.client, vector=attacker.clean, weight=attacker.weight)
            for attacker in malicious
        )
        return Blended(updates=clean, share=0.0, ordinary=False)

    def _largest(self, oracle: "_Oracle") -> float:
        """Return the largest share that is ordinary; 0 always is."""
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
    """How a rule treats the malicious clients and the others."""

    own: float  # mean influence of a malicious client
    usual: float  # median influence of the others that have any
    passed: float  # share of malicious clients admitted


class _Oracle:
    """Runs the rule on a given share of poison."""

    def __init__(
        self,
        malicious: Sequence[CleanAndPoisoned],
        covers: Sequence[Floats],
        others: Sequence[Update],
        rule: Rule,
        state: State,
    ) -> None:
        self._malicious = malicious
        self._covers = covers
        self._others = others
        self._rule = rule
        self._state = state
        self.without_poison = self._treatment(0.0)

    def updates(self, share: float) -> tuple[Update, ...]:
        """Return the updates the malicious clients would send."""
        return tuple(
            Update(
                client=attacker.client,
                vector=(1 - share) * cover + share * _double(attacker.poisoned),
                weight=attacker.weight,
            )
            for attacker, cover in zip(self._malicious, self._covers, strict=True)
        )

    def ordinary(self, share: float) -> bool:
        """Whether the rule treats these updates like the others, or like updates without poison."""
        treatment = self._treatment(share)
        enough = min(treatment.usual, self.without_poison.own) * (1 - ROUNDING)
        passing = min(0.5, self.without_poison.passed)
        return 0 < treatment.own >= enough and treatment.passed >= passing

    def _treatment(self, share: float) -> _Treatment:
        aggregate, _ = self._rule([*self._others, *self.updates(share)], self._state)
        names = [attacker.client for attacker in self._malicious]
        others = _influences(aggregate, [update.client for update in self._others])
        influences = [influence for influence in others if influence > 0]
        return _Treatment(
            own=sum(_influences(aggregate, names)) / len(names),
            usual=median(influences) if influences else 0.0,
            passed=sum(client in aggregate.admitted for client in names) / len(names),
        )


ROUNDING = 1e-9  # equal influences in one round may differ by this much


def _influences(aggregate: Aggregate, clients: Sequence[str]) -> list[float]:
    return [aggregate.influence.get(client, 0.0) for client in clients]


def _double(vector: Vector) -> Floats:
    return np.asarray(vector, dtype=np.float64)
