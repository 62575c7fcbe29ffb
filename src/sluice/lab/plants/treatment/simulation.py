"""Runs of the plant: a clean record, an attacked one, and the same period without its attacks."""

from dataclasses import dataclass
from datetime import datetime
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from sluice.arrays import Bools, Floats, Ints, frozen
from sluice.errors import SettingError
from sluice.lab.plants.treatment.attacks import TreatmentAttack, attacked, schedule
from sluice.lab.plants.treatment.compiled import as_row
from sluice.lab.plants.treatment.design import PUBLISHED_SITE, TreatmentDesign
from sluice.lab.plants.treatment.disturbances import DRIFTING, GRID_S, slow_signals
from sluice.lab.plants.treatment.instruments import as_table
from sluice.lab.plants.treatment.kernel import TRUTHS, march
from sluice.lab.plants.treatment.published import PUBLISHED_ATTACKS
from sluice.lab.plants.treatment.state import initial_state
from sluice.lab.plants.treatment.tags import (
    ANALOG,
    CHANNELS,
    MV101,
    MV201,
    MV302,
    OFF,
    ON,
    P101,
    P302,
    P402,
    P501,
    TAGS,
    UV401,
    VALVES,
)
from sluice.seeding import stream
from sluice.telemetry import Label, Note, Record

__all__ = [
    "ATTACKED",
    "CLEAN",
    "HistorianGap",
    "Period",
    "SimulationRun",
    "Truth",
    "run_period",
    "simulate",
]

Kind = TypeVar("Kind", bound=np.generic)

CLOCK_STARTS: Final = datetime.fromisoformat("2015-12-22T16:00:00")
ROWS_PER_DAY: Final = 86_400

VALVE_TRAVEL_S: Final = (8.0, 9.0, 7.0, 8.0, 8.0, 8.0)  # MV101, MV201, MV301 to MV304
PUMP_RUN_UP_S: Final = 3.0
PUMP_DEAD_S: Final = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorianGap:
    """Seconds that the plant ran through but the historian lost."""

    starts: datetime  # the first lost second
    lost_s: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """A period of the plant's operation, with its particular conditions."""

    name: str
    begins: datetime
    rows: int  # in the record, one per second
    cold_start: bool = False
    recalibrated: bool = False  # every analyser was recalibrated just before
    gap: HistorianGap | None = None


CLEAN: Final = Period(name="clean", begins=CLOCK_STARTS, rows=495_000, cold_start=True)

# The published attack record steps by 81 s at one point. Here the step is in the first night,
# between attacks 11 and 13, so that no attack loses a row.
ATTACKED: Final = Period(
    name="attacked",
    begins=datetime.fromisoformat("2015-12-28T10:00:00"),
    rows=449_919,
    recalibrated=True,
    gap=HistorianGap(starts=datetime.fromisoformat("2015-12-29T03:00:00"), lost_s=80),
)


@dataclass(frozen=True, kw_only=True)
class Truth:
    """The true quantities of the water, for each row of the record; levels in mm, flows in m3/h."""

    names: tuple[str, ...]
    values: Floats  # rows x names

    def column(self, name: str) -> Floats:
        """Return one hidden quantity, e.g. "T101" or "spill T301"."""
        if name not in self.names:
            raise SettingError(f"the truth has no column {name!r}; it has {', '.join(self.names)}")
        return self.values[:, self.names.index(name)]


@dataclass(frozen=True, kw_only=True)
class SimulationRun:
    """A simulated record with the truth behind it."""

    record: Record
    truth: Truth


@dataclass(frozen=True, slots=True, kw_only=True)
class _Actuators:
    """The initial position of every actuator, and how it moves; one entry per tag."""

    code: Ints
    position: Floats
    valve: Bools
    step: Floats  # share of its travel or speed per second
    rest: Floats

    @classmethod
    def initial(cls, *, cold_start: bool) -> "_Actuators":
        running = [P402, UV401, P501]
        if not cold_start:
            running += [MV101, P101, MV201, P302, MV302]
        code = np.full(len(TAGS), OFF, dtype=np.int64)
        code[running] = ON
        valve = np.zeros(len(TAGS), dtype=np.bool_)
        valve[list(VALVES)] = True
        step = np.full(len(TAGS), 1.0 / PUMP_RUN_UP_S)
        step[list(VALVES)] = 1.0 / np.array(VALVE_TRAVEL_S)
        rest = np.where(valve, 0.0, -PUMP_DEAD_S / PUMP_RUN_UP_S)
        position = np.where(code == ON, 1.0, rest)
        return cls(code=code, position=position, valve=valve, step=step, rest=rest)


