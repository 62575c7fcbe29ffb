"""Files are written whole or not at all."""

from pathlib import Path

import pytest

from sluice.errors import RecordError, SettingError
from sluice.files import atomically


def break_off(path: Path) -> None:
    with atomically(path) as draft:
        draft.write_bytes(b"new")
        raise RecordError("half way")


def test_a_failure_half_way_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "kept.csv"
    path.write_bytes(b"old")
    with pytest.raises(RecordError, match="half way"):
        break_off(path)
    assert path.read_bytes() == b"old"
    assert [found.name for found in tmp_path.iterdir()] == ["kept.csv"]


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with (
        pytest.raises(SettingError, match="cannot write .*nowhere/page.html"),
        atomically(tmp_path / "nowhere" / "page.html"),
    ):
        pass


def test_results_are_readable_by_others_as_the_umask_says(tmp_path: Path) -> None:
    with atomically(tmp_path / "page.html") as draft:
        draft.write_text("page")
    assert (tmp_path / "page.html").stat().st_mode & 0o400
