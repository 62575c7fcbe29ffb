"""An aggregation rule and an attack that an installed package adds to Sluice."""

import numpy as np

from sluice.aggregation import aggregated, expect_fresh, stacked


class PlainMean:
    """The mean of the updates, whatever number of rows each client has."""

    needs_root = False

    def __call__(self, updates, state):
        stack = stacked(updates)
        shares = np.full(len(stack), 1 / len(stack))
        return aggregated(stack, shares @ stack.matrix, shares), expect_fresh(state, "plain-mean")


def sensor_offset(record, *, seed):
    """Add a constant to every level: a sensor that reads 5 to 15 % of its range too high."""
    values, rng = record.values.copy(), np.random.default_rng(seed)
    for level in (channel for channel in record.channels if channel.role == "level"):
        column = record.index(level.name)
        values[:, column] += rng.uniform(0.05, 0.15) * np.ptp(values[:, column])
    return record.with_values(values)
