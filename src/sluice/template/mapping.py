"""Propose which tag of a plant is which point of a template.

A tag and a point are alike if they have the same role, convertible units, a similar range, a
similar course, and similar relations to the other tags and points. The first four compare a tag
with a point. The last compares pairs, and depends on the whole assignment: it is improved in steps,
each of which solves a linear assignment (Frank-Wolfe, as in Vogelstein et al., "Fast approximate
quadratic programming for graph matching", PLOS ONE 2015).

A proposal is never silent. Each match has a confidence from the cost of the cheapest change that
would undo it. Below `CONFIDENT` an operator must decide. Points that never changed in the reference
look alike; their confidence is that of a guess. So do *twins*: tags with the same reading in every
row, or tags of two meters of one flow that differ by noise only, proposed for points that are alike
in the same way in the reference. Whichever of them is which, the plant's statistic is the same, or
differs by noise. Only a person who knows the plant can tell. The proposal names them, and takes
them in the order of their tags: plants number instruments along the process. So a proposal does not
depend on the order of columns. If a plant has one of two twins, no reading tells which one it is.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from scipy.optimize import linear_sum_assignment

from sluice.arrays import Floats, Ints
from sluice.errors import RecordError, SettingError
from sluice.telemetry import Channel, Record, Role
from sluice.template.points import Point, Template
from sluice.template.profile import profile_of, twins_in
from sluice.template.units import conversion, same_dimension

__all__ = ["CONFIDENT", "Match", "Proposal", "propose"]

CONFIDENT = 0.9
UNALIKE = 1e3  # a pair that cannot be
UNMATCHED = 1.2  # the cost of a tag without a point, or of a point without a tag
OTHER_ROLE = 0.5  # a channel whose role is not known may be any measured point
NO_UNIT = 0.2  # a unit that is not known is no evidence
RANGE_WEIGHT = 0.4
QUALITY_WEIGHT = 10.0  # chemistry does not grow with a plant, and analysers drift
SHAPE_WEIGHT = 0.8
SPAN_WEIGHT = 0.2
GRAPH_WEIGHTS = (0.5, 1.0, 0.5, 0.5, 0.5)  # together, changes, later, next, ties of rules
GRAPH_WEIGHT = 3.0
STEPS = 40
MOST_SWAPS = 100
LEAST_GAIN = 1e-9
NOISE = 2e-3  # a gap in cost between twins that is noise
MARGIN = 0.06  # the gap in cost at which a proposal is right in 63 of 100 cases
LIKENESS = 0.5  # a cost below which a match is as good as matches of one plant with itself


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A tag, the point that it is proposed to be, and how sure that is."""

    tag: str
    point: str | None  # None: no point of the template is like it
    confidence: float  # from 0 to 1
    instead: str | None = None  # the next best point
    twins: tuple[str, ...] = ()  # points that no reading tells from this one, for a tag like it

    @property
    def confident(self) -> bool:
        """Whether the proposal may be taken without an operator's decision."""
        return self.point is not None and self.confidence >= CONFIDENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """A mapping of all tags of a plant, for an operator to confirm or to correct."""

    template: str
    matches: tuple[Match, ...]  # one per tag, in the record's order
    missing: tuple[str, ...]  # points that no tag is proposed for

    @property
    def undecided(self) -> tuple[Match, ...]:
        """The matches that an operator must decide."""
        return tuple(each for each in self.matches if each.point and not each.confident)


def propose(record: Record, template: Template, *, ties: Iterable[Iterable[str]] = ()) -> Proposal:
    """Propose a mapping of a clean record's tags; `ties` are channels that its own rules tie."""
    if not np.isclose(record.stride_s, template.stride_s, rtol=1e-6, atol=0):
        raise RecordError(
            f"record {record.name!r} has a row every {record.stride_s:g} s and template "
            f"{template.name!r} one every {template.stride_s:g} s; thin or resample the record"
        )
    single = _single_costs(record, template)
    if single.min() >= UNALIKE:
        raise SettingError(
            f"no channel of {record.name!r} has the role and unit of a point of template "
            f"{template.name!r}; declare roles and units in the plant file, or it is another kind "
            "of plant"
        )
    own, other = profile_of(record).graphs, template.profile.graphs
    pairs = _Pairs(
        np.concatenate((own, _ties(record.names, ties)[np.newaxis])),
        np.concatenate((other, _ties_of(template)[np.newaxis])),
    )
    return _proposal(record, template, _in_order(record, template, _assigned(single, pairs)))


