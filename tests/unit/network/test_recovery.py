"""A coordinator that was restored from an older backup goes on only with the plants' consent."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sluice.attestation.log.chain import copy_log, read_log
from sluice.attestation.messages.orders import CONSENTS, RECOVERIES, Recovery
from sluice.attestation.messages.signing import content_digest
from sluice.errors import CheckpointError, RefusedError, SettingError, VerificationError
from sluice.network.coordinator.recovery import complete_recovery, prepare_recovery
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.plant.folder import PlantFolder
from tests.unit.conftest import Run

from .asking import Driven
from .conftest import Consortium

PLANTS = ("north", "south", "west")


@pytest.fixture
def restored(consortium: Consortium) -> Consortium:
    """Four rounds, a backup, four more rounds; then the backup is put back."""
    consortium.run(rounds=4)
    backup = consortium.folder / "backup"
    shutil.copytree(consortium.site.folder, backup)
    consortium.run(rounds=8)
    shutil.move(consortium.site.folder, consortium.folder / "lost")
    shutil.move(backup, consortium.site.folder)
    return consortium


def copies(consortium: Consortium, *plants: str) -> list[Path]:
    """Let plants export their copies of the log."""
    paths = [consortium.folder / f"{name}.jsonl" for name in plants]
    for name, path in zip(plants, paths, strict=True):
        copy_log(PlantFolder(consortium.folder / name).log, path)
    return paths


def consents(consortium: Consortium, recovery: Recovery, *plants: str) -> list[bytes]:
    folders = [PlantFolder(consortium.folder / name) for name in plants]
    return [CONSENTS.write(folder.consent(recovery)) for folder in folders]


def test_a_restored_coordinator_refuses_to_run_and_writes_nothing(restored: Consortium) -> None:
    before = restored.site.log.read_bytes()
    for _ in range(2):
        with pytest.raises(CheckpointError, match="'sluice coordinator recover'"):
            restored.run(rounds=9)
    assert restored.site.log.read_bytes() == before


def test_the_rounds_go_on_with_all_plants_after_they_have_consented(restored: Consortium) -> None:
    store = CoordinatorStore(restored.site.base)
    kept = store.last(federation="water")
    store.close()
    assert kept is not None
    recovery = prepare_recovery(restored.site.folder, copies(restored, *PLANTS))
    assert (recovery.since, recovery.model_of) == (5, 4)
    with pytest.raises(CheckpointError):  # not before the plants have agreed
        restored.run(rounds=9)
    agreed = consents(restored, recovery, *PLANTS)
    assert complete_recovery(restored.site.folder, recovery, agreed, at=restored.clock()) == 4
    ledger = read_log(restored.site.log)
    assert (ledger.rounds.last, ledger.rounds.counted) == (8, 4)
    done = restored.run(rounds=6)
    assert (done.round, done.admitted) == (10, PLANTS)
    assert not np.array_equal(done.parameters, kept.parameters)
    ledger = read_log(restored.site.log)
    assert (ledger.rounds.last, ledger.rounds.counted) == (10, 6)
    assert ledger.rounds.members == PLANTS
    # The plants' copies and the coordinator's log are one log.
    for name in PLANTS:
        ours = read_log(PlantFolder(restored.folder / name).log)
        assert restored.site.log.read_bytes().startswith(
            b"\n".join(PlantFolder(restored.folder / name).log.read_bytes().splitlines()[:-1])
        )
        assert ours.rounds.last == 10


def test_a_recovery_without_the_consent_of_more_than_half_is_refused(restored: Consortium) -> None:
    recovery = prepare_recovery(restored.site.folder, copies(restored, "north"))
    before = restored.site.log.read_bytes()
    (one,) = consents(restored, recovery, "north")
    for agreed in ([], [one], [one, one, one]):
        with pytest.raises(VerificationError, match="more than half are needed"):
            complete_recovery(restored.site.folder, recovery, agreed, at=restored.clock())
    # A consent to another recovery does not count.
    other = consents(restored, replace(recovery, since=recovery.since + 1), "south")
    with pytest.raises(VerificationError, match="more than half are needed"):
        complete_recovery(
            restored.site.folder,
            recovery,
            [*consents(restored, recovery, "north"), *other],
            at=restored.clock(),
        )
    # Nor does one that another key has signed.
    forged = json.loads(consents(restored, recovery, "south")[0])
    forged["signature"] = json.loads(consents(restored, recovery, "west")[0])["signature"]
    with pytest.raises(VerificationError, match="signature of the consent"):
        complete_recovery(
            restored.site.folder,
            recovery,
            [
                *consents(restored, recovery, "north"),
                json.dumps(forged, separators=(",", ":"), sort_keys=True).encode(),
            ],
            at=restored.clock(),
        )
    assert restored.site.log.read_bytes() == before


def test_a_plant_does_not_consent_to_what_its_log_contradicts(restored: Consortium) -> None:
    recovery = prepare_recovery(restored.site.folder, copies(restored, "north"))
    north = PlantFolder(restored.folder / "north")
    for wrong, why in (
        (replace(recovery, size=recovery.size - 1), "has seen"),
        (replace(recovery, federation="power"), "has seen"),
        (replace(recovery, last="0" * 64), "another log"),
        (replace(recovery, model="0" * 64), "another model after round 4"),
        (replace(recovery, model_of=3), "another model after round 3"),
        (replace(recovery, model_of=8), "another model after round 8"),  # the last that it has seen
    ):
        with pytest.raises(RefusedError, match=why):
            north.consent(wrong)
    # A longer copy of the log may have what this plant has not seen.
    unseen = replace(recovery, size=recovery.size + 1, last="1" * 64, model_of=9)
    for right in (recovery, unseen):
        assert north.consent(right).content.recovery == content_digest(right)


def test_a_plants_log_that_was_tampered_with_is_refused(restored: Consortium) -> None:
    before = restored.site.log.read_bytes()
    (path,) = copies(restored, "north")
    raw = path.read_bytes()
    *lines, head = raw.splitlines()
    for wrong in (
        raw.replace(b'"client":"south"', b'"client":"sauth"', 1),
        raw[:-200],
        b"\n".join([*lines[:-1], head]) + b"\n",
        b"\n".join(lines) + b"\n",
    ):
        path.write_bytes(wrong)
        with pytest.raises(VerificationError, match="step [17]"):
            prepare_recovery(restored.site.folder, [path])
    path.write_bytes(b"no log\n")
    with pytest.raises(SettingError, match="is not a log"):
        prepare_recovery(restored.site.folder, [path])
    assert restored.site.log.read_bytes() == before


def test_a_log_that_parts_from_the_coordinators_own_is_refused(
    restored: Consortium,
) -> None:
    """The restored coordinator went on by itself: its log and the plants' are a fork."""
    driven = Driven.of(restored)
    driven.protocol.open_round(driven.log.ledger.rounds.model or "", driven.now(), at=driven.now())
    with pytest.raises(VerificationError, match="not a continuation of this coordinator's log"):
        prepare_recovery(restored.site.folder, copies(restored, "north"))


