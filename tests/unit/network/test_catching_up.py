"""Plants that miss much of the log are sent it, and a round waits for its plants."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import pytest

from sluice.errors import RefusedError
from sluice.federation.admission_check import Decision
from sluice.federation.messages import Train
from sluice.federation.rounds import begin
from sluice.network.coordinator import pages
from sluice.network.coordinator.founding import coordinator_service
from sluice.network.coordinator.rounds import LoggedTransport
from sluice.network.coordinator.service import CoordinatorService
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.wire.questions import (
    ANSWERS,
    QUESTIONS,
    Answer,
    AskBatch,
    AskLog,
    AskToken,
    AskUpdate,
    LogPage,
    LogSeen,
    ModelTaken,
    Revelation,
)
from sluice.network.wire.wire import Answerer, Direct

from .asking import Falsifying
from .conftest import START, Clock, Consortium

TICK = timedelta(microseconds=1)


class Counted(Direct):
    """A wire that notes who is asked for what, and how often it is asked who is online."""

    def __init__(self, consortium: Consortium) -> None:
        super().__init__(consortium.plants)
        self.asked: list[tuple[str, type]] = []
        self.looks = 0

    def present(self) -> frozenset[str]:
        self.looks += 1
        return super().present()

    def ask(self, questions, **rest):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003
        for plant, raw in questions.items():
            self.asked.append((plant, type(QUESTIONS.read(raw).content.ask)))
        return super().ask(questions, **rest)


class Killed(BaseException):
    """The coordinator is gone, in the middle of whatever it did."""


class Cut(Counted):
    """A wire on which the coordinator dies after so many answers of a round."""

    def __init__(self, consortium: Consortium, after: int) -> None:
        super().__init__(consortium)
        self.after = after

    def ask(self, questions, **rest):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003
        for plant, answer in super().ask(questions, **rest):  # type: ignore[no-untyped-call]
            yield plant, answer
            ask = QUESTIONS.read(questions[plant]).content.ask
            self.after -= isinstance(ask, AskToken | AskUpdate)
            if self.after == 0:
                raise Killed


@dataclass
class Confused:
    """A plant that answers every question as if it had been given the model."""

    seen: int = 0

    def answer(self, question: bytes) -> bytes:
        assert question
        return ANSWERS.write(Answer(instance="1" * 64, seen=self.seen, answer=ModelTaken()))


class First(Counted):
    """A wire that gives all plants up after the first answer."""

    def ask(self, questions, **rest):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003
        yield next(super().ask(questions, **rest))  # type: ignore[no-untyped-call]


def _seen(size: int) -> bytes:
    return ANSWERS.write(Answer(instance="1" * 64, seen=size, answer=LogSeen()))


def _page(question: bytes) -> LogPage:
    return QUESTIONS.read(question).content.page


class Announcing:
    """A plant that has the log and a new batch."""

    def answer(self, question: bytes) -> bytes:
        page = _page(question)
        told = LogSeen(renews=True)
        return ANSWERS.write(
            Answer(instance="1" * 64, seen=page.start + len(page.lines), answer=told)
        )


@dataclass
class Slow:
    """A plant that takes pages of the log after a while: each as a whole, or one entry of it."""

    clock: Clock
    seconds: float
    whole: bool

    def answer(self, question: bytes) -> bytes:
        page = _page(question)
        self.clock.now += timedelta(seconds=self.seconds)
        return _seen(page.start + (len(page.lines) if self.whole else 1))


@dataclass
class Forgetful:
    """A plant that takes part, and says after each round that it has lost its copy of the log."""

    plant: Answerer

    def answer(self, question: bytes) -> bytes:
        page = _page(question)
        ask = QUESTIONS.read(question).content.ask
        if isinstance(ask, AskLog):
            return _seen(page.start + len(page.lines))
        answer = self.plant.answer(question)
        if isinstance(ask, AskUpdate):
            return ANSWERS.write(replace(ANSWERS.read(answer), seen=0))
        return answer


@pytest.fixture
def store(consortium: Consortium) -> Iterator[CoordinatorStore]:
    consortium.run(rounds=1)
    with closing(CoordinatorStore(consortium.site.base)) as store:
        yield store


def service(
    consortium: Consortium, store: CoordinatorStore, wire: Direct, *times: datetime
) -> CoordinatorService:
    left = list(times)
    clock = consortium.clock if not times else lambda: left.pop(0)
    return coordinator_service(consortium.site, store, wire, clock=clock)


def absences(store: CoordinatorStore) -> dict[str, int]:
    return {member.name: member.absences for member in store.members()}


def test_a_plant_that_has_the_log_is_sent_none_of_it(
    consortium: Consortium, store: CoordinatorStore
) -> None:
    wire = Counted(consortium)
    service(consortium, store, wire).transport.requests.catch_up(consortium.plants, round_=1)
    assert wire.asked == []


def test_a_plant_that_misses_more_than_a_page_is_sent_pages(
    consortium: Consortium, store: CoordinatorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "PAGE_BYTES", 1_000)
    consortium.join("east", 3)
    wire = Counted(consortium)
    requests = service(consortium, store, wire).transport.requests
    requests.catch_up(consortium.plants, round_=1)
    assert set(wire.asked) == {("east", AskLog)}
    assert absences(store)["east"] == 0


@pytest.mark.parametrize("seen", [0, 1 << 20])
def test_a_plant_that_answers_something_else_than_it_was_asked_is_absent(
    consortium: Consortium, store: CoordinatorStore, monkeypatch: pytest.MonkeyPatch, seen: int
) -> None:
    monkeypatch.setattr(pages, "PAGE_BYTES", 1_000)
    consortium.join("east", 3)
    store.seen("north", 0)
    consortium.plants["north"] = Confused(seen)
    requests = service(consortium, store, Counted(consortium)).transport.requests
    requests.catch_up(("north", "east"), round_=1)
    assert (absences(store)["north"], absences(store)["east"]) == (1, 0)


def test_only_an_answer_about_the_log_counts_when_plants_are_shown_it(
    consortium: Consortium, store: CoordinatorStore
) -> None:
    """One of two plants is enough; after an answer about something else, the other is asked."""
    wire = First(consortium)
    requests = service(consortium, store, wire).transport.requests
    requests.compare(("north", "south"), round_=1)
    assert wire.asked == [("north", AskLog), ("south", AskLog)]
    consortium.plants["north"] = Confused()
    requests.compare(("north", "south"), round_=1)
    assert wire.asked[2:] == [("north", AskLog), ("south", AskLog), ("south", AskLog)]


def test_only_a_plant_that_announces_a_batch_is_asked_for_one(
    consortium: Consortium, store: CoordinatorStore
) -> None:
    requests = service(consortium, store, Counted(consortium)).transport.requests
    requests.compare(consortium.plants, round_=1)
    assert [member.renews for member in store.members()] == [False] * 3
    consortium.plants["north"] = Announcing()
    requests.compare(consortium.plants, round_=1)
    assert [member.renews for member in store.members()] == [True, False, False]


def test_a_plant_that_shows_something_else_than_a_batch_is_refused(
    consortium: Consortium, store: CoordinatorStore
) -> None:
    consortium.join("east", 3)
    consortium.plants["east"] = Confused()
    consortium.run(rounds=2)
    assert store.counts()["east", "refused at step 4"] == 1
    east = next(each for each in store.members() if each.name == "east")
    assert (east.step, east.unanswered) == ("4", 0)


def test_an_attested_plant_that_announces_a_batch_and_shows_something_else_is_absent(
    consortium: Consortium, store: CoordinatorStore
) -> None:
    north, confused = consortium.plants["north"], Confused()

    class Evading:
        def answer(self, question: bytes) -> bytes:
            asked = isinstance(QUESTIONS.read(question).content.ask, AskBatch)
            return (confused if asked else north).answer(question)

    store.renews("north", renews=True)
    consortium.plants["north"] = Evading()
    consortium.run(rounds=2)
    assert consortium.site.ledger().rounds.members == ("north", "south", "west")
    assert absences(store)["north"] == 1


@pytest.mark.parametrize("whole", [True, False])
def test_a_plant_that_takes_the_log_slowly_costs_the_others_one_grace(
    consortium: Consortium,
    store: CoordinatorStore,
    monkeypatch: pytest.MonkeyPatch,
    whole: bool,  # noqa: FBT001
) -> None:
    """Each page had a grace of its own: 64 pages took an hour of each round."""
    monkeypatch.setattr(pages, "PAGE_BYTES", 4_000)
    grace_s = consortium.site.terms.grace_s
    store.seen("north", 0)
    consortium.plants["north"] = Slow(consortium.clock, 0.4 * grace_s, whole)
    requests = service(consortium, store, Counted(consortium)).transport.requests
    began = consortium.clock.now
    requests.catch_up(("north",), round_=1)
    spent = (consortium.clock.now - began).total_seconds()
    assert spent < 1.5 * grace_s
    assert absences(store)["north"] == (0 if whole else 1)


def test_a_plant_that_says_each_round_that_it_has_lost_the_log_is_suspended(
    consortium: Consortium, store: CoordinatorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It gave a valid answer each time, and cost the others a grace in every round."""
    monkeypatch.setattr(pages, "PAGE_BYTES", 10_000)
    consortium.plants["north"] = Forgetful(consortium.plants["north"])
    consortium.run(rounds=1 + consortium.site.terms.suspend_after)
    assert {each.name for each in store.members() if each.suspended} == {"north"}


