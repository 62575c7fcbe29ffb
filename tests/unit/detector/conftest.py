"""A small plant, its clean windows, and a detector of each kind."""

import pytest

from sluice.detector.alone import train
from sluice.detector.autoencoder import Descent
from sluice.detector.calibration import Detector, Framing
from sluice.detector.model import DetectorKind
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.record import Record
from sluice.telemetry.windows import Scaler, Windows, feature_names


@pytest.fixture(scope="session")
def plant() -> Record:
    return simulate("line", seed=0, days=6)


@pytest.fixture(scope="session")
def framing(plant: Record) -> Framing:
    scaler = Scaler.fit([plant], feature_names(plant))
    return Framing(scaler=scaler, stride_s=plant.stride_s)


@pytest.fixture(scope="session")
def clean(plant: Record, framing: Framing) -> Windows:
    return framing.windows(plant)


@pytest.fixture(scope="session", params=list(DetectorKind), ids=str)
def detector(request: pytest.FixtureRequest, plant: Record) -> Detector:
    return train(plant, kind=request.param, descent=Descent(epochs=8, batch=256))
