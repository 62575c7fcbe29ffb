"""A federation over a wire ends with the model of one in a process, despite all interruptions."""

import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing

import numpy as np
import pytest

from sluice.aggregation.registry import RULES
from sluice.attestation.log.chain import Log, read_log
from sluice.detector.autoencoder import initial
from sluice.errors import CheckpointError, RefusedError, SettingError
from sluice.federation.admission_check import Decision
from sluice.federation.rounds import begin, take_round
from sluice.federation.transport import InProcess
from sluice.network.coordinator.founding import coordinator_service
from sluice.network.coordinator.operations import go_back
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.plant.agent import Agent
from sluice.network.plant.folder import PlantFolder
from sluice.network.wire.questions import ANSWERS, Answer, Batch, Declined
from sluice.network.wire.wire import Answerer, Direct

from .conftest import Consortium, Founder


class Silent:
    def answer(self, question: bytes) -> bytes:  # noqa: ARG002
        return ANSWERS.write(Answer(instance="0" * 64, seen=0, answer=Declined(word="refused")))


class Killed(BaseException):
    """The coordinator is gone, in the middle of whatever it did."""


class Cut(Direct):
    """A wire on which the coordinator dies after so many answers."""

    def __init__(self, plants: Mapping[str, Answerer], after: int) -> None:
        super().__init__(plants)
        self.after = after

    def ask(
        self,
        questions: Mapping[str, bytes],
        *,
        seconds: float,
        quorum: int | None = None,
        grace_s: float = 0.0,
    ) -> Iterator[tuple[str, bytes]]:
        for answer in super().ask(questions, seconds=seconds, quorum=quorum, grace_s=grace_s):
            if self.after == 0:
                raise Killed
            self.after -= 1
            yield answer
            if self.after == 0:
                raise Killed


def in_process(consortium: Consortium, rounds: int) -> np.ndarray:
    terms = consortium.site.terms
    agents = {name: agent for name, agent in consortium.plants.items() if isinstance(agent, Agent)}
    batches = {name: agent.batch for name, agent in agents.items()}
    transport = InProcess(
        batches=batches,
        windows={name: terms.framing.windows(batch) for name, batch in batches.items()},
        descent=terms.descent,
        seed=terms.seed,
    )
    checkpoint = begin(
        initial(terms.framing.width, seed=terms.seed),
        {name: Decision(admitted=True, rows=len(batch)) for name, batch in batches.items()},
    )
    for _ in range(rounds):
        checkpoint = take_round(checkpoint, transport, RULES[terms.rule], None)
    return checkpoint.parameters


def test_the_model_is_the_one_of_a_federation_in_one_process(consortium: Consortium) -> None:
    done = consortium.run(rounds=2)
    assert done.round == 2
    assert done.admitted == ("north", "south", "west")
    assert np.array_equal(done.parameters, in_process(consortium, 2))
    ledger = read_log(consortium.site.log)
    assert ledger.rounds.last == 2
    assert ledger.rounds.members == ("north", "south", "west")


@pytest.mark.parametrize("after", [1, 4, 7, 11])
def test_a_coordinator_that_is_killed_goes_on_to_the_same_model(
    consortium: Consortium, after: int
) -> None:
    store = CoordinatorStore(consortium.site.base)
    cut = coordinator_service(
        consortium.site, store, Cut(consortium.plants, after), clock=consortium.clock
    )
    with pytest.raises(Killed):
        cut.run(rounds=2, on_round=lambda _: None)
    store.close()
    done = consortium.run(rounds=2)
    assert np.array_equal(done.parameters, in_process(consortium, 2))
    assert read_log(consortium.site.log).rounds.last == 2


