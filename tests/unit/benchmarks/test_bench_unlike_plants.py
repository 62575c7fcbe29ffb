"""Plants of other kinds, in small: every way on the same rows, and their page."""

from dataclasses import replace

import numpy as np
import pytest

from benchmarks import unlike_plants
from benchmarks.unlike_plants import CONTROL, OTHERS, WAYS, Assets, Kind, Site, measure, page
from benchmarks.worth.ways import Measured
from sluice.lab.plants import simulate
from sluice.telemetry import Record


def site(seed: int) -> Site:
    clean = simulate("line", seed=seed, days=2)
    return Site(
        few=clean.rows(0, 500),
        clean=clean.rows(0, 2_000),
        held=clean.rows(2_000, len(clean)),
        attacked=simulate("line", seed=seed + 50, days=2, attacks=True),
    )


KINDS = tuple(Kind(name=name, says="simulated", draw=site) for name in ("one", "two"))


@pytest.fixture(scope="module")
def lines() -> list[Measured]:
    sites = {kind.name: kind.draw(seed) for seed, kind in enumerate(KINDS)}
    lent = {name: unlike_plants._lent(each.clean, 0) for name, each in sites.items()}
    return [
        line
        for name, own in sites.items()
        for line in measure(name, own, [lent[other] for other in sites if other != name], seed=0)
    ]


def test_every_way_is_measured_on_each_plant(lines: list[Measured]) -> None:
    assert [line.way for line in lines] == [*WAYS, *WAYS]
    assert all(0 < line.average_precision <= 1 for line in lines)
    by_way = {line.way: line.average_precision for line in lines[: len(WAYS)]}
    assert by_way[OTHERS[0]] != by_way[CONTROL]


def test_numbers_of_assets_do_not_depend_on_units() -> None:
    """A plant in other units has the same numbers, so it can be compared with any other."""
    clean = simulate("line", seed=0, days=1)
    values = np.array(clean.values)
    for at, channel in enumerate(clean.channels):
        if not channel.role.discrete:
            values[:, at] *= 3.6
    other: Record = replace(clean, values=values)
    for one, two in zip(
        Assets.of(clean).numbers(clean), Assets.of(other).numbers(other), strict=True
    ):
        assert one[:2] == two[:2]
        np.testing.assert_allclose(one[2], two[2], atol=1e-6)


def test_the_page_says_whether_other_kinds_help(lines: list[Measured]) -> None:
    draws = [replace(line, seed=seed) for seed in (100, 101) for line in lines]
    text = page(draws, KINDS)
    assert "2 draws each (seeds 100 to 101)" in text
    assert "| one | no data of others (n = 2) |" in text
    better = [
        replace(line, average_precision=0.9 + 0.001 * (line.subject == "two"))
        if line.way in OTHERS
        else replace(line, average_precision=0.1)
        for line in draws
    ]
    assert "**Plants of other kinds help**" in page(better, KINDS)
    same = [replace(line, average_precision=0.5) for line in draws]
    assert "**Plants of other kinds do not help**" in page(same, KINDS)
