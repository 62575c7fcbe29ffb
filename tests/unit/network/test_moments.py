"""Plants share statistics: each travels once, is checked against the log, and becomes one voter."""

import json
import shutil
from collections.abc import Callable
from dataclasses import fields, replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sluice.attestation.log.chain import Log, read_log
from sluice.attestation.log.entries import ENTRIES, Body, ClientRemoved
from sluice.attestation.messages.documents import instant
from sluice.attestation.messages.messages import REGISTRATIONS
from sluice.attestation.messages.orders import APPROVALS, ShadowOrder, approve
from sluice.attestation.messages.signing import SigningKey
from sluice.attestation.protocol.plant import Committed
from sluice.detector.fusion import OrRules
from sluice.detector.modelfile import load_detector
from sluice.detector.moments.lending import LENT_BYTES
from sluice.detector.moments.settings import MomentSettings
from sluice.detector.moments.statistic import MomentStatistic, moment_statistic, statistic_bytes
from sluice.detector.vote import VotedModel
from sluice.errors import (
    CheckpointError,
    DocumentError,
    RefusedError,
    SettingError,
    VerificationError,
)
from sluice.federation.federate import FederationSettings, federate
from sluice.federation.messages import Contributed, Train
from sluice.invariants.encoding import Register
from sluice.invariants.ruleset import CleanFacts, untied_channels
from sluice.invariants.rulesfile import load_rules, save_rules
from sluice.network import statistics
from sluice.network.coordinator import founding
from sluice.network.coordinator.founding import (
    FederationPlan,
    coordinator_service,
    found_federation,
)
from sluice.network.coordinator.operations import go_back, take_out
from sluice.network.coordinator.sharing import statistics_in
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.plant.agent import Agent
from sluice.network.plant.folder import PlantFolder
from sluice.network.plant.model import last_statistics
from sluice.network.statistics import MemberStatistics, vote_of
from sluice.network.training_rows import TrainingRows
from sluice.network.wire.questions import (
    ANSWERS,
    QUESTIONS,
    Ask,
    AskLog,
    AskModel,
    AskToken,
    AskUpdate,
    Declined,
    Pledge,
    Revelation,
)
from sluice.network.wire.wire import Answerer, Direct
from sluice.telemetry.reading import read_record
from sluice.template import derive_template
from tests.unit.conftest import Outcome

from .asking import Driven
from .conftest import IDLE, POLICY, START, Consortium, Founder, sign_off
from .malicious_plant import Falsified
from .timed_wire import TimedWire

Run = Callable[..., Outcome]
NAMES = ("north", "south", "west")


@pytest.fixture
def summed(founder: Founder) -> Consortium:
    made = founder("vote", detector="moments", members_min=3)
    for index, name in enumerate(NAMES):
        made.join(name, index)
    return made


@pytest.fixture
def consortium_in_rounds(line_files: tuple[Path, Path], tmp_path: Path) -> Consortium:
    """A federation that trains in rounds, beside the other one."""
    record, rules = line_files
    key = SigningKey.generate()
    plan = FederationPlan(
        federation="rounds",
        host="127.0.0.1",
        port=18_443,
        link_port=18_000,
        reference=TrainingRows(record=str(record), start=4_320, stop=8_640),
        policy=POLICY,
        system="unsafe",
        approvers=(key.public,),
    )
    site = found_federation(tmp_path / "in-rounds", plan, at=START)
    return Consortium(tmp_path, record, rules, site, (key,))


def shared(consortium: Consortium, name: str) -> MemberStatistics | None:
    received = last_statistics(consortium.folder / name, consortium.site.terms)
    return received.shared if received else None


def steps(consortium: Consortium, round_: int) -> dict[str, str]:
    """Return who is excluded from a round, by the log: plant -> step."""
    *lines, _ = consortium.site.log.read_text().splitlines()
    bodies = [json.loads(line)["body"] for line in lines]
    return {
        body["client"]: body["step"]
        for body in bodies
        if body["kind"] == "excluded" and body["round"] == round_
    }


def statistic_of(consortium: Consortium, name: str) -> MomentStatistic:
    batch = PlantFolder(consortium.folder / name).share.read()
    return moment_statistic(batch, consortium.site.terms.moments.settings)


def falsify(consortium: Consortium, name: str, change: Callable[[bytes], bytes]) -> None:
    consortium.plants[name] = Falsified(PlantFolder(consortium.folder / name), change)


def test_every_plant_ends_with_the_statistics_of_all_and_knows_that_it_is_over(
    summed: Consortium,
) -> None:
    done = summed.run()
    assert (done.round, read_log(summed.site.log).rounds.members) == (1, NAMES)
    kept = statistics_in(done.parameters, summed.site.terms)
    assert kept.names == NAMES
    for name, agent in summed.plants.items():
        assert isinstance(agent, Agent)
        assert agent.over
        assert shared(summed, name) == kept
        own = kept.of(name)
        assert own is not None
        assert own.statistic == statistic_of(summed, name)


def test_a_statistic_travels_once(summed: Consortium) -> None:
    summed.run()
    again = summed.run()
    assert again.round == 1
    store = CoordinatorStore(summed.site.base, read_only=True)
    assert all(store.counts()[name, "answered update"] == 1 for name in NAMES)
    assert [member.absences for member in store.members()] == [0, 0, 0]
    store.close()


