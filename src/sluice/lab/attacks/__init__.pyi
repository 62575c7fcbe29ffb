from .attacking import attack
from .blend import Blend, CleanAndPoisoned
from .data_attack import DataAttack, InTurn
from .fabrications import (
    FABRICATIONS,
    ChannelRoll,
    ConservationScaling,
    RegimePermutation,
    RegimeSplicing,
    RollLasting,
)
from .feasible import Feasible
from .knowledge import Knowledge
from .loosening import LOOSENINGS, Loosening
from .makers import PoisonMaker, projected
from .perturbation import OptimisedPerturbation
from .poison import Poison, exposed
from .poisons import POISONS
from .projection.attack import Projected, project
from .projection.outcome import Conflict, Projection
from .registry import DATA_ATTACKS, Means
from .rehearsal import RehearsedTraining
from .replay import SHARE, Replay, ReplayFrom, Targets, choose_targets
from .updates import (
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
    "LOOSENINGS",
    "POISONS",
    "SHARE",
    "UPDATE_ATTACKS",
    "Blend",
    "ChannelRoll",
    "CleanAndPoisoned",
    "Conflict",
    "ConservationScaling",
    "DataAttack",
    "Feasible",
    "FreeRider",
    "InTurn",
    "Knowledge",
    "Loosening",
    "Means",
    "MinMax",
    "OptimisedPerturbation",
    "Poison",
    "PoisonMaker",
    "Projected",
    "Projection",
    "RegimePermutation",
    "RegimeSplicing",
    "RehearsedTraining",
    "Replay",
    "ReplayFrom",
    "RollLasting",
    "Scaling",
    "SignFlip",
    "SmallestMajority",
    "Targets",
    "UpdateAttack",
    "attack",
    "choose_targets",
    "exposed",
    "project",
    "projected",
]
