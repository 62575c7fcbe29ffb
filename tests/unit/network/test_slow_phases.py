"""Plants that are silent, slow or say nonsense: what they cost the others is bounded."""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from sluice.attestation.log.chain import read_log
from sluice.attestation.log.entries import ENTRIES, ModelAggregated
from sluice.errors import SettingError
from sluice.network.coordinator.founding import coordinator_service
from sluice.network.coordinator.store import BATCH_ASKS, CoordinatorStore, Member
from sluice.network.plant.agent import Agent
from sluice.network.terms import FederationTerms
from sluice.network.wire.questions import (
    ANSWERS,
    QUESTIONS,
    Answer,
    Ask,
    AskBatch,
    AskToken,
    AskUpdate,
    Revelation,
)
from sluice.network.wire.wire import Answerer

from .conftest import Clock, Consortium, Founder
from .timed_wire import TimedWire

NAMES = ("north", "south", "east", "west", "shore")
GRACE_S = 60.0


class Moody:
    """Answers as its plant does, except for the questions that it does not want to hear."""

    def __init__(self, agent: Answerer, ignores: Callable[[Ask], bool]) -> None:
        self.agent = agent
        self._ignores = ignores

    def answer(self, question: bytes) -> bytes:
        if self._ignores(QUESTIONS.read(question).content.ask):
            raise ConnectionError
        return self.agent.answer(question)


class Renewing:
    """Announces a new batch in every round and never delivers it, once it is attested."""

    def __init__(self, agent: Answerer) -> None:
        self.agent = agent
        self.asked = 0

    def answer(self, question: bytes) -> bytes:
        ask = QUESTIONS.read(question).content.ask
        if isinstance(ask, AskBatch):
            self.asked += 1
            if self.asked > 1:
                raise ConnectionError
        answer = ANSWERS.read(self.agent.answer(question)).answer
        if isinstance(answer, Revelation):
            answer = replace(answer, renews=True)
        return ANSWERS.write(Answer(instance="0" * 64, seen=0, answer=answer))


class SlowProver:
    """Delivers a batch some seconds after it was first asked for one; answers all else at once."""

    def __init__(self, agent: Answerer, clock: Clock, seconds: float) -> None:
        self.agent = agent
        self._clock = clock
        self._seconds = timedelta(seconds=seconds)
        self._first: datetime | None = None

    def answer(self, question: bytes) -> bytes:
        if isinstance(QUESTIONS.read(question).content.ask, AskBatch):
            self._first = self._first or self._clock.now
            if self._clock.now < self._first + self._seconds:
                raise ConnectionError
        return self.agent.answer(question)


class Babbling:
    def answer(self, question: bytes) -> bytes:  # noqa: ARG002
        return b"\x80\x04pickle"


def timed(
    consortium: Consortium, rounds: int, delays: Mapping[str, float] | None = None
) -> tuple[TimedWire, float]:
    """Run, and return the wire and the seconds that the rounds took on its clock."""
    store = CoordinatorStore(consortium.site.base)
    wire = TimedWire(consortium.plants, consortium.clock, delays or {})
    began = consortium.clock.now
    try:
        service = coordinator_service(consortium.site, store, wire, clock=consortium.clock)
        service.run(rounds=rounds, on_round=lambda _: None)
    finally:
        store.close()
    return wire, (consortium.clock.now - began).total_seconds()


def joined(consortium: Consortium, names: tuple[str, ...] = NAMES) -> Consortium:
    for index, name in enumerate(names):
        consortium.join(name, index, rows=480)
    return consortium


def member(consortium: Consortium, name: str) -> Member:
    store = CoordinatorStore(consortium.site.base)
    try:
        return next(each for each in store.members() if each.name == name)
    finally:
        store.close()


def events(consortium: Consortium, plant: str, kind: str) -> int:
    store = CoordinatorStore(consortium.site.base)
    try:
        return store.counts().get((plant, kind), 0)
    finally:
        store.close()


