"""The attacks on telemetry by command-line name, and the inputs that they are made with."""

from collections.abc import Callable
from dataclasses import dataclass, field

from sluice.admission import Policy
from sluice.errors import SettingError
from sluice.invariants import RuleSet
from sluice.lab.attacks.data_attack import DataAttack
from sluice.lab.attacks.fabrications import FABRICATIONS, RollLasting
from sluice.lab.attacks.perturbation import OptimisedPerturbation
from sluice.lab.attacks.projection import Projected
from sluice.lab.attacks.replay import SHARE, ReplayFrom
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


DATA_ATTACKS: Registry[Callable[[Means], DataAttack]] = Registry(
    {
        "replay": _replay,
        "channel-roll": lambda means: means.roll,
        "permutation": lambda _: FABRICATIONS["permutation"],
        "scaling": lambda _: FABRICATIONS["scaling"],
        "splicing": lambda _: FABRICATIONS["splicing"],
        "perturbation": lambda _: OptimisedPerturbation(),
        "projection": _projection,
    },
    group="sluice.attacks",
    reserved=(*UPDATE_ATTACKS, "blend"),
    adapt=lambda attack: lambda _: attack,
)
