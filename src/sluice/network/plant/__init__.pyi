from .folder import PlantFolder
from .gain import Gain, Own, measured_gain
from .model import last_model, shared_detector
from .participation import node_of, take_part
from .rehearsal import Rehearsal, rehearse

__all__ = [
    "Gain",
    "Own",
    "PlantFolder",
    "Rehearsal",
    "last_model",
    "measured_gain",
    "node_of",
    "rehearse",
    "shared_detector",
    "take_part",
]
