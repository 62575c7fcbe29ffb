"""What every aggregation rule must do; a new one in `RULES` is found here by itself."""

import inspect
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sluice import aggregation
from sluice.aggregation.coordinates import TrimmedMean
from sluice.aggregation.mixing import NearestNeighbourMixing
from sluice.aggregation.registry import RULES
from sluice.aggregation.rule import (
    Aggregate,
    Centre,
    Fresh,
    RootUpdate,
    Rule,
    RuleMemory,
    State,
)
from sluice.aggregation.update import Update
from sluice.arrays import Floats
from sluice.errors import SettingError
from sluice.federation import UPDATE_MAX

MOVES_WITH_THE_UPDATES = {  # add one vector to all updates and the aggregate moves by it
    "fedavg",
    "geometric-median",
    "krum",
    "median",
    "multi-krum",
    "nnm",
    "trimmed-mean",
}
STAYS_IN_THE_BOX = MOVES_WITH_THE_UPDATES | {"foolsgold"}  # of the smallest and largest value
SHRINKS_TOWARDS_ZERO = {"centred-clipping", "norm-clipping"}  # in the box with zero added
IS_WHAT_INFLUENCE_SAYS = {  # the aggregate is the sum of influence times update
    "fedavg",
    "foolsgold",
    "geometric-median",
    "krum",
    "multi-krum",
}
POINTS_WHERE_INFLUENCE_SAYS = {"centred-clipping", "fltrust", "norm-clipping"}
WITHSTANDS_FAR_UPDATES = {
    "centred-clipping",
    "fltrust",
    "geometric-median",
    "krum",
    "median",
    "multi-krum",
    "nnm",
    "norm-clipping",
}
BY_DESIGN_WITHOUT_A_CLAIM = {"fedavg", "foolsgold"}  # foolsgold guards against likeness, not size

SEEDS = st.integers(0, 2**32 - 1)
COUNTS = st.integers(4, 13)


