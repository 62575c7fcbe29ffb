"""The update-aware blend: as much poison in an update as the aggregation rule takes for ordinary.

The liar trains twice, on its clean rows and on its poison, and sends a mixture. The rule itself
tells it how far it may go: it is run on what all clients would send.

What the attacker knows: the other clients' updates, the rule and the rule's state.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np

from sluice.aggregation import Aggregate, Rule, State, Update
from sluice.aggregation.update import Vector
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

    Where it is not, no share was: not even an update without poison would have been.
    """

    updates: tuple[Update, ...]
    share: float
    ordinary: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Blend:
    """All liars mix in one share of poison, the largest that passes for ordinary.

    An update is ordinary if the liars' mean influence is at least the median of the clients that
    the rule lets in, and if they are let in where most others are. Shares are tried from the whole
    poison downwards, then bisected. Where a clean update of one's own is no ordinary one (Krum
    takes a single update), the others' mean is tried in its place.
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
            if oracle.ordinary(0.0):
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


@dataclass(frozen=True, slots=True)
class _Oracle:
    """The rule, asked what it would make of a share of poison."""

    liars: Sequence[TwoFaces]
    covers: Sequence[Floats]
    others: Sequence[Update]
    rule: Rule
    state: State

    def updates(self, share: float) -> tuple[Update, ...]:
        return tuple(
            Update(
                client=liar.client,
                vector=(1 - share) * cover + share * _double(liar.poisoned),
                weight=liar.weight,
            )
            for liar, cover in zip(self.liars, self.covers, strict=True)
        )

    def ordinary(self, share: float) -> bool:
        """Whether the rule treats the liars no worse than the clients among which they hide."""
        aggregate, _ = self.rule([*self.others, *self.updates(share)], self.state)
        lying = [liar.client for liar in self.liars]
        usual = [update.client for update in self.others]
        heard = [part for part in _parts(aggregate, usual) if part > 0]
        own = sum(_parts(aggregate, lying)) / len(lying)
        let_in = sum(client in aggregate.admitted for client in usual) / len(usual)
        passed = sum(client in aggregate.admitted for client in lying) / len(lying)
        enough = own > 0.0 and own >= median(heard or [0.0]) * (1 - ROUNDING)
        return enough and (let_in < 0.5 or passed >= 0.5)


ROUNDING = 1e-9  # equal shares of one round may differ by this much


def _parts(aggregate: Aggregate, clients: Sequence[str]) -> list[float]:
    return [aggregate.influence.get(client, 0.0) for client in clients]


def _double(vector: Vector) -> Floats:
    return np.asarray(vector, dtype=np.float64)
