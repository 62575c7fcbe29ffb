"""Rounds over a transport of a few lines: what a server does with what comes back."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file

from sluice.aggregation.registry import RULES
from sluice.aggregation.rule import Aggregate, Centre, State
from sluice.aggregation.update import Update
from sluice.detector.autoencoder import Parameters
from sluice.errors import CheckpointError, RefusedError, SettingError
from sluice.federation.admission_check import Decision
from sluice.federation.checkpoints import SCHEMA, CheckpointFile
from sluice.federation.messages import Reply, Request, Train, Trained
from sluice.federation.rounds import UPDATE_MAX, Checkpoint, begin, run, take_round
from sluice.seeding import stream

SIZE = 12
CLIENTS = ("a", "b", "c", "d", "e")
EVERYONE = {
    client: Decision(admitted=True, rows=100 * number) for number, client in enumerate(CLIENTS, 1)
}


@dataclass
class Drift:
    """Every client drifts towards its own point, a little at random, as its round decides."""

    silent: frozenset[str] = frozenset()
    replies: dict[str, Reply] = field(default_factory=dict)

    def exchange(self, requests: Mapping[str, Request]) -> Mapping[str, Reply]:
        answered: dict[str, Reply] = {}
        for client, request in requests.items():
            assert isinstance(request, Train)
            if client in self.silent:
                continue
            rng = stream(1, "drift", client, request.round)
            towards = np.full(SIZE, CLIENTS.index(client)) - request.parameters
            vector = (0.1 * towards + 0.01 * rng.standard_normal(SIZE)).astype(np.float32)
            answered[client] = Trained(vector=vector)
        return answered | self.replies


def root(parameters: Parameters, round_: int) -> Parameters:
    return (parameters + 0.1 * (2.0 - parameters)).astype(np.float32)


def start() -> Checkpoint:
    return begin(np.zeros(SIZE, np.float32), EVERYONE)


def test_fedavg_moves_the_weights_by_the_weighted_mean_of_the_updates() -> None:
    after = take_round(start(), Drift(), RULES["fedavg"], None)
    updates = Drift().exchange(
        dict.fromkeys(CLIENTS, Train(round=1, parameters=np.zeros(SIZE, np.float32)))
    )
    vectors = [updates[c].vector for c in CLIENTS]  # type: ignore[union-attr]
    expected = np.average(np.array(vectors, np.float64), axis=0, weights=[1, 2, 3, 4, 5])
    np.testing.assert_allclose(after.parameters, expected, rtol=1e-6)
    assert after.round == 1
    assert after.influence["e"] == pytest.approx(5 / 15)


def test_who_passed_is_listed_by_name_in_every_process() -> None:
    """A rule returns a set, whose order differs between processes; results must not."""
    after = take_round(start(), Drift(), RULES["fedavg"], None)
    assert list(after.passed) == list(CLIENTS)


def test_a_silent_client_sits_the_round_out() -> None:
    after = take_round(start(), Drift(silent=frozenset("a")), RULES["fedavg"], None)
    assert set(after.influence) == {"b", "c", "d", "e"}


@pytest.mark.parametrize(
    "vector",
    [
        np.full(SIZE + 1, 9.0),
        np.full((SIZE, 1), 9.0),
        np.full(SIZE, 9),
        np.array(["9"] * SIZE),
        np.full(SIZE, np.nan),
        np.full(SIZE, -np.inf),
        np.full(SIZE, 3.4e38),
        np.array([0.0] * (SIZE - 1) + [UPDATE_MAX * 1.001]),
    ],
    ids=[
        "other size",
        "matrix",
        "integers",
        "words",
        "NaN",
        "infinite",
        "float32 max",
        "one entry",
    ],
)
def test_an_update_out_of_scale_excludes_its_client_from_the_round_at_step_6_4(
    vector: np.ndarray,
) -> None:
    transport = Drift(replies={"a": Trained(vector=vector)})
    after = take_round(start(), transport, RULES["fedavg"], None)
    assert set(after.influence) == {"b", "c", "d", "e"}
    assert after.excluded == {"a": "6.4"}
    assert after.unchanged is None
    honest = take_round(after, Drift(), RULES["fedavg"], None)
    assert honest.excluded == {}
    assert "a" in honest.influence


def test_two_clients_send_the_largest_float32_and_the_federation_finishes() -> None:
    huge = Trained(vector=np.full(SIZE, 3.4e38, np.float32))
    transport = Drift(replies={"a": huge, "b": huge})
    done = run(start, transport=transport, rule=RULES["fedavg"], rounds=3)
    assert done.round == 3
    assert set(done.influence) == {"c", "d", "e"}
    assert np.isfinite(done.parameters).all()


def test_a_round_without_an_update_within_scale_names_who_was_left_out() -> None:
    huge: dict[str, Reply] = dict.fromkeys(CLIENTS, Trained(vector=np.full(SIZE, 3.4e38)))
    with pytest.raises(RefusedError, match=r"no update \(out of scale: a, b, c, d, e\)"):
        take_round(start(), Drift(replies=huge), RULES["fedavg"], None)


@dataclass
class Overflowing:
    """A rule at fault: from the second round on its aggregate is not finite."""

    value: float
    needs_root: bool = False
    rounds: int = 0

    def __call__(self, updates: Sequence[Update], state: State) -> tuple[Aggregate, State]:
        self.rounds += 1
        aggregate, after = RULES["centred-clipping"](updates, state)
        if self.rounds == 2:
            return replace(aggregate, update=np.full(SIZE, self.value)), Centre(
                vector=np.full(SIZE, self.value)
            )
        return aggregate, after


@pytest.mark.parametrize("value", [np.nan, np.inf, 3.5e38, 1e300])
def test_a_rule_whose_aggregate_overflows_leaves_the_weights_as_they_were(value: float) -> None:
    seen: list[Checkpoint] = []
    run(start, transport=Drift(), rule=Overflowing(value), rounds=3, on_round=[seen.append])
    _, first, second, third = seen
    assert [each.unchanged for each in seen] == [None, None, "6.5", None]
    assert second.parameters is first.parameters
    assert second.state is first.state
    assert (second.influence, second.passed) == (first.influence, first.passed)
    assert np.isfinite(third.parameters).all()
    assert not np.array_equal(third.parameters, second.parameters)


@pytest.mark.parametrize("largest", [0.0, -1.0, np.nan, np.inf])
def test_a_scale_that_bounds_nothing_or_everything_is_refused(largest: float) -> None:
    with pytest.raises(SettingError, match="update_max must be a finite number above 0"):
        run(start, transport=Drift(), rule=RULES["fedavg"], rounds=1, update_max=largest)


def test_an_agreed_scale_is_kept_to_the_entry() -> None:
    vector = np.zeros(SIZE)
    vector[3] = -0.25
    transport = Drift(replies={"a": Trained(vector=vector)})
    at = take_round(start(), transport, RULES["fedavg"], None, update_max=0.25)
    below = take_round(start(), transport, RULES["fedavg"], None, update_max=0.2499)
    assert "a" in at.influence
    assert below.excluded["a"] == "6.4"


def test_a_client_that_was_not_admitted_cannot_send_an_update() -> None:
    decisions = {**EVERYONE, "e": Decision(admitted=False, reasons=("its tanks leak",))}
    before = begin(np.zeros(SIZE, np.float32), decisions)
    uninvited = Trained(vector=np.full(SIZE, 9.0))
    after = take_round(before, Drift(replies={"e": uninvited}), RULES["fedavg"], None)
    assert "e" not in after.influence
    assert before.refused == ("e",)


def test_a_round_without_updates_is_refused() -> None:
    with pytest.raises(RefusedError, match="round 1 received no update"):
        take_round(start(), Drift(silent=frozenset(CLIENTS)), RULES["fedavg"], None)


def test_a_federation_without_clients_gives_the_reasons() -> None:
    with pytest.raises(RefusedError, match="a: its tanks leak"):
        begin(
            np.zeros(SIZE, np.float32), {"a": Decision(admitted=False, reasons=("its tanks leak",))}
        )


def test_fltrust_without_a_root_slice_is_an_error_not_an_average() -> None:
    with pytest.raises(SettingError, match="root slice"):
        take_round(start(), Drift(), RULES["fltrust"], None)


@pytest.mark.parametrize("rule", RULES)
def test_a_federation_stopped_after_any_round_ends_with_the_same_weights(
    rule: str, tmp_path: Path
) -> None:
    whole = run(start, transport=Drift(), rule=RULES[rule], rounds=6, root=root)
    for stop in range(1, 6):
        keeper = CheckpointFile(path=tmp_path / f"{stop}.safetensors", fingerprint="one")
        run(start, transport=Drift(), rule=RULES[rule], rounds=stop, root=root, keeper=keeper)
        resumed = run(
            start, transport=Drift(), rule=RULES[rule], rounds=6, root=root, keeper=keeper
        )
        assert resumed.parameters.tobytes() == whole.parameters.tobytes()
        assert resumed.influence == whole.influence
        assert resumed.passed == whole.passed
        assert resumed.round == 6


def kept(path: Path, rule: str = "foolsgold") -> CheckpointFile:
    keeper = CheckpointFile(path=path, fingerprint="one")
    run(start, transport=Drift(), rule=RULES[rule], rounds=2, root=root, keeper=keeper)
    return keeper


def test_another_federations_checkpoint_is_refused(tmp_path: Path) -> None:
    path = kept(tmp_path / "checkpoint.safetensors").path
    with pytest.raises(CheckpointError, match="other data or settings"):
        CheckpointFile(path=path, fingerprint="two").load()


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_damaged_checkpoint_is_refused(share: float, tmp_path: Path) -> None:
    keeper = kept(tmp_path / "checkpoint.safetensors")
    whole = keeper.path.read_bytes()
    keeper.path.write_bytes(whole[: int(share * len(whole))])
    with pytest.raises(CheckpointError, match="cannot be read"):
        keeper.load()


def test_a_checkpoint_of_another_schema_or_of_another_maker_is_refused(tmp_path: Path) -> None:
    keeper = kept(tmp_path / "checkpoint.safetensors")
    whole = keeper.path.read_bytes()
    other = SCHEMA[:-1] + "9"
    assert other != SCHEMA
    keeper.path.write_bytes(whole.replace(SCHEMA.encode(), other.encode()))
    with pytest.raises(CheckpointError, match=f"is of schema '{other}', expected '{SCHEMA}'"):
        keeper.load()
    save_file({"weights": np.zeros(3)}, keeper.path)  # without a header of ours
    with pytest.raises(CheckpointError, match="cannot be read"):
        keeper.load()


def test_what_a_killed_run_left_half_written_is_cleared_away(tmp_path: Path) -> None:
    keeper = kept(tmp_path / "checkpoint.safetensors")
    left = tmp_path / ".checkpoint.safetensors.abc.draft"
    left.write_bytes(b"half")
    checkpoint = keeper.load()
    assert checkpoint is not None
    assert checkpoint.round == 2
    assert not left.exists()


@pytest.mark.parametrize(("admitted", "rows"), [(True, 0), (True, -1), (False, 1)])
def test_a_decision_without_the_rows_that_weigh_a_client_cannot_be_written(
    *, admitted: bool, rows: int
) -> None:
    with pytest.raises(SettingError, match="an admitted client has at least 1 row"):
        Decision(admitted=admitted, rows=rows)


def test_a_round_that_changed_nothing_is_kept_with_its_step(tmp_path: Path) -> None:
    keeper = CheckpointFile(path=tmp_path / "c.safetensors", fingerprint="one")
    before = take_round(
        start(), Drift(replies={"a": Trained(vector=np.full(SIZE, 99.0))}), RULES["fedavg"], None
    )
    keeper.keep(replace(before, unchanged="6.5"))
    loaded = keeper.load()
    assert loaded is not None
    assert (loaded.excluded, loaded.unchanged) == ({"a": "6.4"}, "6.5")


def test_decisions_are_kept_with_their_reasons(tmp_path: Path) -> None:
    decisions = {**EVERYONE, "e": Decision(admitted=False, reasons=("its tanks leak",))}
    keeper = CheckpointFile(path=tmp_path / "c.safetensors", fingerprint="one")
    run(
        lambda: begin(np.zeros(SIZE, np.float32), decisions),
        transport=Drift(),
        rule=RULES["centred-clipping"],
        rounds=1,
        keeper=keeper,
    )
    loaded = keeper.load()
    assert loaded is not None
    assert loaded.decisions == decisions
    assert loaded.admitted == ("a", "b", "c", "d")