def _lost(period: Period, rows: int) -> slice:
    """Return the seconds that the historian lost within the first `rows` rows of the period."""
    if period.gap is None:
        return slice(rows, rows)
    first = int((period.gap.starts - period.begins).total_seconds())
    return slice(first, first + period.gap.lost_s) if first < rows else slice(rows, rows)


def _without_lost(values: NDArray[Kind], lost: slice) -> NDArray[Kind]:
    if lost.start == lost.stop:
        return values
    return np.concatenate((values[: lost.start], values[lost.stop :]))


def _simulated(
    *,
    seed: int,
    seconds: int,
    period: Period,
    attacks: tuple[TreatmentAttack, ...],
    site: TreatmentDesign,
) -> tuple[Floats, Floats]:
    """Return the readings and the true quantities for every second of the period."""
    design = site.design()
    begin_s = int((period.begins - CLOCK_STARTS).total_seconds())
    slow = slow_signals(seed, begin_s=begin_s, seconds=seconds, recalibrated=period.recalibrated)
    noise = stream(seed, "treatment", "instruments", period.name)
    when, strength = schedule(attacks, begins=period.begins)
    first = _Actuators.initial(cold_start=period.cold_start)
    values = np.empty((seconds, len(TAGS)), order="F")
    truths = np.empty((seconds, len(TRUTHS)), order="F")
    march(
        values,
        truths,
        as_row(initial_state(design, cold_start=period.cold_start)),
        as_row(design),
        np.array(ANALOG),
        np.array(DRIFTING),
        as_table(design.noise),
        noise.standard_normal((seconds, len(ANALOG)), dtype=np.float32),
        slow,
        begin_s % GRID_S,
        when,
        strength,
        first.code,
        first.position,
        first.valve,
        first.step,
        first.rest,
    )
    return values, truths


def run_period(
    *,
    seed: int,
    period: Period,
    attacks: tuple[TreatmentAttack, ...] = (),
    days: float | None = None,
    site: TreatmentDesign = PUBLISHED_SITE,
) -> SimulationRun:
    """Run the plant for a period, or for its first `days`, and return record and truth.

    The same seed gives the same bytes. With other attacks (or none) it gives the same period
    with the same noise, so that the attacks cause every difference. Attacks beyond the end
    are cut; a shorter run is the beginning of a longer one.
    """
    rows = period.rows if days is None else round(days * ROWS_PER_DAY)
    if rows < 1:
        raise SettingError(f"the treatment plant runs for at least one second, got {days} days")
    lost = _lost(period, rows)
    seconds = rows + lost.stop - lost.start
    values, truths = _simulated(
        seed=seed, seconds=seconds, period=period, attacks=attacks, site=site
    )
    clock = np.datetime64(period.begins, "us") + np.arange(seconds) * np.timedelta64(1, "s")
    times = _without_lost(clock, lost)
    notes: tuple[Note, ...] = ()
    if seconds > rows:
        notes = (Note(what=f"the historian lost {seconds - rows} s", first_row=lost.start),)
    labels = np.where(attacked(times, attacks), Label.ATTACK, Label.NORMAL).astype(np.int8)
    record = Record(
        name=f"treatment-{period.name}" + ("" if site.name == "published" else f"-{site.name}"),
        channels=CHANNELS,
        values=_without_lost(values, lost),
        times=times,
        stride_s=1.0,
        labels=labels,
        notes=notes,
    )
    return SimulationRun(
        record=record, truth=Truth(names=TRUTHS, values=frozen(_without_lost(truths, lost)))
    )


def simulate(
    *,
    seed: int,
    days: float | None = None,
    attacks: bool = False,
    site: TreatmentDesign = PUBLISHED_SITE,
) -> SimulationRun:
    """Return the clean record, or the attacked one with the published attacks, or their start."""
    if attacks:
        return run_period(
            seed=seed, period=ATTACKED, attacks=PUBLISHED_ATTACKS, days=days, site=site
        )
    return run_period(seed=seed, period=CLEAN, days=days, site=site)
