from .fitting import RIDGES, WindowMoments, fit_moments, window_moments
from .lending import LENT_BYTES, LentTail, lend_tail
from .model import MomentModel
from .settings import LAGS, MomentSettings, moment_settings
from .statistic import (
    MomentStatistic,
    moment_statistic,
    shared_sum,
    statistic_bytes,
    sum_windows,
    trapezoid,
)

__all__ = [
    "LAGS",
    "LENT_BYTES",
    "RIDGES",
    "LentTail",
    "MomentModel",
    "MomentSettings",
    "MomentStatistic",
    "WindowMoments",
    "fit_moments",
    "lend_tail",
    "moment_settings",
    "moment_statistic",
    "shared_sum",
    "statistic_bytes",
    "sum_windows",
    "trapezoid",
    "window_moments",
]
