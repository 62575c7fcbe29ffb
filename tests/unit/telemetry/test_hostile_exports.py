"""Exports that are made to be slow or large: each is refused at once, in one short sentence."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sluice.errors import PlantFileError, RecordError
from sluice.telemetry import PlantFile, read_plant_file, read_record
from sluice.telemetry.plantfile import matches

MOST_SECONDS = 5.0
LONG = 400_000


@contextmanager
def quickly() -> Iterator[None]:
    begun = time.process_time()
    yield
    assert time.process_time() - begun < MOST_SECONDS


def file(folder: Path, text: str) -> Path:
    path = folder / "export.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("name", "cell"),
    [
        ("[" * LONG, "1"),
        ("." * LONG, "1"),
        (f"a{' ' * LONG}b", "1"),
        ("A", "[" * LONG),
        ("A", "9" * LONG + ",123"),
        ("A", " ".join("1" * LONG)),
        ("A", "0.5 " + "m" * LONG),
    ],
    ids=["brackets", "dots", "blanks", "cell of brackets", "digits", "groups", "unit"],
)
def test_a_name_or_cell_made_to_be_searched_for_hours(tmp_path: Path, name: str, cell: str) -> None:
    text = f"time;{name}\n2024-03-01 10:00:00;{cell}\n2024-03-01 10:00:05;{cell}\n"
    with quickly(), pytest.raises(RecordError) as refused:
        read_record(file(tmp_path, text))
    assert len(str(refused.value)) < 1_000
    assert "\n" not in str(refused.value)


def test_a_tag_for_every_row_does_not_become_a_square(tmp_path: Path) -> None:
    rows = "".join(f"{1709287200 + row},T{row},1\n" for row in range(20_000))
    with quickly(), pytest.raises(RecordError, match=r"20,000 columns; expected at most"):
        read_record(file(tmp_path, f"time,tag,value\n{rows}"))


def test_two_events_a_century_apart_are_not_filled_up_with_seconds(tmp_path: Path) -> None:
    path = file(tmp_path, "time,tag,value\n1950-01-01 00:00,A,1\n2050-01-01 00:00,A,2\n")
    plant = PlantFile(resample="last", stride_s=1e-6)
    with quickly(), pytest.raises(RecordError, match="cells in a file of this size"):
        read_record(path, plant=plant)


def test_a_stride_below_a_microsecond_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "plant.toml"
    path.write_text('[record]\nresample = "last"\nstride_s = 1e-12')
    with pytest.raises(PlantFileError, match="stride_s must be a positive number"):
        read_plant_file(path)


def test_a_pattern_of_stars_is_matched_in_no_time() -> None:
    with quickly():
        assert not matches("a" * 2_000, "*a" * 500 + "b")
    assert matches("WW00/FT-000/PV", "WW0?/*/PV")
    assert not matches("LIT101 [m]", "LIT101 m")


def test_a_million_words_in_a_column_are_not_all_looked_up(tmp_path: Path) -> None:
    rows = "".join(f"{1709287200 + row},word {row}\n" for row in range(200_000))
    with quickly(), pytest.raises(RecordError, match=r"channel 'A' holds 'word 0' at row 0"):
        read_record(file(tmp_path, f"time,A\n{rows}"))


def test_a_million_qualities_are_not_all_looked_up(tmp_path: Path) -> None:
    rows = "".join(f"{1709287200 + row},1,word {row}\n" for row in range(200_000))
    with quickly(), pytest.raises(RecordError, match="different words; expected a few"):
        read_record(file(tmp_path, f"time,A,A quality\n{rows}"))


def test_an_encoding_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    path = file(tmp_path, "time,A\n1,2\n2,3\n")
    with pytest.raises(RecordError, match="encoding 'klingon' is unknown"):
        read_record(path, plant=PlantFile(encoding="klingon"))