def test_what_is_older_than_the_rounds_to_keep_is_deleted_and_the_rounds_go_on(
    founder: Founder,
) -> None:
    consortium = founder(keep_rounds=2)
    consortium.join("north", 0)
    consortium.join("south", 1)

    def kept(table: str) -> list[int]:
        with closing(sqlite3.connect(consortium.site.base)) as base:
            rows = base.execute(f"SELECT DISTINCT round FROM {table} ORDER BY round")
            return [round_ for (round_,) in rows]

    consortium.run(rounds=4)
    assert kept("checkpoints") == kept("events") == [3, 4]
    assert kept("updates") == [4]
    consortium.run(rounds=5)
    assert kept("checkpoints") == kept("events") == [4, 5]
    assert read_log(consortium.site.log).rounds.last == 5


def test_a_plant_that_is_killed_says_the_same_again(consortium: Consortium) -> None:
    consortium.run(rounds=1)
    reborn = PlantFolder(consortium.folder / "north").agent(reveal_rows=True)
    north = consortium.plants["north"]
    assert isinstance(north, Agent)
    assert reborn.attest().attestation == north.attest().attestation
    consortium.plants["north"] = reborn
    assert np.array_equal(consortium.run(rounds=2).parameters, in_process(consortium, 2))


def test_a_silent_plant_is_left_out_and_suspended_until_an_operator_acts(
    founder: Founder,
) -> None:
    consortium = founder(suspend_after=2)
    for index, name in enumerate(("north", "south")):
        consortium.join(name, index)
    honest = consortium.plants["south"]
    consortium.plants["south"] = Silent()
    done = consortium.run(rounds=2)
    assert done.refused == ("south",)
    assert done.decisions["south"].reasons == ("step 4",)
    assert read_log(consortium.site.log).rounds.members == ("north",)
    consortium.plants["south"] = honest
    assert consortium.run(rounds=3).admitted == ("north",)  # suspended: not even asked
    store = CoordinatorStore(consortium.site.base)
    store.reinstate("south")
    store.close()
    assert consortium.run(rounds=4).admitted == ("north", "south")


class Malicious:
    """A plant that sends another batch than its own."""

    def __init__(self, batch: Batch) -> None:
        self.batch = batch

    def answer(self, question: bytes) -> bytes:  # noqa: ARG002
        return ANSWERS.write(Answer(instance="0" * 64, seen=0, answer=self.batch))


def test_a_copied_proof_is_refused_at_step_2(consortium: Consortium) -> None:
    north = consortium.plants["north"]
    assert isinstance(north, Agent)
    consortium.plants["south"] = Malicious(north.attested_documents())
    assert consortium.run(rounds=1).decisions["south"].reasons == ("step 2",)


def test_another_batchs_proof_is_refused_at_step_5(consortium: Consortium) -> None:
    north, south = consortium.plants["north"], consortium.plants["south"]
    assert isinstance(north, Agent)
    assert isinstance(south, Agent)
    mixed = Batch(commit=south.attested_documents().commit, proof=north.attested_documents().proof)
    consortium.plants["south"] = Malicious(mixed)
    assert consortium.run(rounds=1).decisions["south"].reasons == ("step 5.2",)


def test_nonsense_is_counted_and_changes_nothing(consortium: Consortium) -> None:
    class Babbling:
        def answer(self, question: bytes) -> bytes:  # noqa: ARG002
            return b"\x80\x04pickle"

    consortium.plants["west"] = Babbling()
    assert consortium.run(rounds=1).admitted == ("north", "south")
    store = CoordinatorStore(consortium.site.base)
    assert store.counts()["west", "malformed"] == 3  # at the start, in round 1, at the end
    store.close()


def test_a_rolled_back_store_is_refused(consortium: Consortium) -> None:
    consortium.run(rounds=1)
    earlier = consortium.site.base.read_bytes()
    consortium.run(rounds=2)
    for suffix in ("-wal", "-shm"):
        consortium.site.base.with_name(consortium.site.base.name + suffix).unlink(missing_ok=True)
    consortium.site.base.write_bytes(earlier)
    with pytest.raises(CheckpointError, match="one of them is an older copy"):
        consortium.run(rounds=3)


