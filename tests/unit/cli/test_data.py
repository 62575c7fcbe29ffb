"""`sluice data` from the outside: exit codes, JSON keys, files written whole or not at all."""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from sluice.telemetry.reading import read_record
from tests.unit.conftest import Outcome

Run = Callable[..., Outcome]

RECORD = "time,LIT101,FIT101,MV101\n" + "".join(
    f"2024-03-01 10:00:{second:02},{500 + second},2.5,2\n" for second in range(0, 60, 5)
)


@pytest.fixture
def record(tmp_path: Path) -> Path:
    path = tmp_path / "plant.csv"
    path.write_text(RECORD)
    return path


def files(folder: Path) -> set[str]:
    return {found.name for found in folder.iterdir() if found.name != "cache"}


def test_help_has_an_example_for_every_command(sluice: Run) -> None:
    for command in (
        ("demo",),
        ("data", "list"),
        ("data", "make"),
        ("data", "inspect"),
        ("data", "convert"),
    ):
        seen = sluice(*command, "--help")
        assert seen.code == 0
        assert re.search(r"Example: sluice " + " ".join(command), seen.out), command


def test_list_names_plants_and_formats(sluice: Run) -> None:
    plants = cast("list[dict[str, object]]", sluice("data", "list", "--json").json["plants"])
    assert {"line", "treatment"} <= {plant["name"] for plant in plants}
    assert "treatment" in sluice("data", "list").out


def test_make_writes_the_same_bytes_for_the_same_seed(sluice: Run, tmp_path: Path) -> None:
    made = [tmp_path / f"{name}.csv" for name in ("one", "two", "other")]
    for path, seed in zip(made, (3, 3, 4), strict=True):
        seen = sluice("data", "make", "line", "--out", path, "--days", 2, "--seed", seed, "--json")
        assert (seen.code, seen.json["rows"], seen.json["channels"]) == (0, 2880, 11)
    assert made[0].read_bytes() == made[1].read_bytes() != made[2].read_bytes()


def test_make_labels_attacks(sluice: Run, tmp_path: Path) -> None:
    path = tmp_path / "attacked.parquet"
    seen = sluice("data", "make", "line", "--out", path, "--days", 20, "--attacks", "--json")
    assert seen.json["attacks"] == len(read_record(path).attack_segments) > 0


def test_make_warns_of_a_network_in_which_nothing_switches(sluice: Run, tmp_path: Path) -> None:
    ran = sluice(
        "data", "make", "network:Net2", "--days", "3", "--json", "--out", tmp_path / "n.csv"
    )
    assert ran.code == 0
    assert "WARNING: nothing switches in 3 days of network 'Net2'" in ran.err


def test_inspect_tells_what_it_sees(sluice: Run, record: Path) -> None:
    told = sluice("data", "inspect", record, "--json").json
    assert (told["rows"], told["stride_s"], told["attack_rows"], told["unlabelled_rows"]) == (
        12,
        5.0,
        0,
        12,
    )
    assert told["roles"] == {"level": 1, "flow": 1, "actuator": 1}
    assert told["gaps"] == told["attack_segments"] == []
    first = told["channels"][0]  # type: ignore[index]
    assert (first["name"], first["role"]) == ("LIT101", "level")
    shown = sluice("data", "inspect", record)
    assert shown.code == 0
    assert "ISA tag: LIT, LT is a level" in shown.out


def test_inspect_thins_and_cuts(sluice: Run, record: Path) -> None:
    told = sluice("data", "inspect", record, "--skip-seconds", 10, "--every", 2, "--json").json
    assert (told["rows"], told["stride_s"]) == (5, 10.0)


