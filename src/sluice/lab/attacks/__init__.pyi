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
from .tampering import (
    TAMPERINGS,
    ArNoise,
    ChannelSwap,
    ForeignSimulator,
    IdleFlip,
    LevelOffset,
    LowPass,
    ShapedReplay,
    Tampered,
    TankSwap,
    UntiedReplay,
)
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
    "TAMPERINGS",
    "UPDATE_ATTACKS",
    "ArNoise",
    "Blend",
    "ChannelRoll",
    "ChannelSwap",
    "CleanAndPoisoned",
    "Conflict",
    "ConservationScaling",
    "DataAttack",
    "Feasible",
    "ForeignSimulator",
    "FreeRider",
    "IdleFlip",
    "InTurn",
    "Knowledge",
    "LevelOffset",
    "Loosening",
    "LowPass",
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
    "ShapedReplay",
    "SignFlip",
    "SmallestMajority",
    "Tampered",
    "TankSwap",
    "Targets",
    "UntiedReplay",
    "UpdateAttack",
    "attack",
    "choose_targets",
    "exposed",
    "project",
    "projected",
]
