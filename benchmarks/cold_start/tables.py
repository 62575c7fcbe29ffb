"""The tables of docs/results/cold-start.md: one grid for each figure, and every cell."""

from collections.abc import Callable, Iterator, Sequence

from benchmarks.cold_start.draws import Cell, Subject
from benchmarks.cold_start.ways import ALONE, BORROWED, FITTED, WAYS
from benchmarks.worth.page import COLUMNS, Column, interval
from benchmarks.worth.ways import Measured

__all__ = ["HEADING", "Found", "Shown", "grids", "row", "shown"]

Found = Callable[[Cell, str], Sequence[Measured | None]]
"""What a way gives in the draws of a cell; None where the clean rows were too few for it."""

Shown = Callable[[Cell, str, Column], str]
"""The mean of a column with its interval, as text."""

HEADING = (
    f"| plant | way | {' | '.join(column.name for column in COLUMNS)} |\n"
    f"|---|---|{'---|' * len(COLUMNS)}"
)


def grids(cells: Sequence[Cell], shown: Shown) -> Iterator[str]:
    """Show the two figures that targets name: days beside each other, ways and members below."""
    days = sorted({cell.days for cell in cells})
    spreads = sorted({cell.spread for cell in cells})
    by = "spread | way" if len(spreads) > 1 else "way"
    for column in COLUMNS[1:3]:
        name = f"{column.name[0].upper()}{column.name[1:]}"
        yield f"\n{name}, by the clean rows that the plant has:\n"
        yield f"| {by} | {' | '.join(_length(each) for each in days)} |"
        yield f"|{'---|' * (len(days) + by.count('|') + 1)}"
        for spread in spreads:
            own = [cell for cell in cells if cell.spread == spread]
            for named, way, members in _ways(own):
                found = [
                    shown(Cell(days=each, spread=spread, members=members), way, column)
                    for each in days
                ]
                first = f"{spread:g} | {named}" if len(spreads) > 1 else named
                yield f"| {first} | {' | '.join(found)} |"


def _ways(cells: Sequence[Cell]) -> Iterator[tuple[str, str, int]]:
    """Yield what the rows of a grid are; a plant alone is the same with any members."""
    members = sorted({cell.members for cell in cells})
    yield from ((way, way, members[0]) for way in (ALONE, FITTED))
    yield from ((f"{BORROWED[0]}, {count} members", BORROWED[0], count) for count in members)


def _length(days: float) -> str:
    if days < 1:
        return f"{24 * days:g} hours"
    return f"{days:g} day{'' if days == 1 else 's'}"


def shown(subject: Subject, found: Found) -> Shown:
    """Return how a subject's figures are shown."""
    planned = {(cell.days, cell.spread, cell.members): cell for cell in subject.cells}

    def text(cell: Cell, way: str, column: Column) -> str:
        own = planned.get((cell.days, cell.spread, cell.members))
        values = [column.of(each) for each in found(own, way) if each] if own else []
        return _spread(column, values) if values else "not run"

    return text


def row(cell: Cell, way: str, found: Found) -> Iterator[str]:
    """Show every figure of one way in one cell, with its gain over alone; nothing if not run."""
    own = [each for each in found(cell, way) if each is not None]
    without = len(found(cell, way)) - len(own)
    if not own:
        if without:
            empty = " |" * (len(COLUMNS) - 1)
            yield f"| {cell.says} | {way} | too few clean rows in all {without} draws |{empty}"
        return
    alone = {each.seed: each for each in found(cell, WAYS[0]) if each}
    cells = []
    for column in COLUMNS:
        text = _spread(column, [column.of(each) for each in own])
        if way != WAYS[0]:
            gain, half = interval([column.of(each) - column.of(alone[each.seed]) for each in own])
            text += f", gain {gain:+{column.form}} ± {half:{column.form}}"
        cells.append(text)
    missing = f", {without} without" if without else ""
    yield f"| {cell.says} | {way} (n = {len(own)}{missing}) | {' | '.join(cells)} |"


def _spread(column: Column, values: Sequence[float]) -> str:
    mean, half = interval(values)
    form = column.form
    return f"{mean:{form}} [{max(mean - half, 0.0):{form}}, {mean + half:{form}}]"
