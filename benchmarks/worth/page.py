"""The page docs/results/worth.md and its figure."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, stdev

import matplotlib as mpl
from matplotlib.figure import Figure
from scipy.stats import t as student

from benchmarks.worth.draws import SUBJECTS, Subject
from benchmarks.worth.ways import WAYS, Measured

__all__ = ["COLUMNS", "Column", "figure", "interval", "page"]

HEAD = """# What a plant gains by joining

Written by `python -m benchmarks worth`; do not edit. The same plant gets a `moments` detector in
four ways, each for one false alarm a week:

- **alone**: from its own rows. The first 70 % fit it, the others set the threshold.
- **vote**: one detector of each member's statistic, an alarm needs half of them. The plant's own
  rows set the threshold of each ([how](../explanation/vote.md)).
- **vote, members' thresholds**: the same, but each member sets the threshold of its own detector on
  its own rows.
- **pooled**: one detector of the sum of all statistics, with a threshold from the plant's own rows.
  It has no certificate: one malicious member can take everything.

The first other member's record gives scales and registers, as the coordinator's reference does
between sites. Every member is honest. Rules of the plant are in none of these detectors.
A few days of hourly rows hold too few separate peaks of the score for a rate. Then the threshold is
the highest clean score.

A cell is the mean over draws with its 95 % interval (Student's t). *Gain* is the difference to
alone on the same draws. It is marked if its interval does not contain 0: **better**, *worse*. Draws
from BATADAL share one year and one record with attacks, so the intervals say how a result depends
on the draw, and not how it is at other plants.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A figure of the tables."""

    name: str
    form: str
    of: Callable[[Measured], float]
    more_is_better: bool


COLUMNS = (
    Column(
        name="false alarms a week, clean rows",
        form=".2f",
        of=lambda m: m.false_alarms_per_week,
        more_is_better=False,
    ),
    Column(
        name="clean time in alarm, %",
        form=".2f",
        of=lambda m: 100 * m.time_in_alarm,
        more_is_better=False,
    ),
    Column(
        name="average precision",
        form=".3f",
        of=lambda m: m.average_precision,
        more_is_better=True,
    ),
    Column(name="attacks found", form=".2f", of=lambda m: m.attacks_found, more_is_better=True),
)


def page(found: Sequence[Measured]) -> str:
    """Return the page of what is measured."""
    parts = [HEAD]
    for subject in SUBJECTS:
        own = [line for line in found if line.subject == subject.name]
        if own:
            parts += _section(subject, own)
        else:
            parts.append(
                f"\n**Not run yet:** {subject.name}. `python -m benchmarks worth` runs it."
            )
    return "\n".join(parts) + "\n"


def _section(subject: Subject, found: Sequence[Measured]) -> Iterator[str]:
    seeds = sorted({line.seed for line in found})
    yield f"\n## {subject.name[0].upper()}{subject.name[1:]}\n"
    yield f"{subject.says}. {len(seeds)} draws (seeds {seeds[0]} to {seeds[-1]}).\n"
    yield f"**{_finding(found, subject.days)}**\n"
    if subject.name == SUBJECTS[0].name:
        yield "![False alarms and time in alarm by days of own rows](worth.svg)\n"
    yield f"| days | way | {' | '.join(column.name for column in COLUMNS)} |"
    yield f"|---|---|{'---|' * len(COLUMNS)}"
    for days in subject.days:
        alone = {m.seed: m for m in found if (m.days, m.way) == (days, WAYS[0])}
        for way in WAYS:
            lines = [m for m in found if (m.days, m.way) == (days, way)]
            if lines:
                cells = (_cell(column, lines, alone) for column in COLUMNS)
                yield f"| {days:g} | {way} (n = {len(lines)}) | {' | '.join(cells)} |"
    yield from _short(found)


def _short(found: Sequence[Measured]) -> Iterator[str]:
    """Say where clean windows were too few for a rate."""
    total = Counter((m.days, m.way) for m in found)
    short = Counter((m.days, m.way) for m in found if not m.extrapolated)
    if short:
        named = "; ".join(
            f"{way}, {days:g} days ({count} of {total[days, way]} draws)"
            for (days, way), count in sorted(short.items())
        )
        yield (
            "\nToo few separate peaks for a rate, so the threshold of at least one detector is "
            f"the highest clean score: {named}."
        )


def _cell(column: Column, lines: Sequence[Measured], alone: Mapping[int, Measured]) -> str:
    form, of = column.form, column.of
    mean, half = interval([of(line) for line in lines])
    text = f"{mean:{form}} [{max(mean - half, 0.0):{form}}, {mean + half:{form}}]"
    if lines[0].way == WAYS[0]:
        return text
    gain, half = interval([of(m) - of(alone[m.seed]) for m in lines])
    word = f"gain {gain:+{form}} ± {half:{form}}"
    marks = {1: "**", 0: "", -1: "*"}[_better(column, lines, alone)]
    return f"{text}, {marks}{word}{marks}"


def _better(column: Column, lines: Sequence[Measured], alone: Mapping[int, Measured]) -> int:
    """Return 1 if a way is better than alone beyond chance, -1 if it is worse, else 0."""
    gain, half = interval([column.of(m) - column.of(alone[m.seed]) for m in lines])
    if abs(gain) <= half:
        return 0
    return 1 if (gain > 0) == column.more_is_better else -1


def _finding(found: Sequence[Measured], days: Sequence[int]) -> str:
    """Count, for each shared way, the figures that are better or worse than alone."""
    sentences = []
    for way in WAYS[1:]:
        signs = []
        for each in days:
            alone = {m.seed: m for m in found if (m.days, m.way) == (each, WAYS[0])}
            lines = [m for m in found if (m.days, m.way) == (each, way)]
            signs += [_better(column, lines, alone) for column in COLUMNS if lines]
        better, worse = signs.count(1), signs.count(-1)
        sentences.append(f"{way}: {better} better, {worse} worse")
    return (
        f"Beyond chance, of {len(days) * len(COLUMNS)} figures each, compared with alone: "
        f"{'; '.join(sentences)}."
    )


def interval(values: Sequence[float]) -> tuple[float, float]:
    """Return the mean and half of its 95 % interval."""
    if len(values) < 2:
        return fmean(values), 0.0
    half = float(student.ppf(0.975, len(values) - 1)) * stdev(values) / len(values) ** 0.5
    return fmean(values), half


def figure(found: Sequence[Measured], path: Path) -> None:
    """Draw false alarms and time in alarm over the days that a plant has."""
    own = [line for line in found if line.subject == SUBJECTS[0].name]
    if not own:
        return
    days = sorted({line.days for line in own})
    drawn = Figure(figsize=(9, 3.4), layout="constrained")
    axes = drawn.subplots(1, 2)
    for axis, column in zip(axes, COLUMNS, strict=False):
        for way in WAYS:
            ends = [
                interval([column.of(m) for m in own if (m.days, m.way) == (each, way)])
                for each in days
            ]
            means, halves = zip(*ends, strict=True)
            axis.errorbar(days, means, yerr=halves, marker="o", capsize=3, label=way)
        axis.set_xlabel("days of the plant's own clean rows")
        axis.set_title(column.name, fontsize=10)
        axis.set_xticks(days)
        axis.set_ylim(bottom=0)
    axes[0].legend(fontsize=8)
    with mpl.rc_context({"svg.hashsalt": "worth"}):
        drawn.savefig(path, metadata={"Date": None})
