from .attacks import Attack, Effect, ForceActuator, SpoofConstant, SpoofRamp
from .design import PUBLISHED_SITE, Site, site_of
from .published import PUBLISHED_ATTACKS
from .simulation import ATTACKED, CLEAN, HistorianGap, Period, Run, Truth, run_period, simulate
from .tags import CHANNELS, TAGS

__all__ = [
    "ATTACKED",
    "CHANNELS",
    "CLEAN",
    "PUBLISHED_ATTACKS",
    "PUBLISHED_SITE",
    "TAGS",
    "Attack",
    "Effect",
    "ForceActuator",
    "HistorianGap",
    "Period",
    "Run",
    "Site",
    "SpoofConstant",
    "SpoofRamp",
    "Truth",
    "run_period",
    "simulate",
    "site_of",
]