@pytest.fixture(params=sorted(RULES))
def name(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def round_of(matrix: Floats, *, seed: int = 0) -> list[Update]:
    weights = np.random.default_rng(seed).integers(50, 500, len(matrix))
    return [
        Update(client=f"plant-{at}", vector=row, weight=float(weight))
        for at, (row, weight) in enumerate(zip(matrix, weights, strict=True))
    ]


def unlike(clients: int, seed: int, *, size: int = 7) -> Floats:
    """Return updates that agree on a direction and otherwise differ in it and in length."""
    random = np.random.default_rng(seed)
    lengths = random.uniform(0.3, 3, (clients, 1))
    return lengths * (1 + random.normal(size=(clients, size)))


def start(rule: Rule, size: int) -> State:
    return RootUpdate(vector=np.ones(size)) if rule.needs_root else Fresh()


def aggregate(name: str, updates: Sequence[Update], state: State | None = None) -> Aggregate:
    rule = RULES[name]
    return rule(updates, start(rule, updates[0].vector.size) if state is None else state)[0]


def test_every_rule_of_the_package_is_registered() -> None:
    classes = {
        found
        for found in (getattr(aggregation, name) for name in aggregation.__all__)
        if inspect.isclass(found) and hasattr(found, "needs_root") and found is not Rule
    }
    assert {type(rule) for rule in RULES.built_in.values()} == classes
    assert len(classes) == 11


def test_every_rule_states_what_far_updates_do_to_it() -> None:
    claims = WITHSTANDS_FAR_UPDATES | BY_DESIGN_WITHOUT_A_CLAIM | {"trimmed-mean"}
    assert claims == set(RULES.built_in)


@settings(deadline=None)
@given(seed=SEEDS, clients=COUNTS)
def test_the_order_of_clients_changes_not_one_bit(seed: int, clients: int) -> None:
    updates = round_of(unlike(clients, seed))
    shuffled = [updates[at] for at in np.random.default_rng(seed).permutation(clients)]
    for name in RULES:
        one, other = aggregate(name, updates), aggregate(name, shuffled)
        assert np.array_equal(one.update, other.update), name
        assert one.influence == other.influence, name
        assert one.admitted == other.admitted, name


def test_influence_follows_the_client_and_not_its_place(name: str) -> None:
    updates = round_of(unlike(9, 3))
    renamed = [
        Update(client=f"site-{8 - at}", vector=update.vector, weight=update.weight)
        for at, update in enumerate(updates)
    ]
    one, other = aggregate(name, updates), aggregate(name, renamed)
    assert other.update == pytest.approx(one.update, abs=1e-9)
    for at in range(9):
        assert other.influence[f"site-{8 - at}"] == pytest.approx(
            one.influence[f"plant-{at}"], abs=1e-9
        )


@settings(deadline=None)
@given(seed=SEEDS, clients=COUNTS)
def test_influence_is_a_share(seed: int, clients: int) -> None:
    updates = round_of(unlike(clients, seed))
    for name in RULES:
        found = aggregate(name, updates)
        if not found.influence:  # no client is trusted
            assert name == "fltrust"
            assert not found.update.any()
            continue
        assert set(found.influence) == {update.client for update in updates}
        assert min(found.influence.values()) >= 0, name
        assert sum(found.influence.values()) == pytest.approx(1), name
        assert found.admitted <= set(found.influence)


@settings(deadline=None)
@given(seed=SEEDS, clients=COUNTS)
def test_influence_is_what_the_aggregate_was_made_of(seed: int, clients: int) -> None:
    matrix = unlike(clients, seed)
    updates = round_of(matrix)
    for name in IS_WHAT_INFLUENCE_SAYS | POINTS_WHERE_INFLUENCE_SAYS:
        found = aggregate(name, updates)
        if not found.influence:
            continue
        made = np.array([found.influence[update.client] for update in updates]) @ matrix
        if name in POINTS_WHERE_INFLUENCE_SAYS:
            made *= np.linalg.norm(found.update) / np.linalg.norm(made)
        assert found.update == pytest.approx(made, abs=1e-8), name


def test_the_aggregate_moves_with_the_updates_where_it_should_and_only_there() -> None:
    # Integers, so that moving and moving back loses nothing and ties stay ties.
    matrix = np.random.default_rng(5).integers(-40, 40, (10, 6)).astype(np.float64)
    by = np.array([7.0, -3.0, 11.0, 5.0, -20.0, 2.0])
    moved = {
        name
        for name in RULES
        if np.allclose(
            aggregate(name, round_of(matrix + by)).update,
            aggregate(name, round_of(matrix)).update + by,
            atol=1e-7,
        )
    }
    assert moved == MOVES_WITH_THE_UPDATES


@settings(deadline=None)
@given(seed=SEEDS, clients=COUNTS, by=st.floats(-100, 100))
def test_the_aggregate_moves_with_the_updates(seed: int, clients: int, by: float) -> None:
    matrix = unlike(clients, seed)
    for name in MOVES_WITH_THE_UPDATES:
        here = aggregate(name, round_of(matrix)).update
        there = aggregate(name, round_of(matrix + by)).update
        assert there == pytest.approx(here + by, abs=1e-6), name


@settings(deadline=None)
@given(seed=SEEDS, clients=COUNTS)
def test_the_aggregate_stays_between_the_updates(seed: int, clients: int) -> None:
    matrix = unlike(clients, seed)
    for name in STAYS_IN_THE_BOX | SHRINKS_TOWARDS_ZERO:
        rows = np.vstack([matrix, np.zeros(7)]) if name in SHRINKS_TOWARDS_ZERO else matrix
        found = aggregate(name, round_of(matrix)).update
        assert (found >= rows.min(axis=0) - 1e-9).all(), name
        assert (found <= rows.max(axis=0) + 1e-9).all(), name


@pytest.mark.parametrize("far", [1e3, 1e9, 1e30])
@pytest.mark.parametrize("together", [True, False])
def test_far_updates_do_not_move_a_robust_rule(far: float, together: bool) -> None:  # noqa: FBT001
    random = np.random.default_rng(11)
    truth = np.full(20, 2.0)
    matrix = truth + random.normal(0, 0.1, (10, 20))
    for at in range(3):
        towards = np.ones(20) if together else random.normal(size=20)
        matrix[at] = -far * towards
    updates = round_of(matrix)
    found = {
        name: aggregate(name, updates, RootUpdate(vector=truth) if name == "fltrust" else None)
        for name in WITHSTANDS_FAR_UPDATES
    }
    found["trimmed-mean"] = TrimmedMean(beta=0.3)(updates, Fresh())[0]
    for name, result in found.items():
        away = np.linalg.norm(result.update - truth)
        # Norm clipping bounds the effect of three far updates only by 2 x 3/10 of the length.
        limit = 0.65 if name == "norm-clipping" else 0.2
        assert away <= limit * np.linalg.norm(truth), (name, away)


def test_the_papers_trimmed_mean_cuts_two_of_ten_and_so_falls_to_three() -> None:
    matrix = np.full((10, 4), 2.0)
    matrix[:2] = -1e9
    assert aggregate("trimmed-mean", round_of(matrix)).update == pytest.approx(np.full(4, 2.0))
    matrix[2] = -1e9
    assert aggregate("trimmed-mean", round_of(matrix)).update.max() < -1e8


def test_a_far_update_has_no_influence_on_the_rules_that_select(name: str) -> None:
    matrix = unlike(10, 2)
    matrix[4] = 1e6
    influence = aggregate(name, round_of(matrix)).influence["plant-4"]
    if name in {"krum", "multi-krum", "median", "trimmed-mean", "geometric-median", "nnm"}:
        assert influence < 0.06
    if name == "fedavg":
        assert influence > 0.01


def test_no_rule_is_fedavg_in_disguise(name: str) -> None:
    updates = round_of(unlike(10, 8))
    plain = aggregate("fedavg", updates).update
    found = aggregate(name, updates).update
    assert (name == "fedavg") == bool(np.allclose(found, plain, rtol=1e-3))


def test_no_two_rules_are_one() -> None:
    updates = round_of(unlike(10, 8))
    found = [aggregate(name, updates).update for name in RULES]
    for at, one in enumerate(found):
        assert not any(np.allclose(one, other) for other in found[at + 1 :])


@settings(deadline=None)
@given(seed=SEEDS, clients=COUNTS)
def test_single_and_double_precision_agree(seed: int, clients: int) -> None:
    single = unlike(clients, seed).astype(np.float32)
    for name in RULES:
        one = aggregate(name, round_of(single.astype(np.float64)))
        other = aggregate(name, round_of(single))  # type: ignore[arg-type]
        assert other.update.dtype == np.float64
        assert np.array_equal(one.update, other.update), name


def test_a_round_replays_from_the_state_before_it(name: str) -> None:
    rule = RULES[name]
    state: State = start(rule, 7)
    for turn in range(4):
        updates = round_of(unlike(8, turn))
        before = state if not rule.needs_root else start(rule, 7)
        one, after = rule(updates, before)
        other, again = rule(updates, before)
        assert np.array_equal(one.update, other.update)
        assert one.influence == other.influence
        follow = after if not rule.needs_root else start(rule, 7)
        replay = again if not rule.needs_root else start(rule, 7)
        assert np.array_equal(rule(updates, follow)[0].update, rule(updates, replay)[0].update)
        state = after


def test_inputs_are_left_as_they_were_and_outputs_are_read_only(name: str) -> None:
    matrix = unlike(8, 4)
    updates = round_of(matrix.copy())
    found = aggregate(name, updates)
    assert np.array_equal(np.stack([update.vector for update in updates]), matrix)
    with pytest.raises(ValueError, match="read-only"):
        found.update[0] = 1


def test_rounds_a_gate_has_thinned_still_aggregate(name: str) -> None:
    matrix = unlike(10, 6)
    for left in range(1, 10):
        found = aggregate(name, round_of(matrix[:left]))
        assert np.isfinite(found.update).all()
        if left == 1 and name not in {"fltrust", "centred-clipping"}:
            assert found.update == pytest.approx(matrix[0])


def test_copies_of_one_update_aggregate_to_it(name: str) -> None:
    row = np.array([1.0, -2.0, 3.0, 0.5, 1.0, 1.0, 1.0])
    updates = round_of(np.tile(row, (6, 1)))
    found = aggregate(name, updates)
    if name == "fltrust":  # at the root update's length
        row = row / np.linalg.norm(row) * np.sqrt(7)
    assert found.update == pytest.approx(row)
    if name not in {"fedavg", "krum", "multi-krum", "nnm"}:  # weights, or a choice by name
        assert list(found.influence.values()) == pytest.approx([1 / 6] * 6)


@settings(max_examples=30, deadline=None)
@given(seed=SEEDS, rows=st.integers(1, 8), size=st.integers(1, 4))
def test_ties_zeros_and_few_weights_are_no_special_case(seed: int, rows: int, size: int) -> None:
    matrix = np.random.default_rng(seed).integers(-1, 2, (rows, size)).astype(np.float64)
    for name in RULES:
        found = aggregate(name, round_of(matrix))
        assert np.isfinite(found.update).all(), name
        assert sum(found.influence.values()) == pytest.approx(1 if found.influence else 0), name


def test_a_round_without_updates_is_refused(name: str) -> None:
    rule = RULES[name]
    with pytest.raises(SettingError, match="without updates"):
        rule([], start(rule, 3))


def test_one_client_cannot_speak_twice(name: str) -> None:
    updates = round_of(unlike(5, 1))
    with pytest.raises(SettingError, match="'plant-2' sent two updates"):
        aggregate(name, [*updates, updates[2]])


def test_all_clients_train_the_same_model(name: str) -> None:
    odd = Update(client="plant-x", vector=np.ones(3), weight=1)
    with pytest.raises(SettingError, match="'plant-4' sent 7 weights and client 'plant-x' sent 3"):
        aggregate(name, [*round_of(unlike(5, 1)), odd])


def test_another_rules_state_is_refused(name: str) -> None:
    rule = RULES[name]
    wrong: State = Fresh() if rule.needs_root else RootUpdate(vector=np.ones(7))
    with pytest.raises(SettingError):
        rule(round_of(unlike(5, 1)), wrong)


def test_mixing_wraps_every_rule_and_hands_its_state_through(name: str) -> None:
    mixing = NearestNeighbourMixing(rule=RULES[name])
    updates = round_of(unlike(10, 5))
    found, after = mixing(updates, start(RULES[name], 7))
    assert mixing.needs_root == RULES[name].needs_root
    assert sum(found.influence.values()) == pytest.approx(1)
    if not mixing.needs_root:
        assert np.isfinite(mixing(updates, after)[0].update).all()


# -- adversarial updates --------------------------------------------------------------------------

EXTREMES = (0.0, -0.0, UPDATE_MAX, -UPDATE_MAX, 1.4e-45, -1.4e-45, 1.2e-38, 1e-20, 1e-6, -1.0)
ENTRIES = st.sampled_from(EXTREMES) | st.floats(-UPDATE_MAX, UPDATE_MAX, width=32)


@st.composite
def adversarial_rounds(draw: st.DrawFn) -> list[list[Update]]:
    """Draw rounds of finite updates within scale: extremes, copies, opposites, near copies."""
    clients, size = draw(st.integers(1, 8)), draw(st.integers(1, 5))
    rounds = []
    for _ in range(draw(st.integers(1, 3))):
        rows: list[Floats] = []
        for _ in range(clients):
            how = draw(st.sampled_from(("own", "own", "copy", "opposite", "near")))
            row = np.array(draw(st.lists(ENTRIES, min_size=size, max_size=size)))
            if how != "own" and rows:
                row = rows[draw(st.integers(0, len(rows) - 1))]
                row = -row if how == "opposite" else row
                row = np.nextafter(row.astype(np.float32), np.float32(0)) if how == "near" else row
            rows.append(row.astype(np.float32))
        weights = draw(st.lists(st.integers(1, 8_192), min_size=clients, max_size=clients))
        rounds.append(
            [
                Update(client=f"plant-{at}", vector=row, weight=weight)
                for at, (row, weight) in enumerate(zip(rows, weights, strict=True))
            ]
        )
    return rounds


@pytest.mark.parametrize("rule", RULES.values(), ids=list(RULES))
@settings(deadline=None)
@given(rounds=adversarial_rounds(), root=st.sampled_from((UPDATE_MAX, -1e-3, 1e-20)))
def test_no_updates_within_scale_make_an_aggregate_that_is_not_finite(
    rule: Rule, rounds: list[list[Update]], root: float
) -> None:
    state: State = Fresh()
    for updates in rounds:
        if rule.needs_root:
            state = RootUpdate(vector=np.full(updates[0].vector.size, root))
        found, state = rule(updates, state)
        assert np.isfinite(found.update).all()
        assert all(np.isfinite(share) for share in found.influence.values())
        assert np.isfinite(found.update.astype(np.float32)).all()
        match state:
            case RuleMemory(sums=sums):
                assert all(np.isfinite(total).all() for total in sums.values())
            case Centre(vector=vector):
                assert np.isfinite(vector).all()
            case _:
                assert state == Fresh()
