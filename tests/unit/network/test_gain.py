"""What a plant gains over training alone, measured on its own rows."""

import numpy as np
import pytest

from sluice.cli.plant.gain import UnknownGain, gain_of
from sluice.errors import SettingError
from sluice.network.plant.agent import Agent
from sluice.network.plant.folder import PlantFolder
from sluice.network.plant.gain import Gain, Own, measured_gain
from sluice.network.plant.model import SeenModel, last_model
from sluice.telemetry.reading import read_record

from .conftest import Consortium
from .test_service import in_process


def test_the_model_that_came_last_is_kept(consortium: Consortium) -> None:
    count = consortium.site.terms.weights
    north = PlantFolder(consortium.folder / "north")
    unknown = gain_of(north, clean=None, attacks=None, quiet=True)
    assert isinstance(unknown, UnknownGain)
    assert "no model" in unknown.reason.lower()
    consortium.run(rounds=1)
    received = last_model(north.folder, count=count)
    assert received is not None
    assert received.round == 1
    assert np.array_equal(received.parameters, in_process(consortium, 1))
    gain = gain_of(north, clean=None, attacks=None, quiet=True)
    assert isinstance(gain, Gain)
    assert gain.rounds == 1
    assert gain.alone.recall is None
    assert gain.federation.error > 0
    with pytest.raises(SettingError, match="which the plant trains on"):
        gain_of(north, clean="9000:9900", attacks=None, quiet=True)


def test_a_federation_of_one_gains_nothing(consortium: Consortium) -> None:
    """The yardstick itself: the same training gives the same figures."""
    north = consortium.plants["north"]
    assert isinstance(north, Agent)
    terms = consortium.site.terms
    line = read_record(consortium.record)
    own = Own(
        plant="north",
        batch=north.batch,
        clean=line.rows(9_300, 10_300),
        attacks=line.rows(0, 500),
    )
    rounds: list[int] = []
    for name in ("south", "west"):
        del consortium.plants[name]
    alone = SeenModel(round=1, parameters=in_process(consortium, 1))
    gain = measured_gain(terms, alone, own, on_round=lambda: rounds.append(1))
    assert len(rounds) == 1
    assert gain.attacked == 0
    assert gain.alone == gain.federation
    fewest = 2 * (199 + terms.window_rows)  # each half has 200 windows
    enough = Own(plant="north", batch=north.batch, clean=line.rows(9_300, 9_300 + fewest))
    assert measured_gain(terms, alone, enough, on_round=lambda: None).windows == 200
    for rows in (100, fewest - 1):
        short = Own(plant="north", batch=north.batch, clean=line.rows(9_300, 9_300 + rows))
        with pytest.raises(SettingError, match="too few"):
            measured_gain(terms, alone, short, on_round=lambda: None)
