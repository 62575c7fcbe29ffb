"""Names choose only among proposals that readings cannot tell apart, and make none surer."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import pytest

from sluice.lab.plants import simulate
from sluice.telemetry import Record
from sluice.template import CONFIDENT, Match, Template, derive_template, propose
from sluice.template.naming import likeness, number_order

ON = ("P402", "UV401", "P501")  # they run from the first row to the last


@pytest.fixture(scope="module")
def reference() -> Record:
    return simulate("treatment", seed=50, days=0.6).without_first(6 * 3_600.0).every(10)


@pytest.fixture(scope="module")
def template(reference: Record) -> Template:
    return derive_template(reference)


@pytest.fixture(scope="module")
def still(template: Template) -> tuple[str, ...]:
    names = tuple(point.name for point in template.points if point.still)
    assert set(ON) < set(names)
    return names


def shuffled(record: Record, tags: Mapping[str, str]) -> Record:
    """Return the record with other tags, and its columns in another order."""
    channels = tuple(replace(each, name=tags.get(each.name, each.name)) for each in record.channels)
    order = np.random.default_rng(0).permutation(len(channels))
    return replace(record, channels=channels).select([channels[at].name for at in order])


def proposed(record: Record, tags: Mapping[str, str], template: Template) -> dict[str, Match]:
    """Return what is proposed for each channel of the reference, under another tag."""
    own = {tags.get(name, name): name for name in record.names}
    return {own[match.tag]: match for match in propose(shuffled(record, tags), template).matches}


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [
        ("P102", "P102", 1.0),
        ("P102", "p-0102", 1.0),
        ("PMP-102", "P102", 0.5),
        ("Unit2.LIT-101", "LIT101", 0.5),
        ("P102", "P103", 0.2),
        ("XS-417", "P102", 0.0),
        ("--", "", 0.0),
    ],
)
def test_names_share_words_and_numbers(one: str, other: str, share: float) -> None:
    assert likeness(one, other) == pytest.approx(share)
    assert likeness(other, one) == likeness(one, other)


def test_numbers_are_ordered_as_numbers() -> None:
    assert sorted(["P-10", "P-9", "P-9a"], key=number_order) == ["P-9", "P-9a", "P-10"]


def test_names_choose_among_points_that_never_move(
    reference: Record, template: Template, still: tuple[str, ...]
) -> None:
    tags = {name: f"N-{name.replace('P', 'PMP-')}" for name in still}
    named = proposed(reference, tags, template)
    assert {name: named[name].point for name in still} == dict(zip(still, still, strict=True))
    assert max(named[name].confidence for name in still) < CONFIDENT / 10


def test_a_state_chooses_where_no_name_does(
    reference: Record, template: Template, still: tuple[str, ...]
) -> None:
    tags = {name: f"XS-{chr(ord('a') + at)}" for at, name in enumerate(still)}
    named = proposed(reference, tags, template)
    assert {named[name].point for name in ON} == set(ON)


def test_a_name_counts_more_than_a_state(reference: Record, template: Template) -> None:
    """At this plant the standby pump is on duty."""
    values = np.array(reference.values)
    duty, standby = reference.index("P501"), reference.index("P502")
    values[:, [duty, standby]] = values[:, [standby, duty]]
    named = proposed(reference.with_values(values), {}, template)
    assert (named["P501"].point, named["P502"].point) == ("P501", "P502")
    assert not named["P501"].confident


def test_names_do_not_change_what_readings_tell(
    reference: Record, template: Template, still: tuple[str, ...]
) -> None:
    """Each tag has the name of another point; what moves is found by its readings all the same."""
    names = reference.names
    lies = dict(zip(names, (*names[1:], names[0]), strict=True))
    plain = {name: f"tag-{chr(ord('a') + at)}" for at, name in enumerate(names)}
    lied, told = (proposed(reference, tags, template) for tags in (lies, plain))
    twins = {point.name for point in template.points if point.twins}
    for name in set(names) - set(still) - twins:
        assert lied[name].point == told[name].point == name
        assert lied[name].confidence == pytest.approx(told[name].confidence)
    assert not [match for name, match in lied.items() if match.point != name and match.confident]


def test_names_choose_among_twins(reference: Record, template: Template) -> None:
    assert template.point("MV301").twins == ("MV303",)
    tags = {"MV301": "ZV-301", "MV303": "XV-303"}  # the later number comes first in order
    named = proposed(reference, tags, template)
    assert (named["MV301"].point, named["MV303"].point) == ("MV301", "MV303")


@pytest.mark.parametrize("lacking", ["FIT401", "FIT501"])
def test_a_name_chooses_where_a_plant_has_one_of_two_twins(
    template: Template, lacking: str
) -> None:
    """The two meter one flow; the plant has one of them, under the number of either."""
    own = {"FIT401": "FIT501", "FIT501": "FIT401"}[lacking]
    assert template.point(own).twins == (lacking,)
    other = simulate("treatment", seed=51, days=0.6).without_first(6 * 3_600.0).every(10)
    for number in ("401", "501"):
        named = proposed(other.without(lacking), {own: f"N-FT-{number}"}, template)
        assert named[own].point == f"FIT{number}"
        assert not named[own].confident
