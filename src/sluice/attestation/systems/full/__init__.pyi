from .bound import LARGEST_STATISTIC, StatisticName, settings_of, statistic_of
from .reference import verify_again
from .sealed import SealedStatistic
from .statement import Statement, derive
from .system import (
    Full,
    batch_masks,
    batch_statistic,
    core_identity,
    demand_statistic,
    statistic_settings,
)
from .witness import Witness

__all__ = [
    "LARGEST_STATISTIC",
    "Full",
    "SealedStatistic",
    "Statement",
    "StatisticName",
    "Witness",
    "batch_masks",
    "batch_statistic",
    "core_identity",
    "demand_statistic",
    "derive",
    "settings_of",
    "statistic_of",
    "statistic_settings",
    "verify_again",
]
