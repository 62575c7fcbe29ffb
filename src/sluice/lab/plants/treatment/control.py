"""The six controllers: they receive only readings and feedback codes, and trust both."""

from typing import Final

from sluice.arrays import Floats, Ints
from sluice.lab.plants.treatment.compiled import compiled
from sluice.lab.plants.treatment.design import Design
from sluice.lab.plants.treatment.state import TreatmentState
from sluice.lab.plants.treatment.tags import (
    AIT201,
    AIT202,
    AIT203,
    AIT402,
    AIT502,
    AIT504,
    CLOSED,
    DPIT301,
    FIT201,
    FIT401,
    LIT101,
    LIT301,
    LIT401,
    MV101,
    MV201,
    MV301,
    MV302,
    MV303,
    MV304,
    OFF,
    ON,
    OPEN,
    P101,
    P102,
    P201,
    P202,
    P203,
    P204,
    P205,
    P206,
    P301,
    P302,
    P402,
    P403,
    P404,
    P501,
    P601,
    P602,
    UV401,
)

__all__ = ["control"]

# Steps of the ultrafilter. Each waits until the valves report their commanded positions, as in the
# published plant: if an attacker forces a valve, the whole stage stops in that step.
FILTER: Final = 0
ISOLATE: Final = 1  # feed stops, outlet closes
OPEN_WASH: Final = 2
WASH: Final = 3
CLOSE_WASH: Final = 4
OPEN_DRAIN: Final = 5
FLUSH: Final = 6  # feed water carries the dislodged cake to the drain
RETURN: Final = 7  # outlet opens, then drain closes


@compiled
def _on(wanted: bool) -> int:  # noqa: FBT001  (compiled code takes positional arguments)
    return ON if wanted else OFF


@compiled
def _below(latched: bool, reading: float, low: float, high: float) -> bool:  # noqa: FBT001
    """Latch when the reading falls to `low`, release when it rises to `high`."""
    if reading <= low:
        return True
    if reading >= high:
        return False
    return latched


@compiled
def _above(latched: bool, reading: float, low: float, high: float) -> bool:  # noqa: FBT001
    """Latch when the reading rises to `high`, release when it falls to `low`."""
    return not _below(not latched, reading, low, high)


@compiled
def _raw_water(r: Floats, code: Ints, command: Ints, s: TreatmentState, d: Design) -> None:
    """Stage 1: fill T101 by MV101; lift to T301 by P101, or by P102 when no flow is proven."""
    s.filling = _below(s.filling, r[LIT101], d.t101_l_mm, d.t101_h_mm)
    s.raw_water_low = _below(s.raw_water_low, r[LIT101], d.t101_ll_mm, d.t101_ll_mm + d.restart_mm)
    s.transferring = _below(s.transferring, r[LIT301], d.t301_l_mm, d.t301_h_mm)
    wanted = s.transferring and not s.raw_water_low
    if wanted and r[FIT201] < d.flow_proven_m3_h:
        s.transfer_unproven_s += 1.0
    else:
        s.transfer_unproven_s = 0.0
    # The standby pump, once started, runs until the demand ends.
    s.transfer_standby = wanted and (s.transfer_standby or s.transfer_unproven_s > d.standby_s)
    command[MV101] = _on(s.filling)
    command[P101] = _on(wanted)
    command[P102] = _on(s.transfer_standby)
    command[MV201] = _on(wanted or code[P101] == ON or code[P102] == ON)


@compiled
def _unproven(wanted: bool, duty_code: int, seconds: float) -> float:  # noqa: FBT001
    """Return for how many seconds a dosing pump has been wanted without running."""
    return seconds + 1.0 if wanted and duty_code == OFF else 0.0


@compiled
def _dosing(r: Floats, code: Ints, command: Ints, s: TreatmentState, d: Design) -> None:
    """Stage 2: dose salt, acid and hypochlorite into flowing water only."""
    flowing = r[FIT201] > d.flow_proven_m3_h
    low = d.conductivity_low_us_cm
    s.salting = _below(s.salting, r[AIT201], low, low + 10.0)
    s.acidifying = _above(s.acidifying, r[AIT202], d.acid_off_ph, d.acid_on_ph)
    s.chlorinating = _below(s.chlorinating, r[AIT203], d.chlorine_on_mv, d.chlorine_off_mv)
    salt = flowing and s.salting
    acid = flowing and s.acidifying
    chlorine = flowing and s.chlorinating
    s.p201_unproven_s = _unproven(salt, code[P201], s.p201_unproven_s)
    s.p203_unproven_s = _unproven(acid, code[P203], s.p203_unproven_s)
    s.p205_unproven_s = _unproven(chlorine, code[P205], s.p205_unproven_s)
    command[P201] = _on(salt)
    command[P202] = _on(s.p201_unproven_s > d.dosing_standby_s)
    command[P203] = _on(acid)
    command[P204] = _on(s.p203_unproven_s > d.dosing_standby_s)
    command[P205] = _on(chlorine)
    command[P206] = _on(s.p205_unproven_s > d.dosing_standby_s)


