"""Delimited text with a header: names of columns, and rows of another length than the header."""

from pathlib import Path

import pytest

from sluice.errors import RecordError
from sluice.telemetry.source import Source
from sluice.telemetry.table import delimited


def table(folder: Path, text: str) -> Source:
    path = folder / "plant.csv"
    path.write_text(text, encoding="utf-8")
    return Source(path)


def test_columns_without_a_name_are_no_repetition(tmp_path: Path) -> None:
    frame = delimited(table(tmp_path, "a,b,,\n1,2,,\n3,4,,\n"), header_line=0, text=())
    assert frame.columns == ["a", "b", "unnamed 2", "unnamed 3"]
    assert frame["b"].to_list() == [2, 4]


def test_a_name_that_stands_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecordError, match="plant.csv names 'a' more than once in its header"):
        delimited(table(tmp_path, "a,b,a\n1,2,3\n"), header_line=0, text=())


@pytest.mark.parametrize(
    "text",
    [
        "a,b\n1,2\n3\n",
        "a,b\n1,2,3\n4,5\n",
        "a,b,c\n1,2\n3,4\n",  # every row is short, or long, by one cell
        "a,b\n1,2,3\n4,5,6\n",
    ],
)
def test_a_row_longer_or_shorter_than_the_header_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(RecordError, match="is truncated or ragged: line . has . cells"):
        delimited(table(tmp_path, text), header_line=0, text=())


def test_empty_lines_are_no_rows_of_another_length(tmp_path: Path) -> None:
    frame = delimited(table(tmp_path, "a,b\n1,2\n\n3,4\n"), header_line=0, text=())
    assert frame["a"].drop_nulls().to_list() == [1, 3]