@pytest.mark.parametrize(
    ("after", "tokens", "updates"),
    [
        (2, ["south", "west"], ["north", "south", "west"]),  # east is excluded, north has pledged
        (4, [], ["north", "south", "west"]),
        (5, [], ["south", "west"]),  # north has revealed
    ],
)
def test_a_restarted_coordinator_asks_only_plants_that_its_round_still_needs(
    consortium: Consortium,
    store: CoordinatorStore,
    after: int,
    tokens: list[str],
    updates: list[str],
) -> None:
    consortium.join("east", 3)
    consortium.run(rounds=2)
    consortium.plants["east"] = Confused()
    with pytest.raises(Killed):
        service(consortium, store, Cut(consortium, after)).run(rounds=3, on_round=lambda _: None)
    wire = Counted(consortium)
    service(consortium, store, wire).run(rounds=3, on_round=lambda _: None)
    assert [plant for plant, ask in wire.asked if ask is AskToken] == tokens
    assert [plant for plant, ask in wire.asked if ask is AskUpdate] == updates
    assert consortium.site.ledger().rounds.members == ("north", "south", "west")


def test_a_round_waits_for_its_plants_to_the_end_of_its_time(
    consortium: Consortium, store: CoordinatorStore
) -> None:
    until = START + timedelta(seconds=consortium.site.terms.round_deadline_s)
    consortium.plants.clear()
    wire = Counted(consortium)
    made = service(consortium, store, wire, START, until, until + TICK)
    decisions = {"north": Decision(admitted=True, rows=600)}
    current = replace(begin(made.transport.sharing.first(), decisions), round=1)
    with pytest.raises(RefusedError, match="round 2 has 1 plants .* 0 of them online"):
        made._demand_members(current)
    assert wire.looks == 2  # at the beginning, and again when the time was just up


