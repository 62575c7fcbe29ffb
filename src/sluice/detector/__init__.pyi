from .alarms import AlarmStretch, Scored
from .alone import score, train
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
from .export import export_onnx
from .model import DetectorKind, Model
from .modelfile import load_detector, save_detector
from .registry import SUMMED, SummedDetector, WindowSums, demand_detector, detector_names
from .subspace import Moments, Subspace, fit_subspace
from .tails import MERGE_ROWS, WEEK_S, Pareto, alarm_events, fit_pareto, threshold_for
from .threshold import AlarmThreshold, RateThreshold, Threshold
from .training import Batches, batches, errors, padded, train_parameters, walk

__all__ = [
    "MERGE_ROWS",
    "SUMMED",
    "WEEK_S",
    "AlarmStretch",
    "AlarmThreshold",
    "Autoencoder",
    "Batches",
    "Descent",
    "Detector",
    "DetectorKind",
    "Framing",
    "Model",
    "Moments",
    "Parameters",
    "Pareto",
    "RateThreshold",
    "Scored",
    "Subspace",
    "SummedDetector",
    "Threshold",
    "TrainingSummary",
    "WindowSums",
    "alarm_events",
    "batches",
    "calibrated",
    "demand_detector",
    "detector_names",
    "errors",
    "export_onnx",
    "fit_pareto",
    "fit_subspace",
    "initial",
    "load_detector",
    "padded",
    "parameter_count",
    "save_detector",
    "score",
    "scores",
    "shapes",
    "threshold_for",
    "train",
    "train_parameters",
    "unflatten",
    "walk",
    "width_of",
]
