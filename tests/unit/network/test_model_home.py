"""The model comes home: every plant ends with the federation's last model and can score with it."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sluice.detector.autoencoder import Autoencoder
from sluice.detector.modelfile import load_detector
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.plant.agent import Agent
from sluice.network.plant.folder import PlantFolder
from sluice.network.plant.model import last_model
from sluice.network.wire.questions import (
    AskModel,
    Declined,
    model_hash,
    write_parameters,
)
from sluice.telemetry.reading import read_record
from tests.unit.conftest import Outcome

from .asking import Driven
from .conftest import Consortium

Run = Callable[..., Outcome]


def held(consortium: Consortium, name: str) -> str | None:
    received = last_model(consortium.folder / name, count=consortium.site.terms.weights)
    return model_hash(received.parameters) if received else None


def test_at_the_end_every_plant_holds_the_last_model_and_knows_that_it_is_over(
    consortium: Consortium,
) -> None:
    done = consortium.run(rounds=2)
    for name, agent in consortium.plants.items():
        assert held(consortium, name) == model_hash(done.parameters)
        assert isinstance(agent, Agent)
        assert agent.over


def test_a_late_plant_fetches_the_model_when_the_coordinator_runs_again(
    consortium: Consortium,
) -> None:
    late = consortium.plants.pop("west")
    done = consortium.run(rounds=2)
    assert held(consortium, "west") is None
    consortium.plants["west"] = late
    again = consortium.run(rounds=2)
    assert again.round == done.round  # no round was added
    assert held(consortium, "west") == model_hash(done.parameters)
    store = CoordinatorStore(consortium.site.base, read_only=True)
    assert {member.model_of for member in store.members()} == {2}
    store.close()


@pytest.mark.parametrize("change", ["weights", "round"])
def test_a_model_that_the_log_does_not_name_is_declined(
    consortium: Consortium, change: str
) -> None:
    done = consortium.run(rounds=2)
    weights = done.parameters.copy()
    if change == "weights":
        weights[0] += 1.0
    ask = AskModel(
        round=1 if change == "round" else 2, over=False, parameters=write_parameters(weights)
    )
    north = consortium.plants["north"]
    assert isinstance(north, Agent)
    assert isinstance(Driven.of(consortium).ask(north, ask), Declined)
    assert held(consortium, "north") == model_hash(done.parameters)


def test_a_plant_writes_the_model_as_a_detector_and_scores_its_new_rows(
    consortium: Consortium, sluice: Run, tmp_path: Path
) -> None:
    done = consortium.run(rounds=2)
    model, scores = tmp_path / "model.safetensors", tmp_path / "scores.csv"
    seen = sluice("plant", "model", consortium.folder / "north", "--out", model, "--json")
    assert seen.code == 0, seen.err
    stop = PlantFolder(consortium.folder / "north").share.stop
    detector = load_detector(model)
    assert isinstance(detector.model, Autoencoder)
    assert np.array_equal(detector.model.parameters, done.parameters)
    assert seen.json == {
        "model": str(model),
        "rounds": 2,
        "members": 3,
        "hash": model_hash(done.parameters),
        "threshold": detector.threshold.score,
        "clean_rows": len(read_record(consortium.record)) - stop,
    }
    assert detector.training.federation == "water"
    assert sluice("score", consortium.record, "--model", model, "--out", scores).code == 0
    assert scores.read_text().startswith("time,score,alarm")


def test_a_plant_without_a_model_or_without_clean_rows_is_told_what_to_do(
    consortium: Consortium, sluice: Run, tmp_path: Path
) -> None:
    model, north = tmp_path / "model.safetensors", consortium.folder / "north"
    seen = sluice("plant", "model", north, "--out", model)
    assert (seen.code, seen.out) == (2, "")
    assert "has received no model yet" in seen.err
    consortium.run(rounds=1)
    share = PlantFolder(north).share
    overlapping = f"{share.start}:{share.stop}"
    seen = sluice("plant", "model", north, "--out", model, "--clean", overlapping)
    assert (seen.code, seen.out) == (2, "")
    assert "which the plant trains on" in seen.err
    assert not model.exists()