def test_the_log_opens_with_lags_channels_registers_and_scale(summed: Consortium) -> None:
    opened = json.loads(summed.site.log.read_text().splitlines()[0])["body"]
    terms = opened["statistic"]
    assert (terms["kind"], terms["lags"], terms["rule"], terms["malicious"]) == (
        "moments",
        10,
        "vote",
        1,
    )
    summed_channels = [each for each in terms["channels"] if each["step"] is not None]
    settings = summed.site.terms.moments.settings
    assert [each["channel"] for each in summed_channels] == list(settings.channels)
    assert all(each["spread"] > 0 and each["resolution"] > 0 for each in terms["channels"])


def test_the_first_entry_of_a_federation_in_rounds_stays_as_it_was(consortium: Consortium) -> None:
    opened = json.loads(consortium.site.log.read_text().splitlines()[0])["body"]
    assert "statistic" not in opened


def test_the_model_is_the_same_in_one_process_and_over_the_wire(summed: Consortium) -> None:
    done = summed.run()
    reference = read_record(summed.record).rows(4_320, 8_640)
    clients = {name: PlantFolder(summed.folder / name).share.read() for name in NAMES}
    alone = federate(
        FederationSettings(
            clients=clients, validation=reference, detector="moments", rule="vote", malicious=1
        )
    ).detector
    wired = vote_of(
        statistics_in(done.parameters, summed.site.terms),
        summed.site.terms,
        reference,
        rounds=1,
        rules=None,
        false_alarms_per_week=1.0,
    )
    one, other = alone.model.tensors(), wired.model.tensors()
    assert list(one) == list(other)
    assert all(one[name].tobytes() == other[name].tobytes() for name in one)
    assert alone.threshold == wired.threshold
    scaler = alone.framing.scaler
    assert scaler.names == wired.framing.scaler.names
    for part in ("mean", "spread", "resolution"):
        assert np.array_equal(getattr(scaler, part), getattr(wired.framing.scaler, part))


def test_plant_model_writes_a_vote_beside_the_plants_rules(
    summed: Consortium, sluice: Run, tmp_path: Path
) -> None:
    summed.run()
    model, scores = tmp_path / "model.safetensors", tmp_path / "scores.csv"
    seen = sluice("plant", "model", summed.folder / "north", "--out", model, "--json")
    assert seen.code == 0, seen.err
    detector = load_detector(model)
    assert isinstance(detector.model, VotedModel)
    assert isinstance(detector.fusion, OrRules)
    assert seen.json["kind"] == detector.kind == "physics+vote"
    assert seen.json["member_names"] == list(NAMES)
    assert (seen.json["votes_needed"], seen.json["malicious"]) == (2, 1)
    assert seen.json["statistics"] == {name: statistic_of(summed, name).digest for name in NAMES}
    again = tmp_path / "again.safetensors"
    assert sluice("plant", "model", summed.folder / "north", "--out", again).code == 0
    assert again.read_bytes() == model.read_bytes()
    card = sluice("model", "show", model, "--json").json
    assert card["votes_needed"] == 2
    statistics = card["statistics"]
    assert isinstance(statistics, list)
    assert len(statistics) == 3
    assert sluice("score", summed.record, "--model", model, "--out", scores).code == 0
    assert scores.read_text().startswith("time,score,alarm")


def test_a_plant_without_the_statistics_of_all_is_told_so(
    summed: Consortium, sluice: Run, tmp_path: Path
) -> None:
    seen = sluice("plant", "model", summed.folder / "north", "--out", tmp_path / "m.safetensors")
    assert (seen.code, seen.out) == (2, "")
    assert "it comes when all statistics are collected" in seen.err


def test_a_late_plant_joins_the_vote_and_the_others_fetch_it(founder: Founder) -> None:
    made = founder("vote", detector="moments", members_min=3)
    for index, name in enumerate(NAMES):
        made.join(name, index)
    made.run()
    made.join("east", 3)
    done = made.run()
    assert done.round == 2
    assert read_log(made.site.log).rounds.members == ("east",)
    assert steps(made, 2) == {}  # the members of the model are not silent in this round
    for name in ("east", *NAMES):
        held = shared(made, name)
        assert held is not None
        assert held.names == ("east", *NAMES)
    store = CoordinatorStore(made.site.base, read_only=True)
    assert [member.absences for member in store.members()] == [0] * 4
    store.close()


def test_too_few_plants_give_no_model(founder: Founder) -> None:
    made = founder("vote", detector="moments", members_min=3)
    for index, name in enumerate(NAMES[:2]):
        made.join(name, index)
    with pytest.raises(RefusedError, match="the terms need 3"):
        made.run()
    assert shared(made, "north") is None


# -- malicious plants ----------------------------------------------------------------------------


def numbers(raw: bytes) -> np.ndarray:
    return np.frombuffer(raw, "<i8").copy()