def members_of_rounds(consortium: Consortium) -> list[tuple[str, ...]]:
    lines = consortium.site.log.read_bytes().splitlines()[:-1]  # without the signed head
    bodies = [ENTRIES.read(line).body for line in lines]
    return [body.clients for body in bodies if isinstance(body, ModelAggregated)]


@pytest.mark.parametrize(
    "phase", [AskBatch, AskToken, AskUpdate], ids=["batch", "pledge", "reveal"]
)
def test_a_plant_that_stays_silent_in_a_phase_costs_a_grace_per_round_until_it_is_suspended(
    founder: Founder, phase: type[Ask]
) -> None:
    """Of five plants, one pledges and is silent, or is silent earlier: hours become minutes."""
    deadline_s = 2 * GRACE_S  # until then it may still be proving
    consortium = joined(founder(suspend_after=3, batch_deadline_s=deadline_s))
    south = consortium.plants["south"]
    consortium.plants["south"] = Moody(south, lambda ask: isinstance(ask, phase))
    _, seconds = timed(consortium, 8)
    answers = 8 * 3 * len(NAMES) * 6  # the clock moves a second each time it is read
    # For a batch, it is asked at the start and before each round.
    waits = 3 if phase is not AskBatch else 4 + deadline_s / GRACE_S
    assert seconds <= answers + waits * GRACE_S
    assert member(consortium, "south").suspended
    assert member(consortium, "south").absences == 3
    assert member(consortium, "north").absences == 0
    assert read_log(consortium.site.log).rounds.members == ("east", "north", "shore", "west")


def test_a_plant_that_takes_part_in_every_other_round_is_suspended_all_the_same(
    founder: Founder,
) -> None:
    consortium = joined(founder(suspend_after=2), NAMES[:3])
    south = consortium.plants["south"]
    consortium.plants["south"] = Moody(
        south, lambda ask: isinstance(ask, AskUpdate) and ask.round % 2 == 0
    )
    timed(consortium, 5)
    assert member(consortium, "south").suspended
    taken = ["south" in each for each in members_of_rounds(consortium)]
    assert taken == [True, False, True, False, False]


def test_absences_older_than_the_window_are_forgotten(founder: Founder) -> None:
    consortium = joined(founder(suspend_after=1), NAMES[:2])
    store = CoordinatorStore(consortium.site.base)
    store.absent("south", 1)
    store.suspend(5, after=2, at=consortium.clock())
    assert [each.absences for each in store.members()] == [0, 1]
    store.absent("south", 9)
    store.suspend(9, after=2, at=consortium.clock())
    assert [(each.absences, each.suspended) for each in store.members()] == [(0, False), (1, False)]
    store.close()


def test_a_plant_that_renews_for_ever_and_never_delivers_is_asked_three_times_and_trains_on(
    founder: Founder,
) -> None:
    consortium = joined(founder(suspend_after=5), NAMES[:3])
    south = consortium.plants["south"]
    consortium.plants["south"] = renewing = Renewing(south)
    timed(consortium, 6)
    assert renewing.asked == 1 + BATCH_ASKS
    assert events(consortium, "south", "silent") == BATCH_ASKS
    assert all("south" in each for each in members_of_rounds(consortium))
    found = member(consortium, "south")
    assert (found.absences, found.suspended) == (0, False)  # its time for a batch is not over
    assert found.state == "attested; its new batch did not arrive"


@pytest.mark.parametrize("attested", [False, True], ids=["joins late", "renews"])
def test_a_prover_slower_than_five_graces_is_not_suspended(
    founder: Founder, *, attested: bool
) -> None:
    """The others wait a grace in each round. The plant has the whole deadline for its batch."""
    consortium = joined(founder(suspend_after=2), NAMES[:4])
    if attested:
        consortium.join("shore", 4, rows=480)
    timed(consortium, 1)
    if attested:
        store = CoordinatorStore(consortium.site.base)
        store.refused("shore", "5.4")  # its attestation has expired
        store.close()
    else:
        consortium.join("shore", 4, rows=480)
    slow = SlowProver(consortium.plants["shore"], consortium.clock, 6 * GRACE_S)
    consortium.plants["shore"] = slow
    timed(consortium, 12)
    found = member(consortium, "shore")
    assert (found.absences, found.suspended, found.state) == (0, False, "attested")
    assert "shore" in members_of_rounds(consortium)[-1]


