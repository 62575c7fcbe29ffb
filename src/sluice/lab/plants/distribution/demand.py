"""The consumers' demand: the network's own patterns, varied from day to day."""

from itertools import accumulate

import numpy as np

from sluice.arrays import Floats
from sluice.lab.plants.distribution.model import Model
from sluice.seeding import stream

__all__ = ["vary_demand"]

MEMORY_H = 12.0  # a cold day or a holiday hardly affects the next day


def vary_demand(model: Model, *, seed: int, duration_s: int, step_s: int, noise: float) -> None:
    """Write every pattern out over the whole run; each demand pattern gets its own noise.

    EPANET repeats a pattern without end, so all days would be equal. Demand is interpolated between
    pattern values, because a town's demand does not change in hourly steps; pump speeds and
    reservoir heads are scheduled and keep their steps.
    """
    clock = model.options.time
    times_s = np.arange(0.0, duration_s + 2 * step_s, step_s)
    demand_patterns = {
        series.pattern_name
        for _, junction in model.junctions()
        for series in junction.demand_timeseries_list
    } | {model.options.hydraulic.pattern}
    for name, pattern in model.patterns():
        multipliers = np.asarray(pattern.multipliers, np.float64)
        place = (times_s + clock.pattern_start) / clock.pattern_timestep % len(multipliers)
        if name in demand_patterns:
            wrapped = np.append(multipliers, multipliers[0])
            smooth = np.interp(place, np.arange(len(wrapped)), wrapped)
            pattern.multipliers = smooth * _variation(seed, name, times_s, noise)
        else:
            pattern.multipliers = multipliers[place.astype(np.int64)]
    clock.pattern_timestep = step_s
    clock.pattern_start = 0


def _variation(seed: int, pattern: str, times_s: Floats, noise: float) -> Floats:
    """Return a factor of mean 1 and relative deviation `noise`, AR(1) from hour to hour."""
    hours = int(times_s[-1]) // 3600 + 2
    memory = np.exp(-1 / MEMORY_H)
    shocks = stream(seed, "network", "demand", pattern).normal(size=hours)
    shocks[1:] *= np.sqrt(1 - memory**2)
    states = list(accumulate(shocks, lambda last, shock: memory * last + shock))
    smooth = np.interp(times_s / 3600, np.arange(hours), states)
    return np.asarray(np.exp(noise * smooth - noise**2 / 2))