def with_entry(place: int, change: Callable[[int], int]) -> Callable[[bytes], bytes]:
    """Change one of the 64-bit numbers of a statistic; the header has nine of them."""

    def changed(raw: bytes) -> bytes:
        words = numbers(raw)
        words[place] = change(int(words[place]))
        return words.tobytes()

    return changed


def both(first: Callable[[bytes], bytes], then: Callable[[bytes], bytes]) -> Callable[..., bytes]:
    return lambda raw: then(first(raw))


COUNT, WEIGHT, FIRST_SUM = 6, 7, 9


def channels(raw: bytes) -> int:
    """Return the number of channels of a statistic of 10 lags, from its length."""
    words = len(raw) // 8 - FIRST_SUM
    return next(count for count in range(1, words) if count + 10 * count**2 == words)


def not_symmetric(raw: bytes) -> bytes:
    return with_entry(FIRST_SUM + channels(raw) + 1, lambda word: word + 1)(raw)


REFUSED: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "nothing": (lambda _: b"", "6.4"),
    "a number less": (lambda raw: raw[:-8], "6.4"),
    "a number more": (lambda raw: raw + bytes(8), "6.4"),
    "huge": (lambda _: b"9" * 4_000_000, "6.4"),
    "other channels": (with_entry(2, lambda word: word ^ 1), "6.7"),
    "another kind": (with_entry(0, lambda word: word ^ 1), "6.7"),
    "a negative sum": (with_entry(FIRST_SUM, lambda _: -1), "6.7"),
    "a sum above all registers": (with_entry(FIRST_SUM, lambda _: 1 << 62), "6.7"),
    "a lagged sum above all registers": (with_entry(-1, lambda _: 1 << 62), "6.7"),
    "not symmetric": (not_symmetric, "6.7"),
    "fewer rows than logged": (with_entry(COUNT, lambda word: word - 1), "6.8"),
    "more weight than logged": (with_entry(WEIGHT, lambda word: word + 1), "6.8"),
    "twice the rows": (
        both(with_entry(COUNT, lambda word: 2 * word), with_entry(WEIGHT, lambda word: 2 * word)),
        "6.8",
    ),
    "all the weight there is": (with_entry(WEIGHT, lambda _: (1 << 63) - 1), "6.7"),
}


def test_a_statistic_that_no_batch_gives_is_refused_at_its_step(summed: Consortium) -> None:
    done = summed.run()
    store = CoordinatorStore(summed.site.base)
    made = coordinator_service(summed.site, store, Direct(summed.plants), clock=summed.clock)
    token = made.transport.protocol.log.ledger.rounds.token(1, "south")
    assert token is not None
    train = Train(round=1, parameters=made.transport.sharing.first())
    raw = statistic_of(summed, "south").canonical()
    read = made.transport.sharing.read(train, token, raw)
    kept = statistics_in(done.parameters, summed.site.terms)
    assert isinstance(read, Contributed)
    assert read.member == kept.of("south")
    found = {}
    for name, (change, _) in REFUSED.items():
        with pytest.raises(VerificationError) as refused:
            made.transport.sharing.read(train, token, change(raw))
        found[name] = refused.value.step
    assert found == {name: step for name, (_, step) in REFUSED.items()}
    # A statistic of other rows of the same length keeps all sums, and is not of this commitment.
    second = replace(train, parameters=done.parameters)
    other = statistic_of(summed, "north").canonical()
    with pytest.raises(VerificationError, match="a batch is summed once") as refused:
        made.transport.sharing.read(second, token, other)
    assert refused.value.step == "6.9"
    assert made.transport.sharing.read(second, token, raw) is not None
    store.close()


@pytest.mark.parametrize("attack", ["huge", "other channels", "a negative sum", "twice the rows"])
def test_a_statistic_that_no_batch_gives_excludes_its_plant_alone(
    founder: Founder, attack: str
) -> None:
    made = founder("vote", detector="moments", members_min=3)
    for index, name in enumerate((*NAMES, "east")):
        made.join(name, index)
    change, step = REFUSED[attack]
    falsify(made, "south", change)
    done = made.run()
    assert steps(made, 1) == {"south": step}
    assert statistics_in(done.parameters, made.site.terms).names == ("east", "north", "west")
    held = shared(made, "north")
    assert held is not None
    assert "south" not in held.names


def test_a_statistic_that_was_not_pledged_excludes_its_plant(founder: Founder) -> None:
    made = founder("vote", detector="moments", members_min=3)
    for index, name in enumerate((*NAMES, "east")):
        made.join(name, index)
    honest = made.plants["south"]

    class Other:
        def answer(self, question: bytes) -> bytes:
            answer = ANSWERS.read(honest.answer(question))
            if isinstance(answer.answer, Revelation):
                other = statistic_of(made, "north").canonical()
                answer = replace(answer, answer=replace(answer.answer, update=other))
            return ANSWERS.write(answer)

    made.plants["south"] = Other()
    made.run()
    assert steps(made, 1) == {"south": "6.3"}


# -- a second statistic for one commitment ---------------------------------------------------------


def shadowed(made: Consortium, *, days: int) -> None:
    until = instant(made.clock() + timedelta(days=days))
    made.order(ShadowOrder(federation="water", until=until, reason="first weeks"))


