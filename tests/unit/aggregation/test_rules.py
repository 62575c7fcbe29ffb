"""What each rule promises beyond the contract all of them keep."""

import pickle
from collections.abc import Callable

import numpy as np
import pytest

from sluice.aggregation.allowance import AllowedShare
from sluice.aggregation.averages import CentredClipping, FedAvg, NormClipping
from sluice.aggregation.coordinates import CoordinateMedian, TrimmedMean
from sluice.aggregation.fltrust import FLTrust
from sluice.aggregation.foolsgold import FoolsGold
from sluice.aggregation.geometric import GeometricMedian
from sluice.aggregation.geometry import MedianLength
from sluice.aggregation.mixing import NearestNeighbourMixing
from sluice.aggregation.rule import Centre, Fresh, RootUpdate, Rule, RuleMemory, State
from sluice.aggregation.selection import Krum, MultiKrum
from sluice.aggregation.update import Update
from sluice.arrays import Floats
from sluice.errors import SettingError


def sent(**vectors: list[float]) -> list[Update]:
    return [
        Update(client=client, vector=np.array(vector, dtype=np.float64), weight=1.0)
        for client, vector in vectors.items()
    ]


def of(rule: Rule, updates: list[Update], state: State | None = None) -> Floats:
    return rule(updates, state or Fresh())[0].update


def line(*places: float) -> list[Update]:
    return sent(**{f"c{at}": [place] for at, place in enumerate(places)})


class TestUpdates:
    @pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e39])
    def test_a_broken_update_names_its_client(self, value: float) -> None:
        with pytest.raises(SettingError, match="client 'east'.*the first at 1"):
            Update(client="east", vector=np.array([0.0, value]), weight=1)

    def test_the_largest_weight_is_the_largest_that_can_be_sent(self) -> None:
        largest = float(np.finfo(np.float32).max)
        kept = Update(client="east", vector=np.array([-largest, largest]), weight=1)
        assert kept.vector.tolist() == [-largest, largest]
        beyond = np.array([np.nextafter(largest, np.inf)])
        with pytest.raises(SettingError, match="NaN, infinite or beyond"):
            Update(client="east", vector=beyond, weight=1)

    @pytest.mark.parametrize(
        "vector", [np.zeros((2, 2)), np.zeros(0), np.zeros(3, dtype=np.int64), np.float64(3)]
    )
    def test_an_update_is_a_flat_vector_of_floats(self, vector: Floats) -> None:
        with pytest.raises(SettingError, match="flat, non-empty vector"):
            Update(client="east", vector=vector, weight=1)

    @pytest.mark.parametrize("weight", [0.0, -1.0, np.nan, np.inf])
    def test_a_client_that_did_not_train_has_no_update(self, weight: float) -> None:
        with pytest.raises(SettingError, match="'east' has weight .*; expected more than 0"):
            Update(client="east", vector=np.ones(2), weight=weight)

    def test_an_update_has_a_sender(self) -> None:
        with pytest.raises(SettingError, match="empty name"):
            Update(client="", vector=np.ones(2), weight=1)

    def test_a_checkpoint_is_a_value(self) -> None:
        _, memory = FoolsGold()(sent(a=[1.0, 0.0], b=[0.0, 1.0]), Fresh())
        again = pickle.loads(pickle.dumps(memory))
        assert np.array_equal(again.sums["a"], memory.sums["a"])


class TestShares:
    @pytest.mark.parametrize(
        ("share", "clients", "count"), [(0.3, 10, 3), (0.3, 7, 2), (0.29, 100, 29), (0.3, 3, 0)]
    )
    def test_a_share_follows_the_clients_present(
        self, share: float, clients: int, count: int
    ) -> None:
        assert AllowedShare(share).among(clients) == count

    @pytest.mark.parametrize("share", [-0.1, 1.0, np.nan])
    def test_a_share_is_less_than_all(self, share: float) -> None:
        with pytest.raises(SettingError, match="a share of the clients"):
            AllowedShare(share)

    @pytest.mark.parametrize(
        "rule",
        [Krum(f=3), MultiKrum(f=3), NearestNeighbourMixing(rule=CoordinateMedian(), f=3)],
    )
    def test_updates_must_outnumber_the_ones_guarded_against(self, rule: Rule) -> None:
        assert of(rule, line(0, 1, 2, 3)).size == 1
        with pytest.raises(SettingError, match="f = 3 clients but got 3 updates"):
            of(rule, line(0, 1, 2))


