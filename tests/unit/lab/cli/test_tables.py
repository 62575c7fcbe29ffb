"""The lab's words, tables and JSON from typed results; no plant is simulated."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from sluice.admission.gate import Gate
from sluice.admission.policy import HardenedPolicy
from sluice.errors import SettingError
from sluice.invariants.rulesfile import save_rules
from sluice.lab import audits
from sluice.lab.cli.attack import _refuse_unused, _rows_changed
from sluice.lab.cli.audit_tables import (
    ablation_payload,
    coverage_payload,
    panel,
    part_panel,
    separation_payload,
    show_coverage,
    show_separation,
    stems,
)
from sluice.lab.cli.federate import _format_reasons, _open
from sluice.lab.cli.grid_progress import _duration, _Pace
from sluice.lab.reports import Bar, Stem
from sluice.lab.results.work import Counts
from tests.unit.conftest import Outcome
from tests.unit.invariants.small_plant import EVERY_RULE, quiet_day, record_of

Run = Callable[..., Outcome]
GATE = Gate.of(EVERY_RULE, HardenedPolicy())
HONEST = audits.SeparationRow(
    kind="honest", mean_violating_share=0.0012, admitted_share=0.975, batches=40, low=0.9, high=1.0
)
ROLLED = replace(HONEST, kind="channel-roll", mean_violating_share=0.5, admitted_share=0.0)
NOT_TRIED = audits.Skipped(kind="scaling", why="no flow")
SEPARATED = audits.SeparationTable(rows=(HONEST, ROLLED), skipped=(NOT_TRIED,))
SEGMENT = audits.Segment(
    index=1,
    start="2026-03-01T00:01:00",
    end="2026-03-01T00:34:10",
    rows=200,
    violating_rows=3,
    violating_share=0.015,
    covered=True,
    chance=None,
    rule="P1~F1",
)
COVERED = audits.Coverage(
    segments=(SEGMENT, replace(SEGMENT, index=2, covered=False, chance=0.25)),
    honest_share=None,
    recovery_rows=30,
    honest_rows=0,
    honest_suspect_rows=0,
    recovering_rows=60,
    unlabelled_rows=1_234,
    unread=("T[3]", "P9"),
)


def test_separation_is_a_table_and_what_was_skipped() -> None:
    assert separation_payload(SEPARATED) == {
        "table": [
            {
                "kind": "honest",
                "mean_violating_share": 0.0012,
                "admitted_share": 0.975,
                "batches": 40,
                "low": 0.9,
                "high": 1.0,
            },
            {
                "kind": "channel-roll",
                "mean_violating_share": 0.5,
                "admitted_share": 0.0,
                "batches": 40,
                "low": 0.9,
                "high": 1.0,
            },
        ],
        "skipped": [{"kind": "scaling", "why": "no flow"}],
    }


def test_separation_is_shown_in_percent(capfd: pytest.CaptureFixture[str]) -> None:
    show_separation(GATE, SEPARATED, 1_000)
    shown = capfd.readouterr().out
    assert "march: batches of 1,000 rows, 5 rules" in shown
    assert "honest" in shown
    assert "0.120%" in shown
    assert "97.5%" in shown
    assert "90.0% to 100.0%" in shown
    assert "scaling was skipped: no flow" in shown


def test_coverage_counts_the_attacks_that_are_covered() -> None:
    payload = coverage_payload(COVERED)
    assert list(payload)[:5] == ["segments", "covered", "total", "honest_share", "recovery_rows"]
    assert (payload["attack_rows"], payload["suspect_attack_rows"]) == (400, 6)
    assert payload["missed"] == [2]
    assert payload["left_out"] == {
        "recovering_rows": 60,
        "unlabelled_rows": 1_234,
        "channels": ["T[3]", "P9"],
    }
    assert (payload["covered"], payload["total"]) == (1, 2)
    assert (payload["honest_share"], payload["recovery_rows"]) == (None, 30)


def test_coverage_that_is_not_known_is_called_unknown(capfd: pytest.CaptureFixture[str]) -> None:
    show_coverage(GATE, COVERED)
    shown = capfd.readouterr().out
    assert "1 of 2 attacks are covered, and 6 of 400 attack rows are suspect." in shown
    assert "Not covered: 2." in shown
    assert "0 of 0 normal rows are suspect (unknown)." in shown
    assert "60 rows that follow an attack within 30 rows, and 1,234 unlabelled rows." in shown
    assert "No rule reads 2 channels" in shown
    assert "T[3], P9" in shown
    first, second = (line for line in shown.splitlines() if "2026-03-01 00:01:00" in line)
    assert first.split()[-3:] == ["yes", "unknown", "P1~F1"]
    assert second.split()[-2:] == ["25.00%", "P1~F1"]


def part(coverage: audits.Coverage | None) -> audits.AblationPart:
    return audits.AblationPart(
        part=audits.Part.COUPLINGS, rules=2, separation=SEPARATED, coverage=coverage
    )


def test_ablation_repeats_the_table_for_each_part() -> None:
    payload = ablation_payload(audits.Ablation(parts=(part(None),)))
    assert list(payload) == ["table"]
    rows = payload["table"]
    assert isinstance(rows, list)
    assert [(row["part"], row["rules"], row["kind"]) for row in rows] == [
        (audits.Part.COUPLINGS.value, 2, "honest"),
        (audits.Part.COUPLINGS.value, 2, "channel-roll"),
    ]


def test_ablation_tells_coverage_where_a_labelled_record_was_given() -> None:
    payload = ablation_payload(audits.Ablation(parts=(part(COVERED),)))
    assert payload["coverage"] == [
        {
            "part": audits.Part.COUPLINGS.value,
            "rules": 2,
            "covered": 1,
            "total": 2,
            "honest_share": None,
        }
    ]


def test_bars_and_stems_take_their_numbers_from_the_tables() -> None:
    drawn = panel(GATE, SEPARATED)
    assert drawn.title == "march, hardened (5 rules)"
    assert drawn.bars[0] == Bar(kind="honest", share=0.0012, admitted_share=0.975)
    assert part_panel(part(None)).title == f"{audits.Part.COUPLINGS.value} (2 rules)"
    other = replace(
        COVERED, segments=tuple(replace(s, violating_share=0.5) for s in COVERED.segments)
    )
    assert stems([COVERED, other])[0] == Stem(index=1, rows=200, shares=(0.015, 0.5))


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0, "0 s"),
        (89.4, "89 s"),
        (90, "2 min"),
        (5_399, "90 min"),
        (5_400, "1.5 h"),
        (9_000, "2.5 h"),
    ],
)
def test_remaining_time_is_told_in_its_unit(seconds: float, text: str) -> None:
    assert _duration(seconds) == text


def counts(done: int, failed: int = 0) -> Counts:
    return Counts(
        cells=40, cells_done=done, works=40, waiting=40 - done - failed, running=0, done=done,
        failed=failed, recalled=0,
    )  # fmt: skip


def test_pace_counts_what_ended_since_this_run_began(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr("sluice.lab.cli.grid_progress.time.monotonic", lambda: clock[0])
    pace = _Pace()
    assert pace.describe(counts(10)) == "no federation finished yet"
    clock[0] = 160.0
    assert pace.describe(counts(18, failed=2)) == "10.0 per minute, 2 min left"
    clock[0] = 220.0
    assert pace.describe(counts(40)) == "15.0 per minute, 0 s left"


def test_rows_changed_are_counted_once_and_missing_readings_are_equal() -> None:
    columns = quiet_day()
    columns["L1"][3] = float("nan")
    before = record_of(columns)
    assert _rows_changed(before, before) == 0
    columns["L1"][5] += 1.0
    columns["F1"][5] += 1.0
    columns["L1"][3] = 600.0
    columns["P1"][9] = float("nan")
    assert _rows_changed(before, record_of(columns)) == 3


@pytest.mark.parametrize(
    ("name", "option", "users"),
    [
        (
            "scaling",
            "--target",
            "foreign-simulator, projection, replay, shaped-replay and untied-replay",
        ),
        ("channel-roll", "--share", "projection and replay"),
        ("replay", "--roll-seconds", "channel-roll"),
    ],
)
def test_an_option_that_an_attack_does_not_use_is_refused(
    name: str, option: str, users: str
) -> None:
    given = {"--target": None, "--share": None, "--roll-seconds": None}
    _refuse_unused(name, given)
    with pytest.raises(SettingError, match=f"{option} is for {users}; {name} does not use it"):
        _refuse_unused(name, {**given, option: 0.0})


def test_one_reason_is_quoted_and_more_are_counted() -> None:
    assert _format_reasons(("too still",)) == "too still"
    assert _format_reasons(("too still", "b", "c")) == "too still (and 2 more: result.json)"


def test_a_record_of_ones_own_has_no_days(tmp_path: Path) -> None:
    path = tmp_path / "march.csv"
    path.write_text("time,L1\n")
    with pytest.raises(SettingError, match="--days is for simulated plants"):
        _open(str(path), path, days=3.0, every=None)


@pytest.mark.parametrize(
    ("command", "message"),
    [
        (("audit", "separation", "day.csv", "--rules", "none.json"), "none.json cannot be read"),
        (
            ("audit", "separation", "day.csv", "--rules", "rules.json", "--size", 11),
            "Invalid value",
        ),
        (("audit", "coverage", "day.csv", "--rules", "rules.json", "--figure", "a.pdf"), "a.pdf"),
        (
            ("audit", "ablation", "day.csv", "--rules", "rules.json", "--batches", 0),
            "Invalid value",
        ),
        (("audit", "sampling", "day.csv", "--rules", "rules.json", "--violations", -1), "Invalid"),
        (("attack", "forging", "day.csv", "--out", "o.csv"), "'forging' is not one of"),
        (("attack", "scaling", "day.csv", "--out", "day.csv"), "is an input of this command"),
        (("attack", "scaling", "day.csv", "--out", "o.csv", "--policy", "paper"), "give --rules"),
        (("data", "make", "lime", "--out", "o.csv"), "did you mean 'line'"),
        (("data", "make", "line", "--out", "o.csv", "--seed", -1), "Invalid value"),
        (("data", "make", "line", "--out", "o.pdf"), "o.pdf"),
        (("lab", "plan", "none.toml"), "none.toml"),
        (("lab", "run", "paper", "--out", "r", "--workers", 0), "Invalid value"),
        (("lab", "status", "none"), "none"),
        (("lab", "export", "none", "--out", "o"), "none"),
        (("lab", "report", "none", "--out", "o.html"), "none"),
        (("lab", "audit", "none"), "none"),
        (("lab", "resume", "none"), "none"),
        (("federate", "--plant", "line", "--out", "r", "--clients", 0), "Invalid value"),
        (("federate", "--plant", "line", "--out", "r", "--rule", "medain"), "mean 'median'"),
        (("demo", "--seed", -1), "Invalid value"),
    ],
)
def test_bad_usage_exits_2_and_leaves_everything_as_it_was(
    sluice: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    command: tuple[object, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("day.csv").write_text("time,P1,F1,L1\n2026-03-01 00:00:00,0,0,600\n")
    save_rules(EVERY_RULE, Path("rules.json"))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    seen = sluice(*command, "--json")
    assert (seen.code, seen.out) == (2, "")
    assert message in " ".join(seen.err.replace("│", " ").split())
    after = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    assert after == before


def test_a_plan_counts_cells_and_federations_by_hand(sluice: Run, tmp_path: Path) -> None:
    """Two rules without an attack: each cell needs its own federation, on two seeds."""
    grid = tmp_path / "grid.toml"
    grid.write_text(
        'name = "tiny"\n[record.tanks]\nplant = "line"\ndays = 8.0\nclients = 5\n'
        '[[study]]\nname = "alone"\nrecords = ["tanks"]\nrules = ["fedavg", "median"]\n'
        'attacks = ["channel-roll"]\nmodes = ["clean"]\nseeds = [0, 1]\n'
    )
    seen = sluice("lab", "plan", grid, "--json")
    assert (seen.code, seen.err) == (0, "")
    assert seen.json == {
        "grid": "tiny", "cells": 4, "federations": 4, "avoided": 0, "stand_ins": [],
    }  # fmt: skip
    assert json.loads(seen.out) == seen.json
