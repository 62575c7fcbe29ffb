"""Propose which tag of a plant is which point of a template.

A tag and a point are alike if they have the same role, convertible units, a similar range, a
similar course, and similar relations to the other tags and points. The first four compare a tag
with a point. The last compares pairs, and depends on the whole assignment (`assignment.py`).

A proposal is never silent. Each match has a confidence from the cost of the cheapest change that
would undo it. Below `CONFIDENT` an operator must decide. Points that never changed in the reference
look alike; their confidence is that of a guess. So do *twins*: tags with the same reading in every
row, or tags of two meters of one flow that differ by noise only, proposed for points that are alike
in the same way in the reference. Whichever of them is which, the plant's statistic is the same, or
differs by noise. Only a person who knows the plant can tell. The proposal names them.

Where readings cannot tell, names choose, and then the state of what never moves. Twins whose names
do not tell either are taken in the order of their tags: plants number instruments along the
process. So a proposal does not depend on the order of columns. None of this adds to a confidence:
another plant may have other names, and its standby pump may be the one that runs here.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from sluice.arrays import Bools, Floats
from sluice.errors import RecordError, SettingError
from sluice.telemetry import Channel, Codes, Record, Role
from sluice.template.assignment import UNALIKE, UNMATCHED, Assignment, Pairs, assign
from sluice.template.naming import likeness, named_twins
from sluice.template.points import Point, Template
from sluice.template.profile import profile_of, twins_in
from sluice.template.units import conversion, same_dimension

__all__ = ["CONFIDENT", "Match", "Proposal", "propose"]

CONFIDENT = 0.9
OTHER_ROLE = 0.5  # a channel whose role is not known may be any measured point
NO_UNIT = 0.2  # a unit that is not known is no evidence
RANGE_WEIGHT = 0.4
QUALITY_WEIGHT = 10.0  # chemistry does not grow with a plant, and analysers drift
SHAPE_WEIGHT = 0.8
SPAN_WEIGHT = 0.2
NAME_HINT = 4e-3  # what the same name is worth, among points that never move
STATE_HINT = 1e-3  # what the same state is worth there
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
    _demand_stride(record, template)
    single = _single_costs(record, template)
    if single.min() >= UNALIKE:
        raise SettingError(
            f"no channel of {record.name!r} has the role and unit of a point of template "
            f"{template.name!r}; declare roles and units in the plant file, or it is another kind "
            "of plant"
        )
    own, other = profile_of(record).graphs, template.profile.graphs
    pairs = Pairs(
        np.concatenate((own, _ties(record.names, ties)[np.newaxis])),
        np.concatenate((other, _ties_of(template)[np.newaxis])),
    )
    hinted = assign(single - _hints(record, template, possible=single < UNALIKE), pairs)
    found = Assignment(single, pairs, hinted.points)  # so that no hint adds to a confidence
    return _proposal(record, template, named_twins(record, template, found))


def _demand_stride(record: Record, template: Template) -> None:
    if np.isclose(record.stride_s, template.stride_s, rtol=1e-6, atol=0):
        return
    cure = "thin the record (--every)"
    if record.stride_s > template.stride_s:
        cure = "export more rows of the plant, or agree on a template with fewer"
    raise RecordError(
        f"record {record.name!r} has a row every {record.stride_s:g} s and template "
        f"{template.name!r} one every {template.stride_s:g} s; {cure}"
    )


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


def _hints(record: Record, template: Template, *, possible: Bools) -> Floats:
    """Return what name and state say of tags and points that never move: tags x points."""
    mine = profile_of(record)
    hints = np.zeros(possible.shape)
    for at, place in np.argwhere(possible):
        point = template.points[place]
        if not mine.moving[at] and point.still:
            channel = record.channels[at]
            same = _state(channel.codes, mine.usual[at]) == _state(point.codes, point.usual)
            hints[at, place] = NAME_HINT * likeness(channel.name, point.name) + STATE_HINT * same
    return hints


def _state(codes: Codes | None, usual: Sequence[float]) -> bool | None:
    """Return whether an actuator that never moves is on; None: it is no actuator."""
    return None if codes is None else round(usual[1]) != codes.off


def _proposal(record: Record, template: Template, found: Assignment) -> Proposal:
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
    record: Record, template: Template, found: Assignment
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
