"""What an operator asks for and cannot have is refused before anything is changed."""

import shutil
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from sluice.attestation.log.chain import copy_log, read_log
from sluice.attestation.messages.orders import CONSENTS
from sluice.attestation.messages.signing import SigningKey
from sluice.errors import CheckpointError, RefusedError, SettingError, VerificationError
from sluice.federation.messages import Request, Show, Train
from sluice.federation.rounds import Checkpoint
from sluice.network.coordinator.folder import CoordinatorFolder
from sluice.network.coordinator.founding import coordinator_service
from sluice.network.coordinator.operations import demand_reason, go_back
from sluice.network.coordinator.recovery import complete_recovery, prepare_recovery
from sluice.network.coordinator.rotation import (
    reissue_authority,
    reissue_plant,
    reissue_server,
    retire_authorities,
)
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.plant.folder import PlantFolder
from sluice.network.wire.wire import Direct

from .conftest import Consortium, Founder


def last(consortium: Consortium) -> Checkpoint:
    store = CoordinatorStore(consortium.site.base)
    try:
        checkpoint = store.last(federation="water")
    finally:
        store.close()
    assert checkpoint is not None
    return checkpoint


def emptied(site: CoordinatorFolder) -> None:
    """Lose the store."""
    for suffix in ("", "-wal", "-shm"):
        site.base.with_name(site.base.name + suffix).unlink(missing_ok=True)


# -- folders --------------------------------------------------------------------------------------


@pytest.mark.parametrize("exists", [False, True])
def test_a_federation_is_founded_in_a_new_or_an_empty_folder(
    tmp_path: Path, *, exists: bool
) -> None:
    folder = tmp_path / "water"
    if exists:
        folder.mkdir()
    key = CoordinatorFolder.new_key(folder)
    with pytest.raises(SettingError, match="water is not empty; name a new folder"):
        CoordinatorFolder.new_key(folder)
    assert SigningKey.load(CoordinatorFolder(folder).key).public == key


# -- removals -------------------------------------------------------------------------------------


def test_a_plant_is_not_removed_before_the_first_round_or_from_a_round_to_come(
    consortium: Consortium,
) -> None:
    for rounds, before in ((0, 1), (0, 0), (1, 2), (1, 0)):
        if rounds:
            consortium.run(rounds=rounds)
        with pytest.raises(SettingError, match="cannot go back to before|no checkpoint before"):
            go_back(consortium.site.folder, "west", before=before, at=consortium.clock())
    assert not read_log(consortium.site.log).rounds.removals
    back = go_back(consortium.site.folder, "west", before=1, at=consortium.clock())
    assert (back.model_of, back.given_up) == (0, 1)


def test_no_round_is_given_up_while_one_is_in_progress(consortium: Consortium) -> None:
    consortium.run(rounds=1)
    protocol, now = consortium.site.protocol(), consortium.clock()
    model = protocol.log.ledger.rounds.model
    assert model is not None
    protocol.open_round(model, now + timedelta(hours=1), at=now)
    with pytest.raises(SettingError, match="let it finish"):
        go_back(consortium.site.folder, "west", before=1, at=now)


def test_a_removal_that_the_log_refuses_changes_nothing(consortium: Consortium) -> None:
    consortium.run(rounds=2)
    go_back(consortium.site.folder, "west", before=2, at=consortium.clock())
    kept, log = last(consortium), consortium.site.log.read_bytes()
    for plant in ("west", "nobody"):
        with pytest.raises(VerificationError, match="already removed|no client 'nobody'"):
            go_back(consortium.site.folder, plant, before=1, at=consortium.clock())
    assert last(consortium).parameters.tobytes() == kept.parameters.tobytes()
    assert consortium.site.log.read_bytes() == log
    assert consortium.run(rounds=2).admitted == ("north", "south")


# -- recoveries -----------------------------------------------------------------------------------