def test_inspect_draws_a_self_contained_page(sluice: Run, record: Path, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    assert sluice("data", "inspect", record, "--html", page, "--quiet").code == 0
    text = page.read_text(encoding="utf-8")
    assert "LIT101" in text
    assert not re.search(r'<(script|link)[^>]+(src|href)="http', text)


def test_inspect_writes_a_plant_file_to_correct(sluice: Run, record: Path, tmp_path: Path) -> None:
    told = tmp_path / "plant.toml"
    assert sluice("data", "inspect", record, "--write-plant", told, "--json").code == 0
    told.write_text(told.read_text().replace('"level"', '"pressure"'))
    roles = sluice("data", "inspect", record, "--plant", told, "--json").json["roles"]
    assert roles == {"pressure": 1, "flow": 1, "actuator": 1}


@pytest.mark.parametrize("suffix", ["csv", "parquet", "jsonl"])
def test_convert_keeps_every_value(sluice: Run, record: Path, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"converted.{suffix}"
    assert sluice("data", "convert", record, "--out", path, "--json").json == {"rows": 12}
    before, after = read_record(record), read_record(path)
    assert before.names == after.names
    assert (before.values == after.values).all()
    assert (before.times == after.times).all()


def test_progress_goes_to_stderr_and_quiet_silences_it(
    sluice: Run, record: Path, tmp_path: Path
) -> None:
    path = tmp_path / "out.csv"
    assert "converting" in sluice("data", "convert", record, "--out", path).err
    assert sluice("data", "convert", record, "--out", path, "--quiet").err == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("data", "inspect", "nowhere.csv"), "does not exist"),
        (("data", "make", "lien", "--out", "x.csv"), "did you mean 'line'"),
        (("data", "make", "line", "--out", "x.csv", "--days", "-1"), "more than 0 days"),
        (("data", "make", "line", "--out", "x.csv", "--days", "1e9"), "up to 3660"),
        (("data", "make", "line", "--out", "x.doc"), "x.doc"),
        (("data", "make", "line", "--out", "no/such/folder/x.csv", "--days", "1"), "cannot write"),
        (("data", "make", "network:Nett1", "--out", "x.csv"), "Net1"),
        (("data", "make"), "Missing argument"),
        (("data", "nothing"), "No such command"),
        (("data", "inspect", "x", "--every", "0"), "Invalid value"),
    ],
)
def test_bad_usage_exits_2_with_a_sentence_and_writes_nothing(
    sluice: Run,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
    message: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    seen = sluice(*arguments)
    assert (seen.code, seen.out) == (2, "")
    assert message in seen.err
    assert "Traceback" not in seen.err
    assert files(tmp_path) == set()


def test_a_bad_record_writes_nothing(sluice: Run, tmp_path: Path) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_text(RECORD.replace("505,", "high,"))
    out = tmp_path / "out.parquet"
    seen = sluice("data", "convert", bad, "--out", out, "--json")
    assert (seen.code, seen.out) == (2, "")
    assert "'LIT101' holds 'high'" in seen.err
    assert files(tmp_path) == {"bad.csv"}


def test_converting_a_record_onto_itself_is_refused(sluice: Run, record: Path) -> None:
    seen = sluice("data", "convert", record, "--out", record)
    assert seen.code == 2
    assert record.read_text() == RECORD


def test_a_bug_exits_1_without_a_traceback(
    sluice: Run, record: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("sluice.cli.data.summarise", broken)
    seen = sluice("data", "inspect", record)
    assert seen.code == 1
    assert "a bug in Sluice: ZeroDivisionError" in seen.err
    assert "Traceback" not in seen.err


def test_version(sluice: Run) -> None:
    assert sluice("--version").out.startswith("sluice 0.")


@pytest.mark.parametrize(
    ("case", "data"),
    [
        ("truncated", RECORD.encode()[:-12]),
        ("wrong delimiter", RECORD.replace(",", ":").encode()),
        ("mixed types", RECORD.replace("505,", "high,").encode()),
        ("duplicated tags", RECORD.replace("FIT101", "LIT101").encode()),
        ("backward clock", RECORD.replace("10:00:30", "09:00:30").encode()),
        ("empty", b""),
        ("1e34", RECORD.replace("505,", "1e34,").encode()),
        ("header only", RECORD.splitlines(keepends=True)[0].encode()),
        ("binary garbage", bytes(range(256)) * 20),
    ],
)
def test_every_kind_of_bad_input_exits_2_with_one_sentence(
    sluice: Run, tmp_path: Path, case: str, data: bytes
) -> None:
    bad = tmp_path / "bad.csv"
    bad.write_bytes(data)
    seen = sluice("data", "inspect", bad, "--html", tmp_path / "page.html", "--json")
    assert (seen.code, seen.out) == (2, ""), case
    assert len(seen.err.strip().splitlines()) == 1
    assert files(tmp_path) == {"bad.csv"}


def test_a_folder_without_records_exits_2(sluice: Run, tmp_path: Path) -> None:
    seen = sluice("data", "inspect", tmp_path, "--json")
    assert (seen.code, seen.out) == (2, "")
    assert "holds no plant record" in seen.err


@pytest.mark.parametrize("seconds", ["nan", "inf", "1e12"])
def test_skipping_more_than_there_is_names_the_option(
    sluice: Run, record: Path, seconds: str
) -> None:
    seen = sluice("data", "inspect", record, "--skip-seconds", seconds)
    assert seen.code == 2
    assert "--skip-seconds" in seen.err


def test_a_plant_file_with_corrections_is_not_overwritten(
    sluice: Run, record: Path, tmp_path: Path
) -> None:
    told = tmp_path / "plant.toml"
    told.write_text("# my corrections")
    seen = sluice("data", "inspect", record, "--write-plant", told)
    assert seen.code == 2
    assert "may contain corrections" in seen.err
    assert told.read_text() == "# my corrections"


def test_a_reader_that_goes_away_is_no_fault() -> None:
    command = Path(sys.executable).parent / "sluice"
    piped = f"{command} data list | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", piped], capture_output=True, check=False)
    assert done.returncode == 0
    assert done.stdout.startswith(b"Simulated plants")
