"""Where the water goes in one second: valves, pumps, pipes, membranes and tanks."""

from sluice.arrays import Bools, Floats, Ints
from sluice.lab.plants.treatment.compiled import compiled
from sluice.lab.plants.treatment.design import Design
from sluice.lab.plants.treatment.disturbances import (
    FOULING_FLOOR,
    FOULING_RATE,
    OSMOSIS,
    RAW_PRESSURE,
)
from sluice.lab.plants.treatment.state import TreatmentState
from sluice.lab.plants.treatment.tags import (
    CLOSED,
    MOVING,
    MV101,
    MV201,
    MV301,
    MV302,
    MV303,
    MV304,
    ON,
    OPEN,
    P101,
    P102,
    P301,
    P302,
    P401,
    P402,
    P501,
    P502,
    P601,
    P602,
)

__all__ = ["actuate", "flow", "level_mm"]

PER_HOUR = 1.0 / 3600.0  # hours in the step of one second


@compiled
def level_mm(volume_m3: float, area_m2: float) -> float:
    """Return the depth of a volume in a tank."""
    return volume_m3 / area_m2 * 1000.0


@compiled
def actuate(
    command: Ints, position: Floats, code: Ints, valve: Bools, step: Floats, rest: Floats
) -> None:
    """Move every actuator for one second towards its command.

    A valve travels and reports `moving` on the way. A pump reports its contactor at once while
    its speed still rises; its rest position lies below zero, which is its dead time.
    """
    for column in range(len(command)):
        if command[column] == ON:
            position[column] = min(position[column] + step[column], 1.0)
        else:
            position[column] = max(position[column] - step[column], rest[column])
        if not valve[column]:
            code[column] = command[column]
        elif position[column] >= 1.0:
            code[column] = OPEN
        elif position[column] <= 0.0:
            code[column] = CLOSED
        else:
            code[column] = MOVING


@compiled
def _pumping(duty: float, standby: float, second_gain: float) -> float:
    """Return the capacity of two pumps on one pipe, relative to one at full speed."""
    speed = max(duty, 0.0) + max(standby, 0.0)
    return speed if speed <= 1.0 else 1.0 + second_gain * (speed - 1.0)


@compiled
def _opening(position: float) -> float:
    """Return the share of its flow that a valve passes: a quarter at half of its travel."""
    return position * position


@compiled
def _suction(volume_m3: float, area_m2: float, outlet_mm: float) -> float:
    """Return the share of its flow that a pump still draws as the tank empties."""
    return min(level_mm(volume_m3, area_m2) / outlet_mm, 1.0)


@compiled
def _pipes(position: Floats, s: TreatmentState, d: Design, slow: Floats) -> None:
    """Bring every pipe's flow towards what its pump and valves allow."""
    quick = 1.0 / d.pipe_lag_s
    inlet = d.inlet_m3_h * slow[RAW_PRESSURE] * _opening(position[MV101])
    s.inlet_m3_h += (inlet - s.inlet_m3_h) * quick

    lift = _pumping(position[P101], position[P102], d.second_pump_gain)
    lift *= _opening(position[MV201])
    head = 1.0 + 1e-5 * (level_mm(s.t101_m3, d.t101_area_m2) - d.t101_l_mm)
    transfer = d.transfer_m3_h * lift * head * _suction(s.t101_m3, d.t101_area_m2, d.outlet_mm)
    s.transfer_m3_h += (transfer - s.transfer_m3_h) * quick

    exits = min(_opening(position[MV302]) + _opening(position[MV304]), 1.0)
    push = _pumping(position[P302], position[P301], d.second_pump_gain) * exits
    eased = 1.0 - 0.03 * (s.fouling - 1.0)
    feed = d.filtration_m3_h * push * eased * _suction(s.t301_m3, d.t301_area_m2, d.outlet_mm)
    s.filtration_m3_h += (feed - s.filtration_m3_h) * quick

    wash = d.backwash_m3_h * max(position[P602], 0.0)
    wash *= _opening(min(position[MV301], position[MV303]))
    wash *= _suction(s.t602_m3, d.t602_area_m2, d.outlet_mm)
    s.backwash_m3_h += (wash - s.backwash_m3_h) * quick

    back = d.permeate_return_m3_h * max(position[P601], 0.0)
    back *= _suction(s.t601_m3, d.t601_area_m2, d.outlet_mm)
    s.permeate_return_m3_h += (back - s.permeate_return_m3_h) * quick


