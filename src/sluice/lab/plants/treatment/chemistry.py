"""What the water carries: conductivity, acidity and oxidation potential from stage to stage.

Acidity and potential are mixed linearly by volume. Real water chemistry is not that simple. The
model only reproduces how the analysers look, and which pump affects which analyser.
"""

from sluice.arrays import Ints
from sluice.lab.plants.treatment.compiled import compiled
from sluice.lab.plants.treatment.design import Design
from sluice.lab.plants.treatment.hydraulics import PER_HOUR
from sluice.lab.plants.treatment.state import TreatmentState
from sluice.lab.plants.treatment.tags import (
    ON,
    P201,
    P202,
    P203,
    P204,
    P205,
    P206,
    P403,
    P404,
    UV401,
)

__all__ = ["react"]

RAW_US_CM = 258.0
RAW_PH = 8.70
RAW_MV = 330.0
SALT_US_CM = 60.0  # what each dosing adds to flowing water
ACID_PH = -0.35
CHLORINE_MV = 180.0
STAGNANT_S = 5400.0  # standing water returns to the raw water's values this slowly


@compiled
def _either(duty_code: int, standby_code: int) -> float:
    return 1.0 if max(duty_code, standby_code) == ON else 0.0


@compiled
def _mix(code: Ints, s: TreatmentState, d: Design) -> None:
    """Dose the raw water in the mixer."""
    renewed = min(s.transfer_m3_h * PER_HOUR / d.mixer_m3, 1.0)
    standing = 1.0 / STAGNANT_S
    salted = RAW_US_CM + SALT_US_CM * _either(code[P201], code[P202])
    acidified = RAW_PH + ACID_PH * _either(code[P203], code[P204])
    chlorinated = RAW_MV + CHLORINE_MV * _either(code[P205], code[P206])
    s.mixer_us_cm += (salted - s.mixer_us_cm) * renewed
    s.mixer_ph += (acidified - s.mixer_ph) * renewed + (RAW_PH - s.mixer_ph) * standing
    s.mixer_mv += (chlorinated - s.mixer_mv) * renewed + (RAW_MV - s.mixer_mv) * standing


@compiled
def _blend(s: TreatmentState) -> None:
    """Carry the mixer's water into T301 and T301's into T401."""
    share = min(s.transfer_m3_h * PER_HOUR / max(s.t301_m3, 0.01), 1.0)
    s.t301_us_cm += (s.mixer_us_cm - s.t301_us_cm) * share
    s.t301_ph += (s.mixer_ph - s.t301_ph) * share
    s.t301_mv += (s.mixer_mv - s.t301_mv) * share
    share = min(s.filtrate_m3_h * PER_HOUR / max(s.t401_m3, 0.01), 1.0)
    s.t401_us_cm += (s.t301_us_cm - s.t401_us_cm) * share
    s.t401_ph += (s.t301_ph - s.t401_ph) * share
    s.t401_mv += (s.t301_mv - s.t401_mv) * share


@compiled
def react(code: Ints, s: TreatmentState, d: Design) -> None:
    """Advance all chemistry by one second."""
    _mix(code, s, d)
    _blend(s)
    moving = min(s.osmosis_m3_h, 2.0)
    reduced = 0.4 * s.t401_mv - 60.0 * _either(code[P403], code[P404])
    s.dechlorinated_mv += (reduced - s.dechlorinated_mv) * moving / 90.0
    # The lamp destroys the remaining chlorine; without it the osmosis feed turns oxidising.
    treated = s.dechlorinated_mv + (-30.0 if code[UV401] == ON else 75.0)
    s.osmosis_feed_mv += (treated - s.osmosis_feed_mv) * moving / 120.0
    passage = 0.046 + 0.10 * (1.0 - s.osmosis_pressure)
    s.permeate_us_cm += (s.t401_us_cm * passage - s.permeate_us_cm) * moving / 600.0