@pytest.fixture
def restored(consortium: Consortium) -> Consortium:
    """One round, a backup, two more rounds; then the backup is put back."""
    consortium.run(rounds=1)
    shutil.copytree(consortium.site.folder, consortium.folder / "backup")
    consortium.run(rounds=3)
    shutil.move(consortium.site.folder, consortium.folder / "lost")
    shutil.move(consortium.folder / "backup", consortium.site.folder)
    return consortium


def copy_of(consortium: Consortium, plant: str = "north") -> Path:
    path = consortium.folder / f"{plant}.jsonl"
    copy_log(PlantFolder(consortium.folder / plant).log, path)
    return path


def test_a_recovery_that_the_log_refuses_changes_no_store(restored: Consortium) -> None:
    recovery = prepare_recovery(restored.site.folder, [copy_of(restored)])
    before = last(restored)
    with pytest.raises(VerificationError, match="0 of 3 plants consent"):
        complete_recovery(restored.site.folder, recovery, [], at=restored.clock())
    assert last(restored).round == before.round == 1


def test_a_recovery_is_completed_only_with_the_model_that_it_names(restored: Consortium) -> None:
    recovery = prepare_recovery(restored.site.folder, [copy_of(restored)])
    consents = [
        CONSENTS.write(PlantFolder(restored.folder / name).consent(recovery))
        for name in ("north", "south")
    ]
    log = restored.site.log.read_bytes()
    base = restored.site.base.read_bytes()
    emptied(restored.site)
    with pytest.raises(SettingError, match="is not the model that the recovery names"):
        complete_recovery(restored.site.folder, recovery, consents, at=restored.clock())
    emptied(restored.site)
    restored.site.base.write_bytes(base)
    other = replace(last(restored), parameters=last(restored).parameters + 1)
    store = CoordinatorStore(restored.site.base)
    store.keep(other, "0" * 64, federation="water", at=restored.clock())
    store.close()
    with pytest.raises(SettingError, match="is not the model that the recovery names"):
        complete_recovery(restored.site.folder, recovery, consents, at=restored.clock())
    assert restored.site.log.read_bytes() == log


def test_a_store_without_a_checkpoint_or_ahead_of_the_log_is_not_recovered(
    restored: Consortium,
) -> None:
    base = restored.site.base.read_bytes()
    emptied(restored.site)
    with pytest.raises(SettingError, match="no checkpoint that the log knows"):
        prepare_recovery(restored.site.folder, [copy_of(restored)])
    emptied(restored.site)
    restored.site.base.write_bytes(base)
    store = CoordinatorStore(restored.site.base)
    ahead = replace(last(restored), round=4)
    store.keep(ahead, "0" * 64, federation="water", at=restored.clock())
    store.close()
    with pytest.raises(SettingError, match="no checkpoint that the log knows"):
        prepare_recovery(restored.site.folder, [copy_of(restored)])


def test_a_store_with_another_model_than_the_log_is_not_recovered(consortium: Consortium) -> None:
    consortium.run(rounds=2)
    for round_ in (2, 1):
        store = CoordinatorStore(consortium.site.base)
        checkpoint = store.last(federation="water", before=round_ + 1)
        assert checkpoint is not None
        other = replace(checkpoint, parameters=checkpoint.parameters + 1)
        store.keep(other, "0" * 64, federation="water", at=consortium.clock())
        store.close()
    with pytest.raises(SettingError, match="of round 2 is not the one that the log names"):
        prepare_recovery(consortium.site.folder, [copy_of(consortium)])


def test_a_copy_as_long_as_the_log_must_be_the_same_log(
    restored: Consortium, founder: Founder
) -> None:
    own = restored.folder / "own.jsonl"
    copy_log(restored.site.log, own)
    with pytest.raises(SettingError, match="nothing is lost"):
        prepare_recovery(restored.site.folder, [own])
    shutil.move(restored.site.folder, restored.folder / "first")
    stranger = founder()
    with pytest.raises(VerificationError, match="not a continuation of this coordinator's log"):
        prepare_recovery(stranger.site.folder, [own])
    no_log = restored.folder / "no.log"
    no_log.write_bytes(b"hello\n")
    with pytest.raises(SettingError, match="is not a log of a federation"):
        prepare_recovery(stranger.site.folder, [no_log])


