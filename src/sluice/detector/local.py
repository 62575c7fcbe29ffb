"""A plant's own detector from its clean rows: the first rows fit it, the others calibrate it."""

from dataclasses import dataclass, replace

import numpy as np

from sluice.detector.calibration import Framing, TrainingSummary
from sluice.detector.model import Model
from sluice.detector.moments import fit_moments, moment_settings, moment_statistic
from sluice.detector.scaling import robust_scaler
from sluice.errors import SettingError
from sluice.telemetry import Record, feature_names

__all__ = ["Fitted", "complete_rows", "fitted_moments"]

FEWEST_ROWS = 100

FIT_SHARE = 0.7


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fitted:
    """A model before its calibration, and the clean rows that it was not fitted to."""

    model: Model
    framing: Framing
    clean: Record
    training: TrainingSummary
    mined: tuple[Record, Record]  # rows to mine rules from, and rows to calibrate them on


def fitted_moments(record: Record) -> Fitted:
    """Fit `moments` to the first 70 % of a plant's clean rows.

    The other rows choose the shrinkage; they also calibrate the detector. Rows in which a reading
    is missing are left out.
    """
    whole = complete_rows(record)
    last = int(FIT_SHARE * len(whole))
    if last < FEWEST_ROWS:
        raise SettingError(
            f"record {record.name!r} has {len(whole)} rows without a missing reading; training "
            f"needs at least {int(FEWEST_ROWS / FIT_SHARE) + 1}: give more clean rows"
        )
    fit, clean = whole.rows(0, last), whole.rows(last, len(whole))
    settings = moment_settings(fit)
    statistic = moment_statistic(fit, settings)
    framing = Framing(
        scaler=robust_scaler(fit, feature_names(fit)),
        stride_s=record.stride_s,
        window_rows=settings.lags,
    )
    rounded = framing.scaler.rounded(fit)
    return Fitted(
        model=fit_moments(statistic, framing.scaler, framing.windows(clean)),
        framing=framing,
        clean=clean,
        training=TrainingSummary(records=(record.name,), windows=statistic.count, seed=0),
        mined=(rounded.rows(0, last // 2), rounded.rows(last // 2, last)),
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