def test_a_second_statistic_of_one_commitment_is_refused(
    founder: Founder, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = founder("vote", detector="moments", members_min=3)
    for index, name in enumerate((*NAMES, "east")):
        made.join(name, index)
    shadowed(made, days=1)
    prove = Committed.prove

    def unable(own: Committed, *args: object, **named: object) -> object:
        if own.message.content.client == "south":
            raise RefusedError("no proof today")
        return prove(own, *args, **named)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(Committed, "prove", unable)
        first = made.run()
    before = statistics_in(first.parameters, made.site.terms).of("south")
    assert before is not None
    made.clock.now += timedelta(days=2)  # shadow mode is over: the same batch is proven now
    falsify(made, "south", lambda _: statistic_of(made, "north").canonical())
    second = made.run()
    assert steps(made, 2) == {"south": "6.9"}
    # The exemption is over, and no proven statistic came in place of the one without a proof.
    assert statistics_in(second.parameters, made.site.terms).names == ("east", "north", "west")
    falsify(made, "south", lambda raw: raw)
    third = made.run()
    again = statistics_in(third.parameters, made.site.terms).of("south")
    assert again is not None
    assert again.statistic == before.statistic
    assert again.attestation != before.attestation  # it is tied to the proof from now on


class Clocked:
    """A plant that moves the clock before it answers a question of one kind."""

    def __init__(self, agent: Answerer, kind: type[Ask], move: Callable[[], None]) -> None:
        self._agent, self._kind, self._move = agent, kind, move

    def answer(self, question: bytes) -> bytes:
        if isinstance(QUESTIONS.read(question).content.ask, self._kind):
            self._move()
        return self._agent.answer(question)


def half_exempt(made: Consortium, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four members, two of them in shadow mode for a day; then west has a new batch."""
    for index, name in enumerate((*NAMES, "east")):
        made.join(name, index)
    shadowed(made, days=1)
    prove = Committed.prove

    def unable(own: Committed, *args: object, **named: object) -> object:
        if own.message.content.client in ("south", "east"):
            raise RefusedError("no proof today")
        return prove(own, *args, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Committed, "prove", unable)
    assert len(statistics_in(made.run().parameters, made.site.terms).names) == 4
    plant = PlantFolder(made.folder / "west")
    start = plant.share.stop
    plant.renew(TrainingRows(record=str(made.record), start=start, stop=start + 300))
    sign_off(made, "west")


def test_members_whose_exemption_has_ended_do_not_count_for_a_round(
    founder: Founder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With them there are four members; without them two, too few for a vote."""
    made = founder("vote", detector="moments", members_min=3)
    half_exempt(made, monkeypatch)
    made.clock.now += timedelta(days=2)
    with pytest.raises(RefusedError, match=r"round 2 has 2 plants .* the terms need 3"):
        made.run()
    assert read_log(made.site.log).rounds.last == 1


def test_an_exemption_that_ends_in_a_round_counts_as_ended(
    founder: Founder, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = founder("vote", detector="moments", members_min=3)
    half_exempt(made, monkeypatch)
    made.clock.now += timedelta(days=1, seconds=-200)

    def over() -> None:
        made.clock.now += timedelta(seconds=400)

    made.plants["west"] = Clocked(made.plants["west"], AskToken, over)
    done = made.run()
    assert done.round == 2
    assert steps(made, 2)["west"] == "6.6"
    # Two members are too few for a vote, so the model stays as it is.
    kept = statistics_in(done.parameters, made.site.terms)
    assert kept.names == ("east", *NAMES)


# -- removal and renewal ---------------------------------------------------------------------------


def test_a_removed_plant_is_taken_out_exactly_and_no_round_is_repeated(
    founder: Founder, sluice: Run
) -> None:
    made = founder("vote", detector="moments", members_min=3)
    for index, name in enumerate((*NAMES, "east")):
        made.join(name, index)
    done = made.run()
    before = statistics_in(done.parameters, made.site.terms)
    status = sluice("coordinator", "status", made.site.folder)
    assert "the statistics of 4 plants are in the model (the last round is 1)" in status.out
    told = sluice("coordinator", "status", made.site.folder, "--json").json["plants"]
    assert isinstance(told, list)
    assert {plant["detail"] for plant in told} == {"its statistic is in the model"}
    seen = sluice("coordinator", "remove", made.site.folder, "south", "--json")
    assert seen.code == 0, seen.err
    assert seen.json["members"] == ["east", "north", "west"]
    assert seen.json["rounds_given_up"] == 0
    after = made.run()
    assert after.round == 1
    left = statistics_in(after.parameters, made.site.terms)
    assert left == before.without("south")
    assert read_log(made.site.log).rounds.model == left.digest
    assert shared(made, "north") == left
    assert shared(made, "south") == before  # it gets no more questions
    detector = load_detector(made.site.folder / "model.safetensors")
    assert isinstance(detector.model, VotedModel)
    assert detector.model.members == ("east", "north", "west")
    again = sluice("coordinator", "remove", made.site.folder, "east", "--json")
    assert (again.code, again.json["model"]) == (0, None)  # two plants cannot outvote one
    assert not (made.site.folder / "model.safetensors").exists()


def test_a_removal_that_was_interrupted_is_completed_by_the_same_call(
    summed: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    summed.run()
    folder, append = summed.site.folder, Log.append

    def dying(log: Log, body: Body, **when: object) -> object:
        if isinstance(body, ClientRemoved):
            raise KeyboardInterrupt
        return append(log, body, **when)  # type: ignore[arg-type]

    with monkeypatch.context() as killed:
        killed.setattr(Log, "append", dying)
        with pytest.raises(KeyboardInterrupt):
            take_out(folder, "west", at=summed.clock())
    with pytest.raises(CheckpointError, match="coordinator remove"):
        summed.run()
    assert take_out(folder, "west", at=summed.clock()).members == ("north", "south")
    for plant, why in (("west", "already removed"), ("nobody", "no client 'nobody'")):
        with pytest.raises(VerificationError, match=why):
            take_out(folder, plant, at=summed.clock())


def test_remove_needs_a_round_only_where_rounds_are_trained(
    summed: Consortium, consortium_in_rounds: Consortium
) -> None:
    with pytest.raises(SettingError, match="no statistic was collected yet"):
        take_out(summed.site.folder, "west", at=summed.clock())
    with pytest.raises(SettingError, match="without --from"):
        go_back(summed.site.folder, "west", before=1, at=summed.clock())
    rounds = consortium_in_rounds
    with pytest.raises(SettingError, match="with --from"):
        take_out(rounds.site.folder, "west", at=rounds.clock())


def test_the_log_refuses_a_removal_that_does_not_fit_its_terms(summed: Consortium) -> None:
    done = summed.run()
    driven = Driven.of(summed)
    model = statistics_in(done.parameters, summed.site.terms).without("west").digest
    for since, model_of in ((1, 0), (0, 0), (1, 1)):
        body = ClientRemoved(client="west", since=since, model_of=model_of, model=model)
        with pytest.raises(VerificationError, match="no round is discarded"):
            driven.log.append(body, at=driven.now())


def test_a_renewed_batch_replaces_the_members_statistic(summed: Consortium) -> None:
    done = summed.run()
    before = statistics_in(done.parameters, summed.site.terms)
    plant = PlantFolder(summed.folder / "west")
    start = plant.share.stop
    plant.renew(TrainingRows(record=str(summed.record), start=start, stop=start + 300))
    sign_off(summed, "west")
    after = statistics_in(summed.run().parameters, summed.site.terms)
    assert after.without("west") == before.without("west")
    renewed = after.of("west")
    assert renewed is not None
    assert renewed.statistic == statistic_of(summed, "west")
    assert renewed.statistic.count == 291
    assert (renewed.round, read_log(summed.site.log).rounds.members) == (2, ("west",))
    assert steps(summed, 2) == {}
    assert shared(summed, "north") == after


@pytest.mark.parametrize("renewed", [False, True])
def test_a_plant_that_lost_its_batches_says_how_far_it_follows_the_log(
    summed: Consortium, *, renewed: bool
) -> None:
    """It takes the log and the model, and announces rows that the log does not have of it."""
    summed.run()
    plant = PlantFolder(summed.folder / "west")
    if renewed:
        start = plant.share.stop
        plant.renew(TrainingRows(record=str(summed.record), start=start, stop=start + 300))
        sign_off(summed, "west")
    shutil.rmtree(summed.folder / "west" / "batches")
    summed.plants["west"] = PlantFolder(summed.folder / "west").agent(reveal_rows=True)
    done = summed.run()
    store = CoordinatorStore(summed.site.base, read_only=True)
    assert store.counts().get(("west", "declined"), 0) == 0
    store.close()
    west = statistics_in(done.parameters, summed.site.terms).of("west")
    assert west is not None
    assert west.round == (2 if renewed else 1)


class Unwilling:
    """Answers as its plant does, and is silent where it alone is waited for."""

    def __init__(self, agent: Answerer, phase: type[Ask]) -> None:
        self._agent = agent
        self._phase = phase

    def answer(self, question: bytes) -> bytes:
        if isinstance(QUESTIONS.read(question).content.ask, self._phase):
            raise ConnectionError
        return self._agent.answer(question)


@pytest.mark.parametrize(
    "phase", [AskToken, AskUpdate, AskModel], ids=["pledge", "reveal", "model"]
)
def test_a_plant_that_alone_is_asked_for_its_statistic_costs_the_others_one_grace(
    summed: Consortium, phase: type[Ask]
) -> None:
    """All others are in the model already, so nobody else is asked in the second round."""
    if phase is AskModel:
        summed.plants["west"] = Unwilling(summed.plants["west"], phase)
        timed(summed)
    else:
        timed(summed)
        summed.join("tide", 3)
        summed.plants["tide"] = Unwilling(summed.plants["tide"], phase)
    seconds = timed(summed)
    answers = 3 * 4 * 6  # the clock moves a second each time it is read
    assert seconds <= answers + summed.site.terms.grace_s < summed.site.terms.round_deadline_s
    assert shared(summed, "north") is not None


def timed(consortium: Consortium) -> float:
    """Run, and return the seconds that it took on the consortium's clock."""
    store, began = CoordinatorStore(consortium.site.base), consortium.clock.now
    wire = TimedWire(consortium.plants, consortium.clock, {})
    try:
        service = coordinator_service(consortium.site, store, wire, clock=consortium.clock)
        service.run(rounds=1, on_round=lambda _: None)
    finally:
        store.close()
    return (consortium.clock.now - began).total_seconds()


# -- what a coordinator may not do -----------------------------------------------------------------


@pytest.mark.parametrize("change", ["another's statistic", "a member more", "torn", "round"])
def test_a_model_that_the_log_does_not_have_is_declined(summed: Consortium, change: str) -> None:
    done = summed.run()
    kept = statistics_in(done.parameters, summed.site.terms)
    south, north = kept.of("south"), kept.of("north")
    assert south is not None
    assert north is not None
    driven = Driven.of(summed)
    raw, number = kept.canonical(), 1
    if change == "another's statistic":
        raw = kept.joined_by([replace(south, statistic=north.statistic)]).canonical()
    elif change == "a member more":
        raw = kept.joined_by([replace(south, name="tide")]).canonical()
    elif change == "torn":
        raw = raw[:-8]
    else:
        number = 2
    agent = summed.plants["north"]
    assert isinstance(agent, Agent)
    ask = AskModel(round=number, over=True, parameters=raw)
    assert isinstance(driven.ask(agent, ask), Declined)
    assert shared(summed, "north") == kept


@pytest.mark.parametrize("change", ["statistic", "attestation"])
def test_a_model_that_the_log_names_must_hold_what_members_revealed(
    summed: Consortium, change: str
) -> None:
    """A coordinator that logs the hash of other statistics is found out by every plant."""
    done = summed.run()
    kept = statistics_in(done.parameters, summed.site.terms)
    south, north = kept.of("south"), kept.of("north")
    assert south is not None
    assert north is not None
    other = (
        replace(south, statistic=north.statistic)
        if change == "statistic"
        else replace(south, attestation=north.attestation)
    )
    forged = kept.joined_by([other]).without("west")
    driven = Driven.of(summed)
    body = ClientRemoved(client="west", since=0, model_of=1, model=forged.digest)
    driven.log.append(body, at=driven.now())
    agent = summed.plants["north"]
    assert isinstance(agent, Agent)
    ask = AskModel(round=1, over=True, parameters=forged.canonical())
    assert isinstance(driven.ask(agent, ask), Declined)
    honest = kept.without("west")
    assert honest.digest != forged.digest
    assert shared(summed, "north") == kept


def test_a_log_with_other_terms_than_the_invitation_is_declined(
    summed: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    summed.run()
    agent = summed.plants["north"]
    assert isinstance(agent, Agent)
    statistic = summed.site.terms.statistic
    assert statistic is not None
    other = replace(summed.site.terms, statistic=replace(statistic, malicious=0))
    monkeypatch.setattr(agent, "_terms", other)
    assert isinstance(Driven.of(summed).ask(agent, AskLog()), Declined)


@pytest.mark.parametrize("part", ["mean", "spread", "channels", "stride_s", "longer"])
def test_terms_that_scale_otherwise_than_the_log_says_are_refused(
    summed: Consortium, part: str
) -> None:
    terms = summed.site.terms
    changes: dict[str, dict[str, object]] = {
        "mean": {"mean": (terms.mean[0] + 1.0, *terms.mean[1:])},
        "spread": {"spread": (*terms.spread[:-1], 2.0 * terms.spread[-1])},
        "channels": {"channels": terms.channels[::-1]},
        "stride_s": {"stride_s": terms.stride_s + 1.0},
        "longer": {"spread": (*terms.spread, 1.0)},
    }
    with pytest.raises(SettingError, match="scale readings otherwise"):
        replace(terms, **changes[part])  # type: ignore[arg-type]


def test_terms_of_an_invitation_are_checked_as_those_of_a_plan(summed: Consortium) -> None:
    terms = summed.site.terms
    with pytest.raises(SettingError, match="the quorum must be a share"):
        replace(terms, quorum=0.0)
    with pytest.raises(SettingError, match="a plant needs a share of the points"):
        replace(terms, overlap_min=1.1)


def test_a_federation_that_trains_in_rounds_sums_nothing(founder: Founder) -> None:
    with pytest.raises(SettingError, match="train in rounds and share no statistic"):
        _ = founder().site.terms.moments


def test_the_sums_of_bound_statistics_are_not_those_of_the_terms(summed: Consortium) -> None:
    statistic = summed.site.terms.statistic
    assert statistic is not None
    bound = replace(summed.site.terms, statistic=replace(statistic, bound=True))
    with pytest.raises(SettingError, match="are bound: the rules of each plant decide"):
        _ = bound.moments


def test_a_federation_of_moments_needs_members_for_its_vote(founder: Founder) -> None:
    with pytest.raises(SettingError, match="cannot withstand 2 malicious"):
        founder("vote", detector="moments", members_min=3, malicious=2)
    with pytest.raises(SettingError, match="unknown rule 'fedavg' for the detector 'moments'"):
        founder("fedavg", detector="moments", members_min=3)
    with pytest.raises(SettingError, match="unknown detector 'subspace'"):
        founder("vote", detector="subspace")


def test_a_statistic_that_no_message_holds_is_refused_when_the_federation_is_founded(
    founder: Founder, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = founder("vote", detector="moments", members_min=3)
    size = statistic_bytes(made.site.terms.moments.settings)
    shutil.rmtree(made.site.folder)
    least = 4 * size // 3 + founding.ANSWER_EXTRA
    with monkeypatch.context() as patched:
        patched.setattr(founding, "LARGEST_ANSWER", least - 1)
        with pytest.raises(SettingError, match="leave channels out of --reference"):
            founder("vote", detector="moments", members_min=3)
        patched.setattr(founding, "LARGEST_ANSWER", least)
        founder("vote", detector="moments", members_min=3)
    shutil.rmtree(made.site.folder, ignore_errors=True)
    with monkeypatch.context() as patched:
        patched.setattr(statistics, "LARGEST_MODEL", 3 * size)
        with pytest.raises(SettingError, match="one model those of 2 plants"):
            founder("vote", detector="moments", members_min=3)
        patched.setattr(founding, "members_max", lambda *_, **__: 3)
        founder("vote", detector="moments", members_min=3)
    shutil.rmtree(made.site.folder, ignore_errors=True)
    with monkeypatch.context() as patched:
        patched.setattr(founding, "ENTRY_EXTRA", ENTRIES.largest)
        with pytest.raises(SettingError, match="the first entry of the log would have") as refused:
            founder("vote", detector="moments", members_min=3)
        entry = int(str(refused.value).split(" bytes")[0].rsplit(" ", 1)[1].replace(",", ""))
        shutil.rmtree(made.site.folder, ignore_errors=True)
        patched.setattr(founding, "ENTRY_EXTRA", ENTRIES.largest - entry + 1)
        with pytest.raises(SettingError, match="the first entry of the log would have"):
            founder("vote", detector="moments", members_min=3)
        shutil.rmtree(made.site.folder, ignore_errors=True)
        patched.setattr(founding, "ENTRY_EXTRA", ENTRIES.largest - entry)
        founder("vote", detector="moments", members_min=3)


def test_a_reference_has_rows_for_two_windows(
    line_files: tuple[Path, Path], tmp_path: Path
) -> None:
    def found(rows: int) -> None:
        plan = FederationPlan(
            federation="water",
            host="127.0.0.1",
            port=1,
            link_port=2,
            reference=TrainingRows(record=str(line_files[0]), start=4_320, stop=4_320 + rows),
            policy=POLICY,
            approvers=(SigningKey.generate().public,),
        )
        found_federation(tmp_path / "coordinator", plan, at=START)

    with pytest.raises(SettingError, match="has 19 rows; .* need at least 20"):
        found(19)
    found(20)


def test_a_reference_is_a_record_of_its_template(line_files: tuple[Path, Path]) -> None:
    record = read_record(line_files[0]).rows(0, 2_000)
    template = derive_template(record, name="line")
    founding._demand_points(record, template)
    with pytest.raises(SettingError, match="it has a row every 60 s, not 30 s"):
        founding._demand_points(record, replace(template, stride_s=30.0))
    fewer = derive_template(record.select(record.names[1:]), name="line")
    with pytest.raises(SettingError, match=f"its channel '{record.names[0]}' is no point of it"):
        founding._demand_points(record, fewer)


def test_more_plants_than_one_message_holds_are_not_asked(
    summed: Consortium, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = statistic_bytes(summed.site.terms.moments.settings)
    member = statistics.MEMBER.size + size + LENT_BYTES
    least = statistics.HEADER.size + 3 * member
    monkeypatch.setattr(statistics, "LARGEST_MODEL", least - 1)
    with pytest.raises(RefusedError, match="3 plants would share .* holds those of 2"):
        summed.run()
    monkeypatch.setattr(statistics, "LARGEST_MODEL", least)
    assert statistics_in(summed.run().parameters, summed.site.terms).names == NAMES


def test_the_statistics_of_members_are_as_long_as_a_message_can_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    settings = MomentSettings(registers=(Register(channel="A", low=0.0, step=1.0),), lags=2)
    empty = MemberStatistics(settings=settings)
    raw = empty.canonical()
    monkeypatch.setattr(statistics, "LARGEST_MODEL", len(raw))
    assert MemberStatistics.from_canonical(raw, settings) == empty
    for wrong in (raw[:-1], raw + b"\0"):
        with pytest.raises(DocumentError, match=f"have {len(wrong)} bytes; expected at least"):
            MemberStatistics.from_canonical(wrong, settings)
    with pytest.raises(DocumentError, match="are not in their one encoding"):
        MemberStatistics.from_canonical(raw[:-8] + (1).to_bytes(8, "little"), settings)


def test_a_statistic_is_pledged_in_a_round_only(founder: Founder) -> None:
    made = founder("vote", detector="moments", members_min=3)
    agent, driven = made.join("north", 0), Driven.of(made)
    ask = AskToken(round=1, attestation=driven.attest(agent), parameters=b"")
    assert isinstance(driven.ask(agent, ask), Declined)


def test_a_batch_with_gaps_is_not_summed(summed: Consortium) -> None:
    agent = summed.plants["north"]
    assert isinstance(agent, Agent)
    driven = Driven.of(summed)
    attested = driven.attest(agent)
    now = driven.now()
    model = MemberStatistics(settings=summed.site.terms.moments.settings).digest
    driven.protocol.open_round(model, now + timedelta(hours=1), at=now)
    ask = AskToken(round=1, attestation=attested, parameters=b"")
    rows = agent.batch
    times = rows.times.copy()
    times[300:] += np.timedelta64(3_600, "s")
    agent._read_last = (PlantFolder(summed.folder / "north").share, replace(rows, times=times))
    assert isinstance(driven.ask(agent, ask), Declined)
    agent._read_last = None
    weights = replace(ask, parameters=bytes(4))
    assert isinstance(driven.ask(agent, weights), Declined)
    assert isinstance(driven.ask(agent, ask), Pledge)


def loosened(consortium: Consortium, channel: str) -> Path:
    """Write the rules without those that tie a channel to others."""
    rules = load_rules(consortium.rules)
    kept = tuple(
        rule
        for rule in rules.invariants
        if not (rule.kind.ties and channel in rule.relation.channels)
    )
    dropped = {rule.name for rule in rules.invariants} - {rule.name for rule in kept}
    of_rules: dict[str, Any] = {
        each.name: tuple(one for one in getattr(rules.clean, each.name) if one.rule not in dropped)
        for each in fields(CleanFacts)
        if "CleanShare" in str(each.type)
    }
    assert rules.clean is not None
    facts = replace(rules.clean, **of_rules)
    weaker = replace(rules, invariants=kept, clean=facts)
    path = consortium.folder / "weaker.json"
    save_rules(replace(weaker, untied=untied_channels(weaker)), path)
    return path


def test_a_channel_that_a_plants_rules_do_not_tie_is_no_feature_of_its_voter(
    founder: Founder,
) -> None:
    made = founder("vote", detector="moments", members_min=3)
    for index, name in enumerate(("north", "west")):
        made.join(name, index)
    made.rules = loosened(made, "S_PU3")
    request = made.request("south", 2)
    rules = REGISTRATIONS.read(request.registration.encode()).content.rules
    declared = [IDLE, ("S_PU3", "has no flow meter")]
    approval = APPROVALS.write(approve(rules, made.approver, declared=declared))
    made.site.enrol(request, approvals=[approval], at=made.clock())
    sign_off(made, "south")
    made.plants["south"] = PlantFolder(made.folder / "south").agent(reveal_rows=True)
    done = made.run()
    kept, terms = statistics_in(done.parameters, made.site.terms), made.site.terms
    summed = {name: set(kept.of(name).statistic.summed) for name in NAMES}  # type: ignore[union-attr]
    assert summed["north"] - summed["south"] == {"S_PU3"}
    reference = read_record(made.record).rows(4_320, 8_640)
    vote = vote_of(kept, terms, reference, rounds=1, rules=None, false_alarms_per_week=1.0)
    assert isinstance(vote.model, VotedModel)
    at = terms.framing.scaler.names.index("S_PU3")
    read = {voter.name: at in voter.model.moving for voter in vote.model.voters}  # type: ignore[attr-defined]
    assert read == {"north": True, "south": False, "west": True}
    # The coordinator holds the plant to it: sums of the whole batch are refused.
    store = CoordinatorStore(made.site.base)
    service = coordinator_service(made.site, store, Direct(made.plants), clock=made.clock)
    token = service.transport.protocol.log.ledger.rounds.token(1, "south")
    assert token is not None
    train = Train(round=1, parameters=service.transport.sharing.first())
    own = statistic_of(made, "south")
    with pytest.raises(
        VerificationError, match="sums S_PU3, which no rule of the plant"
    ) as refused:
        service.transport.sharing.read(train, token, own.canonical())
    assert refused.value.step == "6.7"
    service.transport.sharing.read(train, token, own.without(["S_PU3"]).canonical())
    store.close()


def test_a_statistic_leaves_only_after_an_operator_has_signed_it_off(
    founder: Founder, sluice: Callable[..., Outcome]
) -> None:
    """Without a proof that binds it, a statistic tells as much; the log keeps the name here too."""
    made = founder("vote", detector="moments", members_min=3)
    for index, name in enumerate(("north", "south", "west")):
        made.join(name, index)
    shutil.rmtree(made.folder / "west" / "sign-offs")
    with pytest.raises(RefusedError, match="the terms need 3"):
        made.run()
    west = made.folder / "west"
    seen = sluice("plant", "check", west)
    assert seen.code == 3
    assert "it is not signed off, so it is not sent" in " ".join(seen.out.split())
    assert "goes to the coordinator and to every member" in " ".join(seen.out.split())
    assert sluice("plant", "check", west, "--sign-off", "W. Writer").code == 0
    assert statistics_in(made.run().parameters, made.site.terms).names == NAMES[:3]
    audited = sluice("audit-log", "verify", made.site.log, "--json").json["signed_off"]
    assert isinstance(audited, list)
    assert {(each["plant"], each["operator"]) for each in audited} == {
        ("north", "A. Reader"),
        ("south", "A. Reader"),
        ("west", "W. Writer"),
    }
