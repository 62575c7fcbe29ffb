from .folder import PlantFolder
from .gain import Gain, Own, measured_gain
from .model import last_model
from .participation import node_of, take_part

__all__ = [
    "Gain",
    "Own",
    "PlantFolder",
    "last_model",
    "measured_gain",
    "node_of",
    "take_part",
]