def _single_costs(record: Record, template: Template) -> Floats:
    """Return how unlike each tag and each point are, by themselves: tags x points."""
    mine, theirs = profile_of(record), template.profile
    costs = np.empty((len(record.channels), len(template.points)))
    for at, channel in enumerate(record.channels):
        for place, point in enumerate(template.points):
            costs[at, place] = _alone(channel, point, mine.usual[at])
    shapes = np.abs(mine.shapes[:, np.newaxis] - theirs.shapes[np.newaxis]).mean(axis=2)
    drifting = np.array([channel.role is Role.QUALITY for channel in record.channels])
    shapes[drifting] /= 2
    still = mine.moving[:, np.newaxis] != theirs.moving[np.newaxis]
    costs += SHAPE_WEIGHT * shapes + np.where(still, SHAPE_WEIGHT, 0.0)
    return costs


def _alone(channel: Channel, point: Point, usual: Floats) -> float:
    """Return the cost of role, unit, range and span."""
    cost = 0.0
    if channel.role is not point.role:
        if channel.role is not Role.OTHER or point.role.discrete:
            return UNALIKE
        cost += OTHER_ROLE
    if channel.role.discrete:
        codes = len(channel.codes.legal) if channel.codes else 0
        return cost + SPAN_WEIGHT * abs(codes - len(point.codes.legal if point.codes else ()))
    fits = same_dimension(channel.unit, point.unit)
    if fits is False:
        return UNALIKE
    if fits is None:
        return cost + (0.0 if channel.unit == point.unit == "" else NO_UNIT)
    converted = conversion(channel.unit, point.unit)
    readings = converted.factor * usual + converted.offset
    if point.span and channel.span:
        widths = converted.factor * (channel.span.high - channel.span.low)
        cost += SPAN_WEIGHT * abs(np.log(widths / (point.span.high - point.span.low)))
    weight = QUALITY_WEIGHT if point.role is Role.QUALITY else 1.0
    return float(cost + weight * RANGE_WEIGHT * _apart(readings, np.array(point.usual)))


def _apart(readings: Floats, usual: Floats) -> float:
    """Return how far two ranges are apart: in logarithms, because plants differ in size."""
    floor = 0.02 * max(float(np.abs(usual).max()), float(np.abs(readings).max()), 1e-9)
    sizes = [np.log(np.maximum(np.abs(each), floor)) for each in (readings, usual)]
    return min(float(np.abs(sizes[0] - sizes[1]).mean()), 2.0)


def _ties(names: tuple[str, ...], ties: Iterable[Iterable[str]]) -> Floats:
    matrix = np.zeros((len(names), len(names)))
    place = {name: at for at, name in enumerate(names)}
    for tied in ties:
        known = [place[name] for name in tied if name in place]
        matrix[np.ix_(known, known)] = 1.0
    np.fill_diagonal(matrix, 0.0)
    return matrix


def _ties_of(template: Template) -> Floats:
    return _ties(
        template.names,
        [(point.name, name) for point in template.points for name in point.connects],
    )


