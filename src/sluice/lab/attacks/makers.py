"""Poison makers: the interface of all makers, and the paper's own.

A maker says whether its poison is *shaped*: made with the gate in mind, so that projecting it onto
the rules would undo its work. `projected` turns the other makers into physics-aware ones.
"""

from dataclasses import dataclass, replace
from typing import ClassVar, Protocol

from sluice.lab.attacks.data_attack import DataAttack
from sluice.lab.attacks.knowledge import Knowledge
from sluice.lab.attacks.poison import EXPOSURE, Poison, moves_rows
from sluice.lab.attacks.projection import project
from sluice.lab.attacks.replay import Replay
from sluice.seeding import stream
from sluice.telemetry import Record

__all__ = [
    "AttestClean",
    "FabricationMaker",
    "PhysicsAware",
    "PoisonMaker",
    "Replayed",
    "projected",
]


class PoisonMaker(Protocol):
    """Turns a clean shard and the attacks to hide into one malicious client's poison."""

    @property
    def shaped(self) -> bool:
        """Whether the poison already respects the gate, so that it is not projected."""
        ...

    def __call__(self, shard: Record, known: Knowledge, *, seed: int) -> Poison:
        """Make one malicious client's poison; the same seed gives the same poison.

        Clients that must differ need different seeds. Without rules there is no gate.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """The paper's exposure poison. The attacker knows the attacks it wants overlooked."""

    exposure: float = EXPOSURE
    shaped: ClassVar[bool] = False

    def __call__(self, shard: Record, known: Knowledge, *, seed: int) -> Poison:
        """Write the targets over random stretches of the shard."""
        rng = stream(seed, "replay", "splice")
        return Replay(targets=known.targets).plant(shard, rng=rng, exposure=self.exposure)


@dataclass(frozen=True, slots=True, kw_only=True)
class FabricationMaker:
    """A replay whose whole shard is then fabricated. The attacker knows only the attacks.

    Splicing would tear planted stretches apart, so a shard is spliced before the replay.
    """

    attack: DataAttack
    exposure: float = EXPOSURE
    shaped: ClassVar[bool] = False

    def __call__(self, shard: Record, known: Knowledge, *, seed: int) -> Poison:
        """Replay, then fabricate; or splice, then replay."""
        make = Replayed(exposure=self.exposure)
        if moves_rows(self.attack):
            spliced = self.attack(shard, seed=seed)
            return make(spliced, known, seed=seed)
        replayed = make(shard, known, seed=seed)
        return replayed.fabricated(self.attack, seed=seed)


@dataclass(frozen=True, slots=True, kw_only=True)
class AttestClean:
    """Show the clean shard, train on poison: nothing ties an update to the batch that was judged.

    The attacker needs no knowledge of the gate, because it always has a clean shard of its own.
    """

    of: PoisonMaker = Replayed()
    shaped: ClassVar[bool] = True

    def __call__(self, shard: Record, known: Knowledge, *, seed: int) -> Poison:
        """Make the poison, and show the shard it was made from."""
        poison = self.of(shard, known, seed=seed)
        return replace(poison, shown=shard)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicsAware:
    """Another maker's poison, moved to the nearest readings that obey the rules (equation 5).

    The attacker knows the rules and the policy, and what the other maker knows.
    """

    of: PoisonMaker
    shaped: ClassVar[bool] = True

    def __call__(self, shard: Record, known: Knowledge, *, seed: int) -> Poison:
        """Project the shown and the trained record; planted rows and exposure stay the same."""
        gate = known.require_gate("project onto them")
        poison = self.of(shard, known, seed=seed)
        shown = project(poison.shown, gate.rules, gate.policy).record
        same = poison.trained is poison.shown
        trained = shown if same else project(poison.trained, gate.rules, gate.policy).record
        return replace(poison, shown=shown, trained=trained)


def projected(maker: PoisonMaker) -> PoisonMaker:
    """Make a maker physics-aware, unless its poison is already shaped."""
    return maker if maker.shaped else PhysicsAware(of=maker)