def test_a_plant_does_not_consent_for_another_federation_or_to_another_log(
    restored: Consortium,
) -> None:
    recovery = prepare_recovery(restored.site.folder, [copy_of(restored)])
    plant = PlantFolder(restored.folder / "north")
    assert plant.consent(recovery).content.client == "north"
    for wrong in (
        replace(recovery, federation="power"),
        replace(recovery, size=recovery.size - 1),
        replace(recovery, last="0" * 64),
        replace(recovery, model="0" * 64),
    ):
        with pytest.raises((RefusedError, VerificationError)):
            plant.consent(wrong)


# -- certificates ---------------------------------------------------------------------------------


def test_only_a_plant_of_the_federation_gets_another_certificate(consortium: Consortium) -> None:
    consortium.run(rounds=1)
    go_back(consortium.site.folder, "west", before=1, at=consortium.clock())
    for plant in ("west", "nobody"):
        with pytest.raises(SettingError, match=f"'{plant}' has not joined or is removed"):
            reissue_plant(consortium.site.folder, plant, at=consortium.clock())
    assert reissue_plant(consortium.site.folder, "north", at=consortium.clock()).plant == "north"


def test_plants_that_are_removed_hold_up_no_new_authority(consortium: Consortium) -> None:
    folder = consortium.site.folder
    consortium.run(rounds=1)
    go_back(folder, "west", before=1, at=consortium.clock())
    reissue_authority(folder, at=consortium.clock())
    reissue_plant(folder, "north", at=consortium.clock())
    with pytest.raises(SettingError, match=r"^south would not trust"):
        reissue_server(folder, at=consortium.clock())
    with pytest.raises(SettingError, match=r"^south still use"):
        retire_authorities(folder, at=consortium.clock())
    reissue_plant(folder, "south", at=consortium.clock())
    with pytest.raises(SettingError, match="coordinator's certificate is of an earlier authority"):
        retire_authorities(folder, at=consortium.clock())
    reissue_server(folder, at=consortium.clock())
    retire_authorities(folder, at=consortium.clock())


# -- rounds and reasons ---------------------------------------------------------------------------


def test_an_exchange_asks_all_plants_for_the_same(consortium: Consortium) -> None:
    done = consortium.run(rounds=1)
    store = CoordinatorStore(consortium.site.base)
    try:
        made = coordinator_service(
            consortium.site, store, Direct(consortium.plants), clock=consortium.clock
        )
        train = Train(round=2, parameters=done.parameters)
        mixed: dict[str, Request] = {"north": Show(round=2), "south": train}
        for requests in ({}, mixed):
            with pytest.raises(SettingError, match="all plants to show, or all of them to train"):
                made.transport.exchange(requests)
        with pytest.raises(CheckpointError, match="the log is in round 2 but the store"):
            made.transport.exchange({"north": replace(train, round=3)})
        with pytest.raises(CheckpointError, match="round 2 was opened with another model"):
            made.transport.exchange({"north": replace(train, parameters=done.parameters + 1)})
    finally:
        store.close()


@pytest.mark.parametrize("reason", ["tank", "x" * 200])
def test_a_reason_that_every_reader_can_read_is_taken(reason: str) -> None:
    demand_reason(reason)


@pytest.mark.parametrize("reason", ["", "tan", "x" * 201, "tank\n", "tank é", "tank\x1b[2J"])
def test_a_reason_that_is_short_long_or_unprintable_is_refused(reason: str) -> None:
    with pytest.raises(SettingError, match="a reason must have 4 to 200 printable ASCII"):
        demand_reason(reason)
