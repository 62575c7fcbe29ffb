"""The plants on which detectors are measured: clean rows, labelled attacks, other clean rows."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from sluice.arrays import Bools
from sluice.detector import DEFAULT_KIND
from sluice.lab.attacks import choose_targets
from sluice.lab.plants import simulate
from sluice.telemetry import Record, read_record

__all__ = ["SUBJECTS", "Case", "Subject"]

FIRST_SEED = 100
"""Seeds from 100 on; settings were chosen on seeds 0 to 53."""
START_UP_S, NETWORK_START_UP_S = 6 * 3_600.0, 100 * 3_600.0
TARGET_ROWS = 1_184  # a quarter of a shard of ten, as in the lab's experiments
HELD_OUT = 0.75  # of a clean record: the rest is never trained or calibrated on


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Case:
    """One training: the clean rows, the labelled record, and clean rows kept apart."""

    name: str
    clean: Record
    attacked: Record
    held_out: Record
    trained_before: Record  # what is trained on to measure the held-out rows
    targets: Bools | None = None  # rows that the lab's malicious clients would hide


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """A plant: where its cases come from, made one at a time."""

    name: str
    says: str
    cases: Callable[[], Iterator[Callable[[], Case]]]
    kinds: tuple[str, ...] = (DEFAULT_KIND, "moments", "subspace")
    asked: tuple[float, ...] = (1.0,)  # false alarms a week


def _data(*parts: str) -> Path:
    return Path(os.environ.get("SLUICE_DATA", "../shared/data")).joinpath(*parts)


def _apart(name: str, clean: Record, attacked: Record) -> Case:
    """Return a case whose held-out rows are the last quarter of its clean rows."""
    first = int(HELD_OUT * len(clean))
    return Case(
        name=name,
        clean=clean,
        attacked=attacked,
        held_out=clean.rows(first, len(clean)),
        trained_before=clean.rows(0, first),
    )


def _batadal() -> Case:
    return _apart(
        "dataset03 to dataset04",
        read_record(_data("batadal", "dataset03.csv")),
        read_record(_data("batadal", "dataset04_full_labels.csv")),
    )


def _wdt() -> Case:
    return _apart(
        "phy_norm to phy_att_1",
        read_record(_data("wdt", "phy_norm.csv")),
        read_record(_data("wdt", "phy_att_1.csv")),
    )


def _treatment(seed: int) -> Case:
    clean = simulate("treatment", seed=seed).without_first(START_UP_S).every(5)
    attacked = simulate("treatment", seed=seed + 50, attacks=True).every(5)
    other = simulate("treatment", seed=seed + 70).without_first(START_UP_S).every(5)
    return Case(
        name=f"seed {seed} to {seed + 50}",
        clean=clean,
        attacked=attacked,
        held_out=other,
        trained_before=clean,
        targets=choose_targets(attacked, rows=TARGET_ROWS, seed=seed).rows,
    )


def _line(seed: int) -> Case:
    clean = simulate("line", seed=seed, days=30)
    return Case(
        name=f"seed {seed} to {seed + 50}",
        clean=clean,
        attacked=simulate("line", seed=seed + 50, days=30, attacks=True),
        held_out=simulate("line", seed=seed + 70, days=30),
        trained_before=clean,
    )


def _ky4(seed: int) -> Case:
    clean = simulate("network:ky4", seed=seed, days=120)
    attacked = simulate("network:ky4", seed=seed + 50, days=60, attacks=True)
    return _apart(
        f"seed {seed} to {seed + 50}",
        clean.without_first(NETWORK_START_UP_S),
        attacked.without_first(NETWORK_START_UP_S),
    )


def _once(make: Callable[[], Case]) -> Callable[[], Iterator[Callable[[], Case]]]:
    return lambda: iter((make,))


def _seeds(
    make: Callable[[int], Case], count: int, *, first: int = FIRST_SEED
) -> Callable[[], Iterator[Callable[[], Case]]]:
    return lambda: (partial(make, first + at) for at in range(count))


SUBJECTS = (
    Subject(
        name="batadal",
        says="trained on dataset03, scored on dataset04 with full labels; held out: the last "
        "quarter of dataset03, not trained on",
        cases=_once(_batadal),
        kinds=(DEFAULT_KIND, "moments", "subspace", "autoencoder"),
    ),
    Subject(
        name="treatment",
        says="simulated, a row every 5 s; trained on 5.5 clean days of one seed, scored on the "
        "attack week of another; held out: clean days of a third seed; one false alarm a week, and "
        "one a day",
        cases=_seeds(_treatment, 4, first=124),
        asked=(1.0, 7.0),
    ),
    Subject(
        name="line",
        says="simulated, a row every 60 s; 30 clean days, 30 days with attacks; held out: 30 "
        "other clean days",
        cases=_seeds(_line, 5),
    ),
    Subject(
        name="ky4",
        says="simulated EPANET network, hourly; 116 clean days, 56 days with attacks; held out: "
        "the last quarter of the clean days, not trained on",
        cases=_seeds(_ky4, 1),
    ),
    Subject(
        name="wdt",
        says="hardware-in-the-loop testbed, 1 Hz; trained on 57 clean minutes, which include the "
        "start-up; held out: the last quarter, not trained on",
        cases=_once(_wdt),
        kinds=(DEFAULT_KIND, "moments", "subspace", "autoencoder"),
    ),
)
