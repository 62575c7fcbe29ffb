"""`sluice audit`: the tables of appendix A, as JSON, as text and drawn."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.invariants.rulesfile import save_rules
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.record import Record
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write
from tests.unit.conftest import Outcome

Run = Callable[..., Outcome]
Rows = list[dict[str, object]]

KINDS = [
    "honest",
    "channel-roll",
    "permutation",
    "scaling",
    "splicing-record",
    "splicing-batch",
]
SMALL = ("--batches", 4, "--size", 300)
PNG = b"\x89PNG\r\n\x1a\n"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plant's clean and labelled records and its rules, strict and of the paper."""
    folder = tmp_path_factory.mktemp("plant")
    record = simulate("line", seed=1, days=5)
    write(record, folder / "clean.parquet", FileLayout.PARQUET)
    attacked = simulate("line", seed=2, days=6, attacks=True)
    write(attacked, folder / "bad.parquet", FileLayout.PARQUET)
    half = len(record) // 2
    fit, calibration = record.rows(0, half), record.rows(half, len(record))
    for profile in (Profile.HARDENED, Profile.PAPER_NARROW):
        rules = mine(fit, calibration, profile=profile)
        save_rules(rules, folder / f"{profile.value}.json")
    save_rules(_empty(record), folder / "empty.json")
    return folder


def _empty(record: Record) -> RuleSet:
    bare = record.select(["S_PU1", "L_T1"])
    return mine(bare, bare, profile=Profile.PAPER_NARROW)


@pytest.mark.parametrize("command", ["separation", "coverage", "ablation"])
def test_help_has_an_example(sluice: Run, command: str) -> None:
    seen = sluice("audit", command, "--help")
    assert seen.code == 0
    assert re.search(rf"Example: sluice audit {command}", seen.out)


def test_separation_gives_the_table_of_the_contract(sluice: Run, cache: Path) -> None:
    rules = cache / "hardened.json"
    seen = sluice(
        "audit", "separation", cache / "clean.parquet", "--rules", rules, *SMALL, "--json"
    )
    assert (seen.code, seen.err) == (0, "")
    table = cast("Rows", seen.json["table"])
    assert [row["kind"] for row in table] == KINDS
    for row in table:
        assert set(row) == {
            "kind",
            "mean_violating_share",
            "admitted_share",
            "batches",
            "low",
            "high",
        }
        assert row["batches"] == 4
    assert seen.json["skipped"] == []


def test_separation_is_shown_and_drawn(sluice: Run, cache: Path, tmp_path: Path) -> None:
    drawn = tmp_path / "separation.png"
    rules = cache / "paper-narrow.json"
    record = cache / "clean.parquet"
    seen = sluice("audit", "separation", record, "--rules", rules, *SMALL, "--figure", drawn)
    assert seen.code == 0
    assert all(kind in seen.out for kind in KINDS)
    assert "judging 4 batches" in seen.err
    assert drawn.read_bytes().startswith(PNG)


def test_separation_takes_a_policy_rows_and_a_roll(sluice: Run, cache: Path) -> None:
    rules = cache / "hardened.json"
    common = ("audit", "separation", cache / "clean.parquet", "--rules", rules, *SMALL, "--json")
    short, long = (
        cast("Rows", sluice(*common, "--policy", "paper", "--roll-seconds", s).json["table"])
        for s in (60, 3_600)
    )
    assert short[0] == long[0]
    assert cast("float", short[1]["mean_violating_share"]) < cast(
        "float", long[1]["mean_violating_share"]
    )
    assert sluice(*common, "--rows", "100:2000").code == 0
    assert "fewer than one batch" in sluice(*common, "--rows", ":200").err


def test_coverage_gives_the_segments_of_the_contract(sluice: Run, cache: Path) -> None:
    rules = cache / "hardened.json"
    seen = sluice("audit", "coverage", cache / "bad.parquet", "--rules", rules, "--json")
    assert (seen.code, seen.err) == (0, "")
    segments = cast("Rows", seen.json["segments"])
    assert seen.json["total"] == len(segments) > 0
    assert seen.json["covered"] == sum(bool(segment["covered"]) for segment in segments)
    assert 0 <= cast("float", seen.json["honest_share"]) < 0.1
    assert {
        "index",
        "start",
        "end",
        "rows",
        "violating_rows",
        "violating_share",
        "covered",
        "rule",
    } <= set(segments[0])


