"""The attacks on telemetry by the names the command line uses, and what each is made with."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from sluice.admission import Policy
from sluice.errors import SettingError
from sluice.invariants import RuleSet
from sluice.lab.attacks.data_attack import DataAttack
from sluice.lab.attacks.fabrications import FABRICATIONS, RollLasting
from sluice.lab.attacks.perturbation import OptimisedPerturbation
from sluice.lab.attacks.projection import Projected
from sluice.lab.attacks.replay import SHARE, ReplayFrom
from sluice.telemetry import Record

__all__ = ["DATA_ATTACKS", "Means"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What an attacker has at hand besides the record it falsifies."""

    labelled: Record | None = None  # attacks seen on the plant, to replay
    share: float = SHARE  # of the record's rows: how much is replayed
    rules: RuleSet | None = None  # what the gate checks, as far as it is known
    policy: Policy | None = None
    roll: RollLasting = field(default_factory=RollLasting)


def _replay(means: Means) -> DataAttack:
    if means.labelled is None:
        raise SettingError(
            "replay writes labelled attacks into the record; give a record with some (--target)"
        )
    return ReplayFrom(labelled=means.labelled, share=means.share)


def _projection(means: Means) -> DataAttack:
    """Project the record as it is, or with attacks replayed into it where there are some."""
    if means.rules is None:
        raise SettingError("projection moves readings onto rules; give them (--rules)")
    replay = None if means.labelled is None else _replay(means)
    return Projected(of=replay, rules=means.rules, policy=means.policy)


DATA_ATTACKS: Mapping[str, Callable[[Means], DataAttack]] = MappingProxyType(
    {
        "replay": _replay,
        "channel-roll": lambda means: means.roll,
        "permutation": lambda _: FABRICATIONS["permutation"],
        "scaling": lambda _: FABRICATIONS["scaling"],
        "splicing": lambda _: FABRICATIONS["splicing"],
        "perturbation": lambda _: OptimisedPerturbation(),
        "projection": _projection,
    }
)
