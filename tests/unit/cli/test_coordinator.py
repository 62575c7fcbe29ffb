"""The commands of a federation between sites, as far as they need no second machine."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from sluice.cli.app import main
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile
from sluice.invariants.rulesfile import save_rules
from sluice.lab.plants.catalogue import simulate
from sluice.network.coordinator.folder import CoordinatorFolder
from sluice.network.coordinator.store import CoordinatorStore
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write


def run(*arguments: str, expect: int = 0) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([*arguments])
    assert stopped.value.code == expect, arguments


def suspend(folder: str, plant: str) -> None:
    """Let a plant be absent until the coordinator suspends it."""
    store = CoordinatorStore(CoordinatorFolder(Path(folder)).base)
    store.absent(plant, 1)
    store.suspend(1, after=1, at=datetime.now(UTC))
    store.close()


def test_from_nothing_to_a_plant_that_has_joined(  # noqa: PLR0915 - one story
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    line = simulate("line", seed=0, days=8)
    write(line, Path("line.csv"), FileLayout.CSV)
    rules = mine(line.rows(0, 4_320), line.rows(4_320, 8_640), profile=Profile.HARDENED)
    save_rules(rules, Path("rules.json"))
    run("rules", "policy", "--out", "policy.toml", "--declare", "S_PU4=runs if S_PU3 fails")
    founded = ("--reference", "line.csv", "--rows", "4320:8640", "--policy", "policy.toml")
    run("coordinator", "init", "water", *founded, "--detector", "autoencoder")
    run("coordinator", "init", "water", "--reference", "line.csv", expect=2)
    run("coordinator", "invite", "water", "north", "--out", "north.invitation")
    assert Path("north.invitation").stat().st_mode & 0o777 == 0o600
    share = ("--record", "line.csv", "--rows", "8640:9240", "--rules", "rules.json")
    run("plant", "join", "north.invitation", *share, "--out", "north")
    run("coordinator", "import", "water", "north/request.json", expect=3)  # nobody approved it
    signing = ("--key", "water.approver.key")
    pump = ("--declare", "S_PU4=a standby pump")
    run("rules", "approve", "rules.json", *signing, *pump, "--out", "rules.approval")
    approved = ("north/request.json", "--approval", "rules.approval")
    run("coordinator", "import", "water", *approved)
    run("coordinator", "import", "water", *approved, expect=3)  # it serves once
    capsys.readouterr()
    run("plant", "check", "north", "--quiet", "--approval", "rules.approval", expect=3)
    assert "more than 30 days before" in capsys.readouterr().out  # the record is of 2024
    window = ("--from", "2024-01-07T00:00", "--to", "2024-01-07T09:00")
    for plant, code in (("north", 0), ("south", 3)):  # south has not joined
        waiver, approval = f"{plant}.waiver", f"{plant}.approval"
        reason = ("--reason", "tank 2 is painted")
        run("coordinator", "waive", "water", plant, *window, *reason, "--out", waiver)
        run("coordinator", "waive", "water", plant, *window, *reason, "--out", waiver, expect=2)
        run("coordinator", "import", "water", waiver, expect=3)  # nobody approved it
        run("rules", "approve", waiver, *signing, "--out", approval)
        run("coordinator", "import", "water", waiver, "--approval", approval, expect=code)
    run("coordinator", "waive", "water", "north", *window[:3], "noon", "--reason", "w", expect=2)
    run("coordinator", "reinstate", "water", "north", expect=2)  # it is not suspended
    suspend("water", "north")
    run("coordinator", "reinstate", "water", "north")
    run("coordinator", "reinstate", "water", "south", expect=2)
    suspend("water", "north")
    run("coordinator", "readmit", "water", "north")  # the old name, a hidden alias
    run("coordinator", "readmit", "water", "south", expect=2)
    run("plant", "renew", "north", "--rows", "9240:9840")
    run("coordinator", "remove", "water", "north", "--from", "1", expect=2)
    run("coordinator", "export-log", "water", "--out", "log.jsonl")
    capsys.readouterr()
    run("coordinator", "status", "water", "--json")
    told = json.loads(capsys.readouterr().out)
    assert told["gate"] == "enforced"
    assert [waiver["reason"] for waiver in told["waivers"]] == ["tank 2 is painted"]
    assert told["plants"] == [
        {
            "plant": "north",
            "state": "left out at step 4",
            "word": "waiting",
            "detail": "its first batch has not arrived",
            "failed": 0,
            "absences": 0,
            "seen": 0,
            "copied": False,
            "attested_until": None,
            "refused_calls": {},
        }
    ]
    assert (told["history"], told["approvals"]) == (False, 1)
    assert told["certificates_ending"] == []
    run("plant", "status", "north", "--json")
    assert json.loads(capsys.readouterr().out)["rounds"] == 0
    run("audit-log", "verify", "log.jsonl", "--json")
    told = json.loads(capsys.readouterr().out)
    assert told["entries"] == 3
    assert told["waivers"][0]["plant"] == "north"
    assert (told["gate"], told["unproven"], told["removed"]) == ("enforced", [], [])
    run("audit-log", "verify", "log.jsonl")
    assert "tank 2 is painted" in capsys.readouterr().out.replace("\n", " ")
    changed = Path("log.jsonl").read_bytes().replace(b"north", b"nerth", 1)
    Path("log.jsonl").write_bytes(changed)
    run("audit-log", "verify", "log.jsonl", expect=3)


def test_status_names_certificates_that_end_soon_and_rotate_replaces_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    line = simulate("line", seed=0, days=8)
    write(line, Path("line.csv"), FileLayout.CSV)
    rules = mine(line.rows(0, 4_320), line.rows(4_320, 8_640), profile=Profile.HARDENED)
    save_rules(rules, Path("rules.json"))
    run("coordinator", "init", "water", "--reference", "line.csv", "--rows", "4320:8640")
    run("coordinator", "invite", "water", "north", "--out", "north.invitation")
    share = ("--record", "line.csv", "--rows", "8640:9240", "--rules", "rules.json")
    run("plant", "join", "north.invitation", *share, "--out", "north")
    approval = ("--key", "water.approver.key", "--declare", "S_PU4=never ran", "--out", "a.json")
    run("rules", "approve", "rules.json", *approval)
    run("coordinator", "import", "water", "north/request.json", "--approval", "a.json")
    Path("water/proxy/refusals.json").write_text(
        '{"north": {"quota": 3}, "coordinator": {"plant not enrolled or not active": 12}}',
        encoding="utf-8",
    )
    site = CoordinatorFolder(Path("water"))
    old = datetime.now(UTC) - timedelta(days=800)
    site.write_server_certificate(site.tls.server("127.0.0.1", at=old))
    capsys.readouterr()
    run("coordinator", "status", "water")
    seen = capsys.readouterr()
    assert "north: 3 calls refused (quota)" in seen.out
    assert "the certificate of the coordinator ends on" in seen.err
    assert "sluice coordinator rotate water" in seen.err
    run("coordinator", "rotate", "water")
    run("coordinator", "rotate", "water", "--plant", "north", expect=2)  # where to?
    run("coordinator", "rotate", "water", "--authority", "--retire", expect=2)
    run("coordinator", "rotate", "water", "--plant", "south", "--out", "s", expect=2)
    run("coordinator", "rotate", "water", "--plant", "north", "--out", "north.certificate")
    assert Path("north.certificate").stat().st_mode & 0o777 == 0o600
    before = Path("north/tls.pem").read_bytes()
    run("plant", "rotate", "north", "north.certificate")
    assert Path("north/tls.pem").read_bytes() != before
    assert Path("north/private/tls.key").stat().st_mode & 0o777 == 0o600
    capsys.readouterr()
    run("coordinator", "status", "water")
    assert "the certificate of" not in capsys.readouterr().err


def test_help_lists_reinstate_and_hides_its_old_name(capsys: pytest.CaptureFixture[str]) -> None:
    run("coordinator", "--help")
    listed = capsys.readouterr().out
    assert "reinstate" in listed
    assert "readmit" not in listed
    run("coordinator", "readmit", "--help")
    assert "End a plant's suspension" in capsys.readouterr().out
