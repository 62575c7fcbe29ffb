"""Four ways to a detector for the same plant: alone, two votes, and the pooled sum."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import add
from typing import Protocol

import numpy as np

from benchmarks.worth.draws import Draw
from sluice.arrays import Bools, Floats, Ints
from sluice.detector import (
    WEEK_S,
    Framing,
    Model,
    alarm_events,
    fit_moments,
    moment_settings,
    moment_statistic,
    robust_scaler,
    threshold_for,
)
from sluice.errors import SettingError
from sluice.evaluation import Outcome, attacks_found, average_precision
from sluice.federation import votes_needed
from sluice.telemetry import Label, Record, Windows, feature_names

__all__ = ["WAYS", "Measured", "Scoring", "alone", "measure", "measured", "robust_framing"]

FIT_SHARE = 0.7
WAYS = ("alone", "vote", "vote, members' thresholds", "pooled")


@dataclass(frozen=True, slots=True, kw_only=True)
class Measured:
    """What one way gives one plant."""

    subject: str
    days: float
    seed: int
    way: str
    false_alarms_per_week: float
    time_in_alarm: float  # share of clean windows
    average_precision: float
    attacks_found: int
    attacks: int
    extrapolated: bool  # False: too few clean windows for a rate, so the highest score is used


class Scoring(Protocol):
    """Whatever scores windows; above 1 is an alarm."""

    @property
    def framing(self) -> Framing:
        """How it cuts windows."""
        ...

    @property
    def extrapolated(self) -> bool:
        """Whether its thresholds are for a rate."""
        ...

    def ratios(self, windows: Windows) -> Floats:
        """Return scores over thresholds."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Voters:
    """Models, the threshold of each, and the votes that an alarm needs."""

    models: tuple[Model, ...]
    thresholds: Floats
    needed: int
    framing: Framing
    extrapolated: bool = True

    def ratios(self, windows: Windows) -> Floats:
        """Return the `needed`-th largest score over its threshold; above 1 is an alarm."""
        scores = np.stack([model.scores(windows) for model in self.models])
        ratios = scores / self.thresholds[:, np.newaxis]
        ranked: Floats = np.sort(ratios, axis=0)[len(self.models) - self.needed]
        return ranked


def measure(draw: Draw, *, subject: str, days: int, seed: int, asked: float) -> list[Measured]:
    """Measure every way on the same rows."""
    ways = {"alone": alone(draw.own, asked), **_shared(draw, asked)}
    return [
        measured(ways[way], draw, subject=subject, days=days, seed=seed, way=way) for way in WAYS
    ]


def measured(  # noqa: PLR0913 - a line of the table is these parts
    voters: "Scoring", draw: Draw, *, subject: str, days: float, seed: int, way: str
) -> Measured:
    """Measure one way on clean rows that no detector has read, and on attacks."""
    events, weeks, alarms = 0, 0.0, []
    for record in draw.held:
        windows = voters.framing.windows(record)
        alarmed: Bools = voters.ratios(windows) > 1
        events += len(alarm_events(windows.last_rows[alarmed]))
        weeks += len(windows) * record.stride_s / WEEK_S
        alarms.append(alarmed)
    windows = voters.framing.windows(draw.attacked)
    scores = voters.ratios(windows)
    attacks = attacks_found(
        Outcome(
            scores=scores,
            alarms=scores > 1,
            labels=windows.labels,
            last_rows=windows.last_rows,
            stride_s=draw.attacked.stride_s,
        )
    )
    return Measured(
        subject=subject,
        days=days,
        seed=seed,
        way=way,
        false_alarms_per_week=events / weeks,
        time_in_alarm=float(np.concatenate(alarms).mean()),
        average_precision=average_precision(scores, windows.labels == Label.ATTACK),
        attacks_found=sum(attack.delay_s is not None for attack in attacks),
        attacks=len(attacks),
        extrapolated=voters.extrapolated,
    )


def alone(own: Record, asked: float, *, parted: bool = True) -> Voters:
    """Fit the first 70 % of the plant's rows; the others choose shrinkage and threshold.

    Unless they are parted, all rows are fitted, and the same rows choose shrinkage and threshold.
    """
    first, last = _parted(own) if parted else (own, own)
    framing = robust_framing(first)
    settings = moment_settings(first, lags=framing.window_rows)
    windows = framing.windows(last)
    model = fit_moments(moment_statistic(first, settings), framing.scaler, windows)
    return _calibrated((model,), (windows,), framing, needed=1, asked=asked)


def _shared(draw: Draw, asked: float) -> dict[str, Voters]:
    """Make the shared detectors; the first other member's record is the coordinator's reference.

    Members sum the first 70 % of their rows. The joining plant's rows choose the shrinkage.
    """
    framing = robust_framing(draw.members[0])
    settings = moment_settings(draw.members[0], lags=framing.window_rows)
    parts = [_parted(member) for member in draw.members]
    clean = draw.own
    if draw.contributes:
        first, clean = _parted(draw.own)
        parts.append((first, clean))
    windows = framing.windows(clean)
    sums = [moment_statistic(first, settings) for first, _ in parts]
    models = tuple(fit_moments(each, framing.scaler, windows) for each in sums)
    pooled = fit_moments(reduce(add, sums), framing.scaler, windows)
    needed = votes_needed(len(models), 0)
    theirs = tuple(framing.windows(last) for _, last in parts)
    return {
        "vote": _calibrated(models, [windows] * len(models), framing, needed=needed, asked=asked),
        "vote, members' thresholds": _calibrated(
            models, theirs, framing, needed=needed, asked=asked
        ),
        "pooled": _calibrated((pooled,), (windows,), framing, needed=1, asked=asked),
    }


def _parted(record: Record) -> tuple[Record, Record]:
    last = int(FIT_SHARE * len(record))
    return record.rows(0, last), record.rows(last, len(record))


def robust_framing(clean: Record) -> Framing:
    """Return how windows are read, scaled as a clean record says."""
    return Framing(scaler=robust_scaler(clean, feature_names(clean)), stride_s=clean.stride_s)


def _calibrated(
    models: Sequence[Model],
    clean: Sequence[Windows],
    framing: Framing,
    *,
    needed: int,
    asked: float,
) -> Voters:
    thresholds, extrapolated = [], True
    for model, windows in zip(models, clean, strict=True):
        scores, last = model.scores(windows), windows.last_rows
        try:
            score = _rate(scores, last, framing.stride_s, asked)
        except SettingError:  # too few separate peaks: nothing above the highest clean score
            score, extrapolated = float(scores.max()), False
        thresholds.append(max(score, 1e-12))
    return Voters(
        models=tuple(models),
        thresholds=np.array(thresholds),
        needed=needed,
        framing=framing,
        extrapolated=extrapolated,
    )


def _rate(scores: Floats, last_rows: Ints, stride_s: float, asked: float) -> float:
    return threshold_for(scores, last_rows, stride_s=stride_s, false_alarms_per_week=asked).score
