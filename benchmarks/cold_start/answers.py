"""What the measurements answer: which targets hold, in sentences."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.cold_start.ways import ALONE, BORROWED, FITTED

__all__ = ["Drop", "Interval", "month_answers", "site_answers"]

TARGET = 5.0
ALONE_TARGET = 20.0

Interval = tuple[float, float]
"""A mean, and half of its 95 % interval."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """A cell in which borrowed thresholds have a lower mean average precision."""

    days: float
    gain: Interval


def month_answers(
    *,
    days: float,
    members: int,
    in_alarm: Mapping[str, Interval],
    gains: Mapping[str, float],
) -> Iterator[str]:
    """Say which targets hold, for the fewest days and all members."""
    borrowed, alone, fitted = (in_alarm[way] for way in (BORROWED[0], ALONE, FITTED))
    yield (
        f"- A plant with {days:g} days of clean rows, and the thresholds of {members} members, is "
        f"in alarm for {_percent(borrowed)} of clean time. The target, at most {TARGET:g} %, "
        f"{_held(borrowed[0] <= TARGET)}."
    )
    yield (
        f"- The same plant without a federation should be in alarm for {ALONE_TARGET:g} % or more. "
        "That depends on which rows set its threshold. If the rows that fit the detector also set "
        f"the threshold, it is in alarm for {_percent(fitted)}: this target "
        f"{_held(fitted[0] >= ALONE_TARGET)}. A detector scores the rows that it was fitted to "
        "lower than any others, so such a threshold is too low. If the plant keeps 30 % of its "
        f"rows back for the threshold, it is in alarm for {_percent(alone)}: this target "
        f"{_held(alone[0] >= ALONE_TARGET)}. Compare with the second way: a careful plant does "
        "that."
    )
    yield (
        "- Average precision is at no number of days below that of a detector from the plant's own "
        f"rows: {_held(min(gains.values()) >= 0)}. The least mean gain is {gains[ALONE]:+.3f} over "
        f"*{ALONE}* and {gains[FITTED]:+.3f} over *{FITTED}*."
    )


def site_answers(
    *, cells: int, quieter: Mapping[str, int], drops: Mapping[str, Sequence[Drop]]
) -> Iterator[str]:
    """Say in how many cells sites point in the same direction."""
    yield (
        "The target is the same direction as for BATADAL's months: with borrowed thresholds, less "
        "clean time in alarm and no lower average precision. *Spread* is how much sites differ "
        "from the reference plant: 0.15 draws tanks and throughput from 15 % less to 15 % more, "
        "and pumps from 5 % less to 5 % more.\n"
    )
    for way in (ALONE, FITTED):
        yield (
            f"- Against *{way}*, clean time in alarm is not longer in {quieter[way]} of {cells} "
            f"cells. Average precision is not lower in {cells - len(drops[way])} of {cells}."
            f"{_lower(drops[way])}"
        )


def _lower(drops: Sequence[Drop]) -> str:
    if not drops:
        return ""
    clear = sum(mean + half < 0 for mean, half in (drop.gain for drop in drops))
    days = " and ".join(f"{each:g}" for each in sorted({drop.days for drop in drops}))
    worst = min(drop.gain for drop in drops)
    return (
        f" It is lower in {len(drops)}, where the plant has {days} "
        f"day{'' if days == '1' else 's'} of rows: by at most {-worst[0]:.4f}. The interval of the "
        f"difference contains 0 in {len(drops) - clear} of these {len(drops)}."
    )


def _percent(found: Interval) -> str:
    mean, half = found
    return f"**{mean:.2f} %** [{max(mean - half, 0.0):.2f}, {mean + half:.2f}]"


def _held(holds: bool) -> str:  # noqa: FBT001 - one word for one truth
    return "**holds**" if holds else "**is missed**"
