"""Aggregation rules against Flower's own functions, where the definitions agree.

Flower has two generations of them: `flwr.server.strategy.aggregate`, on lists of arrays, and
`flwr.serverapp.strategy`, on records. Where a definition differs a test says how. The rules Flower
does not have (norm clipping, FLTrust, FoolsGold, centred clipping, geometric median and
nearest-neighbour mixing) are compared with slow loops in tests/unit/aggregation/test_oracles.py.
"""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice.aggregation.allowance import AllowedShare
from sluice.aggregation.averages import FedAvg
from sluice.aggregation.coordinates import CoordinateMedian, TrimmedMean
from sluice.aggregation.registry import RULES
from sluice.aggregation.rule import Aggregate, Fresh, Rule
from sluice.aggregation.selection import Krum, MultiKrum
from sluice.aggregation.update import Update
from sluice.arrays import Floats

IN_FLOWER = {"fedavg", "krum", "median", "multi-krum", "trimmed-mean"}
NOT_IN_FLOWER = {  # the words such a strategy's name would hold
    "centred-clipping": "centered",
    "fltrust": "trust",
    "foolsgold": "foolsgold",
    "geometric-median": "geometric",
    "nnm": "neighbor",
    "norm-clipping": "normclip",
}

SEEDS = st.integers(0, 2**32 - 1)
COUNTS = st.integers(3, 13)
LAYER = 4  # weights in the first layer; Flower sees two layers, a rule one flat vector


@dataclass(frozen=True, slots=True, kw_only=True)
class Flower:
    """The two generations of Flower's functions, and the types the newer one takes."""

    lists: Any
    app: Any
    multikrum: Any
    records: Any
    trimmed: Any
    strategies: Any


@pytest.fixture(scope="module")
def flower() -> Flower:
    """Import Flower with its telemetry off; what it imports warns of its own future."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        patch.setenv("FLWR_TELEMETRY_ENABLED", "0")
        patch.setenv("FLWR_DISABLE_UPDATE_CHECK", "1")
        import flwr.app  # noqa: PLC0415
        import flwr.server.strategy.aggregate  # noqa: PLC0415
        import flwr.serverapp.strategy  # noqa: PLC0415
        from flwr.serverapp.strategy import (  # noqa: PLC0415
            fedtrimmedavg,
            multikrum,
            strategy_utils,
        )
    return Flower(
        lists=flwr.server.strategy.aggregate,
        app=flwr.app,
        multikrum=multikrum,
        records=strategy_utils,
        trimmed=fedtrimmedavg,
        strategies=flwr.serverapp.strategy,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Round:
    """One round's updates, as a rule and as Flower see them."""

    matrix: Floats
    weights: list[int]

    @classmethod
    def drawn(cls, seed: int, clients: int, *, weighted: bool = True) -> "Round":
        """Draw updates, one or two of them malicious."""
        random = np.random.default_rng(seed)
        matrix = 0.5 + random.normal(size=(clients, 7))
        matrix[: clients // 4] *= 5
        weights = random.integers(50, 500, clients) if weighted else np.full(clients, 100)
        return cls(matrix=random.permutation(matrix), weights=weights.tolist())

    @property
    def results(self) -> list[tuple[list[Floats], int]]:
        """What the older functions take: layers, and how many examples they were trained on."""
        return [
            ([row[:LAYER], row[LAYER:]], weight)
            for row, weight in zip(self.matrix, self.weights, strict=True)
        ]

    def contents(self, flower: Flower) -> list[Any]:
        """What the newer functions take: records of arrays and metrics."""
        return [
            flower.app.RecordDict(
                {
                    "arrays": flower.app.ArrayRecord(layers),
                    "metrics": flower.app.MetricRecord({"num-examples": weight}),
                }
            )
            for layers, weight in self.results
        ]

    def by(self, rule: Rule) -> Aggregate:
        """Aggregate with one of Sluice's rules."""
        updates = [
            Update(client=f"plant-{at:02}", vector=row, weight=float(weight))
            for at, (row, weight) in enumerate(zip(self.matrix, self.weights, strict=True))
        ]
        return rule(updates, Fresh())[0]


def flat(layers: list[Floats]) -> Floats:
    return np.concatenate(layers)


def selected(contents: list[Any], chosen: list[Any]) -> set[str]:
    """Name the clients whose records were chosen."""
    places = [next(at for at, own in enumerate(contents) if own is one) for one in chosen]
    return {f"plant-{at:02}" for at in places}


def test_every_rule_is_compared_here_or_absent_from_flower(flower: Flower) -> None:
    assert set(NOT_IN_FLOWER) | IN_FLOWER == set(RULES)
    names = [name.lower() for name in dir(flower.strategies)]
    assert "krum" in names
    for words in NOT_IN_FLOWER.values():
        assert not [name for name in names if words in name]


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS, clients=COUNTS)
def test_fedavg_weighs_by_examples(flower: Flower, seed: int, clients: int) -> None:
    drawn = Round.drawn(seed, clients)
    found = drawn.by(FedAvg()).update
    assert found == pytest.approx(flat(flower.lists.aggregate(drawn.results)))
    record = flower.records.aggregate_arrayrecords(drawn.contents(flower), "num-examples")
    assert found == pytest.approx(flat(record.to_numpy_ndarrays()))


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS, clients=COUNTS)
def test_the_median_takes_the_mean_of_the_middle_two(
    flower: Flower, seed: int, clients: int
) -> None:
    drawn = Round.drawn(seed, clients)
    outside = flat(flower.lists.aggregate_median(drawn.results))
    assert drawn.by(CoordinateMedian()).update == pytest.approx(outside)
    # The paper's code takes the lower of the two, which no function of Flower does.
    lower = drawn.by(CoordinateMedian(lower=True)).update
    assert np.allclose(lower, outside) == bool(clients % 2)
    assert (lower <= outside).all()


