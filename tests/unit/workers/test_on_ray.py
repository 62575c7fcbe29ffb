"""The Ray engine: the same cells on a local Ray, where Ray is installed."""

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from sluice.errors import SettingError
from sluice.results.reading import State, stored_cells
from sluice.results.store import Store
from sluice.workers.on_ray import RayHands

PROGRAM = Path(__file__).with_name("fake_grid.py")
INSTALLED = importlib.util.find_spec("ray") is not None


@pytest.mark.skipif(INSTALLED, reason="Ray is installed")
def test_without_ray_the_remedy_is_named() -> None:
    with pytest.raises(SettingError, match="pip install sluice"):
        RayHands(2, bench=None)  # type: ignore[arg-type]


@pytest.mark.skipif(not INSTALLED, reason="Ray is not installed")
def test_the_same_cells_come_out_of_a_local_ray(tmp_path: Path) -> None:
    works = "ok unable die-once ok bug"
    for engine in ("local", "ray"):
        made = [sys.executable, str(PROGRAM), str(tmp_path / engine), "make", works, engine]
        assert subprocess.run(made, check=False, timeout=300).returncode == 0
    local, ray = (tmp_path / engine / "cells.parquet" for engine in ("local", "ray"))
    assert local.read_bytes() == ray.read_bytes()
    states = [cell.state for cell in stored_cells(Store(tmp_path / "ray"))]
    assert states == [State.DONE, State.FAILED, State.DONE, State.DONE, State.FAILED]
