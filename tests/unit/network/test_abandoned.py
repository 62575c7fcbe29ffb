"""An operator abandons the round in progress: the federation continues with the model it had."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np
import pytest

from sluice.attestation.log.chain import Log, read_log
from sluice.errors import CheckpointError, SettingError
from sluice.network.coordinator.folder import CoordinatorFolder
from sluice.network.coordinator.founding import coordinator_service
from sluice.network.coordinator.operations import abandon, go_back
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.wire.questions import QUESTIONS, Ask, AskToken, AskUpdate
from sluice.network.wire.wire import Answerer, Direct

from .conftest import Consortium


class Killed(BaseException):
    """The coordinator, or the operator's command, is gone."""


class Dying(Direct):
    """A wire on which the coordinator dies when it asks a question of this kind in a round."""

    def __init__(self, plants: Mapping[str, Answerer], kind: type[Ask], round_: int) -> None:
        super().__init__(plants)
        self._kind = kind
        self._round = round_

    def ask(
        self,
        questions: Mapping[str, bytes],
        *,
        seconds: float,
        quorum: int | None = None,
        grace_s: float = 0.0,
    ) -> Iterator[tuple[str, bytes]]:
        ask = QUESTIONS.read(next(iter(questions.values()))).content.ask
        here = isinstance(ask, self._kind) and getattr(ask, "round", None) == self._round
        answers = super().ask(questions, seconds=seconds, quorum=quorum, grace_s=grace_s)
        for answered, answer in enumerate(answers):
            if here and answered:
                raise Killed
            yield answer


def die(consortium: Consortium, kind: type[Ask], round_: int) -> None:
    """Let the coordinator die in a phase of a round, after the first plant's answer."""
    store = CoordinatorStore(consortium.site.base)
    wire = Dying(consortium.plants, kind, round_)
    service = coordinator_service(consortium.site, store, wire, clock=consortium.clock)
    with pytest.raises(Killed):
        service.run(rounds=round_, on_round=lambda _: None)
    store.close()


@pytest.mark.parametrize("kind", [AskToken, AskUpdate], ids=["open", "closed"])
@pytest.mark.parametrize("round_", [1, 2])
def test_an_abandoned_round_leaves_the_model_and_the_next_rounds_go_on(
    consortium: Consortium, kind: type[Ask], round_: int
) -> None:
    die(consortium, kind, round_)
    before = read_log(consortium.site.log).rounds.standing
    assert before is not None
    ended = abandon(consortium.site.folder, at=consortium.clock())
    assert (ended.round, ended.model) == (round_, before.opened.model)
    rounds = read_log(consortium.site.log).rounds
    assert (rounds.between, rounds.model, rounds.counted) == (True, ended.model, round_ - 1)
    done = consortium.run(rounds=2)
    assert done.round == 3  # two rounds count, and one was abandoned
    assert done.unchanged is None
    after = read_log(consortium.site.log).rounds
    assert (after.counted, after.members) == (2, ("north", "south", "west"))


@pytest.mark.parametrize("kind", [AskToken, AskUpdate], ids=["open", "closed"])
@pytest.mark.parametrize("again", [False, True], ids=["by a run", "by the same command"])
def test_an_abandonment_that_was_cut_short_is_ended(
    consortium: Consortium, kind: type[Ask], monkeypatch: pytest.MonkeyPatch, *, again: bool
) -> None:
    die(consortium, kind, 2)
    with monkeypatch.context() as killed:
        killed.setattr(Log, "append", lambda *_, **__: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            abandon(consortium.site.folder, at=consortium.clock())
    assert not read_log(consortium.site.log).rounds.between
    if again:
        abandon(consortium.site.folder, at=consortium.clock())
    done = consortium.run(rounds=2)
    assert done.round == 3
    assert b'"kind":"abandoned","round":2' in consortium.site.log.read_bytes()
    assert read_log(consortium.site.log).rounds.counted == 2


def test_a_round_whose_checkpoint_is_saved_can_still_be_abandoned(
    consortium: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The coordinator died after it saved the model of the round, before the log named it."""
    first = consortium.run(rounds=1)
    with monkeypatch.context() as killed:
        killed.setattr(
            "sluice.network.coordinator.service.CoordinatorService._close",
            lambda *_: (_ for _ in ()).throw(Killed),
        )
        with pytest.raises(Killed):
            consortium.run(rounds=2)
    abandon(consortium.site.folder, at=consortium.clock())
    store = CoordinatorStore(consortium.site.base)
    checkpoint = store.last(federation="water")
    store.close()
    assert checkpoint is not None
    assert (checkpoint.round, checkpoint.unchanged) == (2, "abandoned")
    assert np.array_equal(checkpoint.parameters, first.parameters)
    assert consortium.run(rounds=2).round == 3


def test_without_a_round_in_progress_there_is_nothing_to_abandon(consortium: Consortium) -> None:
    with pytest.raises(SettingError, match="no round was opened.*coordinator run"):
        abandon(consortium.site.folder, at=consortium.clock())
    consortium.run(rounds=1)
    with pytest.raises(SettingError, match="'water' has no round in progress.*round 1 ended"):
        abandon(consortium.site.folder, at=consortium.clock())


def test_a_round_is_not_abandoned_while_a_coordinator_runs(consortium: Consortium) -> None:
    die(consortium, AskUpdate, 1)
    with consortium.site.alone(), pytest.raises(SettingError, match="a coordinator runs"):
        abandon(consortium.site.folder, at=consortium.clock())


def test_a_store_without_the_rounds_model_abandons_nothing(consortium: Consortium) -> None:
    die(consortium, AskUpdate, 1)
    site: CoordinatorFolder = consortium.site
    store = CoordinatorStore(site.base)
    first = store.last(federation="water")
    assert first is not None
    other = replace(first, parameters=first.parameters + 1)
    store.keep(other, "0" * 64, federation="water", at=consortium.clock())
    store.close()
    with pytest.raises(CheckpointError, match="from the same backup"):
        abandon(site.folder, at=consortium.clock())
    for suffix in ("", "-wal", "-shm"):
        site.base.with_name(site.base.name + suffix).unlink(missing_ok=True)
    with pytest.raises(CheckpointError, match="from the same backup"):
        abandon(site.folder, at=consortium.clock())
    assert not read_log(site.log).rounds.between


def test_a_plant_is_removed_after_a_round_was_abandoned(consortium: Consortium) -> None:
    first = consortium.run(rounds=1)
    die(consortium, AskUpdate, 2)
    abandon(consortium.site.folder, at=consortium.clock())
    back = go_back(consortium.site.folder, "west", before=2, at=consortium.clock())
    assert (back.model_of, back.given_up) == (1, 0)
    store = CoordinatorStore(consortium.site.base)
    checkpoint = store.last(federation="water")
    store.close()
    assert checkpoint is not None
    assert np.array_equal(checkpoint.parameters, first.parameters)
    assert consortium.run(rounds=2).admitted == ("north", "south")
