"""The attacks on telemetry by command-line name, and the inputs that they are made with."""

from collections.abc import Callable
from dataclasses import dataclass, field

from sluice.admission import Gate, Policy, default_policy
from sluice.errors import SettingError
from sluice.invariants import RuleSet
from sluice.lab.attacks.data_attack import DataAttack
from sluice.lab.attacks.fabrications import FABRICATIONS, RollLasting
from sluice.lab.attacks.perturbation import OptimisedPerturbation
from sluice.lab.attacks.projection import Projected
from sluice.lab.attacks.replay import SHARE, ReplayFrom
from sluice.lab.attacks.tampering import (
    ArNoise,
    ChannelSwap,
    ForeignSimulator,
    IdleFlip,
    LevelOffset,
    LowPass,
    ShapedReplay,
    TankSwap,
    UntiedReplay,
)
from sluice.lab.attacks.updates import UPDATE_ATTACKS
from sluice.plugins import Registry
from sluice.telemetry import Record

__all__ = ["DATA_ATTACKS", "Means"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What an attacker has, besides the record it falsifies."""

    labelled: Record | None = None  # attacks recorded on the plant, to replay
    share: float = SHARE  # of the record's rows: how much is replayed
    rules: RuleSet | None = None  # the gate's rules, if the attacker knows them
    policy: Policy | None = None
    roll: RollLasting = field(default_factory=RollLasting)

    @property
    def gate(self) -> Gate | None:
        """The gate, if the attacker knows its rules."""
        if self.rules is None:
            return None
        return Gate.of(self.rules, self.policy or default_policy(self.rules), allow_empty=True)

    def known(self, attack: str) -> tuple[Record, Gate]:
        """Return the labelled attacks and the gate; raise SettingError if one is missing."""
        if self.labelled is None:
            raise SettingError(
                f"{attack} writes labelled attacks into the record; give a record with some "
                "(--target)"
            )
        gate = self.gate
        if gate is None:
            raise SettingError(f"{attack} adapts to a gate; give its rules (--rules)")
        return self.labelled, gate


def _replay(means: Means) -> DataAttack:
    if means.labelled is None:
        raise SettingError(
            "replay writes labelled attacks into the record; give a record with some (--target)"
        )
    return ReplayFrom(labelled=means.labelled, share=means.share)


def _projection(means: Means) -> DataAttack:
    """Project the record; if labelled attacks are given, replay them into it first."""
    if means.rules is None:
        raise SettingError("projection moves readings onto rules; give them (--rules)")
    replay = None if means.labelled is None else _replay(means)
    return Projected(of=replay, rules=means.rules, policy=means.policy)


def _untied_replay(means: Means) -> DataAttack:
    labelled, gate = means.known("untied-replay")
    return UntiedReplay(labelled=labelled, gate=gate)


def _shaped_replay(means: Means) -> DataAttack:
    labelled, gate = means.known("shaped-replay")
    return ShapedReplay(labelled=labelled, gate=gate)


def _foreign_simulator(means: Means) -> DataAttack:
    labelled, gate = means.known("foreign-simulator")
    return ForeignSimulator(labelled=labelled, gate=gate)


DATA_ATTACKS: Registry[Callable[[Means], DataAttack]] = Registry(
    {
        "replay": _replay,
        "channel-roll": lambda means: means.roll,
        "permutation": lambda _: FABRICATIONS["permutation"],
        "scaling": lambda _: FABRICATIONS["scaling"],
        "splicing": lambda _: FABRICATIONS["splicing"],
        "perturbation": lambda _: OptimisedPerturbation(),
        "projection": _projection,
        "offset": lambda means: LevelOffset(gate=means.gate),
        "low-pass": lambda means: LowPass(gate=means.gate),
        "ar-noise": lambda means: ArNoise(gate=means.gate),
        "channel-swap": lambda means: ChannelSwap(gate=means.gate),
        "tank-swap": lambda means: TankSwap(gate=means.gate),
        "idle-flip": lambda means: IdleFlip(gate=means.gate),
        "untied-replay": _untied_replay,
        "shaped-replay": _shaped_replay,
        "foreign-simulator": _foreign_simulator,
    },
    group="sluice.attacks",
    reserved=(*UPDATE_ATTACKS, "blend"),
    adapt=lambda attack: lambda _: attack,
)
