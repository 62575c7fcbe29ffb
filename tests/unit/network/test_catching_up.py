"""Plants that miss much of the log are sent it, and a round waits for its plants."""

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from sluice.errors import RefusedError
from sluice.federation.admission_check import Decision
from sluice.federation.rounds import begin
from sluice.network.coordinator import pages
from sluice.network.coordinator.founding import coordinator_service
from sluice.network.coordinator.service import CoordinatorService
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.wire.questions import ANSWERS, QUESTIONS, Answer, AskLog, ModelTaken
from sluice.network.wire.wire import Direct

from .conftest import START, Consortium

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


class Confused:
    """A plant that answers every question as if it had been given the model."""

    def answer(self, question: bytes) -> bytes:
        assert question
        return ANSWERS.write(Answer(instance="1" * 64, seen=0, answer=ModelTaken()))


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


def test_a_plant_that_answers_something_else_than_it_was_asked_is_absent(
    consortium: Consortium, store: CoordinatorStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pages, "PAGE_BYTES", 1_000)
    consortium.join("east", 3)
    store.seen("north", 0)
    consortium.plants["north"] = Confused()
    requests = service(consortium, store, Counted(consortium)).transport.requests
    requests.catch_up(("north", "east"), round_=1)
    assert (absences(store)["north"], absences(store)["east"]) == (1, 0)


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
