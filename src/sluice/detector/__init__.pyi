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
from .local import complete_rows, train_moments
from .model import DetectorKind, Model
from .modelfile import load_detector, save_detector
from .moments import (
    LAGS,
    MomentModel,
    MomentSettings,
    MomentStatistic,
    WindowMoments,
    fit_moments,
    moment_settings,
    moment_statistic,
    trapezoid,
    window_moments,
)
from .registry import SUMMED, SummedDetector, WindowSums, demand_detector, detector_names
from .scaling import robust_scaler
from .subspace import Moments, Subspace, fit_subspace
from .tails import MERGE_ROWS, WEEK_S, Pareto, alarm_events, fit_pareto, threshold_for
from .threshold import AlarmThreshold, RateThreshold, Threshold
from .training import Batches, batches, errors, padded, train_parameters, walk

__all__ = [
    "LAGS",
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
    "MomentModel",
    "MomentSettings",
    "MomentStatistic",
    "Moments",
    "Parameters",
    "Pareto",
    "RateThreshold",
    "Scored",
    "Subspace",
    "SummedDetector",
    "Threshold",
    "TrainingSummary",
    "WindowMoments",
    "WindowSums",
    "alarm_events",
    "batches",
    "calibrated",
    "complete_rows",
    "demand_detector",
    "detector_names",
    "errors",
    "export_onnx",
    "fit_moments",
    "fit_pareto",
    "fit_subspace",
    "initial",
    "load_detector",
    "moment_settings",
    "moment_statistic",
    "padded",
    "parameter_count",
    "robust_scaler",
    "save_detector",
    "score",
    "scores",
    "shapes",
    "threshold_for",
    "train",
    "train_moments",
    "train_parameters",
    "trapezoid",
    "unflatten",
    "walk",
    "width_of",
    "window_moments",
]
