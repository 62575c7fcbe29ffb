"""The detector learns what clean windows look like and alarms where one does not.

Training is imported from where it lives (`sluice.detector.training`, `sluice.detector.alone`), and
so is `sluice.detector.export`: scoring a record takes neither jax nor onnx.
"""

from sluice.detector.alarms import AlarmStretch, Scored
from sluice.detector.autoencoder import Autoencoder, Descent
from sluice.detector.calibration import Detector, Framing, Training, calibrated
from sluice.detector.model import Kind, Model
from sluice.detector.modelfile import load_detector, save_detector
from sluice.detector.subspace import Moments, Subspace, fit_subspace
from sluice.detector.threshold import Threshold

__all__ = [
    "AlarmStretch",
    "Autoencoder",
    "Descent",
    "Detector",
    "Framing",
    "Kind",
    "Model",
    "Moments",
    "Scored",
    "Subspace",
    "Threshold",
    "Training",
    "calibrated",
    "fit_subspace",
    "load_detector",
    "save_detector",
]
