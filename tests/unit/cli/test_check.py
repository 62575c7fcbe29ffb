"""`sluice check` from the outside: the gate, its evidence and its drawings."""

import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile, untied_channels
from sluice.invariants.rulesfile import load_rules, save_rules
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.reading import read_record
from sluice.telemetry.record import Record
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write
from tests.unit.conftest import Outcome

Run = Callable[..., Outcome]
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def plant() -> Record:
    return simulate("line", seed=0, days=8)


@pytest.fixture(scope="module")
def folder(plant: Record, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clean rows, the same rows with a frozen pump status, and both kinds of rules."""
    made = tmp_path_factory.mktemp("plant")
    fit, calibration, batch = plant.rows(0, 4320), plant.rows(4320, 8640), plant.rows(8640, 10640)
    save_rules(mine(fit, calibration, profile=Profile.HARDENED), made / "rules.json")
    save_rules(mine(fit, calibration, profile=Profile.PAPER_WIDE), made / "paper.json")
    write(batch, made / "clean.parquet", FileLayout.PARQUET)
    values = batch.values.copy()
    column = batch.index("S_PU1")
    values[500:900, column] = 1 - values[500:900, column]
    values[1500:1800, batch.index("L_T2")] = values[1500, batch.index("L_T2")]
    write(batch.with_values(values), made / "forged.parquet", FileLayout.PARQUET)
    return made


def findings(outcome: Outcome) -> dict[str, dict[str, object]]:
    found = cast("list[dict[str, object]]", outcome.json["rules"])
    return {cast("str", rule["name"]): rule for rule in found}


def test_help_has_an_example(sluice: Run) -> None:
    assert "Example: sluice check" in sluice("check", "--help").out


@pytest.mark.parametrize("rules", ["rules.json", "paper.json"])
def test_a_clean_batch_is_admitted(sluice: Run, folder: Path, rules: str) -> None:
    seen = sluice("check", folder / "clean.parquet", "--rules", folder / rules, "--json")
    assert (seen.code, seen.json["admitted"], seen.json["reasons"]) == (0, True, [])
    assert set(seen.json) == {
        "admitted",
        "rows",
        "violating_rows",
        "violating_share",
        "reasons",
        "rules",
        "drift",
    }
    assert seen.json["drift"] == []
    assert set(findings(seen)["S_PU1~F_PU1"]) == {
        "name",
        "kind",
        "violating_rows",
        "violating_share",
        "inapplicable_share",
        "envelope_share",
        "limit",
        "sentence",
    }


@pytest.mark.parametrize("rules", ["rules.json", "paper.json"])
def test_a_forged_batch_is_refused_with_evidence(sluice: Run, folder: Path, rules: str) -> None:
    arguments = ("check", folder / "forged.parquet", "--rules", folder / rules)
    seen = sluice(*arguments, "--json")
    assert (seen.code, seen.json["admitted"], seen.json["rows"]) == (3, False, 2000)
    assert cast("float", seen.json["violating_share"]) > 0.1
    found = findings(seen)["S_PU1~F_PU1"]
    assert cast("int", found["violating_rows"]) > 300
    assert re.match(r"S_PU1 reads (on|off) while F_PU1 shows .* on \d+ of", str(found["sentence"]))
    shown = sluice(*arguments)
    assert shown.code == 3
    assert shown.out.startswith("not admitted, for ")
    assert "S_PU1 reads" in shown.out
    assert "a fault and an attack look the same" in shown.out


def test_a_leak_is_said(sluice: Run, folder: Path, tmp_path: Path) -> None:
    clean = read_record(folder / "clean.parquet")
    values = clean.values.copy()
    values[500:, clean.index("L_T1")] -= 0.01 * np.arange(1, 1501)
    leaking = tmp_path / "leaking.parquet"
    write(clean.with_values(values), leaking, FileLayout.PARQUET)
    arguments = ("check", leaking, "--rules", folder / "rules.json")
    (found,) = cast("list[dict[str, object]]", sluice(*arguments, "--json").json["drift"])
    assert set(found) == {"kind", "subject", "size", "unit", "since_row", "since", "sentence"}
    assert (found["kind"], found["subject"], found["since_row"]) == ("leak", "L_T1", 500)
    shown = sluice(*arguments).out
    assert "What may have changed in the plant" in shown
    assert "L_T1 loses about 7,200 L/h beyond its meters since about 2024-01-07 08:20" in shown
    assert (
        "What may have changed"
        not in sluice("check", folder / "clean.parquet", "--rules", folder / "rules.json").out
    )


def test_worst_rows_are_listed_with_times(sluice: Run, folder: Path) -> None:
    shown = sluice("check", folder / "forged.parquet", "--rules", folder / "rules.json")
    assert "Worst rows" in shown.out
    assert re.search(r"2024-01-0\d \d\d:\d\d:00 +S_PU1~F_PU1", shown.out)


def test_rows_choose_a_part(sluice: Run, folder: Path) -> None:
    arguments = ("check", folder / "forged.parquet", "--rules", folder / "rules.json", "--json")
    assert sluice(*arguments, "--rows", "0:480").code == 0
    assert sluice(*arguments, "--rows", "480:").code == 3


def test_a_policy_file_decides(sluice: Run, folder: Path, tmp_path: Path) -> None:
    arguments = ("check", folder / "forged.parquet", "--rules", folder / "paper.json", "--json")
    policy = tmp_path / "policy.toml"
    policy.write_text('kind = "paper"\nalpha = 0.9\n')
    assert sluice(*arguments, "--policy", policy).code == 0
    assert sluice(*arguments, "--policy", "paper").code == 3


@pytest.mark.parametrize("name", ["forged", "clean"])
def test_pages_are_self_contained_and_drawings_are_png(
    sluice: Run, folder: Path, tmp_path: Path, name: str
) -> None:
    page, drawing = tmp_path / "verdict.html", tmp_path / "verdict.png"
    record = folder / f"{name}.parquet"
    options = ("--html", page, "--png", drawing, "--quiet")
    seen = sluice("check", record, "--rules", folder / "rules.json", *options)
    assert seen.err == ""
    text = page.read_text(encoding="utf-8")
    assert not re.search(r'<(script|link)[^>]+(src|href)="http', text)
    assert "S_PU1~F_PU1" in text
    assert "evidence about telemetry" in text
    assert ("S_PU1 reads" in text) == (name == "forged")
    assert drawing.read_bytes().startswith(PNG)


def test_names_are_escaped_on_the_page(sluice: Run, folder: Path, tmp_path: Path) -> None:
    page, record = tmp_path / "verdict.html", tmp_path / "<b>x.parquet"
    record.write_bytes((folder / "forged.parquet").read_bytes())
    sluice("check", record, "--rules", folder / "rules.json", "--html", page, "--quiet")
    assert "<b>x" not in page.read_text(encoding="utf-8")


def test_rules_without_facts_do_not_choose_the_weaker_policy_unnoticed(
    sluice: Run, folder: Path, tmp_path: Path
) -> None:
    rules = load_rules(folder / "rules.json")
    save_rules(replace(rules, clean=None), tmp_path / "bare.json")
    arguments = ("check", folder / "clean.parquet", "--rules", tmp_path / "bare.json", "--json")
    seen = sluice(*arguments)
    assert "the paper's policy applies, which is weaker" in seen.err
    assert "weaker" not in sluice(*arguments, "--policy", "paper").err
    seen = sluice(*arguments, "--policy", "hardened")
    assert (seen.code, seen.out) == (2, "")
    assert "states nothing about clean batches" in seen.err


def test_empty_rules_need_leave(sluice: Run, folder: Path, tmp_path: Path) -> None:
    rules = load_rules(folder / "rules.json")
    bounds = tuple(rule for rule in rules.invariants if not rule.kind.physical)
    assert rules.clean is not None
    names = {rule.name for rule in bounds}
    severe = tuple(fact for fact in rules.clean.severe if fact.rule in names)
    clean = replace(rules.clean, severe=severe, envelope=(), anchors=(), switches=())
    bare = replace(rules, invariants=bounds, clean=clean)
    save_rules(replace(bare, untied=untied_channels(bare)), tmp_path / "empty.json")
    arguments = ("check", folder / "clean.parquet", "--rules", tmp_path / "empty.json", "--json")
    seen = sluice(*arguments)
    assert (seen.code, seen.out) == (2, "")
    assert "every batch in range would be admitted" in seen.err
    seen = sluice(*arguments, "--allow-empty")
    assert seen.code == 0
    assert "warning: the rules of" in seen.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rules", "nowhere.json"), "cannot be read"),
        (("--rows", "0:99999"), "has rows 0:2000"),
        (("--rows", "half"), "write rows as A:B"),
        (("--rows", "0:10"), "the policy takes 200 to"),
        (("--every", "2"), "mine rules at the batch's stride"),
        (("--policy", "softened"), "nor a readable file"),
        (("--html", "no/such/folder/x.html"), "cannot write"),
    ],
)
def test_bad_input_exits_2(
    sluice: Run, folder: Path, options: tuple[str, ...], message: str
) -> None:
    rules = ("--rules", folder / "rules.json")
    seen = sluice("check", folder / "clean.parquet", *rules, *options)
    assert (seen.code, seen.out) == (2, "")
    assert message in seen.err


def test_a_missing_channel_does_not_slip_past(
    sluice: Run, folder: Path, plant: Record, tmp_path: Path
) -> None:
    record = tmp_path / "fewer.parquet"
    write(plant.rows(8640, 9640).without("F_PU1"), record, FileLayout.PARQUET)
    seen = sluice("check", record, "--rules", folder / "rules.json")
    assert seen.code == 2
    assert "has no channel 'F_PU1', which rule 'S_PU1~F_PU1' reads" in seen.err


def test_a_page_that_cannot_be_written_leaves_no_other_page(
    sluice: Run, folder: Path, tmp_path: Path
) -> None:
    page = tmp_path / "page.html"
    seen = sluice(
        "check", folder / "clean.parquet", "--rules", folder / "rules.json",
        "--html", page, "--png", tmp_path / "nowhere" / "v.png",
    )  # fmt: skip
    assert seen.code == 2
    assert "there is no folder" in seen.err
    assert not page.exists()


@pytest.mark.parametrize(
    "command",
    [
        ("check", "clean.parquet", "--rules", "rules.json"),
        ("data", "inspect", "clean.parquet"),
        ("score", "clean.parquet", "--model", "m.safetensors", "--out", "scores.csv"),
        ("audit", "coverage", "clean.parquet", "--rules", "rules.json", "--figure", "c.png"),
    ],
)
def test_self_contained_without_a_page_is_refused(
    sluice: Run, folder: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...]
) -> None:
    monkeypatch.chdir(folder)
    Path("m.safetensors").touch()  # it is not read
    seen = sluice(*command, "--self-contained")
    assert (seen.code, seen.out) == (2, "")
    assert "--self-contained is about a page, and none is written; give --" in seen.err


def test_a_page_never_replaces_an_input(sluice: Run, tmp_path: Path) -> None:
    for name in ("batch.csv", "rules.json"):
        (tmp_path / name).write_text("kept")
    command = ("check", tmp_path / "batch.csv", "--rules", tmp_path / "rules.json")
    for option, name in (("--html", "batch.csv"), ("--png", "rules.json")):
        seen = sluice(*command, option, tmp_path / name)
        assert seen.code == 2
        assert "is an input of this command; write another file" in seen.err
        assert (tmp_path / name).read_text() == "kept"


def test_a_folder_that_is_not_there_is_an_input_error(sluice: Run, tmp_path: Path) -> None:
    seen = sluice("coordinator", "export-log", tmp_path / "nowhere", "--out", tmp_path / "log")
    assert seen.code == 2
    assert "No such file" in seen.err
    assert "bug" not in seen.err


def test_a_refused_batch_exits_with_3_when_its_output_is_cut_off(tmp_path: Path) -> None:
    plant = simulate("line", seed=0, days=6)
    rules = mine(plant.rows(0, 4_320), plant.rows(4_320, 7_000))
    save_rules(rules, tmp_path / "rules.json")
    batch = plant.rows(7_000, 8_000)
    values = batch.values.copy()
    values[:, batch.index("S_PU1")] = 1 - values[:, batch.index("S_PU1")]
    write(batch.with_values(values), tmp_path / "batch.csv", FileLayout.CSV)
    command = f"{sys.executable} -m sluice check batch.csv --rules rules.json"
    for end in ("| true", "| head -1", "--json | true"):
        piped = f"{command} {end}; exit ${{PIPESTATUS[0]}}"
        done = subprocess.run(["bash", "-c", piped], cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == 3, (end, done.stderr)
