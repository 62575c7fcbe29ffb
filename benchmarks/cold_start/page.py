"""The page docs/results/cold-start.md."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.cold_start.draws import SUBJECTS, Cell, Subject
from benchmarks.cold_start.ways import ALONE, BORROWED, FITTED, WAYS
from benchmarks.worth.page import COLUMNS, Column, interval
from benchmarks.worth.ways import Measured

__all__ = ["Line", "page"]

HEAD = """# The first days of a plant

Written by `python -m benchmarks cold-start`; do not edit. A plant with a few days of clean rows
gets a `moments` detector in five ways, each for one false alarm a week:

- **alone**: from its own rows. The first 70 % fit it, the others set the threshold. If they hold
  too few separate peaks for a rate, the threshold is their highest score.
- **vote, own thresholds**: one detector of each member's statistic; an alarm needs half of them.
  The plant's few rows set the threshold of each. Where they are too few for that, there is no such
  detector, and the table says so.
- **vote, borrowed**: the same, but each member lends the tail of its own score, which sets the
  threshold of its own voter ([how](../explanation/cold-start.md)). The plant's few rows give the
  usual score of each voter.
- **vote, borrowed, 2 lie**: two members (one of three) lend the tail that votes most often.
- **alone, threshold of fitted rows**: from its own rows, but all of them fit the detector and the
  same rows set the threshold. It shows what the parting of rows is worth.