def test_coverage_under_two_rule_sets_is_drawn_on_a_self_contained_page(
    sluice: Run, cache: Path, tmp_path: Path
) -> None:
    page = tmp_path / "coverage.html"
    rules = ("--rules", cache / "paper-narrow.json", "--compare", cache / "hardened.json")
    seen = sluice("audit", "coverage", cache / "bad.parquet", *rules, "--figure", page)
    assert seen.code == 0
    assert seen.out.count("attacks are covered") == 2
    text = page.read_text(encoding="utf-8")
    assert "paper-narrow" in text
    assert not re.search(r'<(script|link)[^>]+(src|href)="http', text)
    told = sluice("audit", "coverage", cache / "bad.parquet", *rules, "--json").json
    assert cast("dict[str, object]", told["compared"])["total"] == told["total"]


def test_coverage_is_drawn_for_one_rule_set(sluice: Run, cache: Path, tmp_path: Path) -> None:
    drawn = tmp_path / "coverage.png"
    rules = ("--rules", cache / "hardened.json")
    record = cache / "bad.parquet"
    assert sluice("audit", "coverage", record, *rules, "--figure", drawn, "--quiet").err == ""
    assert drawn.read_bytes().startswith(PNG)


def test_ablation_tries_every_part(sluice: Run, cache: Path, tmp_path: Path) -> None:
    page = tmp_path / "parts.html"
    common = ("audit", "ablation", cache / "clean.parquet", "--rules", cache / "hardened.json")
    labelled = ("--labelled", cache / "bad.parquet", "--figure", page)
    told = sluice(*common, *labelled, *SMALL, "--json").json
    parts = [row["part"] for row in cast("Rows", told["table"])]
    ties = "ties, constants, switch bands, spectra and means"
    assert list(dict.fromkeys(parts)) == ["bounds and rates", "couplings", "balances", ties, "all"]
    assert len(parts) == 5 * len(KINDS)
    assert [row["part"] for row in cast("Rows", told["coverage"])] == list(dict.fromkeys(parts))
    assert "bounds and rates" in page.read_text(encoding="utf-8")
    shown = sluice(*common, *SMALL)
    assert shown.code == 0
    assert "couplings" in shown.out


def test_rules_without_physics_need_a_word(sluice: Run, cache: Path) -> None:
    record = cache / "clean.parquet"
    common = ("audit", "separation", record, "--rules", cache / "empty.json", *SMALL, "--json")
    refused = sluice(*common)
    assert (refused.code, refused.out) == (2, "")
    assert "--allow-empty" in refused.err
    allowed = sluice(*common, "--allow-empty")
    assert allowed.code == 0
    assert "hold no coupling, balance or window" in allowed.err
    assert {row["admitted_share"] for row in cast("Rows", allowed.json["table"])} == {1.0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("separation", "clean.parquet", "--rules", "nowhere.json"), "nowhere.json"),
        (("separation", "clean.parquet"), "Missing option"),
        (("separation", "bad.parquet", "--rules", "hardened.json"), "not honest"),
        (("separation", "clean.parquet", "--rules", "hardened.json", "--rows", "7"), "A:B"),
        (("separation", "clean.parquet", "--rules", "hardened.json", "--size", "5"), "Invalid"),
        (("coverage", "clean.parquet", "--rules", "hardened.json"), "no row labelled as attack"),
        (("coverage", "bad.parquet", "--rules", "hardened.json", "--every", "2"), "stride"),
        (("coverage", "bad.parquet", "--rules", "hardened.json", "--figure", "x.gif"), "x.gif"),
        (
            ("coverage", "bad.parquet", "--rules", "paper-narrow.json", "--policy", "hardened"),
            "hardened",
        ),
        (("ablation", "bad.parquet", "--rules", "hardened.json"), "not honest"),
    ],
)
def test_bad_usage_exits_2_with_a_sentence_and_writes_nothing(
    sluice: Run,
    cache: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(cache)
    before = sorted(cache.iterdir())
    seen = sluice("audit", *arguments)
    assert (seen.code, seen.out) == (2, "")
    assert message in seen.err
    assert "Traceback" not in seen.err
    assert sorted(cache.iterdir()) == before
