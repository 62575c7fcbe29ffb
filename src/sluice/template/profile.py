"""What tells one channel of a plant from another, without names: its course and its neighbours.

All numbers of a shape are without a unit, and do not change if a plant is larger, because plants of
one kind differ in size.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.ndimage import uniform_filter1d

from sluice.arrays import Bools, Floats
from sluice.errors import RecordError
from sluice.telemetry import Channel, Record

__all__ = ["GRAPHS", "SHAPES", "RecordProfile", "profile_of", "twins_in"]

SHAPES = ("duty", "switching", "roughness", "memory", "slow memory", "skew", "transit")
GRAPHS = ("together", "changes", "later", "next")
LAGS = (10, 60)  # rows, for the memory of a channel
CHANGE_ROWS = 6  # over which changes are compared
TREND_ROWS = 600  # slower movements of two channels agree by chance
FEWEST_ROWS = 200
USUAL = (0.025, 0.5, 0.975)
MOST_STATES = 6  # of an actuator
SMALLEST = 1e-5  # a share of rows, in logarithms
MOST_APART = 0.1  # of two meters of one quantity: mean of their difference, and its memory


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecordProfile:
    """The statistics of a plant's channels, or of a template's points."""

    usual: Floats  # channels x 3: quantiles of the readings
    shapes: Floats  # channels x SHAPES
    moving: Bools  # channels that changed at all
    graphs: Floats  # GRAPHS x channels x channels, between -1 and 1


def profile_of(record: Record) -> RecordProfile:
    """Return what tells the channels of a clean record apart."""
    if len(record) < FEWEST_ROWS:
        raise RecordError(
            f"record {record.name!r} has {len(record)} rows; its channels differ clearly only with "
            f"{FEWEST_ROWS} and more"
        )
    values = _filled(record)
    moving = values.min(axis=0) < values.max(axis=0)
    usual = np.quantile(values, USUAL, axis=0).T
    shapes = np.array([_shape(values[:, at]) for at in range(values.shape[1])])
    return RecordProfile(usual=usual, shapes=shapes, moving=moving, graphs=_graphs(values, moving))


def twins_in(record: Record) -> tuple[tuple[str, ...], ...]:
    """Return groups of channels that move, and that nothing in the record tells apart.

    They have the same role and unit. They have the same reading in every row, or they are no
    actuators and meter the same quantity: their difference has no mean and no memory, it is smaller
    than the movement of each, and both are equally noisy. An exchange changes nothing but noise.
    """
    values = _filled(record)
    near = _alike(values, record.channels)
    groups: list[list[int]] = []
    for at in range(len(record.channels)):
        joined = [group for group in groups if near[at, group].any()]
        groups = [group for group in groups if group not in joined]
        groups.append(sorted([at, *(each for group in joined for each in group)]))
    return tuple(
        tuple(record.names[at] for at in group) for group in sorted(groups) if len(group) > 1
    )


def _alike(values: Floats, channels: Sequence[Channel]) -> Bools:
    """Return which pairs of channels nothing tells apart: channels x channels."""
    kinds = [(channel.role, channel.unit) for channel in channels]
    means, spreads = values.mean(axis=0), values.std(axis=0)
    steps = np.diff(values, axis=0).std(axis=0)
    least = np.minimum.outer(spreads, spreads)
    same = np.array([[one == other for other in kinds] for one in kinds])
    near = np.abs(means[:, np.newaxis] - means) <= MOST_APART * least
    noisy = np.abs(steps[:, np.newaxis] - steps) <= MOST_APART / 2 * np.minimum.outer(steps, steps)
    pairs = np.triu(same & near & noisy & (least > 0), k=1)
    alike = np.zeros(pairs.shape, dtype=np.bool_)
    for one, other in np.argwhere(pairs):
        apart = values[:, one] - values[:, other]
        noise = not channels[one].role.discrete and _is_noise(apart, float(least[one, other]))
        alike[one, other] = alike[other, one] = noise or not apart.any()
    return alike


def _is_noise(apart: Floats, moves: float) -> bool:
    """Return whether a difference is that of two meters of a quantity that moves by so much."""
    spread = float(apart.std())
    if spread == 0:
        return False
    off = (apart - apart.mean()) / spread
    memory = max(abs(float(np.mean(off[lag:] * off[:-lag]))) for lag in LAGS)
    centred = abs(float(apart.mean())) <= MOST_APART * spread
    return centred and spread < moves and memory <= MOST_APART


def _filled(record: Record) -> Floats:
    """Return the readings; a missing one is the last reading before it, or the first one."""
    values = np.array(record.values)
    for column, name in enumerate(record.names):
        missing = record.missing[:, column]
        if missing.all():
            raise RecordError(
                f"record {record.name!r} has no reading of {name!r}; leave the channel out"
            )
        if missing.any():
            known = np.flatnonzero(~missing)
            place = np.maximum(np.searchsorted(known, np.arange(len(values)), side="right") - 1, 0)
            values[:, column] = values[known[place], column]
    return values


def _shape(readings: Floats) -> Floats:
    low, high = (float(each) for each in np.quantile(readings, (0.005, 0.995)))
    if readings.min() == readings.max():
        return np.zeros(len(SHAPES))
    if high == low:
        low, high = float(readings.min()), float(readings.max())
    place = np.clip((readings - low) / (high - low), 0.0, 1.0)
    spread = max(float(place.std()), 1e-9)
    steps = np.diff(place)
    switching = float(np.mean(np.abs(steps) > 0.3))
    centred = (place - place.mean()) / spread
    return np.array(
        [
            float(place.mean()),
            np.log10(max(switching, SMALLEST)) / 5,
            min(float(steps.std()) / spread, 2.0) / 2,
            *(float(np.mean(centred[lag:] * centred[:-lag])) for lag in LAGS),
            float(np.clip(np.mean(centred**3), -3, 3)) / 3,
            _transit(readings),
        ]
    )


def _transit(readings: Floats) -> float:
    """Return the rows that a change between the two usual readings takes, as a share of ten rows.

    A valve that travels for 7 s differs so from one that travels for 9 s.
    """
    states, counts = np.unique(readings, return_counts=True)
    if len(states) < 3 or len(states) > MOST_STATES:
        return 0.0
    rests = states[np.argsort(-counts)[:2]]
    between = ~np.isin(readings, rests)
    changes = int(np.count_nonzero(np.diff(between.astype(np.int8)) == 1))
    return min(float(between.sum()) / max(changes, 1), 10.0) / 10


def _graphs(values: Floats, moving: Bools) -> Floats:
    changes, steps = values[CHANGE_ROWS:] - values[:-CHANGE_ROWS], np.diff(values, axis=0)
    quick = values - uniform_filter1d(values, min(TREND_ROWS, len(values)), axis=0)
    width = values.shape[1]
    graphs = np.zeros((len(GRAPHS), width, width))
    at = np.ix_(np.flatnonzero(moving), np.flatnonzero(moving))
    graphs[0][at] = _correlation(quick[:, moving], quick[:, moving])
    graphs[1][at] = _correlation(changes[:, moving], changes[:, moving])
    later = changes[CHANGE_ROWS:, moving], changes[:-CHANGE_ROWS, moving]
    graphs[2][at] = _correlation(*later)
    graphs[3][at] = _correlation(steps[1:, moving], steps[:-1, moving])
    return graphs


def _correlation(first: Floats, second: Floats) -> Floats:
    one, two = (_standard(each) for each in (first, second))
    correlation: Floats = np.clip(one.T @ two / len(one), -1.0, 1.0)
    return correlation


def _standard(values: Floats) -> Floats:
    spread = values.std(axis=0)
    standard: Floats = (values - values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    return standard