class TestAverages:
    def test_fedavg_weighs_by_training_windows(self) -> None:
        updates = [
            Update(client="a", vector=np.array([0.0]), weight=300),
            Update(client="b", vector=np.array([4.0]), weight=100),
        ]
        found, _ = FedAvg()(updates, Fresh())
        assert found.update == pytest.approx([1.0])
        assert found.influence == pytest.approx({"a": 0.75, "b": 0.25})

    def test_norm_clipping_shortens_what_is_too_long(self) -> None:
        found, _ = NormClipping()(line(1, 2, 10), Fresh())
        assert found.update == pytest.approx([(1 + 2 + 2) / 3])
        assert found.influence == pytest.approx({"c0": 1 / 2.2, "c1": 1 / 2.2, "c2": 0.2 / 2.2})
        assert found.admitted == {"c0", "c1", "c2"}

    def test_norm_clipping_takes_the_lower_median_length_as_the_papers_code_does(self) -> None:
        assert of(NormClipping(), line(1, 2, 4, 8)) == pytest.approx([(1 + 2 + 3 + 3) / 4])
        lower = NormClipping(tau=MedianLength(lower=True))
        assert of(lower, line(1, 2, 4, 8)) == pytest.approx([(1 + 2 + 2 + 2) / 4])

    def test_norm_clipping_at_a_fixed_length(self) -> None:
        assert of(NormClipping(tau=3.0), line(1, -30)) == pytest.approx([-1.0])

    def test_centred_clipping_goes_on_from_the_last_centre(self) -> None:
        rule = CentredClipping(tau=1.0, iterations=1)
        first, state = rule(line(10, 10), Fresh())
        assert first.update == pytest.approx([1.0])
        assert rule(line(10, 10), state)[0].update == pytest.approx([2.0])

    def test_centred_clipping_refuses_the_centre_of_another_model(self) -> None:
        with pytest.raises(SettingError, match="centre of 2 weights and got updates of 1"):
            CentredClipping()(line(1, 2), Centre(vector=np.zeros(2)))


class TestCoordinates:
    def test_the_median_of_an_even_number(self) -> None:
        assert of(CoordinateMedian(), line(1, 2, 4, 9)) == pytest.approx([3.0])
        assert of(CoordinateMedian(lower=True), line(1, 2, 4, 9)) == pytest.approx([2.0])

    def test_influence_is_the_share_of_weights_supplied(self) -> None:
        updates = sent(a=[1.0, 5.0, 0.0], b=[2.0, 6.0, 0.0], c=[3.0, 4.0, 9.0])
        found, _ = CoordinateMedian()(updates, Fresh())
        assert found.update == pytest.approx([2.0, 5.0, 0.0])
        assert found.influence == pytest.approx({"a": 1.5 / 3, "b": 1.5 / 3, "c": 0.0})

    def test_a_midpoint_is_half_of_each(self) -> None:
        found, _ = CoordinateMedian()(line(1, 2, 4, 9), Fresh())
        assert list(found.influence.values()) == pytest.approx([0, 0.5, 0.5, 0])

    def test_the_trimmed_mean_counts_what_it_kept(self) -> None:
        updates = sent(
            a=[0.0, 1.0], b=[1.0, 1.0], c=[2.0, 1.0], d=[3.0, 1.0], e=[90.0, 7.0]
        )  # one cut from either side
        found, _ = TrimmedMean()(updates, Fresh())
        assert found.update == pytest.approx([2.0, 1.0])
        tied = 3 / 4  # of four equal values three are left
        kept = np.array([tied, 1 + tied, 1 + tied, 1 + tied, 0]) / 6
        assert list(found.influence.values()) == pytest.approx(kept.tolist())

    def test_the_papers_admission_is_by_length(self) -> None:
        found, _ = TrimmedMean()(line(-5, 1, 2, -3, 4), Fresh())
        assert found.admitted == {"c2", "c3", "c4"}

    @pytest.mark.parametrize("beta", [-0.1, 0.5, np.nan])
    def test_a_trimmed_mean_leaves_something(self, beta: float) -> None:
        with pytest.raises(SettingError, match="beta in"):
            TrimmedMean(beta=beta)


