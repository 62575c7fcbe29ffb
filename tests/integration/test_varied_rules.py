"""Rules of varied treatment sites, read every 10 s, under the default policy."""

from pathlib import Path

import pytest

from sluice.admission import HardenedPolicy
from sluice.admission.gate import judge
from sluice.admission.policy import accept
from sluice.lab.plants import simulate
from sluice.telemetry.plantfile import read_plant_file
from sluice.telemetry.reading import read_record
from sluice.template import Template, derive_template
from tests.varied_plants import VariedPlant

EVERY = 10
START_UP_S = 6 * 3_600.0
CUTS = (7_776, 15_552)


@pytest.fixture(scope="module")
def template() -> Template:
    reference = simulate("treatment", seed=50, days=2)
    return derive_template(reference.without_first(START_UP_S).every(EVERY))


@pytest.mark.parametrize("site", [1, 3])  # site 3 has no FIT401
def test_the_default_policy_accepts_a_varied_site_and_its_next_rows(
    site: int, template: Template, tmp_path: Path
) -> None:
    """It refused them for noise limits of levels that ramp, and for tails beyond all of a flow."""
    share = (CUTS[1], CUTS[1] + 1_000)
    plant = VariedPlant.make(
        tmp_path,
        "treatment",
        site,
        template,
        days=2.5,
        every=EVERY,
        skip_s=START_UP_S,
        cuts=CUTS,
        share=share,
    )
    policy = HardenedPolicy()
    objections = accept(plant.rules, policy)
    declared = {each.declares: "nothing meters it" for each in objections if each.declares}
    assert [each.sentence for each in accept(plant.rules, policy, declared=declared)] == []
    assert plant.share.plant is not None
    record = read_record(plant.share.record, plant=read_plant_file(plant.share.plant))
    assert judge(record.rows(*share), plant.rules, policy).reasons == ()
