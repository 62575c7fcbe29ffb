"""Updates that a malicious plant made up: none sets its own weight, and none stops the others."""

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np
import pytest

from sluice.aggregation.registry import RULES
from sluice.aggregation.rule import Aggregate, Rule, State
from sluice.aggregation.update import Update
from sluice.attestation.log.chain import Log, read_log
from sluice.attestation.log.entries import Body, ModelAggregated
from sluice.attestation.messages.messages import COMMITS
from sluice.attestation.messages.signing import sign
from sluice.errors import SettingError
from sluice.network.coordinator import sharing
from sluice.network.coordinator.founding import coordinator_service
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.plant.folder import PlantFolder
from sluice.network.wire.questions import (
    ANSWERS,
    QUESTIONS,
    AskUpdate,
    Batch,
    Payload,
    Pledge,
    Revelation,
)
from sluice.network.wire.wire import LARGEST_MESSAGE, Answerer, Direct

from .conftest import Consortium, Founder
from .malicious_plant import Falsified, Malicious

FLOAT32_MAX = np.float32(3.4e38)


def falsify(consortium: Consortium, name: str, change: Callable[[bytes], bytes]) -> None:
    consortium.plants[name] = Falsified(PlantFolder(consortium.folder / name), change)


def filled(number: float) -> Callable[[bytes], bytes]:
    """Replace every weight of the update by a number."""
    return lambda raw: np.full(len(raw) // 4, number, "<f4").tobytes()


def steps(consortium: Consortium, round_: int) -> dict[str, str]:
    """Return who is excluded from a round, by the log: plant -> step."""
    *lines, _ = consortium.site.log.read_text().splitlines()
    bodies = [json.loads(line)["body"] for line in lines]
    return {
        body["client"]: body["step"]
        for body in bodies
        if body["kind"] == "excluded" and body["round"] == round_
    }


def test_a_plant_that_claims_2_to_the_48_windows_gains_no_influence(consortium: Consortium) -> None:
    claim = ((1 << 48) - 1).to_bytes(8, "big")
    falsify(consortium, "south", lambda raw: claim + raw[-4 * consortium.site.terms.weights :])
    done = consortium.run(rounds=1)
    assert done.influence.get("south", 0.0) <= 1 / 3
    assert done.influence["north"] == done.influence["west"]


def test_a_commitment_that_names_a_statistic_nobody_asked_for_excludes_its_plant_alone(
    consortium: Consortium,
) -> None:
    plant = PlantFolder(consortium.folder / "south")

    def named(batch: Batch) -> Batch:
        content = replace(COMMITS.read(batch.commit).content, statistic="0" * 64)
        commit = sign(content, plant.keys.ensure_client_key())
        return replace(batch, commit=COMMITS.write(commit))

    consortium.plants["south"] = Malicious(plant, named)
    done = consortium.run(rounds=1)
    assert steps(consortium, 1) == {"south": "5.6.1"}
    assert set(done.influence) == {"north", "west"}
    assert read_log(consortium.site.log).rounds.members == ("north", "west")


def test_influence_is_the_share_of_the_logged_rows(founder: Founder) -> None:
    consortium = founder()
    for index, (name, rows) in enumerate((("north", 600), ("south", 300), ("west", 500))):
        consortium.join(name, index, rows=rows)
    done = consortium.run(rounds=1)
    assert {name: decision.rows for name, decision in done.decisions.items()} == {
        "north": 600,
        "south": 300,
        "west": 500,
    }
    assert done.influence == pytest.approx(
        {"north": 600 / 1400, "south": 300 / 1400, "west": 500 / 1400}
    )


def test_two_plants_send_the_largest_float32_and_the_honest_plants_finish_the_round(
    founder: Founder,
) -> None:
    consortium = founder()
    for index, name in enumerate(("north", "south", "east", "west")):
        consortium.join(name, index)
    for name in ("south", "west"):
        falsify(consortium, name, filled(float(FLOAT32_MAX)))
    first = consortium.run(rounds=1)
    assert read_log(consortium.site.log).rounds.members == ("east", "north")
    assert steps(consortium, 1) == {"south": "6.4", "west": "6.4"}
    again = consortium.run(rounds=2)
    assert again.round == 2
    assert not np.array_equal(first.parameters, again.parameters)


def test_a_plant_whose_update_was_refused_is_not_reported_as_part_of_the_round(
    consortium: Consortium,
) -> None:
    falsify(consortium, "south", filled(float(FLOAT32_MAX)))
    store, reported = CoordinatorStore(consortium.site.base), list[tuple[str, ...]]()
    try:
        made = coordinator_service(
            consortium.site, store, Direct(consortium.plants), clock=consortium.clock
        )
        rounds = made.transport.protocol.log.ledger.rounds
        made.run(rounds=2, on_round=lambda _: reported.append(rounds.members))
    finally:
        store.close()
    assert reported == [("north", "west")] * 2


@pytest.mark.parametrize(
    ("change", "step"),
    [
        (lambda _: b"", "6.4"),
        (lambda raw: raw[:-1], "6.4"),
        (lambda raw: raw + b"\0\0\0\0", "6.4"),
        (lambda _: b"\x80\x04pickle", "6.4"),
        (lambda _: b"9" * (LARGEST_MESSAGE // 2), "6.4"),
        (filled(float("nan")), "6.4"),
        (filled(float("-inf")), "6.4"),
        (filled(10.1), "6.4"),
    ],
    ids=["nothing", "torn", "too long", "a pickle", "huge", "NaN", "infinite", "out of scale"],
)
def test_a_pledged_update_that_is_no_update_excludes_its_plant_alone(
    consortium: Consortium, change: Callable[[bytes], bytes], step: str
) -> None:
    falsify(consortium, "south", change)
    assert consortium.run(rounds=1).round == 1
    assert steps(consortium, 1) == {"south": step}
    assert consortium.run(rounds=2).round == 2
    assert read_log(consortium.site.log).rounds.members == ("north", "west")
    store = CoordinatorStore(consortium.site.base)
    assert "south" not in store.updates(2)
    store.close()


class Revealing:
    """Pledges what it trained, and reveals something else."""

    def __init__(self, agent: Answerer, change: Callable[[Revelation], Payload]) -> None:
        self.agent = agent
        self._change = change

    def answer(self, question: bytes) -> bytes:
        answer = ANSWERS.read(self.agent.answer(question))
        if isinstance(answer.answer, Revelation):
            answer = replace(answer, answer=self._change(answer.answer))
        return ANSWERS.write(answer)


@pytest.mark.parametrize(
    ("change", "step"),
    [
        (lambda told: replace(told, update=b""), "6.3"),
        (lambda told: replace(told, update=b"\x80\x04pickle"), "6.3"),
        (lambda told: replace(told, update=b"9" * (LARGEST_MESSAGE // 2)), "6.3"),
        (lambda told: replace(told, update=filled(float("nan"))(told.update)), "6.3"),
        (lambda told: replace(told, update=filled(3.4e38)(told.update)), "6.3"),
        (lambda told: Pledge(token=told.update), "6"),
    ],
    ids=["nothing", "a pickle", "huge", "NaN", "float32 max", "a token"],
)
def test_an_update_that_was_not_pledged_excludes_its_plant_alone(
    consortium: Consortium, change: Callable[[Revelation], Payload], step: str
) -> None:
    consortium.plants["south"] = Revealing(consortium.plants["south"], change)
    assert consortium.run(rounds=1).round == 1
    assert steps(consortium, 1) == {"south": step}
    assert consortium.run(rounds=2).round == 2
    assert read_log(consortium.site.log).rounds.members == ("north", "west")


@pytest.mark.parametrize(
    "head", [b"", b"{}", b"[" * 50_000, b"9" * 1_000_000], ids=["nothing", "{}", "deep", "long"]
)
def test_an_update_without_a_countersigned_log_does_not_count(
    consortium: Consortium, head: bytes
) -> None:
    consortium.plants["south"] = Revealing(
        consortium.plants["south"], lambda told: replace(told, head=head)
    )
    assert consortium.run(rounds=1).round == 1
    assert consortium.run(rounds=2).round == 2
    assert read_log(consortium.site.log).rounds.members == ("north", "west")


class Impatient(Direct):
    """A wire that gives all plants up after the first update."""

    def ask(self, questions, **rest):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN003
        (ask, *_) = (QUESTIONS.read(each).content.ask for each in questions.values())
        answers = super().ask(questions, **rest)
        yield from islice(answers, 1 if isinstance(ask, AskUpdate) else None)


@pytest.mark.parametrize(
    ("change", "members"),
    [
        (lambda told: told, ("north",)),
        (lambda told: replace(told, update=b""), ("south",)),
        (lambda told: replace(told, head=b""), ("south",)),
    ],
    ids=["in order", "another update", "no countersigned log"],
)
def test_the_other_plant_is_asked_on_after_an_update_that_does_not_count(
    founder: Founder, change: Callable[[Revelation], Payload], members: tuple[str, ...]
) -> None:
    """One of two plants is enough."""
    consortium = founder()
    for index, name in enumerate(("north", "south")):
        consortium.join(name, index)
    consortium.plants["north"] = Revealing(consortium.plants["north"], change)
    with closing(CoordinatorStore(consortium.site.base)) as store:
        wire = Impatient(consortium.plants)
        made = coordinator_service(consortium.site, store, wire, clock=consortium.clock)
        made.run(rounds=1, on_round=lambda _: None)
    assert read_log(consortium.site.log).rounds.members == members


@dataclass
class Faulty:
    """A rule at fault in the second round."""

    error: Exception | None
    value: float = float("nan")
    needs_root: bool = False
    rounds: int = 0

    def __call__(self, updates: Sequence[Update], state: State) -> tuple[Aggregate, State]:
        self.rounds += 1
        aggregate, after = RULES["fedavg"](updates, state)
        if self.rounds == 2:
            if self.error:
                raise self.error
            aggregate = replace(aggregate, update=np.full_like(aggregate.update, self.value))
        return aggregate, after


@pytest.fixture
def with_rule(monkeypatch: pytest.MonkeyPatch) -> Callable[[Rule], None]:
    return lambda rule: monkeypatch.setattr(sharing, "RULES", {"fedavg": rule})


@pytest.mark.parametrize(
    "rule",
    [
        Faulty(None),
        Faulty(None, value=float("inf")),
        Faulty(None, value=1e39),
        Faulty(SettingError("Krum guards against f = 3 clients but got 2 updates")),
        Faulty(FloatingPointError("overflow encountered in square")),
        Faulty(np.linalg.LinAlgError("SVD did not converge")),
    ],
    ids=["NaN", "infinite", "beyond float32", "a refusal", "an overflow", "no solution"],
)
def test_a_rule_that_fails_ends_the_round_with_unchanged_weights(
    consortium: Consortium, with_rule: Callable[[Rule], None], rule: Faulty
) -> None:
    rule.rounds = 0
    with_rule(rule)
    first = consortium.run(rounds=1)
    second = consortium.run(rounds=2)
    assert (second.round, second.unchanged) == (2, "6.5")
    assert np.array_equal(first.parameters, second.parameters)
    assert steps(consortium, 2) == dict.fromkeys(("north", "south", "west"), "6.5")
    ledger = read_log(consortium.site.log)
    assert (ledger.rounds.counted, ledger.rounds.members) == (2, ())
    store = CoordinatorStore(consortium.site.base)
    assert store.counts()["", "weights unchanged: step 6.5"] == 1
    assert [each.absences for each in store.members()] == [0, 0, 0]  # all of them answered
    store.close()
    third = consortium.run(rounds=3)
    assert third.unchanged is None
    assert not np.array_equal(third.parameters, second.parameters)


class Killed(BaseException):
    """The coordinator is gone, in the middle of whatever it did."""


def test_a_round_that_changed_nothing_is_finished_by_the_next_run(
    consortium: Consortium, with_rule: Callable[[Rule], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    with_rule(Faulty(None))
    consortium.run(rounds=1)
    append = Log.append

    def dying(log: Log, body: Body, **when: object) -> object:
        if isinstance(body, ModelAggregated):
            raise Killed
        return append(log, body, **when)  # type: ignore[arg-type]

    with monkeypatch.context() as killed:
        killed.setattr(Log, "append", dying)
        with pytest.raises(Killed):
            consortium.run(rounds=2)
    done = consortium.run(rounds=2)
    assert (done.round, done.unchanged) == (2, "6.5")
    assert read_log(consortium.site.log).rounds.members == ()
    assert consortium.run(rounds=3).round == 3
