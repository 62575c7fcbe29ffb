"""Attacks turn telemetry, or the update trained on it, into what a lying client would submit."""

from sluice.attacks.data_attack import DataAttack
from sluice.attacks.fabrications import (
    FABRICATIONS,
    ChannelRoll,
    ConservationScaling,
    RegimePermutation,
    RegimeSplicing,
)
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
    "FABRICATIONS",
    "UPDATE_ATTACKS",
    "ChannelRoll",
    "ConservationScaling",
    "DataAttack",
    "FreeRider",
    "MinMax",
    "RegimePermutation",
    "RegimeSplicing",
    "Scaling",
    "SignFlip",
    "SmallestMajority",
    "UpdateAttack",
]
