"""Paths that the user may not use, and outputs that are no files, are refused by their type."""

import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from sluice.cli.paths import (
    PolicyPath,
    reads_file,
    reads_folder,
    reads_record,
    writes_file,
    writes_folder,
)
from sluice.errors import SettingError

NOBODY = 65_534


@pytest.fixture
def foreign() -> Iterator[Path]:
    """A folder with closed things in it, seen by a user who is not root."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    (folder / "closed.json").write_text("{}")
    (folder / "closed").mkdir()
    for name in ("closed.json", "closed"):
        (folder / name).chmod(0o000)
    root = os.geteuid() == 0
    if root:
        os.seteuid(NOBODY)
    else:
        folder.chmod(0o555)
    yield folder
    if root:
        os.seteuid(0)
    for path in (folder, folder / "closed"):
        path.chmod(0o755)
    shutil.rmtree(folder)


@pytest.mark.parametrize(
    ("type_", "name", "why"),
    [
        (reads_file("a rules file"), "closed.json", "it is closed to you, so it is not a rules"),
        (reads_folder("a key folder"), "closed", "it is closed to you, so it is not a key folder"),
        (reads_record(), "closed.json", "it is closed to you"),
        (reads_file("a log"), "closed/log.jsonl", "it cannot be opened, so it is not a log"),
        (writes_file(), "made.csv", "you may not write to the folder"),
        (writes_file(), "closed/made.csv", "choose another path (Permission denied)"),
        (writes_folder(), "made", "you may not write to the folder"),
        (writes_folder(), "closed", "you may not write to the folder"),
        (PolicyPath(), "closed.json", "nor a readable file"),
    ],
)
def test_a_path_that_belongs_to_somebody_else(
    foreign: Path, type_: click.ParamType[object], name: str, why: str
) -> None:
    with pytest.raises(SettingError) as refused:
        type_.convert(str(foreign / name), None, None)
    assert str(foreign / name) in str(refused.value)
    assert why in str(refused.value)


def test_a_device_as_output_would_be_replaced_by_a_file() -> None:
    with pytest.raises(SettingError, match="cannot write /dev/null: expected a file, got a device"):
        writes_file().convert("/dev/null", None, None)
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_a_name_that_is_too_long_is_no_bug() -> None:
    for type_ in (reads_file(), writes_file(), writes_folder()):
        with pytest.raises(SettingError, match="File name too long"):
            type_.convert("x" * 5_000, None, None)
    with pytest.raises(SettingError, match="nor a readable file"):
        PolicyPath().convert("x" * 5_000, None, None)


def test_good_paths_are_kept_as_they_were_given(tmp_path: Path) -> None:
    file, folder, pipe = tmp_path / "file", tmp_path / "folder", tmp_path / "pipe"
    file.touch()
    folder.mkdir()
    os.mkfifo(pipe)
    for type_, path in (
        (reads_file(), file),
        (reads_file(), pipe),  # as the shell gives it for <(command)
        (reads_folder(), folder),
        (reads_record(), file),
        (reads_record(), folder),
        (writes_file(), file),
        (writes_file(), tmp_path / "new"),
        (writes_folder(), folder),
        (writes_folder(), tmp_path / "new"),
    ):
        assert type_.convert(str(path), None, None) == str(path)
    assert PolicyPath().convert("hardened", None, None) == "hardened"
    assert PolicyPath().convert(str(file), None, None) == str(file)
