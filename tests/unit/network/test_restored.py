"""Plants and coordinators that are restored from a backup: who has lost a part of the log."""

import shutil
from dataclasses import replace

import pytest

from sluice.attestation.log.chain import read_log
from sluice.attestation.log.entries import ENTRIES, ModelAggregated
from sluice.attestation.log.heads import COORDINATOR, HEADS
from sluice.attestation.messages.signing import SigningKey, sign
from sluice.errors import CheckpointError
from sluice.network.coordinator.pages import LogPages
from sluice.network.plant.folder import PlantFolder

from .conftest import Consortium


def members(consortium: Consortium) -> list[tuple[str, ...]]:
    *lines, _ = consortium.site.log.read_bytes().splitlines()
    bodies = [ENTRIES.read(line).body for line in lines]
    return [body.clients for body in bodies if isinstance(body, ModelAggregated)]


def test_only_a_head_that_the_coordinator_has_signed_shows_another_log(
    consortium: Consortium,
) -> None:
    """Otherwise one plant could stop the federation with a claim."""
    log, key = consortium.site.protocol().log, consortium.site.signing_key()
    shown = LogPages(log=log, path=consortium.site.log, key=key)
    other = replace(log.ledger.head(COORDINATOR), last="0" * 64)
    for claim in (b"", b"{}", HEADS.write(sign(other, SigningKey.generate()))):
        shown.refuse_other("west", claim)
    with pytest.raises(CheckpointError, match="'west' follows another log"):
        shown.refuse_other("west", HEADS.write(sign(other, key)))
    shown.refuse_other("west", HEADS.write(sign(log.ledger.head(COORDINATOR), key)))


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
