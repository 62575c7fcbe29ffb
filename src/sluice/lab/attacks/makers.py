"""How a liar makes its poison: what every maker takes and returns, and the paper's own.

A maker says whether its poison is *shaped*: made with the gate in mind, so that projecting it onto
the rules would undo its work. `projected` makes the others as the physics-aware attacker would.
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
    """A clean shard and the attacks to hide in, one liar's poison out."""

    @property
    def shaped(self) -> bool:
        """Whether the poison already minds the gate and is left as it is."""
        ...

    def __call__(self, shard: Record, known: Knowledge, *, seed: int) -> Poison:
        """Make one liar's poison; the same seed gives the same one.

        Liars that shall differ need seeds that differ. Without rules there is no gate to mind.
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
    """A replay whose whole shard is then fabricated. The attacker knows the attacks alone.

    Splicing would tear planted stretches apart, so there the shard is spliced first.
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

    The attacker need know nothing of the gate; its own clean shard always exists.
    """

    of: PoisonMaker = Replayed()
    shaped: ClassVar[bool] = True

    def __call__(self, shard: Record, known: Knowledge, *, seed: int) -> Poison:
        """Make the poison and show what it was made from."""
        made = self.of(shard, known, seed=seed)
        return replace(made, shown=shard)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhysicsAware:
    """Another maker's poison, moved to the nearest readings that obey the rules (equation 5).

    The attacker knows the rules and the policy besides what the other maker knows.
    """

    of: PoisonMaker
    shaped: ClassVar[bool] = True

    def __call__(self, shard: Record, known: Knowledge, *, seed: int) -> Poison:
        """Project what is shown and what is trained on; planted rows and exposure stay."""
        gate = known.gate_to("project onto them")
        made = self.of(shard, known, seed=seed)
        shown = project(made.shown, gate.rules, gate.policy).record
        same = made.trained is made.shown
        trained = shown if same else project(made.trained, gate.rules, gate.policy).record
        return replace(made, shown=shown, trained=trained)


def projected(maker: PoisonMaker) -> PoisonMaker:
    """Make a maker physics-aware, unless its poison already minds the gate."""
    return maker if maker.shaped else PhysicsAware(of=maker)
