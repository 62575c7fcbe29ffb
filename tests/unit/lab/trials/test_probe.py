"""Probes notice other code: another training, another rule, another measure."""

from dataclasses import replace

import pytest

from sluice.detector.autoencoder import Descent
from sluice.lab.results.federations import difference
from sluice.lab.trials import probe


@pytest.fixture(scope="module")
def now() -> dict[str, tuple[float, ...]]:
    return dict(probe.behaviour(["fedavg"], ["sign-flip"]))


def test_there_is_a_probe_of_measures_rules_and_attacks(now: dict[str, tuple[float, ...]]) -> None:
    assert list(now) == ["measures", "fedavg", "fedavg, min-max", "fedavg, sign-flip"]
    assert len(set(now.values())) == 4


def test_the_same_code_behaves_the_same(now: dict[str, tuple[float, ...]]) -> None:
    assert difference(probe.behaviour(["fedavg"], ["sign-flip"]), now) is None


def test_another_training_is_noticed(
    now: dict[str, tuple[float, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    slower = replace(probe.SETUP, descent=Descent(epochs=1, batch=64, learning_rate=9e-4))
    monkeypatch.setattr(probe, "SETUP", slower)
    assert difference(probe.behaviour(["fedavg"], ["sign-flip"]), now) == "fedavg"


def test_another_measure_is_noticed(
    now: dict[str, tuple[float, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(probe, "ALARM", 0.97)
    assert difference(probe.behaviour([], []), now) == "measures"