class TestSelection:
    def test_krum_counts_n_less_f_less_two_neighbours(self) -> None:
        # With 7 - 2 - 2 = 3 neighbours 2.1 wins; with two it would be 1.0, with four 3.3.
        places = line(0.0, 1.0, 2.1, 3.3, 50.0, 50.1, 90.0)
        assert of(Krum(f=2), places) == pytest.approx([2.1])
        assert of(Krum(f=6), places) == pytest.approx([50.0])  # at least one neighbour

    def test_multi_krum_averages_what_it_selects(self) -> None:
        found, _ = MultiKrum(f=1, m=2)(line(0.0, 1.0, 2.0, 3.0, 99.0), Fresh())
        assert found.update == pytest.approx([1.5])
        assert found.admitted == {"c1", "c2"}
        assert found.influence["c1"] == found.influence["c2"] == 0.5

    def test_multi_krum_cannot_keep_more_than_came(self) -> None:
        with pytest.raises(SettingError, match="m = 9 updates but got 5"):
            of(MultiKrum(f=1, m=9), line(0, 1, 2, 3, 4))


class TestFLTrust:
    root = RootUpdate(vector=np.array([2.0, 0.0]))

    def test_direction_counts_and_length_does_not(self) -> None:
        updates = sent(a=[5.0, 0.0], b=[3.0, 4.0], c=[-1.0, 0.0])
        found, after = FLTrust()(updates, self.root)
        assert found.update == pytest.approx([(2.0 + 0.6 * 1.2) / 1.6, 0.6 * 1.6 / 1.6])
        assert found.admitted == {"a", "b"}
        assert found.influence["c"] == 0
        assert FLTrust.trust(updates, self.root) == pytest.approx({"a": 1, "b": 0.6, "c": 0})
        assert isinstance(after, Fresh)

    def test_without_a_trusted_client_nothing_changes(self) -> None:
        found, _ = FLTrust()(sent(a=[-1.0, 0.0], b=[0.0, 1.0], c=[0.0, 0.0]), self.root)
        assert found.update == pytest.approx([0.0, 0.0])
        assert found.influence == {}
        assert found.admitted == frozenset()

    def test_it_does_not_run_without_a_root_update(self) -> None:
        with pytest.raises(SettingError, match="got Fresh instead; train one on the root slice"):
            FLTrust()(line(1, 2), Fresh())

    def test_last_rounds_root_does_not_serve_again(self) -> None:
        updates = sent(a=[1.0, 0.0])
        _, after = FLTrust()(updates, self.root)
        with pytest.raises(SettingError, match="root slice"):
            FLTrust()(updates, after)

    def test_a_root_update_points_somewhere(self) -> None:
        with pytest.raises(SettingError, match="root update is zero"):
            RootUpdate(vector=np.zeros(3))
        with pytest.raises(SettingError, match="root update has 1 entries that are NaN"):
            RootUpdate(vector=np.array([np.nan, 1.0]))

    def test_a_root_update_is_of_the_same_model(self) -> None:
        with pytest.raises(SettingError, match="root update has 2 weights and the clients' have 1"):
            FLTrust()(line(1, 2), self.root)