class _Pairs:
    """How unlike pairs of tags and pairs of points are."""

    def __init__(self, own: Floats, other: Floats) -> None:
        tied = bool(own[-1].any() and other[-1].any())  # ties count if both sides know them
        weights = [*GRAPH_WEIGHTS[:-1], GRAPH_WEIGHTS[-1] if tied else 0.0]
        self._graphs = [
            (weight, one, two)
            for weight, one, two in zip(weights, own, other, strict=True)
            if weight
        ]

    def costs(self, assigned: Floats) -> Floats:
        """Return tags x points: the mean squared difference of their pairs, if all others stay."""
        total = np.zeros(assigned.shape)
        for weight, one, two in self._graphs:
            rows, columns = assigned.sum(axis=1), assigned.sum(axis=0)
            for mine, theirs in ((one, two), (one.T, two.T)):
                total += weight * (
                    (mine**2 @ rows)[:, np.newaxis]
                    + (theirs**2 @ columns)[np.newaxis]
                    - 2 * mine @ assigned @ theirs.T
                )
        scaled: Floats = GRAPH_WEIGHT * total / max(float(assigned.sum()), 1.0)
        return scaled

    def of(self, points: Ints, tag: int, point: int, *, without: int = -1) -> float:
        """Return what the pairs of one tag cost if it is this point, and the others stay."""
        others = np.flatnonzero(points >= 0)
        others = others[(others != tag) & (others != without)]
        held = points[others]
        total = 0.0
        for weight, one, two in self._graphs:
            total += weight * float(
                ((one[tag, others] - two[point, held]) ** 2).sum()
                + ((one[others, tag] - two[held, point]) ** 2).sum()
            )
        return GRAPH_WEIGHT * total / max(len(others) + 1, 1)


def _assigned(single: Floats, pairs: _Pairs) -> "_Assignment":
    """Return the best assignment found."""
    place = _matching(single)
    for step in range(STEPS):
        target = _matching(single + pairs.costs(place))
        place = place + (target - place) / (1 + step / 2)
    chosen = _matching(single + pairs.costs(place))
    points = np.where(chosen.any(axis=1), chosen.argmax(axis=1), -1)
    assignment = _Assignment(single, pairs, points)
    for _ in range(MOST_SWAPS):
        improved = assignment.improved()
        if improved is None:
            break
        assignment = improved
    return assignment


class _Assignment:
    """Each tag's point (-1: none), and what changes of it cost."""

    def __init__(self, single: Floats, pairs: _Pairs, points: Ints) -> None:
        self.single, self.pairs, self.points = single, pairs, points
        self.holder = {int(point): tag for tag, point in enumerate(points) if point >= 0}

    def cost(self, at: int) -> float:
        """Return what a tag's match costs by itself and by its pairs."""
        own = int(self.points[at])
        return float(self.single[at, own]) + self.pairs.of(self.points, at, own)

    def gaps(self, at: int) -> Floats:
        """Return, per point, how much dearer the whole assignment gets if a tag takes it."""
        own = int(self.points[at])
        gaps = np.full(self.single.shape[1], np.inf)
        for point in np.flatnonzero(self.single[at] < UNALIKE):
            if point == own:
                continue
            rival = self.holder.get(int(point))
            if rival is None:
                gaps[point] = self._moved(at, int(point))
            elif self.single[rival, own] < UNALIKE:
                gaps[point] = self._swapped(at, rival)
        return gaps

    def replaced(self, at: int) -> float:
        """Return how much dearer it gets if a tag without a point takes this one's point."""
        own = int(self.points[at])
        free = [tag for tag in np.flatnonzero(self.points < 0) if self.single[tag, own] < UNALIKE]
        before = self.cost(at)
        return (
            min(
                (
                    float(self.single[tag, own])
                    + self.pairs.of(self.points, int(tag), own, without=at)
                    for tag in free
                ),
                default=np.inf,
            )
            - before
        )

    def improved(self) -> "_Assignment | None":
        """Return the assignment after the exchange that lowers its cost most; None: none does."""
        best, found = -LEAST_GAIN, None
        for at in np.flatnonzero(self.points >= 0):
            gaps = self.gaps(int(at))
            point = int(gaps.argmin())
            if gaps[point] < best:
                best, found = float(gaps[point]), (int(at), point)
        if found is None:
            return None
        tag, point = found
        points = self.points.copy()
        rival = self.holder.get(point)
        if rival is not None:
            points[rival] = points[tag]
        points[tag] = point
        return _Assignment(self.single, self.pairs, points)

    def _moved(self, at: int, point: int) -> float:
        moved = float(self.single[at, point]) + self.pairs.of(self.points, at, point, without=at)
        return moved - self.cost(at)

    def _swapped(self, at: int, rival: int) -> float:
        after = self.points.copy()
        after[at], after[rival] = self.points[rival], self.points[at]
        single = sum(
            float(self.single[tag, after[tag]] - self.single[tag, self.points[tag]])
            for tag in (at, rival)
        )
        now, then = (
            sum(self.pairs.of(points, tag, int(points[tag])) for tag in (at, rival))
            for points in (self.points, after)
        )
        return single + then - now


