"""Shared options and printing: rows A:B and shares at their edges, inputs that are kept."""

from collections.abc import Callable
from pathlib import Path

import pytest

from sluice.cli import console
from sluice.cli.console import counted, emit, known, warn, working
from sluice.cli.options import open_record, range_of, refuse_overwriting, slice_of
from sluice.errors import SettingError
from sluice.telemetry.record import Record
from tests.unit.conftest import Outcome
from tests.unit.invariants.small_plant import record_of

Run = Callable[..., Outcome]
TEN = record_of({"L1": [float(at) for at in range(10)]})


def rows(text: str) -> tuple[int, int]:
    run = range_of(text, TEN, option="--rows")
    return run.start, run.stop


@pytest.mark.parametrize(
    ("text", "found"),
    [("0:10", (0, 10)), (":", (0, 10)), ("3:", (3, 10)), (":3", (0, 3)), (" 9:10 ", (9, 10))],
)
def test_rows_are_a_python_slice(text: str, found: tuple[int, int]) -> None:
    assert rows(text) == found


@pytest.mark.parametrize("text", ["0:11", "5:5", "6:5", "10:", ":0"])
def test_rows_outside_the_record_are_refused(text: str) -> None:
    with pytest.raises(SettingError, match=f"--rows is {text}; record 'march' has rows 0:10"):
        rows(text)


@pytest.mark.parametrize("text", ["", "5", "-3:", "1:2:3", "a:b", "1.5:3"])
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(SettingError, match="write rows as A:B, such as 0:5000"):
        rows(text)


def sliced(text: str, after: int = 0, record: Record = TEN) -> tuple[int, int]:
    run = slice_of(text, record, after=after, option="--fit")
    return run.start, run.stop


@pytest.mark.parametrize(
    ("text", "after", "found"),
    [
        ("1", 0, (0, 10)),
        ("0.1", 0, (0, 1)),
        ("0.19", 0, (0, 1)),
        ("0.3", 7, (7, 10)),
        ("2:4", 7, (2, 4)),  # a range does not follow another
    ],
)
def test_a_share_is_rounded_down_and_follows_the_rows_before_it(
    text: str, after: int, found: tuple[int, int]
) -> None:
    assert sliced(text, after) == found


def test_a_share_that_is_whole_is_not_lost_to_rounding() -> None:
    record = record_of({"L1": [0.0] * 100})
    assert sliced("0.29", 0, record) == (0, 29)  # 0.29 x 100 is 28.999999999999996


@pytest.mark.parametrize(
    ("text", "after", "message"),
    [
        ("0", 0, "a share must be above 0 and at most 1"),
        ("1.01", 0, "a share must be above 0 and at most 1"),
        ("nan", 0, "a share must be above 0 and at most 1"),
        ("-0.5", 0, "a share must be above 0 and at most 1"),
        ("0.09", 0, "--fit 0.09 selects rows 0:0"),
        ("0.3", 8, "--fit 0.3 selects rows 8:11; record 'march' has rows 0:10"),
        ("half", 0, "it must be a share such as 0.15 or rows such as 0:5000"),
    ],
)
def test_a_share_that_selects_nothing_or_too_much_is_refused(
    text: str, after: int, message: str
) -> None:
    with pytest.raises(SettingError) as refused:
        sliced(text, after)
    assert message in str(refused.value)


RECORD = "time,L1,F1\n" + "".join(f"2026-03-01 00:00:{at:02},{at},7\n" for at in range(0, 60, 10))


@pytest.fixture
def record(tmp_path: Path) -> Path:
    path = tmp_path / "march.csv"
    path.write_text(RECORD)
    return path


@pytest.mark.parametrize(
    ("skip_s", "every", "levels"),
    [
        (0.0, 1, [0, 10, 20, 30, 40, 50]),
        (20.0, 1, [20, 30, 40, 50]),
        (59.0, 1, None),
        (50.0, 1, [50]),
        (10.0, 2, [10, 30, 50]),
        (0.0, 4, [0, 40]),
    ],
)
def test_seconds_are_skipped_before_rows_are_thinned(
    record: Path, skip_s: float, every: int, levels: list[int] | None
) -> None:
    if levels is None:
        with pytest.raises(SettingError, match="has rows 0:6"):
            open_record(record, skip_s=skip_s, every=every)
    else:
        assert list(open_record(record, skip_s=skip_s, every=every).column("L1")) == levels


@pytest.mark.parametrize("skip_s", [60.0, 1e9, float("inf"), float("nan")])
def test_skipping_all_of_a_record_is_refused(record: Path, skip_s: float) -> None:
    with pytest.raises(SettingError, match="which lasts 60 s; give less"):
        open_record(record, skip_s=skip_s)


def test_an_input_is_not_written_over_whatever_it_is_called(tmp_path: Path) -> None:
    record, other, link = tmp_path / "a.csv", tmp_path / "b.csv", tmp_path / "link.csv"
    record.write_text("x")
    link.symlink_to(record)
    for written in (record, link, tmp_path / "." / "a.csv"):
        with pytest.raises(SettingError, match="is an input of this command; write another file"):
            refuse_overwriting(written, None, record)
    refuse_overwriting(other, record)  # does not exist yet
    other.write_text("y")
    refuse_overwriting(other, record, None, tmp_path / "missing")


def test_a_file_in_an_input_folder_is_not_written_over(tmp_path: Path) -> None:
    inside = tmp_path / "records" / "a.csv"
    inside.parent.mkdir()
    inside.write_text("x")
    with pytest.raises(SettingError, match="is an input"):
        refuse_overwriting(inside, tmp_path / "records")
    refuse_overwriting(tmp_path / "records" / "new.csv", tmp_path / "records")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("medain", "unknown --rule 'medain'; known are mean, median; did you mean 'median'?"),
        ("xyz", "unknown --rule 'xyz'; known are mean, median"),
    ],
)
def test_an_unknown_name_is_told_its_nearest(name: str, message: str) -> None:
    known("--rule", "mean", ("mean", "median"))
    with pytest.raises(SettingError) as refused:
        known("--rule", name, iter(("mean", "median")))
    assert str(refused.value) == message


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_json_holds_no_number_that_json_lacks(
    capfd: pytest.CaptureFixture[str], number: float
) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        emit({"share": number})
    assert capfd.readouterr().out == ""
    emit({"unit": "m³/h"})
    assert capfd.readouterr().out == '{"unit": "m³/h"}\n'


@pytest.mark.parametrize(
    ("total", "lines"),
    [
        (3, [1, 2, 3]),
        (10, list(range(1, 11))),
        (25, [2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 25]),
    ],
)
def test_steps_are_told_at_each_tenth_and_at_the_end(
    capfd: pytest.CaptureFixture[str], total: int, lines: list[int]
) -> None:
    with counted("rounds", total, quiet=False) as tick:
        for _ in range(total):
            tick()
    seen = capfd.readouterr()
    assert seen.out == ""
    assert seen.err.splitlines() == [f"rounds: {done} of {total}" for done in lines]


def test_quiet_prints_no_progress_and_warnings_anyway(capfd: pytest.CaptureFixture[str]) -> None:
    with working("reading", quiet=True), counted("rounds", 2, quiet=True) as tick:
        tick()
    assert capfd.readouterr() == ("", "")
    with working("reading", quiet=False):
        pass
    warn("[swat] is not here")
    assert capfd.readouterr().err == "reading ...\nWARNING: [swat] is not here\n"


def test_tables_keep_the_columns_they_are_given() -> None:
    shown = console.table("Rows", "row", "time")
    assert [column.header for column in shown.columns] == ["row", "time"]
