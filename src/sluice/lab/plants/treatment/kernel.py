"""The plant's loop: one pass per second over instruments, controllers, actuators and water."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from sluice.arrays import Bools, Floats, Ints
from sluice.lab.plants.treatment.attacks import force, spoof
from sluice.lab.plants.treatment.chemistry import react
from sluice.lab.plants.treatment.compiled import compiled, compiled_and_cached
from sluice.lab.plants.treatment.control import control
from sluice.lab.plants.treatment.design import Design
from sluice.lab.plants.treatment.disturbances import DRIFT_0, GRID_S
from sluice.lab.plants.treatment.hydraulics import actuate, flow, level_mm
from sluice.lab.plants.treatment.instruments import HIGH, LOW, observe, read
from sluice.lab.plants.treatment.state import TreatmentState

__all__ = ["TRUTHS", "march"]

TRUTHS: Final = (
    *("T101", "T301", "T401", "T601", "T602"),  # mm
    *("inlet", "transfer", "filtration", "filtrate", "osmosis", "permeate"),  # m3/h
    *("concentrate", "recirculation", "backwash", "permeate return"),
    *("spill T101", "spill T301", "spill T401"),
)
"""The true quantities of the water, independent of the instruments, in column order."""


@compiled
def _write_truth(truth: Floats, s: TreatmentState, d: Design) -> None:
    truth[0] = level_mm(s.t101_m3, d.t101_area_m2)
    truth[1] = level_mm(s.t301_m3, d.t301_area_m2)
    truth[2] = level_mm(s.t401_m3, d.t401_area_m2)
    truth[3] = level_mm(s.t601_m3, d.t601_area_m2)
    truth[4] = level_mm(s.t602_m3, d.t602_area_m2)
    truth[5] = s.inlet_m3_h
    truth[6] = s.transfer_m3_h
    truth[7] = s.filtration_m3_h
    truth[8] = s.filtrate_m3_h
    truth[9] = s.osmosis_m3_h
    truth[10] = s.permeate_m3_h
    truth[11] = s.concentrate_m3_h
    truth[12] = s.recirculation_m3_h
    truth[13] = s.backwash_m3_h
    truth[14] = s.permeate_return_m3_h
    truth[15] = s.t101_spill_m3_h
    truth[16] = s.t301_spill_m3_h
    truth[17] = s.t401_spill_m3_h


@compiled_and_cached
def march(
    values: Floats,
    truths: Floats,
    state: NDArray[Any],
    design: NDArray[Any],
    analog: Ints,
    drifting: Ints,
    table: Floats,
    drawn: NDArray[np.float32],
    slow_grid: Floats,
    grid_offset_s: int,
    when: Ints,
    strength: Floats,
    code: Ints,
    position: Floats,
    valve: Bools,
    step: Floats,
    rest: Floats,
) -> None:
    """Fill `values` (what the historian sees) and `truths` second by second.

    Each row shows the plant at the start of the second. The controllers then act on that row,
    including spoofed readings, and the water moves until the next row.
    """
    s, d = state[0], design[0]
    shown = np.zeros(values.shape[1])
    slow_noise = np.zeros(values.shape[1])
    ramp_start = np.zeros(len(when))
    command = code.copy()
    slow = np.zeros(slow_grid.shape[1])
    for second in range(len(values)):
        into = (second + grid_offset_s) / GRID_S
        node = int(into)
        for signal in range(len(slow)):
            before, after = slow_grid[node, signal], slow_grid[node + 1, signal]
            slow[signal] = before + (after - before) * (into - node)

        observe(shown, s, d)
        for drift, column in enumerate(drifting):
            shown[column] += slow[DRIFT_0 + drift]
        read(shown, slow_noise, drawn[second], table, analog)
        spoof(second, shown, when, strength, ramp_start)
        for column in analog:
            shown[column] = min(max(shown[column], table[LOW, column]), table[HIGH, column])
        for column in range(len(code)):
            values[second, column] = code[column]
        for column in analog:
            values[second, column] = shown[column]
        _write_truth(truths[second], s, d)

        control(shown, code, command, s, d)
        force(second + 1, command, when, strength)
        actuate(command, position, code, valve, step, rest)
        flow(position, s, d, slow)
        react(code, s, d)