def test_a_plant_that_answers_every_question_alike_is_left_out_and_the_others_go_on(
    consortium: Consortium, store: CoordinatorStore
) -> None:
    consortium.plants["north"] = Confused()
    consortium.run(rounds=2)
    assert consortium.site.ledger().rounds.members == ("south", "west")
    assert absences(store)["north"] == 1


def test_a_plant_that_has_not_countersigned_before_a_kill_is_asked_again(
    consortium: Consortium, store: CoordinatorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(LoggedTransport, "_countersign", die)
        with pytest.raises(Killed):
            consortium.run(rounds=2)
    wire = Counted(consortium)
    service(consortium, store, wire).run(rounds=2, on_round=lambda _: None)
    assert [plant for plant, ask in wire.asked if ask is AskUpdate] == ["north", "south", "west"]
    assert consortium.site.ledger().rounds.members == ("north", "south", "west")


def test_a_plant_that_was_excluded_before_a_kill_is_not_asked_again(
    consortium: Consortium, store: CoordinatorStore
) -> None:
    honest = consortium.plants["north"]
    consortium.plants["north"] = Falsifying(
        honest, lambda told: replace(told, update=b"") if isinstance(told, Revelation) else told
    )
    with pytest.raises(Killed):
        service(consortium, store, Cut(consortium, 4)).run(rounds=2, on_round=lambda _: None)
    wire = Counted(consortium)
    service(consortium, store, wire).run(rounds=2, on_round=lambda _: None)
    assert [plant for plant, ask in wire.asked if ask is AskUpdate] == ["south", "west"]


def test_a_plant_without_an_attestation_is_excluded_once_and_asked_for_no_token(
    consortium: Consortium, store: CoordinatorStore
) -> None:
    consortium.join("east", 3)
    consortium.join("tide", 4)
    store.absent("tide", 1)
    store.suspend(1, after=1, at=consortium.clock())
    last = store.last(federation="water")
    assert last is not None
    wire = Cut(consortium, 1)
    ask = dict.fromkeys(("east", "north", "south"), Train(round=2, parameters=last.parameters))
    with pytest.raises(Killed):
        service(consortium, store, wire).transport.exchange(ask)
    service(consortium, store, wire).transport.exchange(ask)
    asked = [plant for plant, kind in wire.asked if kind is AskToken]
    assert asked == ["north", "south", "south"]
    assert consortium.site.log.read_bytes().count(b'"client":"east","kind":"excluded"') == 1
    assert dict(consortium.site.ledger().rounds.excluded) == {"east": "4"}


def test_an_update_that_nobody_pledged_is_not_taken_from_the_store(
    consortium: Consortium, store: CoordinatorStore
) -> None:
    last = store.last(federation="water")
    assert last is not None
    store.keep_update("west", 2, b"of a store that is newer than the log")
    train = Train(round=2, parameters=last.parameters)
    made = service(consortium, store, Counted(consortium))
    replies = made.transport.exchange(dict.fromkeys(("north", "south"), train))
    assert set(replies) == {"north", "south"}
    assert dict(consortium.site.ledger().rounds.excluded) == {"west": "6.3"}
