"""`sluice attack` from the outside."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile
from sluice.invariants.rulesfile import save_rules
from sluice.lab.attacks.registry import DATA_ATTACKS
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.reading import read_record
from sluice.telemetry.record import Record
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write
from tests.unit.conftest import Outcome

Run = Callable[..., Outcome]
KEYS = {"rows_changed", "violating_before", "violating_after"}


@pytest.fixture(scope="module")
def clean() -> Record:
    return simulate("line", seed=0, days=3)


@pytest.fixture(scope="module")
def folder(clean: Record, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clean rows, labelled attacks, and rules of both kinds."""
    made = tmp_path_factory.mktemp("plant")
    fit, calibration = clean.rows(0, 1440), clean.rows(1440, 2880)
    rules = mine(fit, calibration, profile=Profile.PAPER_WIDE)
    save_rules(rules, made / "rules.json")
    save_rules(replace(rules, invariants=()), made / "empty.json")
    write(clean.rows(2880, 3880), made / "clean.parquet", FileLayout.PARQUET)
    attacked = simulate("line", seed=4, days=1, attacks=True)
    write(attacked, made / "labelled.parquet", FileLayout.PARQUET)
    write(attacked.without("L_T2"), made / "fewer.parquet", FileLayout.PARQUET)
    return made


