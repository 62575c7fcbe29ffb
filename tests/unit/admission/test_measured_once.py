"""A batch is measured once, however much is made of it."""

from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

import sluice
from sluice.admission import measured
from sluice.lab.plants.catalogue import simulate


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Count every call of the two evaluators."""
    calls: list[str] = []
    integers = import_module("sluice.invariants.measure")
    monkeypatch.setattr(integers, "evaluate", spy(integers.evaluate, "measure", calls))
    floats = getattr(measured, "violations")  # noqa: B009 - not an export of the module
    monkeypatch.setattr(measured, "violations", spy(floats, "violations", calls))
    return calls


def spy(real: Callable[..., object], name: str, calls: list[str]) -> Callable[..., object]:
    def called(*arguments: object, **more: object) -> object:
        calls.append(name)
        return real(*arguments, **more)

    return called


def test_checking_and_proving_measures_a_batch_once(counted: list[str], tmp_path: Path) -> None:
    plant = simulate("line", seed=0, days=8)
    rules = sluice.mine(plant.rows(0, 4_320), plant.rows(4_320, 8_640))
    counted.clear()  # mining measures too
    batch = plant.rows(8_640, 9_240)
    verdict = sluice.judge(batch, rules)
    sluice.prove_into(tmp_path, verdict)
    assert counted == ["measure"]
    again = sluice.judge(batch, rules)
    sluice.prove_into(tmp_path / "again", again)
    assert counted == ["measure"] * 2


def test_a_verdict_on_another_batch_does_not_save_a_measurement(
    counted: list[str], tmp_path: Path
) -> None:
    plant = simulate("line", seed=0, days=8)
    rules = sluice.mine(plant.rows(0, 4_320), plant.rows(4_320, 8_640))
    counted.clear()  # mining measures too
    folder = tmp_path / "keys"
    keys = sluice.KeyFolder.create(
        folder, sluice.find_system("full"), rules, sluice.HardenedPolicy(), rows_max=1_024
    )
    good, other = plant.rows(8_640, 9_240), plant.rows(9_240, 9_840)
    verdict = sluice.judge(good, rules)
    values = other.values.copy()
    values[:, other.index("S_PU1")] = 1 - values[:, other.index("S_PU1")]
    forged = other.with_values(values)
    committed = sluice.commit(forged, keys)
    with pytest.raises(sluice.RefusedError):
        sluice.prove(forged, committed, verdict=verdict)
    assert counted == ["measure"] * 2


def test_the_papers_policy_measures_in_floats_alone(counted: list[str]) -> None:
    plant = simulate("line", seed=0, days=6)
    rules = sluice.mine(
        plant.rows(0, 3_000), plant.rows(3_000, 6_000), profile=sluice.Profile.PAPER_WIDE
    )
    assert sluice.judge(plant.rows(6_000, 7_000), rules).admitted
    assert counted == ["violations"]