def test_a_prover_slower_than_the_deadline_is_suspended(founder: Founder) -> None:
    consortium = joined(founder(suspend_after=2, batch_deadline_s=5 * GRACE_S), NAMES[:4])
    timed(consortium, 1)
    consortium.join("shore", 4, rows=480)
    slow = SlowProver(consortium.plants["shore"], consortium.clock, 1e6)
    consortium.plants["shore"] = slow
    timed(consortium, 10)
    assert member(consortium, "shore").suspended


def test_a_wrong_batch_gives_no_further_time_for_another(founder: Founder) -> None:
    """The time runs from the first question, until a batch is admitted."""
    consortium = joined(founder(), NAMES[:2])
    store = CoordinatorStore(consortium.site.base)
    first, later = consortium.clock(), consortium.clock()
    assert first < later
    assert store.asked_for_batch("south", at=first) == first
    store.refused("south", "5.6")
    store.renews("south", renews=False)
    assert store.asked_for_batch("south", at=later) == first
    store.admitted("south", "a" * 64)
    assert store.asked_for_batch("south", at=later) == later
    store.close()


def test_silence_after_a_wrong_answer_in_the_same_round_is_an_absence(founder: Founder) -> None:
    """Nonsense is not the silence of a prover, however early it comes."""
    consortium = joined(founder(), NAMES[:4])
    timed(consortium, 1)
    consortium.join("shore", 4, rows=480)
    consortium.plants["shore"] = Babbling()
    timed(consortium, 3)
    assert member(consortium, "shore").absences == 2


def test_an_attested_plant_that_proves_and_does_not_pledge_is_absent(founder: Founder) -> None:
    """Time for a new batch is no time for the round."""
    consortium = joined(founder(), NAMES[:4])
    timed(consortium, 1)
    store = CoordinatorStore(consortium.site.base)
    store.renews("south", renews=True)
    store.close()
    south = consortium.plants["south"]
    consortium.plants["south"] = Moody(south, lambda ask: isinstance(ask, AskBatch | AskToken))
    timed(consortium, 2)
    assert member(consortium, "south").absences == 1


def test_a_plant_that_announces_a_batch_and_is_silent_costs_a_grace_and_not_a_batch_deadline(
    founder: Founder,
) -> None:
    consortium = joined(founder(suspend_after=5), NAMES[:3])
    consortium.plants["south"] = Renewing(consortium.plants["south"])
    _, seconds = timed(consortium, 6)
    answers = 6 * 3 * 3 * 7  # the clock moves a second each time it is read: 7 times a question
    assert seconds <= answers + BATCH_ASKS * GRACE_S < consortium.site.terms.batch_deadline_s


def test_a_plant_whose_new_proof_takes_longer_than_a_grace_delivers_it_later(
    founder: Founder,
) -> None:
    consortium = joined(founder(suspend_after=5), NAMES[:3])
    timed(consortium, 1)
    store = CoordinatorStore(consortium.site.base)
    store.renews("south", renews=True)
    store.close()
    timed(consortium, 2, {"south": 2 * GRACE_S})
    assert member(consortium, "south").absences == 1  # it did not pledge in time either
    timed(consortium, 4)
    assert member(consortium, "south").state == "attested"
    assert "south" in members_of_rounds(consortium)[-1]


def test_a_plant_that_renews_for_ever_is_suspended_if_the_terms_allow_fewer_absences(
    founder: Founder,
) -> None:
    consortium = joined(founder(suspend_after=2, batch_deadline_s=GRACE_S), NAMES[:3])
    consortium.plants["south"] = Renewing(consortium.plants["south"])
    timed(consortium, 5)
    assert member(consortium, "south").suspended