@pytest.fixture
def inside(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same folder, entered."""
    monkeypatch.chdir(folder)
    return folder


def attack(sluice: Run, folder: Path, name: str, out: Path, *options: object) -> Outcome:
    return sluice("attack", name, folder / "clean.parquet", "--out", out, *options)


def test_help_has_an_example_and_every_name(sluice: Run) -> None:
    text = sluice("attack", "--help").out
    assert "Example: sluice attack" in text
    for name in DATA_ATTACKS:
        assert name in text


@pytest.mark.parametrize("name", ["channel-roll", "permutation", "scaling", "splicing"])
def test_violating_rows_are_counted_before_and_after(
    sluice: Run, folder: Path, clean: Record, tmp_path: Path, name: str
) -> None:
    rules = ("--rules", folder / "rules.json", "--policy", "paper")
    seen = attack(sluice, folder, name, tmp_path / "out.parquet", *rules, "--json")
    assert (seen.code, seen.err) == (0, "")
    assert set(seen.json) == KEYS
    written = read_record(tmp_path / "out.parquet")
    before = clean.rows(2880, 3880)
    changed = np.count_nonzero((written.values != before.values).any(axis=1))
    assert seen.json["rows_changed"] == changed > 0
    assert written.names == before.names
    assert np.array_equal(written.times, before.times)
    violating = cast("int", seen.json["violating_after"])
    assert cast("int", seen.json["violating_before"]) < 10
    assert (violating > 100) is (name != "splicing")
    checked = sluice("check", tmp_path / "out.parquet", *rules, "--json")
    assert checked.json["violating_rows"] == violating


def test_without_rules_nothing_is_counted(sluice: Run, folder: Path, tmp_path: Path) -> None:
    seen = attack(sluice, folder, "scaling", tmp_path / "out.csv", "--json")
    assert seen.json == {
        "rows_changed": 1000,
        "violating_before": None,
        "violating_after": None,
    }


def test_replay_overwrites_a_quarter_or_the_share_asked_for(
    sluice: Run, folder: Path, tmp_path: Path
) -> None:
    target = ("--target", folder / "labelled.parquet", "--seed", 3, "--json")
    quarter = attack(sluice, folder, "replay", tmp_path / "a.parquet", *target)
    tenth = attack(sluice, folder, "replay", tmp_path / "b.parquet", *target, "--share", 0.1)
    assert 100 < cast("int", quarter.json["rows_changed"]) <= 250
    assert 0 < cast("int", tenth.json["rows_changed"]) <= 100


def test_projection_undoes_what_the_rules_see(sluice: Run, folder: Path, tmp_path: Path) -> None:
    rules = ("--rules", folder / "rules.json", "--json")
    rolled = tmp_path / "rolled.parquet"
    forged = attack(sluice, folder, "channel-roll", rolled, *rules)
    seen = sluice("attack", "projection", rolled, "--out", tmp_path / "out.parquet", *rules)
    assert seen.code == 0
    assert seen.json["violating_before"] == forged.json["violating_after"]
    assert cast("int", seen.json["violating_after"]) <= 10
    moved, given = read_record(tmp_path / "out.parquet"), read_record(rolled)
    assert np.array_equal(moved.column("S_PU1"), given.column("S_PU1"))


def test_projection_takes_a_replay_with_it(sluice: Run, folder: Path, tmp_path: Path) -> None:
    options = ("--rules", folder / "rules.json", "--target", folder / "labelled.parquet", "--json")
    replayed = attack(sluice, folder, "replay", tmp_path / "a.parquet", *options)
    hidden = attack(sluice, folder, "projection", tmp_path / "b.parquet", *options)
    assert cast("int", replayed.json["violating_after"]) > 10
    assert cast("int", hidden.json["violating_after"]) <= 10
    assert cast("int", hidden.json["rows_changed"]) > 100


def test_a_seed_repeats_itself(sluice: Run, folder: Path, tmp_path: Path) -> None:
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        attack(sluice, folder, "splicing", tmp_path / f"{name}.csv", "--seed", seed)
    a, b, c = ((tmp_path / f"{name}.csv").read_bytes() for name in "abc")
    assert a == b != c


def test_a_roll_is_given_in_plant_time(
    sluice: Run, folder: Path, clean: Record, tmp_path: Path
) -> None:
    attack(sluice, folder, "channel-roll", tmp_path / "a.parquet", "--roll-seconds", 180)
    rolled = read_record(tmp_path / "a.parquet").column("S_PU1")
    assert np.array_equal(rolled, np.roll(clean.rows(2880, 3880).column("S_PU1"), 3))


@pytest.mark.parametrize("name", ["out.csv", "out.csv.gz", "out.parquet", "out.jsonl"])
def test_the_suffix_says_how_it_is_written(
    sluice: Run, folder: Path, tmp_path: Path, name: str
) -> None:
    assert attack(sluice, folder, "scaling", tmp_path / name, "--quiet").code == 0
    assert len(read_record(tmp_path / name)) == 1000


def test_people_see_a_table(sluice: Run, folder: Path, tmp_path: Path) -> None:
    rules = ("--rules", folder / "rules.json")
    seen = attack(sluice, folder, "scaling", tmp_path / "out.csv", *rules)
    assert seen.code == 0
    assert "scaling on 1,000 rows" in seen.out
    assert "violating after" in seen.out
    assert "keep it separate" in seen.out
    assert "attacking 1,000 rows (scaling)" in seen.err


def test_rules_without_physics_are_gone_on_with_aloud(
    sluice: Run, folder: Path, tmp_path: Path
) -> None:
    empty = ("--rules", folder / "empty.json")
    refused = attack(sluice, folder, "scaling", tmp_path / "out.csv", *empty)
    assert (refused.code, "--allow-empty" in refused.err) == (2, True)
    allowed = attack(sluice, folder, "scaling", tmp_path / "out.csv", *empty, "--allow-empty")
    assert (allowed.code, "warning" in allowed.err) == (0, True)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (("replay",), "replay writes labelled attacks into the record; give a record"),
        (("projection",), "projection moves readings onto rules; give them (--rules)"),
        (("replay", "--target", "clean.parquet"), "no row labelled attack"),
        (("replay", "--target", "fewer.parquet"), "has no channel 'L_T2'"),
        (("replay", "--target", "nowhere.csv"), "nowhere.csv"),
        (("replay", "--target", "labelled.parquet", "--share", "2"), "at most 1, got 2"),
        (
            ("scaling", "--target", "labelled.parquet"),
            "--target is for foreign-simulator, projection, replay, shaped-replay and",
        ),
        (("scaling", "--share", "0.1"), "--share is for"),
        (("scaling", "--roll-seconds", "60"), "--roll-seconds is for channel-roll"),
        (("scaling", "--policy", "paper"), "--policy judges with rules; give --rules too"),
        (("scaling", "--rules", "nowhere.json"), "nowhere.json"),
        (("scaling", "--out", "out.xlsx"), "the file name 'out.xlsx' does not imply a layout"),
        (("scaling", "--out", "no/such/folder/out.csv"), "there is no folder"),
        (("drowning",), "'drowning' is not one of"),
    ],
)
def test_bad_input_exits_2_and_writes_nothing(
    sluice: Run, inside: Path, tmp_path: Path, line: tuple[str, ...], message: str
) -> None:
    before = sorted(inside.iterdir())
    name, *options = line
    seen = attack(sluice, inside, name, tmp_path / "out.csv", *options)
    assert (seen.code, seen.out) == (2, "")
    assert message in seen.err
    assert not (tmp_path / "out.csv").exists()
    assert sorted(inside.iterdir()) == before


@pytest.mark.parametrize("read", ["clean.parquet", "labelled.parquet", "plant.csv"])
def test_what_is_read_is_not_written_over(sluice: Run, folder: Path, read: str) -> None:
    path = folder / read
    (folder / "plant.csv").touch()
    before = path.read_bytes()
    target = ("--target", folder / "labelled.parquet", "--plant", folder / "plant.csv")
    seen = attack(sluice, folder, "replay", path, *target)
    assert (seen.code, "is an input of this command" in seen.err) == (2, True)
    assert path.read_bytes() == before
    (folder / "plant.csv").unlink(missing_ok=True)


def test_a_file_of_a_folder_that_is_read_is_not_written_over(sluice: Run, folder: Path) -> None:
    before = (folder / "clean.parquet").read_bytes()
    seen = sluice("attack", "scaling", folder, "--out", folder / "clean.parquet")
    assert (seen.code, "is an input of this command" in seen.err) == (2, True)
    assert (folder / "clean.parquet").read_bytes() == before
