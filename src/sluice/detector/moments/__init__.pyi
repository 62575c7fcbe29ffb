from .fitting import RIDGES, WindowMoments, fit_moments, window_moments
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
    "RIDGES",
    "MomentModel",
    "MomentSettings",
    "MomentStatistic",
    "WindowMoments",
    "fit_moments",
    "moment_settings",
    "moment_statistic",
    "shared_sum",
    "statistic_bytes",
    "sum_windows",
    "trapezoid",
    "window_moments",
]