class TestFoolsGold:
    def test_copies_lose_their_weight(self) -> None:
        updates = sent(
            a=[1.0, 0.2, 0.0], b=[0.0, 1.0, 0.1], c=[0.1, 0.0, 1.0], x=[1.0, 1.0, 1.0], y=[2.0] * 3
        )
        found, _ = FoolsGold()(updates, Fresh())
        assert found.influence["x"] == found.influence["y"] == 0
        assert found.admitted == {"a", "b", "c"}

    def test_memory_is_kept_by_name_while_the_roster_changes(self) -> None:
        rule = FoolsGold()
        a, b, c = [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]
        state: State = Fresh()
        for updates in (sent(a=a, b=b, c=c), sent(b=b, c=c), sent(c=c, a=a), sent(new=[1.0] * 3)):
            _, state = rule(updates, state)
        assert isinstance(state, RuleMemory)
        assert {client: total.tolist() for client, total in state.sums.items()} == {
            "a": [2.0, 0.0, 0.0],
            "b": [0.0, 2.0, 0.0],
            "c": [0.0, 0.0, 3.0],
            "new": [1.0, 1.0, 1.0],
        }

    def test_a_client_that_was_away_is_judged_by_all_it_ever_sent(self) -> None:
        rule = FoolsGold()
        first = sent(a=[9.0, 0.0, 0.0], b=[0.0, 9.0, 0.0], x=[5.0, 5.0, 9.0], y=[5.0, 5.0, 9.0])
        _, state = rule(first, Fresh())
        _, state = rule(first[:3], state)  # y stays away
        now = sent(a=[1.0, 0.0, 0.0], b=[0.0, 1.0, 0.0], x=[0.0, 0.0, 1.0], y=[1.0, 0.0, 0.1])
        remembered, _ = rule(now, state)
        forgotten, _ = rule(now, Fresh())
        assert remembered.influence["y"] == remembered.influence["x"] == 0
        assert forgotten.influence["x"] > 0.2

    def test_state_is_not_changed_in_place(self) -> None:
        rule = FoolsGold()
        _, state = rule(sent(a=[1.0, 0.0], b=[0.0, 1.0]), Fresh())
        rule(sent(a=[1.0, 0.0], c=[0.0, 1.0]), state)
        assert set(state.sums) == {"a", "b"}
        assert state.sums["a"].tolist() == [1.0, 0.0]

    def test_memory_of_another_model_is_refused(self) -> None:
        with pytest.raises(SettingError, match="remembers 2 weights of client 'a'"):
            FoolsGold()(line(1, 2), RuleMemory(sums={"a": np.zeros(2)}))

    def test_all_alike_share_evenly(self) -> None:
        found, _ = FoolsGold()(sent(a=[1.0, 2.0], b=[2.0, 4.0], c=[3.0, 6.0]), Fresh())
        assert list(found.influence.values()) == pytest.approx([1 / 3] * 3)


class TestGeometricMedian:
    def test_on_a_line_it_is_the_median(self) -> None:
        assert of(GeometricMedian(), line(0, 1, 2, 50, 1000)) == pytest.approx([2.0])
        assert of(GeometricMedian(), line(0, 4)) == pytest.approx([2.0])

    def test_it_is_the_fermat_point_of_a_triangle(self) -> None:
        height = 3**0.5 / 2
        updates = sent(a=[0.0, 0.0], b=[1.0, 0.0], c=[0.5, height])
        assert of(GeometricMedian(), updates) == pytest.approx([0.5, height / 3])

    def test_a_majority_in_one_place_is_the_median(self) -> None:
        found, _ = GeometricMedian()(line(1, 1, 1, 7, -90), Fresh())
        assert found.update == pytest.approx([1.0])
        assert list(found.influence.values()) == pytest.approx([1 / 3, 1 / 3, 1 / 3, 0, 0])

    def test_starting_on_an_update_does_not_stall_it(self) -> None:
        # The mean of the other four lies on the fifth, where the plain iteration would stop.
        updates = sent(a=[4.0, 0.0], b=[-1.0, 2.0], c=[-1.0, -2.0], d=[-2.0, 0.0], e=[0.0, 0.0])
        found = of(GeometricMedian(), updates)
        assert found == pytest.approx([-0.4, 0.0], abs=0.4)
        rows = np.stack([update.vector for update in updates])
        totals = [np.linalg.norm(rows - point, axis=1).sum() for point in (found, *rows)]
        assert totals[0] <= min(totals[1:])


