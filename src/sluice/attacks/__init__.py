"""Attacks turn a plant's telemetry into what a lying client would submit in its place."""

from sluice.attacks.data_attack import DataAttack
from sluice.attacks.fabrications import (
    FABRICATIONS,
    ChannelRoll,
    ConservationScaling,
    RegimePermutation,
    RegimeSplicing,
)

__all__ = [
    "FABRICATIONS",
    "ChannelRoll",
    "ConservationScaling",
    "DataAttack",
    "RegimePermutation",
    "RegimeSplicing",
]
