"""Rows that no readings can repair while the actuators stay fixed, found reading by reading.

Two couplings limit one flow, and their slabs do not overlap: with P101 on and MV201 closed, no
reading of FIT201 satisfies both. Or every reading of a rule is fixed.
"""

from dataclasses import dataclass

import numpy as np

from sluice.arrays import Bools, Ints
from sluice.lab.attacks.projection.assembly import Assembly, Cells
from sluice.lab.attacks.projection.demands import Demands, Limits
from sluice.lab.attacks.projection.outcome import Conflict
from sluice.lab.attacks.projection.programme import Grade

__all__ = ["Grading", "collisions", "in_order"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Grading:
    """The grade of each group, and the rules that collide where a grade was raised."""

    grade: Ints
    conflicts: tuple[Conflict, ...]


def collisions(assembly: Assembly) -> Grading:
    """Find rows on which slabs of one reading do not overlap, or no reading of a rule can move."""
    grade = np.zeros(assembly.programme.groups, np.int64)
    named: dict[int, set[str]] = {}
    slabs, links = assembly.cells.slabs, assembly.programme.links
    for row, column in np.argwhere(_no_room(assembly.cells, slabs.kept)):
        grade[row] = Grade.SACRIFICED
        named.setdefault(int(row), set()).update(_colliding(assembly, int(row), int(column)))
    grade[np.flatnonzero(_no_room(assembly.cells, slabs.sacrificed).any(axis=1))] = Grade.LET_GO
    stuck = np.diff(links.matrix.indptr) == 0
    no_moves = np.zeros(len(links))
    for limits, to in (
        (links.limits.kept, Grade.SACRIFICED),
        (links.limits.sacrificed, Grade.LET_GO),
    ):
        for link in np.flatnonzero(stuck & limits.broken(no_moves, beyond=0.0)):
            group = links.group[link]
            grade[group] = max(int(grade[group]), to)
            named.setdefault(int(links.row[link]), set()).add(links.rules[links.rule[link]])
    return Grading(
        grade=grade,
        conflicts=tuple(
            Conflict(row=row, rules=in_order(assembly.demands, rules))
            for row, rules in sorted(named.items())
        ),
    )


def in_order(demands: Demands, rules: set[str]) -> tuple[str, ...]:
    """Return rules in the order of their demands."""
    known = [slab.rule for slab in demands.slabs] + [chain.rule for chain in demands.chains]
    return tuple(rule for rule in known if rule in rules)


def _no_room(cells: Cells, limits: Limits) -> Bools:
    stuck = ~cells.free & limits.broken(cells.readings, beyond=0.0)
    return np.asarray((limits.low > limits.high) | stuck)


def _colliding(assembly: Assembly, row: int, column: int) -> set[str]:
    """Return the rules whose slab does not overlap another, or does not hold a fixed reading."""
    cells = assembly.cells
    slabs = [
        (slab.rule, float(slab.limits.low[row]), float(slab.limits.high[row]))
        for slab in assembly.demands.slabs
        if slab.channel == cells.channels[column]
    ]
    if not cells.free[row, column]:
        reading = float(cells.readings[row, column])
        return {rule for rule, low, high in slabs if not low <= reading <= high}
    return {
        rule
        for rule, low, high in slabs
        if any(low > other_high or high < other_low for _, other_low, other_high in slabs)
    }
