"""Many clients train at once, and each learns what it would have learnt alone."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import jax
import numpy as np
import pytest

from benchmarks.speed.ceiling import ceiling, needed_flop, training_flop
from sluice.detector.autoencoder import Descent, Parameters, initial
from sluice.detector.training import descend, train_parameters
from sluice.errors import SettingError
from sluice.federation import trainer
from sluice.federation.trainer import Fleet
from sluice.seeding import stream
from sluice.telemetry.windows import Windows

CHANNELS, LENGTH = 4, 3
DESCENT = Descent(epochs=2, batch=150)
FIRST = initial(CHANNELS * LENGTH, seed=0)

# windows per client: several batches, the last one short; a whole number; fewer than one
COUNTS = {"north": 340, "south": 300, "east": 40, "west": 340}


def windows(client: str, count: int) -> Windows:
    rows = stream(5, "rows", client).standard_normal((count + LENGTH - 1, CHANNELS))
    return Windows(
        rows=rows.astype(np.float32),
        starts=np.arange(count),
        length=LENGTH,
        labels=np.zeros(count, np.int8),
    )


WINDOWS = {client: windows(client, count) for client, count in COUNTS.items()}


def shuffles(clients: Iterable[str] = COUNTS, *, round_: int = 1) -> dict[str, np.random.Generator]:
    return {client: stream(7, "shuffle", client, round_) for client in clients}


@pytest.fixture(scope="module")
def fleet() -> Fleet:
    return Fleet.of(WINDOWS, descent=DESCENT)


@pytest.fixture(scope="module")
def together(fleet: Fleet) -> dict[str, Parameters]:
    return fleet.train(FIRST, shuffles=shuffles())


@pytest.mark.parametrize("client", COUNTS)
def test_a_client_learns_the_very_numbers_it_would_alone(
    together: dict[str, Parameters], client: str
) -> None:
    alone = train_parameters(FIRST, WINDOWS[client], descent=DESCENT, shuffle=shuffles()[client])
    assert np.array_equal(together[client], alone)
    assert together[client].dtype == np.float32
    assert not np.array_equal(together[client], FIRST)


@pytest.mark.parametrize(
    "roster", [("west",), ("east", "north"), ("west", "south", "east", "north")], ids=str
)
def test_other_clients_and_their_order_change_no_bit(
    fleet: Fleet, together: dict[str, Parameters], roster: tuple[str, ...]
) -> None:
    some = fleet.train(FIRST, shuffles=shuffles(roster), clients=roster)
    smaller = Fleet.of({client: WINDOWS[client] for client in roster}, descent=DESCENT)
    apart = smaller.train(FIRST, shuffles=shuffles(roster))
    assert tuple(some) == roster
    for client in roster:
        assert np.array_equal(some[client], together[client])
        assert np.array_equal(apart[client], together[client])


def test_rounds_repeat_themselves_and_differ_by_their_shuffles(
    fleet: Fleet, together: dict[str, Parameters]
) -> None:
    before = FIRST.copy()
    again = fleet.train(FIRST, shuffles=shuffles())
    other = fleet.train(FIRST, shuffles=shuffles(round_=2))
    for client in COUNTS:
        assert np.array_equal(again[client], together[client])
        assert not np.array_equal(other[client], together[client])
    assert np.array_equal(FIRST, before)


def test_one_worker_trains_as_several_do(
    fleet: Fleet, together: dict[str, Parameters], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trainer, "_workers", lambda: 1)
    assert np.array_equal(fleet.train(FIRST, shuffles=shuffles())["west"], together["west"])


def test_a_window_may_be_trained_on_several_times_over() -> None:
    doubled = np.repeat(np.arange(40), 2)
    own = replace(WINDOWS["north"], starts=doubled, labels=np.zeros(80, np.int8))
    found = Fleet.of({"north": own}, descent=DESCENT).train(FIRST, shuffles=shuffles())
    assert np.array_equal(
        found["north"], train_parameters(FIRST, own, descent=DESCENT, shuffle=shuffles()["north"])
    )


def test_clients_of_nearly_one_size_share_one_compilation(monkeypatch: pytest.MonkeyPatch) -> None:
    traced: list[int] = []

    def counted(*arguments: Any, length: int, last: int) -> Any:
        traced.append(last)
        return descend(*arguments, length=length, last=last)

    compiled = jax.jit(counted, static_argnames=("length", "last"))
    monkeypatch.setattr("sluice.detector.training._compiled", compiled)
    monkeypatch.setattr(trainer, "_workers", lambda: 1)
    sizes = {"north": 340, "south": 339, "east": 310, "west": 1000}
    many = Fleet.of({c: windows(c, count) for c, count in sizes.items()}, descent=DESCENT)
    for _ in range(2):
        many.train(FIRST, shuffles=shuffles())
    assert traced == [128]


def test_numbers_beyond_float32_name_the_client() -> None:
    wild = replace(WINDOWS["south"], rows=WINDOWS["south"].rows * np.float32(1e30))
    fleet = Fleet.of(WINDOWS | {"south": wild}, descent=DESCENT)
    with pytest.raises(
        SettingError, match="client 'south': training gave NaN or infinite parameters"
    ):
        fleet.train(FIRST, shuffles=shuffles())
    assert "north" in fleet.train(FIRST, shuffles=shuffles(), clients=("north", "east"))


def test_a_client_without_a_window_may_be_laid_out_but_not_trained() -> None:
    bare = replace(WINDOWS["east"], starts=np.arange(0), labels=np.zeros(0, np.int8))
    fleet = Fleet.of(WINDOWS | {"east": bare}, descent=DESCENT)
    assert "north" in fleet.train(FIRST, shuffles=shuffles(), clients=("north",))
    with pytest.raises(SettingError, match="client 'east': there is no whole window"):
        fleet.train(FIRST, shuffles=shuffles())


def test_a_model_of_another_width_is_refused(fleet: Fleet) -> None:
    with pytest.raises(SettingError, match="reads 15 values a window; these windows hold 12"):
        fleet.train(initial(15, seed=0), shuffles=shuffles())


def test_an_unknown_client_and_one_without_a_generator_are_refused(fleet: Fleet) -> None:
    with pytest.raises(SettingError, match="no client 'up'.*east, north, south, west"):
        fleet.train(FIRST, shuffles=shuffles(("up",)), clients=("up",))
    with pytest.raises(SettingError, match="client 'west' has no generator"):
        fleet.train(FIRST, shuffles=shuffles(("north",)), clients=("north", "west"))


def test_operations_are_counted_as_usual_and_as_the_algorithm_needs_them() -> None:
    """By hand for windows of 10 values: 1,280 and 3,072 products each way, mirrored."""
    forwards = 1_280 + 3_072 + 3_072 + 1_280
    slopes_in_weights = forwards
    slopes_in_inputs = forwards
    assert training_flop(10, windows=1) == 2 * (forwards + slopes_in_weights + slopes_in_inputs)
    assert needed_flop(10, windows=1) == training_flop(10, windows=1) - 2 * 1_280
    rounds = 10 * 25 * 2
    assert 1.60e12 < rounds * training_flop(420, windows=4_725) < 1.62e12
    assert 1.35e12 < rounds * needed_flop(420, windows=4_725) < 1.37e12


def test_the_ceiling_is_the_better_of_two_libraries() -> None:
    found = ceiling(size=64, repeats=2)
    assert found.flops == max(found.numpy, found.xla) > 0
    higher = replace(found, numpy=2 * found.flops)
    assert found.or_higher(higher) == higher
