"""What names tell of channels that no reading tells apart.

Plants of one design often keep the numbers of instruments, and change the letters or add a prefix:
P102 is PMP-102 elsewhere. A name is no evidence of what a channel measures, so it only chooses
among proposals that are otherwise equal, and never makes one surer.
"""

import re
from itertools import combinations

from sluice.telemetry import Record
from sluice.template.assignment import Assignment
from sluice.template.points import Template
from sluice.template.profile import twins_in

__all__ = ["likeness", "named_twins", "number_order"]

NUMBER_WEIGHT = 2.0  # plants keep the numbers of a design more often than its letters
LEAST = 1e-9  # a difference between likenesses
NOISE = 2e-3  # a gap in cost between twins that is noise
UNSURE = 0.06  # the same if only one of them is there: noise of two meters, at two plants


def likeness(one: str, other: str) -> float:
    """Return the share of the parts of two names that both have, from 0 to 1."""
    first, second = _parts(one), _parts(other)
    either = _weight(first | second)
    return _weight(first & second) / either if either else 0.0


def number_order(name: str) -> list[tuple[int, str]]:
    """Return a key by which P-9 comes before P-10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def named_twins(record: Record, template: Template, found: Assignment) -> Assignment:
    """Return the assignment with twins as their names say, or else in the order of their tags.

    Only twins are exchanged that nothing else, such as their spans, tells apart.
    """
    for group in twins_in(record):
        tags = sorted(
            (record.index(name) for name in group), key=lambda at: number_order(record.names[at])
        )
        for first, second in combinations(tags, 2):
            one, two = int(found.points[first]), int(found.points[second])
            twins = template.points[one].twins if min(one, two) >= 0 else ()
            if (
                template.names[two] in twins
                and _better(record, template, (first, second), one, two)
                and found.gaps(first)[two] <= NOISE
            ):
                found = _changed(found, {first: two, second: one})
    for at, tag in enumerate(record.names):
        found = _lone_twin(tag, at, template, found)
    return found


def _better(
    record: Record, template: Template, tags: tuple[int, int], first: int, second: int
) -> bool:
    """Return whether two twins' names fit better exchanged; if not worse, their order decides."""
    one, two = (
        likeness(record.names[tags[0]], template.names[point])
        - likeness(record.names[tags[1]], template.names[point])
        for point in (first, second)
    )
    return one < two - LEAST or (first > second and one < two + LEAST)


def _lone_twin(tag: str, at: int, template: Template, found: Assignment) -> Assignment:
    """Return the assignment with a tag at the free twin of its point, if its name says so.

    A plant may have only one of two meters of one flow.
    """
    own = int(found.points[at])
    twins = template.points[own].twins if own >= 0 else ()
    free = [place for name in twins if (place := template.names.index(name)) not in found.holder]
    if not free:
        return found
    best = max(free, key=lambda place: likeness(tag, template.names[place]))
    own_name, other = template.names[own], template.names[best]
    if likeness(tag, other) <= likeness(tag, own_name) + LEAST or found.gaps(at)[best] > UNSURE:
        return found
    return _changed(found, {at: best})


def _changed(found: Assignment, points: dict[int, int]) -> Assignment:
    changed = found.points.copy()
    for at, point in points.items():
        changed[at] = point
    return Assignment(found.single, found.pairs, changed)


def _parts(name: str) -> frozenset[str]:
    """Return the words and the numbers of a name: of `Unit2.LIT-0101` unit, 2, lit and 101."""
    found = re.findall(r"[^\W\d_]+|\d+", name.lower())
    return frozenset(str(int(part)) if part.isdigit() else part for part in found)


def _weight(parts: frozenset[str]) -> float:
    return sum(NUMBER_WEIGHT if part.isdigit() else 1.0 for part in parts)
