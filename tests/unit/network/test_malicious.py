"""Malicious plants are left out, each with the step at which its attack is detected."""

import pytest

from sluice.attestation.log.chain import read_log
from sluice.network.plant.agent import Agent
from sluice.network.plant.folder import PlantFolder

from .conftest import Consortium
from .malicious_plant import Malicious, copied, forged, stale


def malicious(consortium: Consortium, attack: str) -> Malicious:
    south = PlantFolder(consortium.folder / "south")
    if attack == "copied":
        north = consortium.plants["north"]
        assert isinstance(north, Agent)
        north.attest()
        return copied(south, consortium.folder / "north")
    return {"forged": forged, "stale": stale}[attack](south)


@pytest.mark.parametrize(("attack", "step"), [("forged", "5.8"), ("copied", "5.8"), ("stale", "2")])
def test_a_malicious_plant_is_left_out_each_round_with_the_right_step(
    consortium: Consortium, attack: str, step: str
) -> None:
    consortium.plants["south"] = malicious(consortium, attack)
    done = consortium.run(rounds=2)
    assert done.admitted == ("north", "west")
    assert done.decisions["south"].reasons == (f"step {step}",)
    assert read_log(consortium.site.log).rounds.members == ("north", "west")
