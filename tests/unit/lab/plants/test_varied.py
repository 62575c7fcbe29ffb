"""Varied sites: other tags, units, sizes and sensors, and the same water."""

import numpy as np
import pytest

from sluice.errors import SettingError
from sluice.lab.plants import varied_site
from sluice.telemetry import Role


@pytest.mark.parametrize("plant", ["line", "treatment"])
def test_sites_differ_as_they_should(plant: str) -> None:
    days = 0.05
    sites = {number: varied_site(plant, number, seed=1, days=days) for number in range(1, 6)}
    units = {
        number: {(c.role, c.unit) for c in site.record.channels} for number, site in sites.items()
    }
    assert units[1] != units[2] == units[5]
    assert len(sites[3].record.names) == len(sites[1].record.names) - 1
    assert len(sites[4].record.names) == len(sites[1].record.names) + 1
    assert len(sites[4].reference) == len(sites[1].reference)
    assert len({site.record.names for site in sites.values()}) == 5


def test_the_same_seed_gives_the_same_site() -> None:
    first, second = (varied_site("line", 7, seed=2, days=1) for _ in range(2))
    assert first.record.names == second.record.names
    assert np.array_equal(first.record.values, second.record.values)


def test_other_units_are_the_same_water() -> None:
    site = varied_site("line", 2, seed=1, days=1)
    levels = [c for c in site.record.channels if c.role is Role.LEVEL]
    assert {c.unit for c in levels} == {"cm"}
    assert all(50 < np.median(site.record.column(c.name)) < 1_300 for c in levels)


@pytest.mark.parametrize(
    ("plant", "site", "spread"), [("network:Net1", 1, 0.1), ("line", 0, 0.1), ("line", 1, 0.5)]
)
def test_what_is_no_site_is_refused(plant: str, site: int, spread: float) -> None:
    with pytest.raises(SettingError, match="varied sites are plants|sites spread by"):
        varied_site(plant, site, seed=0, days=1, spread=spread)


@pytest.mark.parametrize("site", [1, 3, 4, 5])
def test_a_site_keeps_its_tags_in_a_longer_record(site: int) -> None:
    short, long = (varied_site("line", site, seed=2, days=days) for days in (1, 2))
    assert short.reference == long.reference
    assert short.record.names == long.record.names
