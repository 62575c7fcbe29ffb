"""The page docs/results/cold-start.md: answers first, then what is compared, then every cell."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from benchmarks.cold_start.answers import Drop, Interval, month_answers, site_answers
from benchmarks.cold_start.draws import SUBJECTS, Cell, Subject
from benchmarks.cold_start.tables import HEADING, grids, row, shown
from benchmarks.cold_start.ways import ALONE, BORROWED, FITTED, WAYS
from benchmarks.worth.page import interval
from benchmarks.worth.ways import Measured

__all__ = ["COMPARED", "EVERY", "HEAD", "Line", "about", "page", "title"]

HEAD = """# The first days of a plant

Written by `python -m benchmarks cold-start`; do not edit. A plant has just joined and has a few
days of clean rows. How much of its clean time is it in alarm, and how well does it find attacks,
with a detector of its own and with one of the federation? The answers come first, then
[what is compared](#what-is-compared), then [every cell](#every-cell).
"""
COMPARED = """
## What is compared

The plant gets a `moments` detector in five ways, each for one false alarm a week:

- **alone**: from its own rows. The first 70 % fit it, the others set the threshold. If they hold
  too few separate peaks for a rate, the threshold is their highest score.
- **alone, threshold of fitted rows**: from its own rows, but all of them fit the detector and the
  same rows set the threshold. It shows what keeping rows back is worth.
- **vote, borrowed**: one detector of each member's statistic; an alarm needs half of them. Each
  member lends the tail of its own score, which sets the threshold of its own voter
  ([how](../explanation/cold-start.md)). The plant's few rows give the usual score of each voter.
- **vote, borrowed, 2 lie**: the same, but two members (one of three) lend the tail that votes most
  often.
- **vote, own thresholds**: the same voters, but the plant's few rows set the threshold of each.
  Where they are too few for that, there is no such detector, and the table says so.

Rules of the plant are in none of these detectors. Every member is honest, except for the tails of
those who lie. A figure is the mean over draws with its 95 % interval (Student's t). *Gain* is the
difference to alone on the same draws, with its interval.
"""
EVERY = """
## Every cell

These tables show all five ways, with four figures each and their gain over alone.
"""


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
    studies = [_Study(subject, lines) for subject in SUBJECTS]
    parts = [HEAD]
    for study in studies:
        parts += [f"## {title(study.subject)}\n", *study.answers()]
    parts.append(COMPARED)
    for study in studies:
        if study.lines:
            parts += [f"### {title(study.subject)}\n", about(study.subject, study.seeds)]
    parts.append(EVERY)
    for study in studies:
        if study.lines:
            parts += [f"### All of {study.subject.name}\n", HEADING, *study.rows(), ""]
    return "\n".join(parts).rstrip("\n") + "\n"


def title(subject: Subject) -> str:
    """Return the name of a subject as a heading."""
    return f"{subject.name[0].upper()}{subject.name[1:]}"


def about(subject: Subject, seeds: Sequence[int]) -> str:
    """Return what the draws of a subject are."""
    return f"{subject.says}. Draws {min(seeds)} to {max(seeds)}.\n"


class _Study:
    """One subject and what is measured of it."""

    def __init__(self, subject: Subject, lines: Sequence[Line]) -> None:
        self.subject = subject
        self.lines = [line for line in lines if line.subject == subject.name]
        self.seeds = sorted({line.seed for line in self.lines})
        measured = {line.cell for line in self.lines}
        self.cells = [cell for cell in subject.cells if cell in measured]

    def answers(self) -> Iterator[str]:
        """Say which targets hold, and show the grid."""
        if not self.lines:
            yield f"**Not run yet:** {self.subject.name}.\n"
            return
        yield from self._months() if self.subject is SUBJECTS[0] else self._sites()
        done = len({(line.cell, line.seed) for line in self.lines})
        planned = sum(cell.draws for cell in self.subject.cells)
        if done < planned:
            yield f"\n**Not complete:** {done} of {planned} draws are measured."
        yield from grids(self.cells, shown(self.subject, self.found))
        yield ""

    def rows(self) -> Iterator[str]:
        """Show every cell in every way."""
        for cell in self.cells:
            for way in WAYS:
                yield from row(cell, way, self.found)

    def found(self, cell: Cell, way: str) -> list[Measured | None]:
        """Return what a way gives in the draws of a cell."""
        return [line.found for line in self.lines if (line.cell, line.way) == (cell, way)]

    def _months(self) -> Iterator[str]:
        most = max(cell.members for cell in self.cells)
        own = [cell for cell in self.cells if cell.members == most]
        first = min(own, key=lambda cell: cell.days)
        ways = (BORROWED[0], ALONE, FITTED)
        yield from month_answers(
            days=first.days,
            members=most,
            in_alarm={way: self._in_alarm(first, way) for way in ways},
            gains={way: min(self._gain(cell, way)[0] for cell in own) for way in (ALONE, FITTED)},
        )

    def _sites(self) -> Iterator[str]:
        quieter, drops = {}, {}
        for way in (ALONE, FITTED):
            quieter[way] = sum(
                self._in_alarm(cell, BORROWED[0])[0] <= self._in_alarm(cell, way)[0]
                for cell in self.cells
            )
            gains = [(cell, self._gain(cell, way)) for cell in self.cells]
            drops[way] = [Drop(days=cell.days, gain=gain) for cell, gain in gains if gain[0] < 0]
        yield from site_answers(cells=len(self.cells), quieter=quieter, drops=drops)

    def _in_alarm(self, cell: Cell, way: str) -> Interval:
        """Return the mean share of clean time in alarm in percent, and half of its interval."""
        return interval([100 * each.time_in_alarm for each in self.found(cell, way) if each])

    def _gain(self, cell: Cell, over: str) -> Interval:
        """Return the gain in average precision of borrowed thresholds on the same draws."""
        local = {each.seed: each for each in self.found(cell, over) if each}
        borrowed = [each for each in self.found(cell, BORROWED[0]) if each]
        return interval(
            [each.average_precision - local[each.seed].average_precision for each in borrowed]
        )