Rules of the plant are in none of these detectors. Every member is honest, except for the tails of
those who lie. A cell is the mean over draws with its 95 % interval (Student's t). *Gain* is the
difference to alone on the same draws, with its interval.
"""
TARGET = 5.0
ALONE_TARGET = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """What one way gives in one draw of a cell; None if the clean rows were too few for it."""

    subject: str
    cell: Cell
    seed: int
    way: str
    found: Measured | None


def page(lines: Sequence[Line]) -> str:
    """Return the page of what is measured."""
    parts = [HEAD]
    for subject in SUBJECTS:
        own = [line for line in lines if line.subject == subject.name]
        parts += _section(subject, own) if own else [f"\n**Not run yet:** {subject.name}."]
    return "\n".join(parts) + "\n"


def _section(subject: Subject, lines: Sequence[Line]) -> Iterator[str]:
    seeds = sorted({line.seed for line in lines})
    yield f"\n## {subject.name[0].upper()}{subject.name[1:]}\n"
    yield f"{subject.says}. Draws {seeds[0]} to {seeds[-1]}.\n"
    if subject is SUBJECTS[0]:
        yield f"{_targets(lines)}\n"
    yield _direction(subject, lines)
    measured = len({(line.cell, line.seed) for line in lines})
    planned = sum(cell.draws for cell in subject.cells)
    if measured < planned:
        yield f"**Not complete:** {measured} of {planned} draws are measured.\n"
    yield f"| plant | way | {' | '.join(column.name for column in COLUMNS)} |"
    yield f"|---|---|{'---|' * len(COLUMNS)}"
    for cell in subject.cells:
        for way in WAYS:
            yield from _row(cell, way, [line for line in lines if line.cell == cell])


def _row(cell: Cell, way: str, lines: Sequence[Line]) -> Iterator[str]:
    own = [line.found for line in lines if line.way == way and line.found is not None]
    without = sum(line.way == way and line.found is None for line in lines)
    if not own:
        if without:
            yield f"| {cell.says} | {way} | too few clean rows in all {without} draws |||{'|'}"
        return
    alone = {line.seed: line.found for line in lines if line.way == WAYS[0] and line.found}
    cells = []
    for column in COLUMNS:
        text = _shown(column, [column.of(each) for each in own])
        if way != WAYS[0]:
            gain, half = interval([column.of(each) - column.of(alone[each.seed]) for each in own])
            text += f", gain {gain:+{column.form}} ± {half:{column.form}}"
        cells.append(text)
    missing = f", {without} without" if without else ""
    yield f"| {cell.says} | {way} (n = {len(own)}{missing}) | {' | '.join(cells)} |"


def _shown(column: Column, values: Sequence[float]) -> str:
    mean, half = interval(values)
    form = column.form
    return f"{mean:{form}} [{max(mean - half, 0.0):{form}}, {mean + half:{form}}]"


def _targets(lines: Sequence[Line]) -> str:
    """Say which targets hold, with all members."""
    most = max(line.cell.members for line in lines)
    own = [line for line in lines if line.cell.members == most]
    fewest = min(line.cell.days for line in own)
    first = [line for line in own if line.cell.days == fewest]
    borrowed, alone, fitted = (_in_alarm(first, way) for way in (BORROWED[0], ALONE, FITTED))
    gains = {
        way: min(_gain(own, cell, way)[0] for cell in {line.cell for line in own})
        for way in (ALONE, FITTED)
    }
    return (
        f"Targets, with {most} members. At {fewest:g} days, clean time in alarm with "
        f"borrowed thresholds is at most {TARGET:g} %: {_held(borrowed[0] <= TARGET)} "
        f"({_spread(borrowed)}). "
        f"Without the federation it is {ALONE_TARGET:g} % or more: this depends on how the plant "
        "sets its threshold. If the rows that fit the detector also set the threshold, it "
        f"{_held(fitted[0] >= ALONE_TARGET)} ({_spread(fitted)}). If the plant keeps rows back to "
        f"set the threshold, it {_held(alone[0] >= ALONE_TARGET)} ({_spread(alone)}). Average "
        "precision with borrowed thresholds is not below that of a local detector at any number of "
        f"days: {_held(min(gains.values()) >= 0)} (least mean gain {gains[ALONE]:+.3f} over alone, "
        f"{gains[FITTED]:+.3f} over alone with a threshold of fitted rows)."
    )


def _direction(subject: Subject, lines: Sequence[Line]) -> str:
    """Say whether another subject points in the same direction, in each cell."""
    said = []
    for cell in subject.cells:
        own = [line for line in lines if line.cell == cell]
        if not own:
            continue
        borrowed, alone, fitted = (_in_alarm(own, way) for way in (BORROWED[0], ALONE, FITTED))
        gain, half = _gain(own, cell, ALONE)
        said.append(
            f"| {cell.says} | {_spread(borrowed)} | {_spread(alone)} | {_spread(fitted)} | "
            f"{gain:+.3f} ± {half:.3f} |"
        )
    return "\n".join(
        (
            f"Clean time in alarm, and the gain in average precision over {ALONE}:\n",
            "| plant | vote, borrowed | alone | alone, fitted rows | gain in average precision |",
            "|---|---|---|---|---|",
            *said,
            "",
        )
    )


def _found(lines: Sequence[Line], way: str) -> dict[int, Measured]:
    return {line.seed: line.found for line in lines if line.way == way and line.found is not None}


def _in_alarm(lines: Sequence[Line], way: str) -> tuple[float, float]:
    """Return the mean share of clean time in alarm in percent, and half of its interval."""
    return interval([100 * each.time_in_alarm for each in _found(lines, way).values()])


def _gain(lines: Sequence[Line], cell: Cell, over: str) -> tuple[float, float]:
    """Return the gain in average precision of borrowed thresholds on the same draws."""
    own = [line for line in lines if line.cell == cell]
    borrowed, local = _found(own, BORROWED[0]), _found(own, over)
    return interval(
        [each.average_precision - local[seed].average_precision for seed, each in borrowed.items()]
    )


def _spread(found: tuple[float, float]) -> str:
    mean, half = found
    return f"{mean:.2f} % [{max(mean - half, 0.0):.2f}, {mean + half:.2f}]"


def _held(holds: bool) -> str:  # noqa: FBT001 - one word for one truth
    return "**holds**" if holds else "**is missed**"
