"""The quadratic programme of equation 5: moves in spreads, links between them, and limits.

    minimise  1/2 |z|^2   with   low <= z <= high   and   low <= A z <= high

A *move* z shifts one reading, in units of its channel's spread. A *link*, one row of A, is a chain
at one row, scaled to unit norm. Every limit belongs to a *group*, which is kept, sacrificed or
let go as a whole: a row of the record or, under the hardened policy, one anchor of a window rule.
"""

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from scipy.sparse import csr_array

from sluice.arrays import Bools, Floats, Ints
from sluice.lab.attacks.projection.demands import Limits
from sluice.telemetry import Record

__all__ = ["Bounds", "Choice", "Grade", "Links", "Moves", "Programme"]


class Grade(IntEnum):
    """Which limits hold for a group."""

    KEPT = 0
    SACRIFICED = 1  # it counts as violating, and the limits of sacrificed groups hold
    LET_GO = 2  # the limits of no rule hold


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """The limits for a group that is kept, one that is sacrificed and one that is let go."""

    kept: Limits
    sacrificed: Limits
    let_go: Limits

    def by(self, grade: Ints) -> Limits:
        """Return the limits that hold for these grades, one per limit."""
        choices = (self.kept, self.sacrificed, self.let_go)
        return Limits(
            low=np.choose(grade, [limits.low for limits in choices]),
            high=np.choose(grade, [limits.high for limits in choices]),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Moves:
    """The readings that may be moved: one entry per move."""

    channels: tuple[str, ...]
    row: Ints
    channel: Ints  # index into `channels`
    spread: Floats
    limits: Choice

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """The chains at their rows: one entry per link."""

    matrix: csr_array  # links x moves
    rules: tuple[str, ...]
    rule: Ints  # index into `rules`
    row: Ints
    group: Ints
    limits: Choice

    def __len__(self) -> int:
        return len(self.row)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """The limits for one choice of sacrifices."""

    moves: Limits
    links: Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class Programme:
    """The whole programme except the choice of sacrifices."""

    rows: int
    groups: int  # the rows, then the anchors that have a budget of their own
    moves: Moves
    links: Links

    def bounds(self, grade: Ints) -> Bounds:
        """Return the limits that hold for these grades of the groups."""
        return Bounds(
            moves=self.moves.limits.by(grade[self.moves.row]),
            links=self.links.limits.by(grade[self.links.group]),
        )

    def broken_links(self, moves: Floats, bounds: Bounds, *, beyond: float) -> Bools:
        """Return the links that lie more than `beyond` outside their limits."""
        return bounds.links.broken(self.links.matrix @ moves, beyond=beyond)

    def broken_groups(self, moves: Floats, bounds: Bounds, *, beyond: float) -> Bools:
        """Return the groups that have a broken limit."""
        broken = np.zeros(self.groups, bool)
        broken[self.moves.row[bounds.moves.broken(moves, beyond=beyond)]] = True
        broken[self.links.group[self.broken_links(moves, bounds, beyond=beyond)]] = True
        return broken

    def moved(self, record: Record, moves: Floats) -> Record:
        """Return the record with its readings moved; the same record if nothing moves."""
        at = np.flatnonzero(moves)
        if not at.size:
            return record
        columns = np.array([record.index(name) for name in self.moves.channels])
        values = record.values.copy(order="F")
        shift = moves[at] * self.moves.spread[at]
        values[self.moves.row[at], columns[self.moves.channel[at]]] += shift
        return record.with_values(values)
