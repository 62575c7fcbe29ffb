"""A plant's own detector from its clean rows: the first rows fit it, the others calibrate it."""

from dataclasses import replace

import numpy as np

from sluice.detector.calibration import Detector, Framing, TrainingSummary, calibrated
from sluice.detector.moments import fit_moments, moment_settings, moment_statistic
from sluice.detector.scaling import robust_scaler
from sluice.errors import SettingError
from sluice.telemetry import Record, feature_names

__all__ = ["FIT_SHARE", "complete_rows", "train_moments"]

FIT_SHARE = 0.7
FALSE_ALARMS_PER_WEEK = 1.0


def train_moments(
    record: Record, *, false_alarms_per_week: float | None = FALSE_ALARMS_PER_WEEK
) -> Detector:
    """Train the detector `moments` on one plant's clean rows.

    The first 70 % of the rows are summed. The others choose the shrinkage and set the threshold:
    so many false alarms a week, or the paper's quantile if None.
    """
    whole = complete_rows(record)
    fitted = int(FIT_SHARE * len(whole))
    if fitted < 1 or fitted == len(whole):
        raise SettingError(
            f"record {record.name!r} has {len(whole)} rows without a missing reading, too few to "
            "train on; give more clean rows"
        )
    fit, clean = whole.rows(0, fitted), whole.rows(fitted, len(whole))
    settings = moment_settings(fit)
    statistic = moment_statistic(fit, settings)
    framing = Framing(
        scaler=robust_scaler(fit, feature_names(fit)),
        stride_s=record.stride_s,
        window_rows=settings.lags,
    )
    windows = framing.windows(clean)
    return calibrated(
        fit_moments(statistic, framing.scaler, windows),
        framing,
        windows,
        training=TrainingSummary(records=(record.name,), windows=statistic.count, seed=0),
        false_alarms_per_week=false_alarms_per_week,
    )


def complete_rows(record: Record) -> Record:
    """Return the rows in which no feature is missing; leaving rows out begins a new segment.

    A feature without any reading is refused by the scaler, not here.
    """
    columns = [record.index(name) for name in feature_names(record)]
    read = [column for column in columns if not record.missing[:, column].all()]
    whole = ~record.missing[:, read].any(axis=1)
    if whole.all():
        return record
    rows = np.flatnonzero(whole)
    return replace(
        record, values=record.values[rows], times=record.times[rows], labels=record.labels[rows]
    )
