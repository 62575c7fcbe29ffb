"""A simulated six-stage treatment plant with SWaT's 51 tags, for those without SWaT's data."""

from sluice.plants.treatment.attacks import (
    Attack,
    Effect,
    ForceActuator,
    SpoofConstant,
    SpoofRamp,
)
from sluice.plants.treatment.design import PUBLISHED_SITE, Site, site_of
from sluice.plants.treatment.published import PUBLISHED_ATTACKS
from sluice.plants.treatment.simulation import (
    ATTACKED,
    CLEAN,
    HistorianGap,
    Period,
    Run,
    Truth,
    run_period,
    simulate,
)
from sluice.plants.treatment.tags import CHANNELS, TAGS

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
