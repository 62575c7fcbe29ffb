"""A plant that is restored from a backup takes part again."""

import shutil

from sluice.attestation.log.chain import read_log
from sluice.attestation.log.entries import ENTRIES, ModelAggregated
from sluice.network.plant.folder import PlantFolder

from .conftest import Consortium


def members(consortium: Consortium) -> list[tuple[str, ...]]:
    *lines, _ = consortium.site.log.read_bytes().splitlines()
    bodies = [ENTRIES.read(line).body for line in lines]
    return [body.clients for body in bodies if isinstance(body, ModelAggregated)]


def test_a_plant_that_has_lost_part_of_the_log_is_shown_it_again(
    consortium: Consortium,
) -> None:
    consortium.run(rounds=1)
    backup = consortium.folder / "backup"
    shutil.copytree(consortium.folder / "west", backup)
    consortium.run(rounds=2)
    shutil.rmtree(consortium.folder / "west")
    shutil.move(backup, consortium.folder / "west")
    consortium.plants["west"] = PlantFolder(consortium.folder / "west").agent(reveal_rows=True)
    consortium.run(rounds=4)
    everybody = ("north", "south", "west")
    assert members(consortium) == [everybody] * 4
    assert read_log(consortium.site.log).rounds.last == 4