def test_nothing_is_recovered_where_nothing_is_lost(consortium: Consortium) -> None:
    consortium.run(rounds=2)
    with pytest.raises(SettingError, match="nothing is lost"):
        prepare_recovery(consortium.site.folder, copies(consortium, "north"))


def test_a_plant_that_missed_the_last_rounds_has_a_copy_that_is_too_short(
    consortium: Consortium,
) -> None:
    """Recovery takes the longest copy; a shorter one brings back less, and plants say so."""
    consortium.run(rounds=1)
    backup = consortium.folder / "backup"
    shutil.copytree(consortium.site.folder, backup)
    absent = consortium.plants.pop("west")
    consortium.run(rounds=3)
    consortium.plants["west"] = absent
    shutil.rmtree(consortium.site.folder)
    shutil.move(backup, consortium.site.folder)
    with pytest.raises(CheckpointError, match="'sluice coordinator recover'"):
        consortium.run(rounds=4)
    west, north = copies(consortium, "west", "north")
    with pytest.raises(SettingError, match="nothing is lost"):
        prepare_recovery(consortium.site.folder, [west])
    with pytest.raises(CheckpointError, match="'sluice coordinator recover'"):
        consortium.run(rounds=4)
    recovery = prepare_recovery(consortium.site.folder, [west, north])
    agreed = consents(consortium, recovery, "north", "west")
    complete_recovery(consortium.site.folder, recovery, agreed, at=consortium.clock())
    assert consortium.run(rounds=3).admitted == PLANTS
    assert read_log(consortium.site.log).rounds.members == PLANTS


def test_operators_recover_with_commands_and_are_told_what_is_lost(
    restored: Consortium, sluice: Run, tmp_path: Path
) -> None:
    water, recovery = restored.site.folder, tmp_path / "recovery.json"
    exported = [tmp_path / f"{name}-log.jsonl" for name in PLANTS]
    for name, path in zip(PLANTS, exported, strict=True):
        assert sluice("plant", "export-log", tmp_path / name, "--out", path).code == 0
    given = [word for path in exported for word in ("--log", path)]
    seen = sluice("coordinator", "recover", water, *given, "--out", recovery, "--json")
    assert (seen.code, seen.json["lost_since_round"], seen.json["model_of_round"]) == (0, 5, 4)
    assert RECOVERIES.read(recovery.read_bytes()).since == 5
    signed = [tmp_path / f"{name}.consent" for name in PLANTS]
    for name, path in zip(PLANTS, signed, strict=True):
        told = sluice("plant", "consent", tmp_path / name, recovery, "--out", path)
        assert told.code == 0
        assert "rounds from 5 on are given up" in told.out.replace("\n", " ")
        assert "model after round 4" in told.out.replace("\n", " ")
    complete = ("coordinator", "recover", water, "--recovery", recovery)
    assert sluice(*complete, "--consent", signed[0]).code == 3
    words = [word for path in signed for word in ("--consent", path)]
    seen = sluice(*complete, *words, "--json")
    assert (seen.code, seen.json) == (0, {"model_of_round": 4})
    assert restored.run(rounds=5).admitted == PLANTS
