"""The figures the paper's implementation recorded on BATADAL, digit by digit."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sluice.admission.gate import Gate
from sluice.admission.policy import PaperPolicy
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile
from sluice.lab.attacks.fabrications import FABRICATIONS
from sluice.lab.audits.coverage import coverage
from sluice.lab.audits.separation import separation
from sluice.telemetry.reading import read_record
from sluice.telemetry.record import Record

pytestmark = pytest.mark.data
PlantData = Callable[..., Path]

FIT_ROWS = 4_380
EXPERT, MINED = Profile.PAPER_EXPERT, Profile.PAPER_GENERIC


@pytest.fixture
def clean(plant_data: PlantData) -> Record:
    return read_record(plant_data("batadal", "dataset03.csv"))


@pytest.fixture
def pool(clean: Record) -> Record:
    return clean.rows(FIT_ROWS, len(clean))


def gate_of(clean: Record, profile: Profile) -> Gate:
    fit = clean.rows(0, FIT_ROWS)
    return Gate.of(mine(fit, fit, profile=profile), PaperPolicy())


@pytest.mark.parametrize(
    ("profile", "name", "share"),
    [
        (EXPERT, "channel-roll", 0.9666742752796166),
        (EXPERT, "scaling", 0.9901848892946816),
        (EXPERT, "splicing", 0.0015978087194704405),
        (MINED, "channel-roll", 0.9513809632503994),
        (MINED, "scaling", 0.9901848892946816),
        (MINED, "permutation", 0.505135813741155),
    ],
)
def test_the_whole_pool_fabricated(
    clean: Record, pool: Record, profile: Profile, name: str, share: float
) -> None:
    fabricated = FABRICATIONS[name](pool, seed=11)
    assert gate_of(clean, profile).judge(fabricated).violating_share == share


@pytest.mark.parametrize(
    ("profile", "shares"),
    [
        (EXPERT, (0, 0.968425, 0.75574, 0.99027, 0.001735)),
        (MINED, (0, 0.950645, 0.506455, 0.989425, 0.001735)),
    ],
)
def test_two_hundred_batches_of_each_kind(
    clean: Record, pool: Record, profile: Profile, shares: tuple[float, ...]
) -> None:
    table = separation(pool, gate_of(clean, profile))
    found = [row.mean_violating_share for row in table.rows[:5]]
    assert found == pytest.approx(list(shares), abs=1e-12)
    assert [row.admitted_share for row in table.rows[:5]] == [1, 0, 0, 0, 1]


@pytest.mark.parametrize(
    ("profile", "share"), [(EXPERT, 0.01723725161599234), (MINED, 0.009097438352884846)]
)
def test_the_attack_record_as_one_batch(
    clean: Record, plant_data: PlantData, profile: Profile, share: float
) -> None:
    attacked = read_record(plant_data("batadal", "BATADAL_dataset04.csv"))
    assert gate_of(clean, profile).judge(attacked).violating_share == share


def test_coverage_of_the_seven_attacks(clean: Record, plant_data: PlantData) -> None:
    """No recorded figure: the reference has no BATADAL coverage. What ours is today."""
    attacked = read_record(plant_data("batadal", "dataset04_full_labels.csv"))
    found = coverage(attacked, gate_of(clean, EXPERT))
    assert [segment.violating_rows for segment in found.segments] == [27, 0, 9, 11, 17, 4, 2]
    assert (found.covered, found.total) == (6, 7)
    assert found.honest_share is not None
    assert found.honest_share < 0.001