def test_a_plant_whose_new_batch_no_longer_waits_may_announce_one_again(founder: Founder) -> None:
    consortium = joined(founder(), NAMES[:2])
    timed(consortium, 1)
    store = CoordinatorStore(consortium.site.base)
    for _ in range(BATCH_ASKS):
        store.renews("south", renews=True)
        store.unanswered("south")
    assert store.members()[1].unanswered == BATCH_ASKS
    store.renews("south", renews=False)
    assert store.members()[1].unanswered == 0
    store.close()


def test_nonsense_at_once_leaves_the_honest_plants_no_less_time(founder: Founder) -> None:
    """Two plants answer nonsense at once; the third answer must not start the grace."""
    consortium = joined(founder())
    timed(consortium, 1)
    honest = {name: consortium.plants[name] for name in ("north", "south", "east")}
    for name in ("west", "shore"):
        consortium.plants[name] = Babbling()
    timed(consortium, 2, {"west": 0.0, "shore": 0.0, "north": 10.0, "south": 150.0, "east": 150.0})
    assert members_of_rounds(consortium)[-1] == tuple(sorted(honest))
    assert member(consortium, "south").absences == 0
    assert member(consortium, "west").absences == 1


def test_plants_that_all_answer_nonsense_end_the_phase_at_once(founder: Founder) -> None:
    consortium = joined(founder(suspend_after=50), NAMES[:4])
    timed(consortium, 1)
    for name in NAMES[1:3]:
        consortium.plants[name] = Babbling()
    consortium.plants["west"] = Moody(consortium.plants["west"], lambda _: True)
    _, seconds = timed(consortium, 2)
    assert members_of_rounds(consortium)[-1] == ("north",)
    # One grace when the run shows its log to plants, one in the round, one for the model.
    assert seconds < 3 * GRACE_S + 60


@pytest.mark.parametrize(("grace_s", "left_s"), [(0.0, 600.0), (60.0, 60.0), (900.0, 600.0)])
def test_plants_that_alone_are_asked_have_a_grace_and_never_no_time(
    consortium: Consortium, grace_s: float, left_s: float
) -> None:
    """With terms without a grace, a plant that joins late would otherwise never be asked."""
    store = CoordinatorStore(consortium.site.base)
    wire = TimedWire({}, consortium.clock, {})
    service = coordinator_service(consortium.site, store, wire, clock=consortium.clock)
    terms = replace(consortium.site.terms, grace_s=grace_s)
    requests = replace(service.transport.requests, terms=terms)
    assert requests.seconds_for(1, settled=1, most=600.0) == left_s
    assert requests.seconds_for(2, settled=1, most=600.0) == 600.0
    store.close()


def test_a_phase_waits_for_slow_plants_while_there_is_no_quorum(founder: Founder) -> None:
    consortium = joined(founder(), NAMES[:4])
    slow = {"north": 1.0, "south": 500.0, "east": 540.0, "west": 3_000.0}
    _, seconds = timed(consortium, 1, slow)
    assert members_of_rounds(consortium) == [("east", "north", "south")]
    # Batches, pledges, updates, and the model at the end; west alone is asked again for its batch.
    assert 4 * 540 < seconds < 4 * (500 + GRACE_S) + 2 * GRACE_S
    assert member(consortium, "west").absences == 1


@pytest.mark.parametrize(("passed", "due"), [(0.75, ()), (0.85, ("south",))])
def test_a_plant_is_asked_for_a_batch_in_the_last_fifth_of_its_attestation(
    founder: Founder, passed: float, due: tuple[str, ...]
) -> None:
    consortium = joined(founder(), NAMES[:2])
    timed(consortium, 1)
    store = CoordinatorStore(consortium.site.base)
    wire = TimedWire({"south": consortium.plants["south"]}, consortium.clock, {})
    service = coordinator_service(consortium.site, store, wire, clock=consortium.clock)
    days = service.intake.protocol.log.ledger.terms.attestation_days
    consortium.clock.now += passed * timedelta(days=days)
    assert service.intake.due(round_=2) == due
    store.close()


