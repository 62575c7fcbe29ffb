from .foreign import ForeignSimulator
from .levels import ArNoise, LevelOffset, LowPass
from .makers import TAMPERINGS, Tampered
from .replays import ShapedReplay
from .search import TamperedPart, strongest
from .swaps import ChannelSwap, TankSwap
from .unread import IdleFlip, UntiedReplay

__all__ = [
    "TAMPERINGS",
    "ArNoise",
    "ChannelSwap",
    "ForeignSimulator",
    "IdleFlip",
    "LevelOffset",
    "LowPass",
    "ShapedReplay",
    "Tampered",
    "TamperedPart",
    "TankSwap",
    "UntiedReplay",
    "strongest",
]
