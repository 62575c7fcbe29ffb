"""Grid files: defaults, presets, and what is wrong with a file, said in words."""

from pathlib import Path

import pytest

from sluice.errors import GridError
from sluice.evaluation import Unlabelled
from sluice.lab.grids.gridfile import (
    RecordTable,
    TrainingTable,
    nearest,
    parse_grid,
    preset_names,
    read_grid,
)

LEAST = """
name = "least"
[record.tanks]
plant = "line"
[[study]]
name = "one"
records = ["tanks"]
rules = ["fedavg"]
modes = ["clean"]
seeds = [0]
"""


def test_what_a_grid_does_not_say_is_as_in_the_papers_code() -> None:
    grid = parse_grid(LEAST, where="grid")
    assert grid.training == TrainingTable(rounds=25, epochs=2, batch=128, detector="autoencoder")
    assert grid.record["tanks"] == RecordTable(plant="line")
    table = grid.record["tanks"]
    assert (table.clients, table.liar_share, table.target_share) == (10, 0.3, 0.25)
    assert (table.every, table.skip_s, table.unlabelled) == (1, 0.0, Unlabelled.EXCLUDE)
    (study,) = grid.study
    assert not any((study.attacks, study.invariants, study.clients))


def test_what_a_grid_says_is_read() -> None:
    text = LEAST.replace(
        'plant = "line"',
        'plant = "line"\ndays = 2\nevery = 3\nskip_s = 60\nunlabelled = "normal"\nsites = false',
    )
    table = parse_grid(text, where="grid").record["tanks"]
    assert table == RecordTable(
        plant="line", days=2.0, every=3, skip_s=60.0, unlabelled=Unlabelled.NORMAL
    )


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('name = "least"', "", "grid: name: Field required"),
        ("seeds = [0]", "seeds = [0.5]", "grid: study.0.seeds.0: "),
        ("seeds = [0]", 'seeds = "0"', "grid: study.0.seeds: "),
        ('rules = ["fedavg"]', "", "grid: study.0.rules: Field required"),
        ('plant = "line"', "plant = 3", "grid: record.tanks.plant: Input should be a valid string"),
        ('plant = "line"', 'every = "2"', "grid: record.tanks.every: "),
        ('plant = "line"', 'unlabelled = "maybe"', "grid: record.tanks.unlabelled: "),
        ('name = "least"', 'name = "least"\ntraining = 3', "grid: training must be a table, got 3"),
        ("[record.tanks]", "[record]", "grid: record must be a table of records; write [record."),
        ("[[study]]", "study = [1]\n[other]", "grid: unknown key 'other'"),
        ('name = "least"', 'nam = "least"', "grid: unknown key 'nam'; did you mean 'name'?"),
        ('name = "one"', 'nme = "one"', "grid: study 'without a name': unknown key 'nme'; did you"),
    ],
)
def test_a_file_that_is_no_grid_is_refused_with_the_place(
    old: str, new: str, sentence: str
) -> None:
    with pytest.raises(GridError) as refused:
        parse_grid(LEAST.replace(old, new), where="grid")
    assert str(refused.value).startswith(sentence)


def test_an_unknown_key_like_no_other_gets_the_list_of_known_ones() -> None:
    with pytest.raises(GridError) as refused:
        parse_grid(LEAST + "\n[training]\nzzzz = 1\n", where="grid 'x'")
    assert str(refused.value) == (
        "grid 'x': [training]: unknown key 'zzzz'; known are rounds, epochs, batch, detector"
    )


@pytest.mark.parametrize("name", preset_names())
def test_every_preset_can_be_read_by_its_name(name: str) -> None:
    grid = read_grid(name)
    assert grid.study
    assert set(grid.record) >= {record for study in grid.study for record in study.records}


def test_a_grid_is_read_from_a_file_and_errors_name_it(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text(LEAST, encoding="utf-8")
    assert read_grid(str(path)) == parse_grid(LEAST, where="elsewhere")
    path.write_text("name = ", encoding="utf-8")
    with pytest.raises(GridError, match=rf"^grid '{path}' is not TOML: "):
        read_grid(str(path))


def test_a_file_in_another_encoding_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_bytes('name = "Zürich"'.encode("latin-1"))
    with pytest.raises(GridError, match="is not a UTF-8 text file; save it as UTF-8"):
        read_grid(str(path))


def test_a_folder_is_no_grid(tmp_path: Path) -> None:
    with pytest.raises(GridError) as refused:
        read_grid(str(tmp_path))
    assert f"grid {str(tmp_path)!r} cannot be read (Is a directory)" in str(refused.value)
    assert ", ".join(preset_names()) in str(refused.value)


@pytest.mark.parametrize(
    ("name", "hint"),
    [("medain", "; did you mean 'median'?"), ("median", "; did you mean 'median'?"), ("zz", "")],
)
def test_a_hint_names_the_most_similar_name_if_one_is_similar(name: str, hint: str) -> None:
    assert nearest(name, ("krum", "median", "mean")) == hint
    assert nearest(name, ()) == ""