@compiled
def _membranes(position: Floats, s: TreatmentState, d: Design, slow: Floats) -> None:
    """Foul and wash the ultrafilter; split the osmosis feed into permeate and concentrate."""
    filtered_m3 = s.filtration_m3_h * _opening(position[MV302]) * PER_HOUR
    s.fouling += 0.5 * slow[FOULING_RATE] * filtered_m3
    washed_m3 = s.backwash_m3_h * PER_HOUR
    s.fouling -= (s.fouling - slow[FOULING_FLOOR]) * min(washed_m3 / 0.002, 1.0)

    pressing = max(position[P501], position[P502], 0.0)
    s.osmosis_pressure += (pressing - s.osmosis_pressure) / d.membrane_lag_s
    s.compaction *= 1.0 - 1.0 / 7200.0
    # Without the high-pressure pump the feed merely flushes the membranes to the reject side.
    through = d.osmosis_flush_m3_h
    through += (d.osmosis_m3_h * slow[OSMOSIS] - d.osmosis_flush_m3_h) * s.osmosis_pressure
    feed = through * _pumping(position[P402], position[P401], d.second_pump_gain)
    feed *= _suction(s.t401_m3, d.t401_area_m2, d.outlet_mm)
    s.osmosis_m3_h += (feed - s.osmosis_m3_h) / d.pipe_lag_s
    drive = s.osmosis_pressure * s.osmosis_pressure
    s.permeate_m3_h = s.osmosis_m3_h * d.recovery * drive
    s.recirculation_m3_h = d.recirculation_m3_h / d.osmosis_m3_h * s.osmosis_m3_h * drive
    s.concentrate_m3_h = s.osmosis_m3_h + s.recirculation_m3_h - s.permeate_m3_h


@compiled
def _filled(volume_m3: float, gained_m3_h: float, capacity_m3: float) -> tuple[float, float]:
    """Return a tank's volume a second later and what spills over its rim, in m3/h."""
    volume = volume_m3 + gained_m3_h * PER_HOUR
    spilled = max(volume - capacity_m3, 0.0)
    return volume - spilled, spilled / PER_HOUR


@compiled
def _drawable(flow_m3_h: float, volume_m3: float) -> float:
    """Return the flow a tank can give for a second without going below empty."""
    return min(flow_m3_h, volume_m3 / PER_HOUR)


@compiled
def _tanks(position: Floats, s: TreatmentState, d: Design) -> None:
    """Account for every litre: what leaves one tank enters the next, a drain or the source."""
    s.transfer_m3_h = _drawable(s.transfer_m3_h, s.t101_m3)
    s.filtration_m3_h = _drawable(s.filtration_m3_h, s.t301_m3)
    s.osmosis_m3_h = _drawable(s.osmosis_m3_h, s.t401_m3)
    s.permeate_return_m3_h = _drawable(s.permeate_return_m3_h, s.t601_m3)
    s.backwash_m3_h = _drawable(s.backwash_m3_h, s.t602_m3)
    to_tank = _opening(position[MV302])
    exits = to_tank + _opening(position[MV304])
    # With both valves just shut, the remaining flow is still in the outlet pipe to T401.
    s.filtrate_m3_h = s.filtration_m3_h * (to_tank / exits if exits > 0.0 else 1.0)

    height_m = d.tank_height_mm / 1000.0
    s.t101_m3, s.t101_spill_m3_h = _filled(
        s.t101_m3, s.inlet_m3_h - s.transfer_m3_h, d.t101_area_m2 * height_m
    )
    s.t301_m3, s.t301_spill_m3_h = _filled(
        s.t301_m3, s.transfer_m3_h - s.filtration_m3_h, d.t301_area_m2 * height_m
    )
    s.t401_m3, s.t401_spill_m3_h = _filled(
        s.t401_m3, s.filtrate_m3_h - s.osmosis_m3_h, d.t401_area_m2 * height_m
    )
    product = 0.0 if s.off_specification else s.permeate_m3_h
    reject = s.concentrate_m3_h - s.recirculation_m3_h
    s.t601_m3, _ = _filled(s.t601_m3, product - s.permeate_return_m3_h, d.t601_area_m2 * height_m)
    s.t602_m3, _ = _filled(s.t602_m3, reject - s.backwash_m3_h, d.t602_area_m2 * height_m)


@compiled
def flow(position: Floats, s: TreatmentState, d: Design, slow: Floats) -> None:
    """Advance all water by one second."""
    _pipes(position, s, d, slow)
    _membranes(position, s, d, slow)
    _tanks(position, s, d)
