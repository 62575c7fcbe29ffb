"""A plant on its own: the detector it can train without a federation."""

import numpy as np

from sluice.detector.autoencoder import Autoencoder, Descent, initial
from sluice.detector.calibration import Detector, Framing, TrainingSummary, calibrated
from sluice.detector.model import DetectorKind, Model
from sluice.detector.subspace import Moments, fit_subspace
from sluice.detector.training import train
from sluice.errors import SettingError
from sluice.seeding import stream
from sluice.telemetry import Label, Record, Scaler, Shares, feature_names, split

__all__ = ["fit_alone"]

AS_LONG_AS_A_FEDERATION = Descent(epochs=50)  # as many as the paper's 25 rounds of 2


def fit_alone(
    record: Record,
    *,
    kind: DetectorKind = DetectorKind.AUTOENCODER,
    seed: int = 0,
    shares: Shares | None = None,
    descent: Descent = AS_LONG_AS_A_FEDERATION,
) -> Detector:
    """Train and calibrate on one clean record, split in time as a federation of one would be.

        from sluice.detector import Kind, save_detector
        from sluice.detector.alone import fit_alone

        detector = fit_alone(read_record(Path("clean.csv")), kind=Kind.SUBSPACE)
        save_detector(detector, Path("model.safetensors"))

    The slices are those of `telemetry.split`: the mining and root slices stay unused, so that the
    result compares with a federation's.
    """
    if np.any(record.labels == Label.ATTACK):
        raise SettingError(
            f"record {record.name!r} holds rows labelled attack; a detector learns from clean ones"
        )
    parts = split(record, clients=1, shares=shares)
    own = parts.shards[0]
    framing = Framing(scaler=Scaler.fit([own], feature_names(record)), stride_s=record.stride_s)
    seen, clean = framing.windows(own), framing.windows(parts.validation)
    model: Model
    if kind is DetectorKind.SUBSPACE:
        model = fit_subspace(Moments.of(seen), clean)
    else:
        first = initial(framing.width, seed=seed)
        shuffle = stream(seed, "autoencoder", "shuffle")
        model = Autoencoder(train(first, seen, descent=descent, shuffle=shuffle))
    training = TrainingSummary(
        records=(record.name,),
        windows=len(seen),
        seed=seed,
        descent=None if kind is DetectorKind.SUBSPACE else descent,
    )
    return calibrated(model, framing, clean, training=training)
