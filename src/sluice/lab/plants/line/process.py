"""The process of the `line` plant: demand, tanks, pumps and their controller, row by row."""

from itertools import accumulate

import numpy as np
from numba import njit

from sluice.arrays import Bools, Floats
from sluice.lab.plants.line.attacks import LineAttack, LineAttackKind
from sluice.lab.plants.line.design import PUMPS, STEPS_PER_HOUR, TANKS, LineDesign
from sluice.seeding import stream

__all__ = ["BRIM_M", "ROWS_PER_DAY", "readings"]

ROWS_PER_DAY = 1440
INITIAL_LEVELS_M = (3.2, 3.6, 2.9)
DRY_M, BRIM_M = 0.05, 12.0
LEVEL_NOISE_M = 0.004
FLOW_NOISE_M3, FLOW_MEMORY = 0.020, 0.55  # stationary deviation per step, AR(1) coefficient
DEAD_TIME_ROWS = 2
PU4_STOPS_BELOW = 0.35  # share of nominal demand


def readings(*, seed: int, rows: int, site: LineDesign, attacks: tuple[LineAttack, ...]) -> Floats:
    """Return the levels, flows (m3/h) and pump states of the plant, one column each."""
    frozen = np.zeros((rows, TANKS), np.bool_)
    offsets_m = np.zeros((rows, TANKS))
    stuck = np.zeros((rows, PUMPS), np.bool_)
    scales = np.ones((rows, PUMPS))
    for attack in attacks:
        struck = (attack.rows.slice, attack.stage)
        match attack.kind:
            case LineAttackKind.LEVEL_FREEZE:
                frozen[struck] = True
            case LineAttackKind.LEVEL_OFFSET:
                offsets_m[struck] = attack.offset_m
            case LineAttackKind.PUMP_STUCK_OFF:
                stuck[struck] = True
            case LineAttackKind.FLOW_SCALE:
                scales[struck] = attack.scale
    level_noise_m = stream(seed, "line", "level noise").normal(0, LEVEL_NOISE_M, (rows, TANKS))
    levels, flows, states = _run(
        _demand(seed, rows),
        _unsteadiness(seed, rows),
        level_noise_m + offsets_m,
        frozen,
        stuck,
        site.areas_m2,
        site.nominal_flows_m3h / STEPS_PER_HOUR,
        site.start_below_m,
        site.stop_above_m,
    )
    return np.hstack((levels, flows * STEPS_PER_HOUR * scales, states))


def _demand(seed: int, rows: int) -> Floats:
    """Return the demand as a share of nominal: lowest at midnight, highest at noon."""
    time_of_day = 2 * np.pi * np.arange(rows) / ROWS_PER_DAY
    jitter = stream(seed, "line", "demand").normal(0, 0.03, rows)
    return np.clip(1 - 0.45 * (0.5 + 0.5 * np.cos(time_of_day)) + jitter, 0.15, 1.25)


def _unsteadiness(seed: int, rows: int) -> Floats:
    """Return AR(1) deviations of each pump's flow, m3 per step."""
    shocks = stream(seed, "line", "flow noise").normal(0, FLOW_NOISE_M3, (rows, PUMPS))
    shocks[1:] *= np.sqrt(1 - FLOW_MEMORY**2)  # row 0 stays a draw from the stationary state
    return np.array(list(accumulate(shocks, lambda last, shock: FLOW_MEMORY * last + shock)))


@njit(cache=True)
def _run(
    demand: Floats,
    unsteadiness: Floats,
    level_error_m: Floats,
    frozen: Bools,
    stuck: Bools,
    areas_m2: Floats,
    nominal_m3: Floats,
    start_below_m: Floats,
    stop_above_m: Floats,
) -> tuple[Floats, Floats, Floats]:
    rows = len(demand)
    true_m = np.array(INITIAL_LEVELS_M)
    levels, flows = np.zeros((rows, TANKS)), np.zeros((rows, PUMPS))
    commands, states = np.zeros((rows, PUMPS)), np.zeros((rows, PUMPS))
    for row in range(rows):
        states[row] = commands[max(row - DEAD_TIME_ROWS, 0)]
        states[row, PUMPS - 1] = demand[row] > PU4_STOPS_BELOW
        for pump in range(PUMPS):
            if states[row, pump] > 0 and not stuck[row, pump]:
                share = demand[row] if pump == PUMPS - 1 else 1.0
                flows[row, pump] = max(nominal_m3[pump] * share + unsteadiness[row, pump], 0.0)
            if pump > 0:  # a pump cannot draw more than the tank holds
                available_m3 = (true_m[pump - 1] - DRY_M) * areas_m2[pump - 1] + flows[
                    row, pump - 1
                ]
                flows[row, pump] = min(flows[row, pump], available_m3)
        for tank in range(TANKS):
            gained_m = (flows[row, tank] - flows[row, tank + 1]) / areas_m2[tank]
            true_m[tank] = min(true_m[tank] + gained_m, BRIM_M)
            levels[row, tank] = true_m[tank] + level_error_m[row, tank]
            if row > 0 and frozen[row, tank] and frozen[row - 1, tank]:
                levels[row, tank] = levels[row - 1, tank]
            commands[row, tank] = commands[max(row - 1, 0), tank]
            if levels[row, tank] < start_below_m[tank]:
                commands[row, tank] = 1.0
            elif levels[row, tank] > stop_above_m[tank]:
                commands[row, tank] = 0.0
    return levels, flows, states
