"""Updates that a malicious plant made up: none sets its own weight, and none stops the others."""

import json
from collections.abc import Callable

import numpy as np
import pytest

from sluice.attestation.log.chain import read_log
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.plant.folder import PlantFolder
from sluice.network.wire.wire import LARGEST_MESSAGE

from .conftest import Consortium, Founder
from .malicious_plant import Falsified

FLOAT32_MAX = np.float32(3.4e38)


def falsify(consortium: Consortium, name: str, change: Callable[[bytes], bytes]) -> None:
    consortium.plants[name] = Falsified(PlantFolder(consortium.folder / name), change)


def filled(number: float) -> Callable[[bytes], bytes]:
    """Replace every weight of the update by a number."""
    return lambda raw: np.full(len(raw) // 4, number, "<f4").tobytes()


def steps(consortium: Consortium, round_: int) -> dict[str, str]:
    """Return who is excluded from a round, by the log: plant -> step."""
    *lines, _ = consortium.site.log.read_text().splitlines()
    bodies = [json.loads(line)["body"] for line in lines]
    return {
        body["client"]: body["step"]
        for body in bodies
        if body["kind"] == "excluded" and body["round"] == round_
    }


def test_a_plant_that_claims_2_to_the_48_windows_gains_no_influence(consortium: Consortium) -> None:
    claim = ((1 << 48) - 1).to_bytes(8, "big")
    falsify(consortium, "south", lambda raw: claim + raw[-4 * consortium.site.terms.weights :])
    done = consortium.run(rounds=1)
    assert done.influence.get("south", 0.0) <= 1 / 3
    assert done.influence["north"] == done.influence["west"]


def test_influence_is_the_share_of_the_logged_rows(founder: Founder) -> None:
    consortium = founder()
    for index, (name, rows) in enumerate((("north", 600), ("south", 300), ("west", 500))):
        consortium.join(name, index, rows=rows)
    done = consortium.run(rounds=1)
    assert {name: decision.rows for name, decision in done.decisions.items()} == {
        "north": 600,
        "south": 300,
        "west": 500,
    }
    assert done.influence == pytest.approx(
        {"north": 600 / 1400, "south": 300 / 1400, "west": 500 / 1400}
    )


def test_two_plants_send_the_largest_float32_and_the_honest_plants_finish_the_round(
    founder: Founder,
) -> None:
    consortium = founder()
    for index, name in enumerate(("north", "south", "east", "west")):
        consortium.join(name, index)
    for name in ("south", "west"):
        falsify(consortium, name, filled(float(FLOAT32_MAX)))
    first = consortium.run(rounds=1)
    assert read_log(consortium.site.log).rounds.members == ("east", "north")
    assert steps(consortium, 1) == {"south": "6.4", "west": "6.4"}
    again = consortium.run(rounds=2)
    assert again.round == 2
    assert not np.array_equal(first.parameters, again.parameters)


@pytest.mark.parametrize(
    ("change", "step"),
    [
        (lambda _: b"", "6.4"),
        (lambda raw: raw[:-1], "6.4"),
        (lambda raw: raw + b"\0\0\0\0", "6.4"),
        (lambda _: b"\x80\x04pickle", "6.4"),
        (lambda _: b"9" * (LARGEST_MESSAGE // 2), "6.4"),
        (filled(float("nan")), "6.4"),
        (filled(float("-inf")), "6.4"),
        (filled(10.1), "6.4"),
    ],
    ids=["nothing", "torn", "too long", "a pickle", "huge", "NaN", "infinite", "out of scale"],
)
def test_a_pledged_update_that_is_no_update_excludes_its_plant_alone(
    consortium: Consortium, change: Callable[[bytes], bytes], step: str
) -> None:
    falsify(consortium, "south", change)
    assert consortium.run(rounds=1).round == 1
    assert steps(consortium, 1) == {"south": step}
    assert consortium.run(rounds=2).round == 2
    assert read_log(consortium.site.log).rounds.members == ("north", "west")
    store = CoordinatorStore(consortium.site.base)
    assert "south" not in store.updates(2)
    store.close()
