"""Sources: where a grid's records come from, and what is done to them before they are used."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sluice.errors import GridError, SettingError
from sluice.lab.grids import sources
from sluice.lab.grids.gridfile import RecordTable
from sluice.lab.grids.sources import RecordSource, opened, resolved
from sluice.lab.plants.catalogue import simulate
from sluice.lab.trials.artifact_cache import ArtifactCache, content_of
from sluice.telemetry.record import Record
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write

LINE = RecordTable(plant="line", days=1.0)
FILES = RecordTable(clean="clean.csv", test="test.csv")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write(simulate("line", seed=3, days=0.2), tmp_path / "clean.csv", FileLayout.CSV)
    write(simulate("line", seed=4, days=0.3, attacks=True), tmp_path / "test.csv", FileLayout.CSV)
    return tmp_path


def simulated(table: RecordTable = LINE) -> RecordSource:
    return resolved("tanks", {"tanks": table}, data=Path("nowhere"))


def test_a_simulated_record_is_named_by_plant_and_length() -> None:
    assert simulated().content == "simulated line for 1 days"
    assert simulated(replace(LINE, days=None)).content == "simulated line"
    assert simulated(replace(LINE, plant="network:Net1")).content.startswith("simulated network:")


def test_clean_and_labelled_rows_are_two_runs_of_the_plant() -> None:
    records = opened(simulated())
    assert content_of(records.clean) == content_of(simulate("line", seed=0, days=1))
    assert content_of(records.test) == content_of(simulate("line", seed=1, days=1, attacks=True))
    assert not records.clean.attack_segments
    assert records.test.attack_segments


def test_start_up_time_is_dropped_from_the_clean_rows_before_thinning() -> None:
    whole = opened(simulated())
    thinned = opened(simulated(replace(LINE, every=4, skip_s=7 * 60.0)))
    np.testing.assert_array_equal(thinned.clean.values, whole.clean.values[7::4])
    np.testing.assert_array_equal(thinned.test.values, whole.test.values[::4])
    assert thinned.clean.stride_s == thinned.test.stride_s == 240


@pytest.mark.parametrize("skip_s", [86_400.0, 1e6])
def test_dropping_the_whole_record_is_refused(skip_s: float) -> None:
    with pytest.raises(SettingError) as refused:
        opened(simulated(replace(LINE, skip_s=skip_s)))
    assert str(refused.value) == (
        f"record 'tanks': skip_s is {skip_s:g}, but the record has only 86400 s; give a smaller "
        "skip_s"
    )


def test_files_are_found_in_the_data_folder_and_named_by_content(data: Path) -> None:
    source = resolved("own", {"own": FILES}, data=data)
    assert (source.plant, source.days) == (None, None)
    assert (source.clean, source.test) == (str(data / "clean.csv"), str(data / "test.csv"))
    clean, test = source.content.split()
    assert clean != test
    records = opened(source)
    assert (len(records.clean), len(records.test)) == (288, 432)


def test_swapped_files_are_another_source(data: Path) -> None:
    swapped = RecordTable(clean="test.csv", test="clean.csv")
    one = resolved("own", {"own": FILES}, data=data)
    other = resolved("own", {"own": swapped}, data=data)
    assert one.content != other.content


def test_present_files_are_used_although_there_is_a_substitute(data: Path) -> None:
    tables = {"own": replace(FILES, instead="tanks"), "tanks": LINE}
    assert resolved("own", tables, data=data).name == "own"
    (data / "test.csv").unlink()
    stood_in = resolved("own", tables, data=data)
    assert (stood_in.name, stood_in.plant) == ("tanks", "line")
    assert stood_in == resolved("tanks", tables, data=data)


def test_absent_files_without_a_substitute_are_said_to_be(data: Path) -> None:
    (data / "test.csv").unlink()
    with pytest.raises(GridError) as refused:
        resolved("own", {"own": FILES}, data=data)
    assert str(refused.value) == (
        f"record 'own': test.csv is not in the data folder {data}; put it there, give another "
        "folder with --data, or name a substitute record with instead"
    )


def test_a_folder_without_a_record_is_refused_by_the_records_name(data: Path) -> None:
    (data / "empty").mkdir()
    with pytest.raises(GridError, match="^record 'own': "):
        resolved("own", {"own": replace(FILES, clean="empty")}, data=data)


@pytest.mark.parametrize(
    ("plant", "hint"), [("lime", "; did you mean 'line'?"), ("zzz", "network:NAME")]
)
def test_an_unknown_plant_is_refused_with_the_known_ones(plant: str, hint: str) -> None:
    with pytest.raises(GridError) as refused:
        simulated(RecordTable(plant=plant))
    assert f"record 'tanks': unknown plant '{plant}'; known are line, " in str(refused.value)
    assert str(refused.value).endswith(hint)


def test_a_simulated_record_is_made_once_for_all_who_share_a_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[tuple[str, int, bool]] = []

    def noted(plant: str, *, seed: int, days: float | None, attacks: bool) -> Record:
        made.append((plant, seed, attacks))
        return simulate("line", seed=seed, days=0.2, attacks=attacks)

    monkeypatch.setattr(sources, "simulate", noted)
    cache = ArtifactCache(folder=tmp_path, code="this")
    first, again = (opened(simulated(), cache=cache) for _ in range(2))
    assert made == [("line", 0, False), ("line", 1, True)]
    assert content_of(first.test) == content_of(again.test)
    opened(simulated(replace(LINE, days=2.0)), cache=cache)
    assert len(made) == 4


def test_a_users_network_is_simulated_every_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []

    def noted(plant: str, *, seed: int, days: float | None, attacks: bool) -> Record:
        made.append(plant)
        return simulate("line", seed=seed, days=0.2, attacks=attacks)

    monkeypatch.setattr(sources, "simulate", noted)
    cache = ArtifactCache(folder=tmp_path, code="this")
    own = simulated(RecordTable(plant="network:town.inp"))
    for _ in range(2):
        opened(own, cache=cache)
    assert made == ["network:town.inp"] * 4
    assert not list(tmp_path.iterdir())
