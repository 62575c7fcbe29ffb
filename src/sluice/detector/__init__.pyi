from .alarms import AlarmStretch, Scored
from .autoencoder import (
    Autoencoder,
    Descent,
    Parameters,
    initial,
    parameter_count,
    scores,
    shapes,
    unflatten,
    width_of,
)
from .calibration import Detector, Framing, TrainingSummary, calibrated
from .model import DetectorKind, Model
from .modelfile import load_detector, save_detector
from .subspace import Moments, Subspace, fit_subspace
from .threshold import Threshold
from .training import Batches, batches, errors, padded, train, walk

__all__ = [
    "AlarmStretch",
    "Autoencoder",
    "Batches",
    "Descent",
    "Detector",
    "DetectorKind",
    "Framing",
    "Model",
    "Moments",
    "Parameters",
    "Scored",
    "Subspace",
    "Threshold",
    "TrainingSummary",
    "batches",
    "calibrated",
    "errors",
    "fit_subspace",
    "initial",
    "load_detector",
    "padded",
    "parameter_count",
    "save_detector",
    "scores",
    "shapes",
    "train",
    "unflatten",
    "walk",
    "width_of",
]
