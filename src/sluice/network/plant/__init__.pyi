from .borrowing import borrowed_vote
from .disclosure import Disclosure
from .folder import PlantFolder
from .gain import Gain, Own, measured_gain
from .import_preview import ImportPreview, preview_import
from .model import last_model, last_statistics, shared_detector, shared_vote
from .participation import node_of, take_part
from .vote_gain import VoteFigures, VoteGain, measured_vote_gain

__all__ = [
    "Disclosure",
    "Gain",
    "ImportPreview",
    "Own",
    "PlantFolder",
    "VoteFigures",
    "VoteGain",
    "borrowed_vote",
    "last_model",
    "last_statistics",
    "measured_gain",
    "measured_vote_gain",
    "node_of",
    "preview_import",
    "shared_detector",
    "shared_vote",
    "take_part",
]
