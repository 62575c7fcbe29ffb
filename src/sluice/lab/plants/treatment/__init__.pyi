from .attacks import Effect, ForceActuator, SpoofConstant, SpoofRamp, TreatmentAttack
from .design import PUBLISHED_SITE, TreatmentDesign, site_of
from .published import PUBLISHED_ATTACKS
from .simulation import (
    ATTACKED,
    CLEAN,
    HistorianGap,
    Period,
    SimulationRun,
    Truth,
    run_period,
    simulate,
)
from .tags import CHANNELS, TAGS

__all__ = [
    "ATTACKED",
    "CHANNELS",
    "CLEAN",
    "PUBLISHED_ATTACKS",
    "PUBLISHED_SITE",
    "TAGS",
    "Effect",
    "ForceActuator",
    "HistorianGap",
    "Period",
    "SimulationRun",
    "SpoofConstant",
    "SpoofRamp",
    "TreatmentAttack",
    "TreatmentDesign",
    "Truth",
    "run_period",
    "simulate",
    "site_of",
]