def test_a_federation_without_plants_does_not_begin(founder: Founder) -> None:
    with pytest.raises(RefusedError, match="no client was admitted"):
        founder().run(rounds=1)


def test_a_plant_found_compromised_is_removed_and_its_rounds_given_up(
    consortium: Consortium,
) -> None:
    first = consortium.run(rounds=1)
    consortium.run(rounds=2)
    back = go_back(consortium.site.folder, "west", before=2, at=consortium.clock())
    assert (back.model_of, back.given_up) == (1, 1)
    ledger = read_log(consortium.site.log)
    assert (ledger.rounds.last, ledger.rounds.counted) == (2, 1)
    assert ledger.rounds.removals[0].client == "west"
    store = CoordinatorStore(consortium.site.base)
    checkpoint = store.last(federation="water")
    store.close()
    assert checkpoint is not None
    assert np.array_equal(checkpoint.parameters, first.parameters)
    done = consortium.run(rounds=2)  # one round was given up, so this is round 3
    assert (done.round, done.admitted) == (3, ("north", "south"))
    assert read_log(consortium.site.log).rounds.members == ("north", "south")


def test_a_removal_that_was_cut_short_is_ended_by_the_same_call(
    consortium: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    consortium.run(rounds=2)
    folder = consortium.site.folder
    with monkeypatch.context() as killed:
        killed.setattr(Log, "append", lambda *_, **__: (_ for _ in ()).throw(Killed))
        with pytest.raises(Killed):
            go_back(folder, "west", before=2, at=consortium.clock())
    with pytest.raises(CheckpointError, match="run it again"):
        consortium.run(rounds=3)
    back = go_back(folder, "west", before=2, at=consortium.clock())
    assert (back.model_of, back.given_up) == (1, 1)
    assert consortium.run(rounds=2).admitted == ("north", "south")


def test_going_back_is_refused_while_a_coordinator_runs(consortium: Consortium) -> None:
    consortium.run(rounds=1)
    with (
        consortium.site.alone(),
        pytest.raises(SettingError, match="a coordinator runs"),
    ):
        go_back(consortium.site.folder, "west", before=1, at=consortium.clock())


class Away(Direct):
    """A wire on which all plants are offline for a while."""

    def __init__(self, plants: Mapping[str, Answerer], looks: int) -> None:
        super().__init__(plants)
        self.looks = looks  # until they are back

    def present(self) -> frozenset[str]:
        self.looks -= 1
        return super().present() if self.looks < 0 else frozenset()


def run_with(consortium: Consortium, wire: Direct, rounds: int) -> None:
    store = CoordinatorStore(consortium.site.base)
    try:
        made = coordinator_service(consortium.site, store, wire, clock=consortium.clock)
        made.run(rounds=rounds, on_round=lambda _: None)
    finally:
        store.close()


def test_a_network_that_fails_for_a_moment_suspends_no_plant(
    consortium: Consortium,
) -> None:
    """Rounds without any plant took no time, and every plant was suspended after five of them."""
    consortium.run(rounds=1)
    run_with(consortium, Away(consortium.plants, looks=20), rounds=2)
    ledger = read_log(consortium.site.log)
    assert (ledger.rounds.last, ledger.rounds.members) == (2, ("north", "south", "west"))
    store = CoordinatorStore(consortium.site.base)
    assert not any(member.absences or member.suspended for member in store.members())
    store.close()


def test_a_coordinator_that_no_plant_reaches_stops_before_it_opens_a_round(
    consortium: Consortium,
) -> None:
    consortium.run(rounds=1)
    with pytest.raises(
        RefusedError, match="round 2 has 3 plants with an attestation, 0 of them online"
    ):
        run_with(consortium, Away(consortium.plants, looks=1_000_000), rounds=2)
    assert read_log(consortium.site.log).rounds.last == 1
