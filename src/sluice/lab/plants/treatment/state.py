"""Everything that changes from second to second inside the plant, before it is measured."""

from dataclasses import dataclass

from sluice.lab.plants.treatment.design import Design

__all__ = ["TreatmentState", "initial_state"]


@dataclass(slots=True, kw_only=True)
class TreatmentState:
    """The hidden state: water, membranes, chemistry, and the controllers' latches and timers.

    Mutable because the stages advance it in place; compiled code sees it as one structured row.
    """

    # water in the tanks
    t101_m3: float
    t301_m3: float
    t401_m3: float
    t601_m3: float
    t602_m3: float
    # what left a tank over its rim in the last second
    t101_spill_m3_h: float = 0.0
    t301_spill_m3_h: float = 0.0
    t401_spill_m3_h: float = 0.0
    # water in the pipes
    inlet_m3_h: float = 0.0
    transfer_m3_h: float = 0.0
    filtration_m3_h: float = 0.0
    filtrate_m3_h: float = 0.0  # the part of the filtered water that reaches T401
    osmosis_m3_h: float = 0.0
    permeate_m3_h: float = 0.0
    concentrate_m3_h: float = 0.0
    recirculation_m3_h: float = 0.0
    backwash_m3_h: float = 0.0
    permeate_return_m3_h: float = 0.0
    # membranes
    fouling: float = 1.0  # resistance of the ultrafilter against a clean one
    osmosis_pressure: float = 1.0  # of the high-pressure pump, relative to its duty point
    compaction: float = 0.0  # extra feed pressure of a freshly started membrane
    # chemistry behind the dosing mixer, in T301, in T401
    mixer_us_cm: float = 258.0
    mixer_ph: float = 8.35
    mixer_mv: float = 440.0
    t301_us_cm: float = 258.0
    t301_ph: float = 8.35
    t301_mv: float = 440.0
    t401_us_cm: float = 258.0
    t401_ph: float = 8.35
    t401_mv: float = 440.0
    dechlorinated_mv: float = 176.0  # behind the bisulphite dosing
    osmosis_feed_mv: float = 146.0  # behind the ultraviolet lamp
    permeate_us_cm: float = 12.0
    # controllers
    filling: bool = False  # T101 through MV101
    raw_water_low: bool = False
    transferring: bool = False  # T101 to T301
    transfer_unproven_s: float = 0.0
    transfer_standby: bool = False
    salting: bool = False
    acidifying: bool = True
    chlorinating: bool = False
    p201_unproven_s: float = 0.0
    p203_unproven_s: float = 0.0
    p205_unproven_s: float = 0.0
    filtering: bool = False  # T301 to T401
    filter_feed_low: bool = False
    filter_step: int = 0
    filter_step_s: float = 0.0
    filtered_s: float = 0.0  # since the last backwash
    osmosis_feed_low: bool = False
    osmosis_flow_proven: bool = True
    osmosis_flow_s: float = 0.0
    bisulphiting: bool = False
    p403_unproven_s: float = 0.0
    returning: bool = False  # permeate from T601
    off_specification: bool = False  # permeate goes to drain


def initial_state(design: Design, *, cold_start: bool) -> TreatmentState:
    """Return the plant at the first second of a record.

    At a cold start the tanks are low, the analysers measure stale water and the osmosis membranes
    are not yet compacted. Otherwise the plant is in mid-operation. Reverse osmosis runs in both: in
    the published normal record its pumps and lamp never change state.
    """
    depths_mm = (420.0, 360.0, 480.0) if cold_start else (600.0, 880.0, 940.0)
    permeate_m3_h = design.osmosis_m3_h * design.recovery
    state = TreatmentState(
        t101_m3=design.t101_area_m2 * depths_mm[0] / 1000.0,
        t301_m3=design.t301_area_m2 * depths_mm[1] / 1000.0,
        t401_m3=design.t401_area_m2 * depths_mm[2] / 1000.0,
        t601_m3=design.t601_area_m2 * 0.5,
        t602_m3=design.t602_area_m2 * 1.0,
        osmosis_m3_h=design.osmosis_m3_h,
        permeate_m3_h=permeate_m3_h,
        concentrate_m3_h=design.osmosis_m3_h + design.recirculation_m3_h - permeate_m3_h,
        recirculation_m3_h=design.recirculation_m3_h,
        filling=True,
        transferring=True,
        filtering=True,
    )
    if not cold_start:
        state.filtered_s = design.filtration_s / 2
        state.fouling = 1.25
        state.inlet_m3_h = design.inlet_m3_h
        state.transfer_m3_h = design.transfer_m3_h
        state.filtration_m3_h = state.filtrate_m3_h = design.filtration_m3_h
    else:
        state.compaction = 1.0
        state.mixer_us_cm = state.t301_us_cm = state.t401_us_cm = 238.0
        state.mixer_ph = state.t301_ph = state.t401_ph = 8.1
        state.mixer_mv = state.t301_mv = state.t401_mv = 390.0
        state.permeate_us_cm = 14.0
    return state
