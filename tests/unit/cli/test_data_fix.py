"""`sluice data inspect --fix`: questions on stderr, answers from a pipe, then a plant file."""

import io
from collections.abc import Callable
from pathlib import Path

import pytest

from sluice.telemetry import Role, read_plant_file, read_record
from tests.unit.conftest import Outcome

Run = Callable[..., Outcome]
AMBIGUOUS = "Datum;X1;P7\n01/02/2014 10:00:00;1,234;RUN\n01/02/2014 10:00:05;2,345;rennt\n"
EVENTS = (
    "time,tag,value\n2024-03-01 10:00:01,LIT101,0.5\n2024-03-01 10:00:03,FIT101,1\n"
    "2024-03-01 10:00:12,LIT101,1.5\n2024-03-01 10:00:22,LIT101,1.5\n"
)


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    def give(*lines: str) -> None:
        monkeypatch.setattr("sys.stdin", io.StringIO("".join(f"{line}\n" for line in lines)))

    return give


@pytest.fixture
def export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "export.csv"
    path.write_text(AMBIGUOUS)
    return path


def test_every_question_is_asked_once_and_the_answers_are_written(
    sluice: Run, export: Path, answers: Callable[..., None], tmp_path: Path
) -> None:
    answers("2", "1", "3", "flow")  # month first, decimal comma, rennt = 1, the role of X1
    seen = sluice("data", "inspect", export, "--fix", "--json")
    assert seen.code == 0, seen.err
    assert seen.json["rows"] == 2
    assert "can be 2014-02-01 or 2014-01-02" in seen.err
    assert "(proposed)" in seen.err
    record = read_record(export, plant=read_plant_file(tmp_path / "plant.toml"))
    assert str(record.times[0]) == "2014-01-02T10:00:00.000000"
    assert record.column("X1").tolist() == [1.234, 2.345]
    assert record.column("P7").tolist() == [1, 1]
    assert record.channel("X1").role is Role.FLOW
    again = sluice("data", "inspect", export, "--plant", tmp_path / "plant.toml", "--json")
    assert again.json["rows"] == 2


def test_an_empty_line_takes_the_proposal_and_a_wrong_one_is_asked_again(
    sluice: Run, export: Path, answers: Callable[..., None], tmp_path: Path
) -> None:
    answers("seven", "", "", "", "all")
    seen = sluice("data", "inspect", export, "--fix", "--write-plant", tmp_path / "mine.toml")
    assert seen.code == 0, seen.err
    assert "'seven' is none of the answers" in seen.err
    plant = read_plant_file(tmp_path / "mine.toml")
    assert (plant.date_order, plant.decimal) == ("dmy", ",")
    assert "rennt" in plant.missing


def test_answers_that_end_early_exit_2_and_write_nothing(
    sluice: Run, export: Path, answers: Callable[..., None], tmp_path: Path
) -> None:
    answers("1")
    seen = sluice("data", "inspect", export, "--fix")
    assert (seen.code, seen.out) == (2, "")
    assert "the answers ended before all questions were answered" in seen.err
    assert {path.name for path in tmp_path.iterdir()} == {"export.csv"}


def test_events_are_resampled_by_an_answer(
    sluice: Run, answers: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "events.csv"
    path.write_text(EVENTS)
    answers("last", "5")
    seen = sluice("data", "inspect", path, "--fix", "--json")
    assert seen.code == 0, seen.err
    assert seen.json["stride_s"] == 5
    plant = read_plant_file(tmp_path / "plant.toml")
    assert (plant.resample, plant.stride_s) == ("last", 5)


def test_a_plant_file_that_exists_is_refused_before_any_question(
    sluice: Run, export: Path, answers: Callable[..., None], tmp_path: Path
) -> None:
    (tmp_path / "plant.toml").write_text("# my corrections")
    answers("1", "1", "1")
    seen = sluice("data", "inspect", export, "--fix")
    assert seen.code == 2
    assert "may contain corrections" in seen.err
    assert "proposed" not in seen.err


def test_a_clear_record_needs_no_answer(
    sluice: Run, answers: Callable[..., None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "clear.csv"
    path.write_text("time,LIT101\n2024-03-01 10:00:00,1\n2024-03-01 10:00:05,2\n")
    answers()
    assert sluice("data", "inspect", path, "--fix").code == 0
    assert read_plant_file(tmp_path / "plant.toml").time == "time"


def test_without_fix_the_refusal_offers_it(sluice: Run, export: Path) -> None:
    seen = sluice("data", "inspect", export, "--json")
    assert (seen.code, seen.out) == (2, "")
    assert len(seen.err.strip().splitlines()) == 1
    assert "sluice data inspect --fix" in seen.err
    assert '[record] date_order = "dmy"' in seen.err


def test_several_files_are_one_record(sluice: Run, tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("march.csv", "april.csv")]
    for path, month in zip(paths, ("03", "04"), strict=True):
        path.write_text(f"time,LIT101\n2024-{month}-01 00:00:00,1\n2024-{month}-01 00:00:05,2\n")
    assert sluice("data", "inspect", *reversed(paths), "--json").json["rows"] == 4
    out = tmp_path / "both.parquet"
    assert sluice("data", "convert", *paths, "--out", out, "--json").json == {"rows": 4}
    assert len(read_record(out)) == 4
    seen = sluice("data", "convert", *paths, "--out", paths[1])
    assert seen.code == 2
    assert "is the record itself" in seen.err


def test_a_unit_in_brackets_is_not_lost_on_the_screen(sluice: Run, tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    path.write_text("time,FT-1 [m3/h],P7\n2024-03-01 10:00,1,RUN\n2024-03-01 10:01,2,STOP\n")
    shown = sluice("data", "inspect", path).out
    assert "FT-1 [m3/h]" in shown
    assert "values: RUN, STOP" in shown
