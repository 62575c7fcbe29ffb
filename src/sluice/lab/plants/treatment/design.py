"""How the plant is built: tanks, pipes, pumps, set-points; and how sites differ from each other."""

from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from sluice.errors import SettingError
from sluice.seeding import stream

__all__ = ["PUBLISHED_SITE", "Design", "TreatmentDesign", "site_of"]

LARGEST_SPREAD: Final = 0.25
"""Above it, reverse osmosis may need more water than ultrafiltration delivers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """Dimensions, capacities and set-points of one plant; the defaults are the published plant's.

    Suffixes of set-points: `ll` stops the pumps that draw from the tank, `l` starts filling it and
    `h` stops filling it. HH (1200 mm) only raises an alarm, so nothing here reads it.
    """

    # tanks: 5 s of 1 m3/h raise 1.46 m2 by 0.95 mm, the published slope
    t101_area_m2: float = 1.462
    t301_area_m2: float = 1.462
    t401_area_m2: float = 1.50
    t601_area_m2: float = 0.60
    t602_area_m2: float = 0.60
    tank_height_mm: float = 1300.0
    outlet_mm: float = 40.0  # below it a pump draws air and its flow fades

    # set-points
    t101_ll_mm: float = 250.0
    t101_l_mm: float = 500.0
    t101_h_mm: float = 800.0
    t301_ll_mm: float = 250.0
    t301_l_mm: float = 800.0
    t301_h_mm: float = 1000.0
    t401_ll_mm: float = 250.0
    t401_l_mm: float = 800.0
    t401_h_mm: float = 1000.0
    restart_mm: float = 100.0  # above LL before a pump stopped by LL may start again
    t601_l_mm: float = 300.0
    t601_h_mm: float = 900.0
    conductivity_low_us_cm: float = 200.0
    acid_off_ph: float = 6.95
    acid_on_ph: float = 7.05
    chlorine_on_mv: float = 400.0
    chlorine_off_mv: float = 480.0
    bisulphite_off_mv: float = 220.0
    bisulphite_on_mv: float = 240.0
    membrane_dp_kpa: float = 40.0
    osmosis_flow_m3_h: float = 0.7
    permeate_us_cm: float = 15.0
    osmosis_feed_mv: float = 250.0
    flow_proven_m3_h: float = 0.5

    # timers
    standby_s: float = 20.0
    dosing_standby_s: float = 120.0
    osmosis_trip_s: float = 10.0
    osmosis_start_s: float = 30.0
    filtration_s: float = 1800.0
    backwash_s: float = 16.0
    flush_s: float = 80.0
    dp_holdoff_s: float = 30.0

    # capacities
    inlet_m3_h: float = 2.52
    transfer_m3_h: float = 2.452
    filtration_m3_h: float = 2.24
    osmosis_m3_h: float = 1.71
    osmosis_flush_m3_h: float = 1.0
    recirculation_m3_h: float = 0.31
    recovery: float = 0.7485  # permeate per feed: 1.28 of 1.71
    backwash_m3_h: float = 1.57
    permeate_return_m3_h: float = 3.0
    second_pump_gain: float = 0.12  # what a second pump adds on the same pipe

    # lags
    pipe_lag_s: float = 1.5
    membrane_lag_s: float = 12.0
    mixer_m3: float = 0.08
    noise: float = 1.0  # scale of every instrument's noise


@dataclass(frozen=True, slots=True, kw_only=True)
class TreatmentDesign:
    """How one plant of the same type differs from the published one."""

    name: str = "published"
    t101_area: float = 1.0
    t301_area: float = 1.0
    t401_area: float = 1.0
    throughput: float = 1.0  # of the whole plant
    inlet: float = 1.0  # capacities relative to the throughput
    transfer: float = 1.0
    filtration: float = 1.0
    osmosis: float = 1.0
    set_point_shift_mm: float = 0.0
    noise: float = 1.0

    def __post_init__(self) -> None:
        tanks = (self.t101_area, self.t301_area, self.t401_area)
        pumps = (self.throughput, self.inlet, self.transfer, self.filtration, self.osmosis)
        scales = (*tanks, *pumps)
        if min(scales) < 0.5 or max(scales) > 2.0 or not 0.0 <= self.noise <= 10.0:
            raise SettingError(
                f"site {self.name!r}: scales of tanks and pumps lie in 0.5 to 2 and of noise in "
                f"0 to 10, got {min(scales):g} to {max(scales):g} and {self.noise:g}"
            )
        if abs(self.set_point_shift_mm) > 100.0:
            raise SettingError(
                f"site {self.name!r}: set-points shift by at most 100 mm, "
                f"got {self.set_point_shift_mm:g}"
            )

    @classmethod
    def vary(cls, rng: np.random.Generator, *, spread: float, name: str) -> "TreatmentDesign":
        """Draw a site whose tanks and throughput differ by up to `spread`, its pumps by a third.

        Pumps vary less among themselves than plants do, so that every stage can still supply the
        next one.
        """
        if not 0.0 <= spread <= LARGEST_SPREAD:
            raise SettingError(f"sites spread by 0 to {LARGEST_SPREAD:g}, got {spread:g}")
        tanks = rng.uniform(1.0 - spread, 1.0 + spread, size=4)
        pumps = rng.uniform(1.0 - spread / 3, 1.0 + spread / 3, size=4)
        return cls(
            name=name,
            t101_area=float(tanks[0]),
            t301_area=float(tanks[1]),
            t401_area=float(tanks[2]),
            throughput=float(tanks[3]),
            inlet=float(pumps[0]),
            transfer=float(pumps[1]),
            filtration=float(pumps[2]),
            osmosis=float(pumps[3]),
            set_point_shift_mm=float(rng.uniform(-200.0, 200.0) * spread),
            noise=float(rng.uniform(1.0 - spread, 1.0 + spread)),
        )

    def design(self) -> Design:
        """Return the published design as this site built it."""
        built = Design()
        shift = self.set_point_shift_mm
        osmosis = self.throughput * self.osmosis
        return replace(
            built,
            t101_area_m2=built.t101_area_m2 * self.t101_area,
            t301_area_m2=built.t301_area_m2 * self.t301_area,
            t401_area_m2=built.t401_area_m2 * self.t401_area,
            t101_l_mm=built.t101_l_mm + shift,
            t101_h_mm=built.t101_h_mm + shift,
            t301_l_mm=built.t301_l_mm + shift,
            t301_h_mm=built.t301_h_mm + shift,
            t401_l_mm=built.t401_l_mm + shift,
            t401_h_mm=built.t401_h_mm + shift,
            inlet_m3_h=built.inlet_m3_h * self.throughput * self.inlet,
            transfer_m3_h=built.transfer_m3_h * self.throughput * self.transfer,
            filtration_m3_h=built.filtration_m3_h * self.throughput * self.filtration,
            osmosis_m3_h=built.osmosis_m3_h * osmosis,
            osmosis_flush_m3_h=built.osmosis_flush_m3_h * osmosis,
            recirculation_m3_h=built.recirculation_m3_h * osmosis,
            osmosis_flow_m3_h=built.osmosis_flow_m3_h * osmosis,
            backwash_m3_h=built.backwash_m3_h * self.throughput,
            noise=self.noise,
        )


PUBLISHED_SITE: Final = TreatmentDesign()


def site_of(seed: int, index: int, *, spread: float = 0.1) -> TreatmentDesign:
    """Return the site with this number in the federation of this seed."""
    rng = stream(seed, "treatment", "site", index)
    return TreatmentDesign.vary(rng, spread=spread, name=f"site-{index}")
