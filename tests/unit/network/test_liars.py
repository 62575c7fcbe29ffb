"""Plants that lie are left out, each with the step at which its lie is seen."""

import pytest

from sluice.attestation.log.chain import read_log
from sluice.network.plant.agent import Agent
from sluice.network.plant.folder import PlantFolder

from .conftest import Consortium
from .lying_plant import Liar, copied, forged, stale


def lying(consortium: Consortium, lie: str) -> Liar:
    held = PlantFolder(consortium.folder / "south")
    if lie == "copied":
        north = consortium.plants["north"]
        assert isinstance(north, Agent)
        north.attest()
        return copied(held, consortium.folder / "north")
    return {"forged": forged, "stale": stale}[lie](held)


@pytest.mark.parametrize(("lie", "step"), [("forged", "5.8"), ("copied", "5.8"), ("stale", "2")])
def test_a_liar_is_left_out_each_round_with_the_right_step(
    consortium: Consortium, lie: str, step: str
) -> None:
    consortium.plants["south"] = lying(consortium, lie)
    done = consortium.run(rounds=2)
    assert done.admitted == ("north", "west")
    assert done.decisions["south"].reasons == (f"step {step}",)
    assert read_log(consortium.site.log).rounds.members == ("north", "west")
