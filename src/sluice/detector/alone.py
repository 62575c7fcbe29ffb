"""Train a detector on one plant's record, and score a record with a detector."""

import numpy as np

from sluice.detector.alarms import Scored
from sluice.detector.autoencoder import Autoencoder, Descent, initial
from sluice.detector.calibration import Detector, Framing, TrainingSummary, calibrated
from sluice.detector.model import DetectorKind, Model
from sluice.detector.registry import SUMMED, demand_detector
from sluice.detector.training import train_parameters
from sluice.errors import SettingError
from sluice.seeding import stream
from sluice.telemetry import Label, Record, Scaler, Shares, feature_names, split

__all__ = ["score", "train"]

DEFAULT_DESCENT = Descent(epochs=50)  # as many epochs as the paper's 25 rounds of 2


def train(  # noqa: PLR0913 - the options of `sluice train`
    record: Record,
    *,
    kind: str = DetectorKind.AUTOENCODER,
    seed: int = 0,
    shares: Shares | None = None,
    descent: Descent = DEFAULT_DESCENT,
    false_alarms_per_week: float | None = None,
) -> Detector:
    """Train and calibrate on one clean record, split in time like a federation of one client.

        import sluice

        detector = sluice.train(sluice.read_record("clean.csv"), kind="subspace")
        sluice.save_detector(detector, Path("model.safetensors"))

    The slices are those of `telemetry.split`. The mining and root slices stay unused, so that the
    result can be compared with a federation's. With `false_alarms_per_week`, the threshold gives so
    many alarm events on clean rows; without, it is the paper's 99.5 % quantile.
    """
    demand_detector(kind)
    if np.any(record.labels == Label.ATTACK):
        raise SettingError(
            f"record {record.name!r} holds rows labelled attack; train on a clean record"
        )
    parts = split(record, clients=1, shares=shares)
    own = parts.shards[0]
    framing = Framing(scaler=Scaler.fit([own], feature_names(record)), stride_s=record.stride_s)
    fitted, clean = framing.windows(own), framing.windows(parts.validation)
    model: Model
    if kind != DetectorKind.AUTOENCODER:
        made = SUMMED[kind]
        model = made.fit(made.summarise(fitted), clean)
    else:
        first = initial(framing.width, seed=seed)
        shuffle = stream(seed, "autoencoder", "shuffle")
        model = Autoencoder(train_parameters(first, fitted, descent=descent, shuffle=shuffle))
    training = TrainingSummary(
        records=(record.name,),
        windows=len(fitted),
        seed=seed,
        descent=descent if kind == DetectorKind.AUTOENCODER else None,
    )
    return calibrated(
        model, framing, clean, training=training, false_alarms_per_week=false_alarms_per_week
    )


def score(record: Record, detector: Detector) -> Scored:
    """Score every window of a record and mark the alarms.

    Labels are not needed. Where the record has some, `Scored.labels` holds them.
    """
    return detector.score(record)