def test_an_attestation_that_has_expired_leaves_its_plant_out(founder: Founder) -> None:
    consortium = joined(founder(), NAMES[:2])
    timed(consortium, 1)
    with closing(CoordinatorStore(consortium.site.base)) as store:
        wire = TimedWire({}, consortium.clock, {})
        service = coordinator_service(consortium.site, store, wire, clock=consortium.clock)
        days = service.intake.protocol.log.ledger.terms.attestation_days
        consortium.clock.now += timedelta(days=days)
        service.intake.due(round_=2)
        assert {each.state for each in store.members()} == {"left out at step 5.4"}
        assert store.counts()["north", "refused at step 5.4"] == 1


def test_a_suspended_plant_is_asked_for_no_batch_and_takes_no_part(founder: Founder) -> None:
    consortium = joined(founder(), NAMES[:2])
    timed(consortium, 1)
    with closing(CoordinatorStore(consortium.site.base)) as store:
        wire = TimedWire(consortium.plants, consortium.clock, {})
        service = coordinator_service(consortium.site, store, wire, clock=consortium.clock)
        for name in NAMES[:2]:
            store.renews(name, renews=True)
        store.absent("south", 1)
        store.suspend(1, after=1, at=consortium.clock())
        assert service.intake.due(round_=2) == ("north",)
        assert set(service.intake.decisions()) == {"north"}
        assert service._active == {"north"}


def test_a_plant_that_did_not_pledge_is_asked_for_no_update(founder: Founder) -> None:
    consortium = joined(founder(), NAMES[:3])
    south, asked = consortium.plants["south"], list[str]()

    def ignores(ask: Ask) -> bool:
        asked.append(type(ask).__name__)
        return isinstance(ask, AskToken)

    consortium.plants["south"] = Moody(south, ignores)
    timed(consortium, 2)
    assert asked.count("AskToken") == 2
    assert "AskUpdate" not in asked


def test_a_reinstated_plant_starts_without_absences(founder: Founder) -> None:
    consortium = joined(founder(suspend_after=1), NAMES[:2])
    south = consortium.plants["south"]
    consortium.plants["south"] = Moody(south, lambda ask: isinstance(ask, AskToken))
    timed(consortium, 1)
    store = CoordinatorStore(consortium.site.base)
    store.reinstate("south")
    with pytest.raises(SettingError, match="'south' is not suspended.*coordinator status"):
        store.reinstate("south")
    store.close()
    consortium.plants["south"] = south
    timed(consortium, 2)
    found = member(consortium, "south")
    assert (found.absences, found.suspended) == (0, False)
    assert read_log(consortium.site.log).rounds.members == ("north", "south")


def test_an_offline_plant_is_not_waited_for_and_is_absent(founder: Founder) -> None:
    consortium = joined(founder(), NAMES[:3])
    timed(consortium, 1)
    away = consortium.plants.pop("south")
    assert isinstance(away, Agent)
    _, seconds = timed(consortium, 2)
    assert seconds < GRACE_S
    assert member(consortium, "south").absences == 1


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"quorum": 0.0}, "the quorum must be a share"),
        ({"quorum": 1.01}, "the quorum must be a share"),
        ({"quorum": float("nan")}, "the quorum must be a share"),
        ({"grace_s": -1.0}, "the grace must be 0 or more seconds"),
        ({"grace_s": float("inf")}, "the grace must be 0 or more seconds"),
        ({"update_max": 0.0}, "finite number above 0"),
        ({"update_max": float("inf")}, "finite number above 0"),
    ],
)
def test_terms_that_no_phase_can_keep_are_refused(
    consortium: Consortium, changes: dict[str, float], words: str
) -> None:
    with pytest.raises(SettingError, match=words):
        replace(consortium.site.terms, **changes)  # type: ignore[arg-type]
    assert isinstance(consortium.site.terms, FederationTerms)
