"""Simulates a water network and returns the record of its control room."""

import math
import warnings
from pathlib import Path

import numpy as np

from sluice.arrays import Floats
from sluice.errors import SettingError
from sluice.lab.plants.distribution.attacks import DistributionAttack, forge, plan
from sluice.lab.plants.distribution.controls import repeat_schedules
from sluice.lab.plants.distribution.demand import vary_demand
from sluice.lab.plants.distribution.instruments import Meter, channels, instruments, read
from sluice.lab.plants.distribution.model import Model, load
from sluice.lab.plants.distribution.solver import run
from sluice.telemetry import Label, Record, Role

__all__ = ["IdleNetworkWarning", "simulate"]

DAY_S = 86_400
MINUTE_S = 60
LONGEST_STEP_S = 600  # between solutions, so that tanks and demand move smoothly between rows
LONG_ENOUGH_S = 2 * DAY_S  # a pump that does not switch on its first day may do so on the second
MIDNIGHT = np.datetime64("2024-01-01T00:00:00", "us")


class IdleNetworkWarning(UserWarning):
    """No pump, valve or pipe of a network switches, so its record has little physics to find."""


def simulate(
    *,
    network: str,
    seed: int,
    days: float = 30.0,
    stride_s: int = 3600,
    attacks: bool = False,
    meter_tank_pipes: bool = True,
    demand_noise: float = 0.10,
) -> Record:
    """Return a labelled record of a network; its notes list the attacks, if any.

    `network` is one of `BUNDLED` or the path of an EPANET .inp file. Rows are snapshots, as a
    historian polls them: a flow is the flow of that moment, not the mean since the last row.
    `demand_noise` is the relative deviation of demand from its pattern. The same seed with and
    without attacks has the same demand and the same instrument noise.
    """
    rows = _rows(days, stride_s, demand_noise)
    model = load(network)
    meters = instruments(model, meter_tank_pipes=meter_tank_pipes)
    _prepare(
        model,
        seed=seed,
        duration_s=(rows - 1) * stride_s,
        stride_s=stride_s,
        demand_noise=demand_noise,
    )
    clean = run(model, meters, rows=rows)
    if rows * stride_s >= LONG_ENOUGH_S:
        _warn_if_idle(network, meters, clean, days=days)
    described = channels(meters, clean)
    planned = _attacks(model, meters, clean, seed=seed, stride_s=stride_s) if attacks else ()
    labels = np.full(rows, Label.NORMAL, np.int8)
    if planned:
        overrides = tuple(a.override(stride_s) for a in planned if a.kind.forces)
        shown = read(run(model, meters, rows=rows, overrides=overrides), described, seed=seed)
        forge(shown, planned, clean=clean, meters=meters, stride_s=stride_s)
        for attack in planned:
            labels[attack.rows.slice] = Label.ATTACK
    else:
        shown = read(clean, described, seed=seed)
    start = MIDNIGHT + np.timedelta64(int(model.options.time.start_clocktime), "s")
    return Record(
        name=f"network:{Path(network).stem}",
        channels=described,
        values=shown,
        times=start + np.arange(rows) * np.timedelta64(stride_s, "s"),
        stride_s=float(stride_s),
        labels=labels,
        notes=tuple(attack.note for attack in planned),
    )


def _warn_if_idle(network: str, meters: tuple[Meter, ...], clean: Floats, *, days: float) -> None:
    states = [column for column, meter in enumerate(meters) if meter.role is Role.ACTUATOR]
    if np.ptp(clean[:, states], axis=0).any():
        return
    idle = ", ".join(meters[column].element for column in states)
    found = f"none of {idle} switches" if states else "it has no pump, valve or controlled pipe"
    warnings.warn(
        f"nothing switches in {days:g} days of network {network!r} ({found}); the miner needs "
        "pumps and valves that run and rest: check [CONTROLS], [RULES] and pump patterns in EPANET",
        IdleNetworkWarning,
        stacklevel=3,
    )


def _rows(days: float, stride_s: int, demand_noise: float) -> int:
    if stride_s < MINUTE_S or stride_s % MINUTE_S or DAY_S % stride_s:
        raise SettingError(
            f"a network's stride is a number of whole minutes that divide a day, got {stride_s} s; "
            "try 60, 300, 900 or 3600"
        )
    if not 0 <= demand_noise <= 1:
        raise SettingError(f"demand noise is a share between 0 and 1, got {demand_noise:g}")
    rows = round(days * DAY_S / stride_s) if math.isfinite(days) else 0
    if rows < 2:
        raise SettingError(f"a network records at least 2 rows of {stride_s} s, got {days:g} days")
    return rows


def _prepare(
    model: Model, *, seed: int, duration_s: int, stride_s: int, demand_noise: float
) -> None:
    step_s = max(
        step for step in range(MINUTE_S, LONGEST_STEP_S + 1, MINUTE_S) if stride_s % step == 0
    )
    repeat_schedules(model, duration_s=duration_s)
    vary_demand(model, seed=seed, duration_s=duration_s, step_s=step_s, noise=demand_noise)
    clock = model.options.time
    clock.duration = duration_s
    clock.hydraulic_timestep = step_s
    clock.report_timestep = stride_s
    clock.report_start = 0
    clock.statistic = "NONE"
    model.options.quality.parameter = "NONE"  # not recorded, and would take most of the time


def _attacks(
    model: Model, meters: tuple[Meter, ...], clean: Floats, *, seed: int, stride_s: int
) -> tuple[DistributionAttack, ...]:
    # A speed pattern sets its pump at every step and overrides any rule.
    paced = frozenset(name for name, pump in model.pumps() if pump.speed_pattern_name)
    return plan(meters, clean, seed=seed, stride_s=stride_s, unforceable=paced)
