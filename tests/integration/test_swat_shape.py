"""The SWaT-shaped plant, written as SWaT writes and read back."""

from pathlib import Path

import numpy as np
import pytest

from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.reading import read_record
from sluice.telemetry.record import Record
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write


@pytest.fixture(scope="module")
def attacked() -> Record:
    return simulate("treatment", seed=3, days=1, attacks=True)


def test_what_is_written_as_swat_reads_back_the_same(tmp_path: Path, attacked: Record) -> None:
    path = tmp_path / "SWaT_Dataset_Attack_v0.csv"
    write(attacked, path, FileLayout.SWAT)
    text = path.read_bytes()
    title, header, first, *_ = text.split(b"\n", 3)
    assert b"FIT101" not in title
    assert b" MV101" in header
    assert first.startswith(b" 28/12/2015 10:00:00 AM")
    assert b"A ttack" in text
    again = read_record(path)
    assert again.names == attacked.names
    assert np.array_equal(again.values, attacked.values)
    assert np.array_equal(again.times, attacked.times)
    assert np.array_equal(again.labels, attacked.labels)
    assert [(c.role, c.codes) for c in again.channels] == [
        (c.role, c.codes) for c in attacked.channels
    ]
    assert len(again.gaps) == 1
    jump = again.times[again.gaps[0].after] - again.times[again.gaps[0].before]
    assert jump == np.timedelta64(81, "s")


def test_a_large_file_is_cached_by_content_and_reads_back_the_same(
    tmp_path: Path, attacked: Record, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = tmp_path / "cache"
    monkeypatch.setenv("SLUICE_CACHE", str(cache))
    path = tmp_path / "attack.csv"
    write(attacked, path, FileLayout.SWAT)
    first = read_record(path)
    (kept,) = cache.iterdir()
    again = read_record(path)
    assert np.array_equal(first.values, again.values)
    assert first.notes == again.notes
    assert first.channels == again.channels
    kept.write_bytes(b"broken off")
    assert np.array_equal(read_record(path).values, first.values)
    path.write_bytes(path.read_bytes().replace(b",Normal\n", b",Attack\n", 1))
    assert read_record(path).labels[0] != first.labels[0]
    assert len(list(cache.iterdir())) == 2
