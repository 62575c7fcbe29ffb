"""The JSON of a federation's commands, from its founding to a verified log."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sluice.cli.coordinator.waivers import interval_of, waiver_line
from sluice.detector.autoencoder import initial
from sluice.federation.admission_check import Decision
from sluice.federation.rounds import begin
from sluice.lab.plants.catalogue import simulate
from sluice.network.coordinator.folder import CoordinatorFolder
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.wire.questions import model_hash
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write
from tests.unit.conftest import Outcome

Run = Callable[..., Outcome]


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plant") / "line.parquet"
    write(simulate("line", seed=0, days=2), path, FileLayout.PARQUET)
    return path


@pytest.fixture
def water(sluice: Run, line: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "water"
    given = ("--name", "rivers", "--rounds", "10")
    seen = sluice("coordinator", "init", folder, "--reference", line, *given, "--json")
    assert (seen.code, seen.err) == (0, "")
    assert set(seen.json) == {
        "federation", "folder", "coordinator", "approvers", "approver_key", "history",
        "detector", "rule", "bound", "groups", "helper", "statistic_rows_min", "statistic_span_min",
    }  # fmt: skip
    assert (seen.json["groups"], seen.json["helper"]) == (False, None)
    key = folder.with_name("water.approver.key")
    assert seen.json["approver_key"] == str(key)
    assert key.stat().st_mode & 0o777 == 0o600
    assert seen.json["approvers"] == [key.with_suffix(".pub").read_text().strip()]
    assert not list(folder.rglob("*approver*"))  # the coordinator's folder never holds it
    assert (seen.json["federation"], seen.json["folder"]) == ("rivers", str(folder))
    return folder


def test_a_federation_is_not_founded_twice_and_leaves_no_draft(
    sluice: Run, water: Path, line: Path
) -> None:
    before = sorted(path.name for path in water.iterdir())
    seen = sluice("coordinator", "init", water, "--reference", line, "--json")
    assert (seen.code, seen.out) == (2, "")
    assert sorted(path.name for path in water.iterdir()) == before
    assert not list(water.parent.glob(".water*"))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rows", "0:99999"), "has rows 0:2880"),
        (("--policy", "softened"), "nor a readable file"),
        (("--rule", "medain"), "medain"),
        (("--system", "sampled"), "does not work between sites: one trusted party must make its"),
        (("--port", "0"), "Invalid value"),
        (("--rounds", "0"), "Invalid value"),
        (("--quorum", "0"), "the quorum must be a share"),
        (("--quorum", "1.5"), "the quorum must be a share"),
        (("--grace", "-1"), "the grace must be 0 or more seconds"),
        (("--update-max", "0"), "finite number above 0"),
        (("--update-max", "nan"), "finite number above 0"),
    ],
)
def test_a_federation_that_cannot_be_founded_leaves_nothing(
    sluice: Run, line: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    folder = tmp_path / "water"
    seen = sluice("coordinator", "init", folder, "--reference", line, *options, "--json")
    assert (seen.code, seen.out) == (2, "")
    assert message in seen.err
    assert [path.name for path in tmp_path.iterdir() if path.name != "cache"] == []


def test_the_terms_of_phases_and_updates_are_the_operators(
    sluice: Run, line: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "water"
    options = ("--quorum", "0.75", "--grace", "5", "--update-max", "0.5")
    seen = sluice("coordinator", "init", folder, "--reference", line, *options, "--json")
    assert (seen.code, seen.err) == (0, "")
    terms = CoordinatorFolder(folder).terms
    assert (terms.quorum, terms.grace_s, terms.update_max) == (0.75, 5.0, 0.5)


@pytest.mark.parametrize(
    ("options", "detector", "rule"),
    [
        ((), "moments", "vote"),
        (("--rule", "any-of-subsets"), "moments", "any-of-subsets"),
        (("--rounds", "3"), "autoencoder", "fedavg"),
        (("--epochs", "1"), "autoencoder", "fedavg"),
        (("--rule", "median"), "autoencoder", "median"),
        (("--detector", "autoencoder"), "autoencoder", "fedavg"),
    ],
)
def test_members_share_sums_unless_rounds_are_asked_for(
    sluice: Run,
    line: Path,
    tmp_path: Path,
    options: tuple[str, ...],
    detector: str,
    rule: str,
) -> None:
    seen = sluice("coordinator", "init", tmp_path / "water", "--reference", line, *options)
    assert seen.code == 0
    shared = {"moments": "each plant shares its sums once", "autoencoder": "trained in rounds"}
    assert f"Detector: {detector} ({shared[detector]}), rule {rule}" in seen.out
    terms = CoordinatorFolder(tmp_path / "water").terms
    assert (terms.statistic is not None, terms.rule) == (detector == "moments", rule)
    assert terms.rounds == (3 if "3" in options else 10 if detector == "autoencoder" else 1)


def test_without_a_round_in_progress_nothing_is_abandoned(sluice: Run, water: Path) -> None:
    seen = sluice("coordinator", "abandon", water, "--json")
    assert (seen.code, seen.out) == (2, "")
    assert "'rivers' has no round in progress to abandon" in seen.err


def test_a_round_in_progress_is_abandoned(sluice: Run, water: Path) -> None:
    site, now = CoordinatorFolder(water), datetime.now(UTC)
    start = initial(site.terms.framing.width, seed=site.terms.seed)
    decisions = {"north": Decision(admitted=True, rows=1)}
    store = CoordinatorStore(site.base)
    store.keep(begin(start, decisions), model_hash(start), federation="rivers", at=now)
    store.close()
    site.protocol().open_round(model_hash(start), now + timedelta(hours=1), at=now)
    seen = sluice("coordinator", "abandon", water, "--json")
    assert (seen.code, seen.err) == (0, "")
    assert seen.json == {"round": 1, "model": model_hash(start)}
    again = sluice("coordinator", "abandon", water)
    assert again.code == 2
    assert "round 1 ended" in again.err
    verified = sluice("audit-log", "verify", water / "log.jsonl", "--json")
    assert verified.code == 0
    assert sluice("coordinator", "status", water, "--json").json["finished"]


def test_an_invitation_is_private_and_named(sluice: Run, water: Path, tmp_path: Path) -> None:
    out = tmp_path / "north.invitation"
    seen = sluice("coordinator", "invite", water, "north", "--out", out, "--json")
    assert (seen.code, set(seen.json)) == (0, {"plant", "invitation", "expires"})
    assert (seen.json["plant"], seen.json["invitation"]) == ("north", str(out))
    assert out.stat().st_mode & 0o777 == 0o600


def test_a_new_federation_has_no_plants_and_no_rounds(sluice: Run, water: Path) -> None:
    seen = sluice("coordinator", "status", water, "--json")
    assert seen.code == 0
    assert seen.json == {
        "federation": "rivers",
        "round": 0,
        "rounds": 10,
        "rounds_counted": 0,
        "gate": "enforced",
        "history": False,
        "bound": False,
        "groups": None,
        "statistic": None,
        "approvals": 1,
        "waivers": [],
        "finished": False,
        "entries": 1,
        "plants": [],
        "certificates_ending": [],
    }


def test_an_exported_log_verifies_and_one_cut_short_does_not(
    sluice: Run, water: Path, tmp_path: Path
) -> None:
    out = tmp_path / "log.jsonl"
    seen = sluice("coordinator", "export-log", water, "--out", out, "--json")
    assert (seen.code, seen.json) == (0, {"entries": 1, "log": str(out)})
    verified = sluice("audit-log", "verify", out, "--json")
    assert (verified.code, verified.err) == (0, "")
    assert list(verified.json) == [
        "verified", "federation", "entries", "rounds", "rounds_counted", "clients", "gate",
        "history", "bound", "groups", "signed_off", "unproven", "waivers", "removed", "head",
    ]  # fmt: skip
    assert (verified.json["verified"], verified.json["federation"]) == (True, "rivers")
    assert (verified.json["entries"], verified.json["clients"]) == (1, [])
    out.write_bytes(out.read_bytes()[:-20])
    cut = sluice("audit-log", "verify", out, "--json")
    assert (cut.code, cut.json["refused"], cut.json["step"]) == (3, True, "7")


def test_the_log_itself_is_not_written_over(sluice: Run, water: Path) -> None:
    log = water / "log.jsonl"
    before = log.read_bytes()
    seen = sluice("coordinator", "export-log", water, "--out", log, "--json")
    assert (seen.code, seen.out) == (2, "")
    assert "is the log itself; write another file" in seen.err
    assert log.read_bytes() == before


def test_a_plant_that_did_not_join_is_neither_reinstated_nor_removed(
    sluice: Run, water: Path
) -> None:
    for name in ("reinstate", "readmit"):
        seen = sluice("coordinator", name, water, "north", "--json")
        assert (seen.code, seen.out) == (2, "")
        assert "north" in seen.err
    seen = sluice("coordinator", "remove", water, "north", "--from", 1, "--json")
    assert (seen.code, seen.out) == (2, "")
    assert "the log's last round is 0" in seen.err


def test_a_window_is_told_to_the_minute() -> None:
    interval = interval_of("2026-04-01T08:00", "2026-04-02")
    assert (interval.start, interval.end) == (
        "2026-04-01T08:00:00.000000",
        "2026-04-02T00:00:00.000000",
    )
    assert interval_of("2026-04-01T08:00", "2026-04-01T08:00").start == interval.start
    told = {
        "plant": "north",
        "start": interval.start,
        "end": interval.end,
        "expires": "2026-05-01T12:30:59",
        "reason": "paint",
    }
    assert waiver_line(told) == (
        "waiver: batches of north from 2026-04-01T08:00 to 2026-04-02T00:00 need no proof until "
        "2026-05-01T12:30Z: paint"
    )
