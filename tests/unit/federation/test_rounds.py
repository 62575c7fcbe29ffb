"""Rounds over a transport of a few lines: what a server does with what comes back."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from sluice.aggregation.registry import RULES
from sluice.aggregation.update import Update
from sluice.detector.autoencoder import Parameters
from sluice.errors import CheckpointError, RefusedError, SettingError
from sluice.federation.admission_check import Decision
from sluice.federation.checkpoints import CheckpointFile
from sluice.federation.messages import Reply, Request, Train, Trained
from sluice.federation.rounds import Checkpoint, begin, run, take_round
from sluice.seeding import stream

SIZE = 12
CLIENTS = ("a", "b", "c", "d", "e")
EVERYONE = dict.fromkeys(CLIENTS, Decision(admitted=True))


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
            update = Update(client=client, vector=vector, weight=1 + CLIENTS.index(client))
            answered[client] = Trained(update=update)
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
    vectors = [updates[c].update.vector for c in CLIENTS]  # type: ignore[union-attr]
    expected = np.average(np.array(vectors, np.float64), axis=0, weights=[1, 2, 3, 4, 5])
    np.testing.assert_allclose(after.parameters, expected, rtol=1e-6)
    assert after.round == 1
    assert after.influence["e"] == pytest.approx(5 / 15)


def test_a_silent_client_sits_the_round_out() -> None:
    after = take_round(start(), Drift(silent=frozenset("a")), RULES["fedavg"], None)
    assert set(after.influence) == {"b", "c", "d", "e"}


@pytest.mark.parametrize(
    "update",
    [
        Update(client="b", vector=np.full(SIZE, 9.0), weight=1),
        Update(client="a", vector=np.full(SIZE + 1, 9.0), weight=1),
    ],
    ids=["under another's name", "of another model"],
)
def test_what_is_not_the_clients_own_update_of_this_model_is_not_aggregated(update: Update) -> None:
    after = take_round(start(), Drift(replies={"a": Trained(update=update)}), RULES["fedavg"], None)
    assert set(after.influence) == {"b", "c", "d", "e"}


def test_a_client_that_was_not_admitted_cannot_send_an_update() -> None:
    decisions = {**EVERYONE, "e": Decision(admitted=False, reasons=("its tanks leak",))}
    before = begin(np.zeros(SIZE, np.float32), decisions)
    uninvited = Trained(update=Update(client="e", vector=np.full(SIZE, 9.0), weight=1))
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


def test_what_a_killed_run_left_half_written_is_cleared_away(tmp_path: Path) -> None:
    keeper = kept(tmp_path / "checkpoint.safetensors")
    left = tmp_path / ".checkpoint.safetensors.abc.draft"
    left.write_bytes(b"half")
    checkpoint = keeper.load()
    assert checkpoint is not None
    assert checkpoint.round == 2
    assert not left.exists()


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
