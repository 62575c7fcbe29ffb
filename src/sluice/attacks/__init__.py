"""Attacks turn telemetry, or the update trained on it, into what a lying client would submit."""

from sluice.attacks.data_attack import DataAttack, InTurn
from sluice.attacks.fabrications import (
    FABRICATIONS,
    ChannelRoll,
    ConservationScaling,
    RegimePermutation,
    RegimeSplicing,
    RollLasting,
)
from sluice.attacks.makers import PoisonMaker, projected
from sluice.attacks.perturbation import OptimisedPerturbation
from sluice.attacks.poison import Poison, exposed
from sluice.attacks.poisons import POISONS
from sluice.attacks.projection import Conflict, Projected, Projection, project
from sluice.attacks.registry import DATA_ATTACKS, Means
from sluice.attacks.replay import Replay, ReplayFrom, Targets, choose_targets
from sluice.attacks.updates import (
    ALIE,
    UPDATE_ATTACKS,
    FreeRider,
    MinMax,
    Scaling,
    SignFlip,
    SmallestMajority,
    UpdateAttack,
)

__all__ = [
    "ALIE",
    "DATA_ATTACKS",
    "FABRICATIONS",
    "POISONS",
    "UPDATE_ATTACKS",
    "ChannelRoll",
    "Conflict",
    "ConservationScaling",
    "DataAttack",
    "FreeRider",
    "InTurn",
    "Means",
    "MinMax",
    "OptimisedPerturbation",
    "Poison",
    "PoisonMaker",
    "Projected",
    "Projection",
    "RegimePermutation",
    "RegimeSplicing",
    "Replay",
    "ReplayFrom",
    "RollLasting",
    "Scaling",
    "SignFlip",
    "SmallestMajority",
    "Targets",
    "UpdateAttack",
    "choose_targets",
    "exposed",
    "project",
    "projected",
]