@compiled
def _step_done(r: Floats, code: Ints, s: TreatmentState, d: Design) -> bool:
    """Whether the ultrafilter may leave its present step."""
    step = s.filter_step
    done = False
    if step == FILTER:
        clogged = r[DPIT301] >= d.membrane_dp_kpa and s.filtered_s >= d.dp_holdoff_s
        done = clogged or s.filtered_s >= d.filtration_s
    elif step == ISOLATE:
        done = code[MV302] == CLOSED
    elif step == OPEN_WASH:
        done = code[MV301] == OPEN and code[MV303] == OPEN
    elif step == WASH:
        done = s.filter_step_s >= d.backwash_s
    elif step == CLOSE_WASH:
        done = code[MV301] == CLOSED and code[MV303] == CLOSED
    elif step == OPEN_DRAIN:
        done = code[MV304] == OPEN
    elif step == FLUSH:
        done = s.filter_step_s >= d.flush_s
    elif step == RETURN:
        done = code[MV302] == OPEN and code[MV304] == CLOSED
    return done


@compiled
def _ultrafiltration(r: Floats, code: Ints, command: Ints, s: TreatmentState, d: Design) -> None:
    """Stage 3: filter T301 into T401 on demand; wash by the clock or when the membrane clogs."""
    s.filtering = _below(s.filtering, r[LIT401], d.t401_l_mm, d.t401_h_mm)
    s.filter_feed_low = _below(
        s.filter_feed_low, r[LIT301], d.t301_ll_mm, d.t301_ll_mm + d.restart_mm
    )
    pumping = code[P302] == ON or code[P301] == ON
    s.filter_step_s += 1.0
    if s.filter_step == FILTER and pumping:
        s.filtered_s += 1.0
    if _step_done(r, code, s, d):
        s.filter_step = (s.filter_step + 1) % 8
        s.filter_step_s = 0.0
        if s.filter_step == FILTER:
            s.filtered_s = 0.0
    step = s.filter_step
    wanted = (step == FILTER and s.filtering) or step >= FLUSH
    command[P302] = _on(wanted and not s.filter_feed_low)
    command[MV302] = _on(step == RETURN or (step == FILTER and (s.filtering or pumping)))
    # MV301 outlasts P602 by a second, so that the pump never pushes against a closing valve.
    washing = OPEN_WASH <= step <= WASH or (step == CLOSE_WASH and s.filter_step_s < 1.0)
    command[MV301] = _on(washing)
    command[MV303] = _on(washing)
    command[P602] = _on(step == WASH)
    draining = step == RETURN and code[MV302] != OPEN
    command[MV304] = _on(draining or OPEN_DRAIN <= step <= FLUSH)


@compiled
def _osmosis(r: Floats, code: Ints, command: Ints, s: TreatmentState, d: Design) -> None:
    """Stages 4 and 5: feed, lamp and high-pressure pump; each needs the one before it."""
    s.osmosis_feed_low = _below(
        s.osmosis_feed_low, r[LIT401], d.t401_ll_mm, d.t401_ll_mm + d.restart_mm
    )
    feeding = not s.osmosis_feed_low
    # Lost flow trips the lamp and the pump after seconds; flow must then hold before a restart.
    enough = r[FIT401] >= d.osmosis_flow_m3_h
    contradicted = feeding and enough != s.osmosis_flow_proven
    s.osmosis_flow_s = s.osmosis_flow_s + 1.0 if contradicted else 0.0
    patience_s = d.osmosis_trip_s if s.osmosis_flow_proven else d.osmosis_start_s
    if s.osmosis_flow_s > patience_s:
        s.osmosis_flow_proven = enough
        s.osmosis_flow_s = 0.0
    if not feeding:
        s.osmosis_flow_proven = False
    lit = feeding and s.osmosis_flow_proven
    command[P402] = _on(feeding)
    command[UV401] = _on(lit)
    command[P501] = _on(lit and code[UV401] == ON)
    s.bisulphiting = _above(s.bisulphiting, r[AIT402], d.bisulphite_off_mv, d.bisulphite_on_mv)
    dosing = s.bisulphiting and code[P402] == ON
    s.p403_unproven_s = _unproven(dosing, code[P403], s.p403_unproven_s)
    command[P403] = _on(dosing)
    command[P404] = _on(s.p403_unproven_s > d.dosing_standby_s)
    # The divert valve is not among the 51 tags: only T601 shows where the permeate went.
    s.off_specification = r[AIT504] > d.permeate_us_cm or r[AIT502] > d.osmosis_feed_mv


@compiled
def _permeate(command: Ints, s: TreatmentState, d: Design) -> None:
    """Stage 6: return permeate to the raw-water source, by T601's float switches (no tag)."""
    level_mm = s.t601_m3 / d.t601_area_m2 * 1000.0
    s.returning = _above(s.returning, level_mm, d.t601_l_mm, d.t601_h_mm)
    command[P601] = _on(s.returning)


@compiled
def control(r: Floats, code: Ints, command: Ints, s: TreatmentState, d: Design) -> None:
    """Turn this second's readings and feedback into the next commands.

    P301, P401, P502 and P603 are changed over by hand and keep the command they started with.
    """
    _raw_water(r, code, command, s, d)
    _dosing(r, code, command, s, d)
    _ultrafiltration(r, code, command, s, d)
    _osmosis(r, code, command, s, d)
    _permeate(command, s, d)