class TestMixing:
    def test_each_update_becomes_the_mean_of_its_neighbours(self) -> None:
        mixing = NearestNeighbourMixing(rule=Krum(f=0), f=1)
        found, _ = mixing(line(0.0, 1.0, 5.0), Fresh())
        assert found.update == pytest.approx([0.5])
        assert found.influence == pytest.approx({"c0": 0.5, "c1": 0.5, "c2": 0.0})

    def test_a_root_update_reaches_the_wrapped_rule(self) -> None:
        mixing = NearestNeighbourMixing(rule=FLTrust())
        assert mixing.needs_root
        with pytest.raises(SettingError, match="FLTrust"):
            mixing(line(1, 2, 3), Fresh())


def test_a_geometric_median_that_rounds_onto_an_update_is_that_update() -> None:
    """Distances of 1e-45 beside distances of 10: the next centre is an update, to the last bit."""
    one, zero = [0.0, 0.0, 1e-6, 10.0], [0.0, 0.0, 0.0, 0.0]
    near = {"f": [0, 0, 0, 1.4e-45], "g": [0, 0, 1e-20, 0]}
    found, _ = GeometricMedian()(sent(a=one, b=one, c=one, d=zero, e=zero, **near), Fresh())
    np.testing.assert_allclose(found.update, zero, atol=1e-15)
    assert sum(found.influence.values()) == pytest.approx(1)


@pytest.mark.parametrize(
    ("build", "says"),
    [
        (lambda: Krum(f=-1), "f >= 0"),
        (lambda: MultiKrum(f=-1), "f >= 0"),
        (lambda: MultiKrum(m=0), "m >= 1"),
        (lambda: NormClipping(tau=0.0), "tau > 0"),
        (lambda: NormClipping(tau=float("nan")), "tau > 0"),
        (lambda: NormClipping(tau=float("inf")), "tau > 0"),
        (lambda: CentredClipping(tau=-1.0), "tau > 0"),
        (lambda: CentredClipping(iterations=0), "at least once"),
        (lambda: GeometricMedian(tolerance=0), "tolerance above 0"),
        (lambda: GeometricMedian(iterations=0), "tolerance above 0"),
        (lambda: FoolsGold(kappa=0), "kappa must be above 0"),
        (lambda: FoolsGold(kappa=float("inf")), "kappa must be above 0"),
        (lambda: NearestNeighbourMixing(rule=FedAvg(), f=-2), "f >= 0"),
    ],
)
def test_settings_out_of_range_are_refused(build: Callable[[], Rule], says: str) -> None:
    with pytest.raises(SettingError, match=says):
        build()


@pytest.mark.parametrize(
    "rule",
    [
        Krum(f=0),
        MultiKrum(m=1),
        MultiKrum(m=4),
        NormClipping(tau=1e-9),
        CentredClipping(iterations=1),
        GeometricMedian(tolerance=1e-9, iterations=1),
        FoolsGold(kappa=1e-9),
        TrimmedMean(beta=0.0),
        NearestNeighbourMixing(rule=FedAvg(), f=0),
        NearestNeighbourMixing(rule=FedAvg(), f=AllowedShare(0.0)),
    ],
    ids=repr,
)
def test_settings_at_the_edge_of_their_range_serve(rule: Rule) -> None:
    assert np.isfinite(of(rule, line(1, 2, 4, 8))).all()