def _matching(costs: Floats) -> Floats:
    """Return the cheapest matching as a matrix; every tag and point may stay without a partner."""
    tags, points = costs.shape
    square = np.full((tags + points, tags + points), UNALIKE)
    square[:tags, :points] = costs
    square[:tags, points:][np.diag_indices(tags)] = UNMATCHED
    square[tags:, :points][np.diag_indices(points)] = UNMATCHED
    square[tags:, points:] = 0.0
    rows, columns = linear_sum_assignment(square)
    matrix = np.zeros(costs.shape)
    both = (rows < tags) & (columns < points)
    matrix[rows[both], columns[both]] = 1.0
    return matrix


def _in_order(record: Record, template: Template, found: "_Assignment") -> "_Assignment":
    """Return the assignment with twins in order: the first tag by its number is the first point.

    Only twins are exchanged that nothing else, such as their spans, tells apart.
    """
    for group in twins_in(record):
        tags = sorted(
            (record.index(name) for name in group), key=lambda at: _by_number(record.names[at])
        )
        for first, second in combinations(tags, 2):
            points = found.points.copy()
            one, two = int(points[first]), int(points[second])
            twins = template.points[one].twins if min(one, two) >= 0 else ()
            if one > two and template.names[two] in twins:
                points[first], points[second] = two, one
                if found.gaps(first)[two] <= NOISE:
                    found = _Assignment(found.single, found.pairs, points)
    return found


def _by_number(tag: str) -> list[tuple[int, str]]:
    """Return a key by which P-9 comes before P-10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", tag)]


def _proposal(record: Record, template: Template, found: "_Assignment") -> Proposal:
    matches = []
    alike = _exchangeable(record, template, found)
    for at, name in enumerate(record.names):
        own = int(found.points[at])
        if own < 0:
            matches.append(Match(tag=name, point=None, confidence=0.0))
            continue
        gaps = found.gaps(at)
        nearest = min(float(gaps.min()), found.replaced(at), 2 * UNMATCHED - found.cost(at))
        likeness = float(np.exp(-max(found.cost(at) - LIKENESS, 0.0)))
        confidence = likeness * (1 - float(np.exp(-max(nearest, 0.0) / MARGIN)))
        second = template.names[int(gaps.argmin())] if np.isfinite(gaps.min()) else None
        matches.append(
            Match(
                tag=name,
                point=template.names[own],
                confidence=confidence,
                instead=second,
                twins=alike.get(name, ()),
            )
        )
    missing = tuple(name for at, name in enumerate(template.names) if at not in found.holder)
    return Proposal(template=template.name, matches=tuple(matches), missing=missing)


def _exchangeable(
    record: Record, template: Template, found: "_Assignment"
) -> dict[str, tuple[str, ...]]:
    """Return, per tag, the points that it may be as well: twins of its point.

    Such a twin is the point of a tag that is this tag's twin, or a point that no tag is or can be.
    """
    proposed = {
        name: template.points[int(found.points[at])]
        for at, name in enumerate(record.names)
        if found.points[at] >= 0
    }
    possible = np.any(found.single[found.points < 0] < UNALIKE, axis=0)
    lacking = {
        name
        for at, name in enumerate(template.names)
        if at not in found.holder and not possible[at]
    }
    group_of = {tag: group for group in twins_in(record) for tag in group}
    alike: dict[str, tuple[str, ...]] = {}
    for tag, point in proposed.items():
        others = {proposed[each].name for each in group_of.get(tag, ()) if each in proposed}
        alike[tag] = tuple(name for name in point.twins if name in others | lacking)
    return alike