@settings(deadline=None, max_examples=40)
@given(seed=SEEDS, clients=COUNTS, beta=st.sampled_from([0.0, 0.1, 0.2, 0.3, 0.45]))
def test_the_trimmed_mean_cuts_the_same_share(
    flower: Flower, seed: int, clients: int, beta: float
) -> None:
    drawn = Round.drawn(seed, clients)
    found = drawn.by(TrimmedMean(beta=beta)).update
    assert found == pytest.approx(flat(flower.lists.aggregate_trimmed_avg(drawn.results, beta)))
    assert found == pytest.approx(flower.trimmed.trim_mean(drawn.matrix, beta))


def test_a_whole_number_is_cut_whole_whatever_floats_say(flower: Flower) -> None:
    # 0.29 of 100 is 29; int(0.29 * 100), which Flower takes, is 28.
    drawn = Round.drawn(7, 100)
    found = drawn.by(TrimmedMean(beta=0.29)).update
    assert found == pytest.approx(flower.trimmed.trim_mean(drawn.matrix, 0.295))
    assert not np.allclose(found, flower.trimmed.trim_mean(drawn.matrix, 0.29))


@settings(deadline=None, max_examples=60)
@given(seed=SEEDS, clients=COUNTS, f=st.integers(0, 4))
def test_krum_picks_the_same_client(flower: Flower, seed: int, clients: int, f: int) -> None:
    f = min(f, clients - 1)
    drawn = Round.drawn(seed, clients)
    found = drawn.by(Krum(f=f))
    outside = flower.lists.aggregate_krum(drawn.results, num_malicious=f, to_keep=0)
    assert np.array_equal(found.update, flat(outside))
    contents = drawn.contents(flower)
    chosen = flower.multikrum.select_multikrum(contents, f, 1)
    if clients - f > 3:  # with one neighbour two clients tie, and rounding decides in Flower
        assert found.admitted == selected(contents, chosen)


@settings(deadline=None, max_examples=60)
@given(seed=SEEDS, clients=st.integers(5, 13))
def test_multi_krum_keeps_the_same_clients(flower: Flower, seed: int, clients: int) -> None:
    f = AllowedShare(0.3).among(clients)
    drawn = Round.drawn(seed, clients, weighted=False)
    found = drawn.by(MultiKrum())
    outside = flower.lists.aggregate_krum(drawn.results, num_malicious=f, to_keep=clients - f)
    assert found.update == pytest.approx(flat(outside))
    contents = drawn.contents(flower)
    chosen = flower.multikrum.select_multikrum(contents, f, clients - f)
    assert found.admitted == selected(contents, chosen)
    assert {client for client, share in found.influence.items() if share} == found.admitted


def test_flower_weighs_what_multi_krum_keeps_and_sluice_does_not(flower: Flower) -> None:
    # The client claims its own weight; a rule that guards against malicious clients ignores it.
    drawn = Round.drawn(3, 10)
    found = drawn.by(MultiKrum(f=3, m=7))
    outside = flat(flower.lists.aggregate_krum(drawn.results, num_malicious=3, to_keep=7))
    assert not np.allclose(found.update, outside)
    kept = sorted(int(client.removeprefix("plant-")) for client in found.admitted)
    shares = np.array([drawn.weights[at] for at in kept], dtype=np.float64)
    assert outside == pytest.approx(shares / shares.sum() @ drawn.matrix[kept])
    assert found.update == pytest.approx(drawn.matrix[kept].mean(axis=0))
