"""Rows that no readings can mend while the actuators stand, found reading by reading.

Two couplings bind one flow, and their slabs do not meet: with P101 on and MV201 closed, nothing
that FIT201 could read satisfies both. Or all that a rule reads is fixed.
"""

from dataclasses import dataclass

import numpy as np

from sluice.arrays import Bools, Ints
from sluice.lab.attacks.projection.assembly import Assembly, Cells
from sluice.lab.attacks.projection.demands import Demands, Limits
from sluice.lab.attacks.projection.outcome import Conflict
from sluice.lab.attacks.projection.programme import Grade

__all__ = ["Found", "collisions", "in_order"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Grades that leave room for moves, and which rules collide where one was raised."""

    grade: Ints
    conflicts: tuple[Conflict, ...]


def collisions(assembly: Assembly) -> Found:
    """Find the rows on which slabs of one reading do not meet, or nothing that is read can move."""
    grade = np.zeros(assembly.programme.groups, np.int64)
    named: dict[int, set[str]] = {}
    slabs, links = assembly.cells.slabs, assembly.programme.links
    for row, column in np.argwhere(_no_room(assembly.cells, slabs.kept)):
        grade[row] = Grade.SACRIFICED
        named.setdefault(int(row), set()).update(_colliding(assembly, int(row), int(column)))
    grade[np.flatnonzero(_no_room(assembly.cells, slabs.sacrificed).any(axis=1))] = Grade.LET_GO
    stuck = np.diff(links.matrix.indptr) == 0
    nothing = np.zeros(len(links))
    for limits, to in (
        (links.limits.kept, Grade.SACRIFICED),
        (links.limits.sacrificed, Grade.LET_GO),
    ):
        for link in np.flatnonzero(stuck & limits.broken(nothing, beyond=0.0)):
            group = links.group[link]
            grade[group] = max(int(grade[group]), to)
            named.setdefault(int(links.row[link]), set()).add(links.rules[links.rule[link]])
    return Found(
        grade=grade,
        conflicts=tuple(
            Conflict(row=row, rules=in_order(assembly.demands, rules))
            for row, rules in sorted(named.items())
        ),
    )


def in_order(demands: Demands, rules: set[str]) -> tuple[str, ...]:
    """Return rules in the order they are demanded in."""
    known = [slab.rule for slab in demands.slabs] + [chain.rule for chain in demands.chains]
    return tuple(rule for rule in known if rule in rules)


def _no_room(cells: Cells, limits: Limits) -> Bools:
    stuck = ~cells.free & limits.broken(cells.readings, beyond=0.0)
    return np.asarray((limits.low > limits.high) | stuck)


def _colliding(assembly: Assembly, row: int, column: int) -> set[str]:
    """Name the rules whose slab misses another's, or a reading that is fixed."""
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
