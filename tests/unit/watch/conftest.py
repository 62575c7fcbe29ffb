"""A small plant with rules and a detector, an attack on it, and a whole watch in memory."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from sluice.arrays import Floats
from sluice.detector.alone import train
from sluice.detector.calibration import Detector
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import RuleSet
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.record import Record
from sluice.watch import (
    Event,
    Judge,
    RowIntake,
    StreamRows,
    Subject,
    Tracker,
    WatchSettings,
    subject_of,
)
from sluice.watch.signals import Signal

Changed = Callable[[Floats, Callable[[str], int]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Ground:
    """Clean rows for mining, later clean rows, and what was learned from the first."""

    rules: RuleSet
    detector: Detector
    fused: Detector  # rules and moments together
    later: Record

    @property
    def both(self) -> Subject:
        return subject_of(self.rules, self.detector)

    @property
    def by_rules(self) -> Subject:
        return subject_of(self.rules, None)

    def attacked(self, change: Changed) -> Record:
        """Return the later rows with changed readings."""
        values = self.later.values.copy()
        change(values, self.later.index)
        return self.later.with_values(values)


@pytest.fixture(scope="session")
def ground() -> Ground:
    plant = simulate("line", seed=0, days=12)
    fit, calibrate = plant.rows(0, 7_000), plant.rows(7_000, 14_000)
    rules = mine(fit, calibrate)
    return Ground(
        rules=rules,
        fused=train(plant.rows(0, 14_000), rules=rules, false_alarms_per_week=1.0),
        detector=train(plant.rows(0, 14_000), kind="subspace", false_alarms_per_week=1.0),
        later=plant.rows(14_000, 17_000),
    )


def stopped_pump(values: Floats, index: Callable[[str], int]) -> None:
    """The flow of pump 1 reads 0 for two hours, whatever the pump does."""
    values[1_000:1_120, index("F_PU1")] = 0.0


def rows_of(record: Record, subject: Subject) -> StreamRows:
    columns = [record.index(name) for name in subject.names]
    return StreamRows(
        times=record.times.astype("datetime64[us]").astype(np.int64),
        values=np.ascontiguousarray(record.values[:, columns]),
    )


def signals_of(subject: Subject, rows: StreamRows, cuts: list[int]) -> list[Signal]:
    """Judge rows in parts."""
    judge, intake = Judge(subject, WatchSettings()), RowIntake(stride_s=subject.stride_s)
    edges = [0, *cuts, len(rows)]
    signals: list[Signal] = []
    for start, stop in itertools.pairwise(edges):
        signals += judge.take(intake.take(rows.take(start, stop)))
    return signals


def events_of(
    subject: Subject, record: Record, *, chunk: int = 100, settings: WatchSettings | None = None
) -> list[Event]:
    """Run a watch without source, state and sinks."""
    settings = settings or WatchSettings()
    judge, intake = Judge(subject, settings), RowIntake(stride_s=subject.stride_s)
    tracker = Tracker(settings, identity=subject.identity, stride_s=subject.stride_s)
    rows, events = rows_of(record, subject), []
    for start in range(0, len(rows), chunk):
        taken = intake.take(rows.take(start, start + chunk))
        if intake.counts.last is not None:
            events += tracker.take(judge.take(taken), now=intake.counts.last)
    return events + tracker.finish()


def text_of(record: Record, rows: slice) -> list[str]:
    """Return rows as lines of CSV, with a header first."""
    lines = ["time," + ",".join(record.names)]
    for time, values in zip(record.times[rows], record.values[rows], strict=True):
        lines.append(f"{time.astype('datetime64[s]')}," + ",".join(repr(float(v)) for v in values))
    return [line + "\n" for line in lines]


def files_in(folder: Path, ground: Ground) -> tuple[Path, Path]:
    """Write rules and model."""
    from sluice.detector.modelfile import save_detector  # noqa: PLC0415
    from sluice.invariants.rulesfile import save_rules  # noqa: PLC0415

    save_rules(ground.rules, folder / "rules.json")
    save_detector(ground.detector, folder / "model.safetensors")
    return folder / "rules.json", folder / "model.safetensors"


def without_channel(record: Record, name: str) -> Record:
    return replace(record, name="short").without(name)
