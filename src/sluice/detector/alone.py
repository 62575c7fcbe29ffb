"""Train a detector on one plant's record, and score a record with a detector."""

import numpy as np

from sluice.detector.alarms import Scored
from sluice.detector.autoencoder import Autoencoder, Descent, initial
from sluice.detector.calibration import (
    PHYSICS,
    Detector,
    Framing,
    TrainingSummary,
    calibrated,
    calibrated_with_rules,
)
from sluice.detector.local import Fitted, fitted_moments
from sluice.detector.model import DetectorKind, Model
from sluice.detector.physics import Physics
from sluice.detector.registry import SUMMED, demand_detector, detector_names
from sluice.detector.training import train_parameters
from sluice.errors import EmptyRulesError, SettingError
from sluice.invariants import RuleSet, mine
from sluice.seeding import stream
from sluice.telemetry import Label, Record, Scaler, Shares, feature_names, split

__all__ = ["DEFAULT_KIND", "score", "train", "trained_kinds"]

DEFAULT_DESCENT = Descent(epochs=50)  # as many epochs as the paper's 25 rounds of 2
DEFAULT_KIND = f"{PHYSICS}{DetectorKind.MOMENTS.value}"
FALSE_ALARMS_PER_WEEK = 1.0


def trained_kinds() -> tuple[str, ...]:
    """Return the kinds that one plant can train: each model alone, and with the plant's rules."""
    names = detector_names()
    return (DEFAULT_KIND, *names, *(f"{PHYSICS}{name}" for name in names if name != "moments"))


def train(  # noqa: PLR0913 - the options of `sluice train`
    record: Record,
    *,
    kind: str = DEFAULT_KIND,
    rules: RuleSet | None = None,
    seed: int = 0,
    shares: Shares | None = None,
    descent: Descent = DEFAULT_DESCENT,
    false_alarms_per_week: float | None = None,
) -> Detector:
    """Train and calibrate on one clean record; labels are not needed.

        import sluice

        detector = sluice.train(sluice.read_record("clean.csv"))
        sluice.save_detector(detector, Path("model.safetensors"))

    `kind` is a model (`moments`, `subspace`, `autoencoder` or a plug-in's), or `physics+` and a
    model, which also reads the plant's rules. Without `rules`, they are mined from the rows that
    the model is fitted to. `moments` is fitted to the first 70 % of the rows and calibrated on the
    others. For other models, the slices are those of `telemetry.split`, so that the result can be
    compared with a federation's.

    The threshold gives `false_alarms_per_week` alarm events on clean rows. Without it, a detector
    with rules gives 1 a week, and a model alone has the paper's 99.5 % quantile.
    """
    name = kind.removeprefix(PHYSICS)
    demand_detector(name)
    if np.any(record.labels == Label.ATTACK):
        raise SettingError(
            f"record {record.name!r} holds rows labelled attack; train on a clean record"
        )
    if rules is not None and name == kind:
        raise SettingError(f"a detector {kind!r} reads no rules; train 'physics+{kind}'")
    if name == DetectorKind.MOMENTS:
        fitted = fitted_moments(record)
    else:
        fitted = _fitted(record, name, seed=seed, shares=shares, descent=descent)
    if name == kind:
        return calibrated(
            fitted.model,
            fitted.framing,
            fitted.framing.windows(fitted.clean),
            training=fitted.training,
            false_alarms_per_week=false_alarms_per_week,
        )
    return calibrated_with_rules(
        fitted.model,
        fitted.framing,
        fitted.clean,
        physics=Physics(rules=rules or _mined(fitted)),
        training=fitted.training,
        false_alarms_per_week=FALSE_ALARMS_PER_WEEK
        if false_alarms_per_week is None
        else false_alarms_per_week,
    )


def _mined(fitted: Fitted) -> RuleSet:
    """Mine the plant's rules from the rows before those that calibrate the detector."""
    rules = mine(*fitted.mined)
    if rules.empty:
        raise EmptyRulesError(
            f"no rule relates the channels of {rules.plant!r}, so there is no physics to detect "
            "with; give rules, declare roles in a plant file, or train the detector 'moments'"
        )
    return rules


def _fitted(
    record: Record, kind: str, *, seed: int, shares: Shares | None, descent: Descent
) -> Fitted:
    parts = split(record, clients=1, shares=shares)
    own = parts.shards[0]
    framing = Framing(scaler=Scaler.fit([own], feature_names(record)), stride_s=record.stride_s)
    windows = framing.windows(own)
    model: Model
    if kind != DetectorKind.AUTOENCODER:
        made = SUMMED[kind]
        model = made.fit(made.summarise(windows), framing.windows(parts.validation))
    else:
        first = initial(framing.width, seed=seed)
        shuffle = stream(seed, "autoencoder", "shuffle")
        model = Autoencoder(train_parameters(first, windows, descent=descent, shuffle=shuffle))
    return Fitted(
        model=model,
        framing=framing,
        clean=parts.validation,
        training=TrainingSummary(
            records=(record.name,),
            windows=len(windows),
            seed=seed,
            descent=descent if kind == DetectorKind.AUTOENCODER else None,
        ),
        mined=(parts.fit, parts.calibration),
    )


def score(record: Record, detector: Detector) -> Scored:
    """Score every window of a record and mark the alarms.

    Labels are not needed. Where the record has some, `Scored.labels` holds them.
    """
    return detector.score(record)
