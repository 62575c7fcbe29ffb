"""Rounds with fewer plants than the terms demand: nothing is revealed, nothing is aggregated."""

import pytest

from sluice.attestation.log.entries import ENTRIES, Body, ClientExcluded, UpdateRevealed
from sluice.errors import RefusedError, SettingError
from sluice.network.coordinator.founding import FederationPlan
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.plant.agent import Agent
from sluice.network.training_rows import TrainingRows
from sluice.network.wire.questions import AskUpdate, Declined, model_hash
from sluice.network.wire.wire import Answerer

from .asking import Driven
from .conftest import Consortium, Founder


class SilentFrom:
    """An honest plant that gives no answer to questions of one kind."""

    def __init__(self, agent: Answerer, kind: bytes) -> None:
        self.agent, self.kind = agent, kind

    def answer(self, question: bytes) -> bytes:
        return b"" if b'"kind":"%s"' % self.kind in question else self.agent.answer(question)


def bodies_of(made: Consortium) -> list[Body]:
    *lines, _ = made.site.log.read_bytes().splitlines()  # the last line is the signed head
    return [ENTRIES.read(line).body for line in lines]


def three(founder: Founder) -> Consortium:
    made = founder(members_min=3)
    for index, name in enumerate(("north", "south", "west")):
        made.join(name, index)
    return made


def test_two_plants_do_not_begin_a_round_that_needs_three(founder: Founder) -> None:
    made = founder(members_min=3)
    for index, name in enumerate(("north", "south")):
        made.join(name, index)
    began, waits_s = made.clock.now, made.site.terms.round_deadline_s
    with pytest.raises(RefusedError, match=r"round 1 has 2 plants .* the terms need 3"):
        made.run(rounds=1)
    assert made.site.protocol().log.ledger.rounds.last == 0
    assert (made.clock.now - began).total_seconds() < waits_s  # no other plant can come


def test_plants_that_are_all_offline_cost_no_round_and_are_not_absent(
    founder: Founder,
) -> None:
    made = three(founder)
    made.run(rounds=1)
    gone = dict(made.plants)
    made.plants.clear()
    with pytest.raises(RefusedError, match=r"round 2 has 3 plants .*, 0 of them online"):
        made.run(rounds=2)
    assert made.site.protocol().log.ledger.rounds.last == 1
    made.plants.update(gone)
    assert made.run(rounds=2).round == 2
    store = CoordinatorStore(made.site.base, read_only=True)
    assert {member.absences for member in store.members()} == {0}
    store.close()


def test_a_round_in_which_one_of_three_does_not_pledge_reveals_nothing(founder: Founder) -> None:
    made = three(founder)
    made.plants["west"] = SilentFrom(made.plants["west"], b"token")
    done = made.run(rounds=1)
    bodies = bodies_of(made)
    assert not [body for body in bodies if isinstance(body, UpdateRevealed)]
    left_out = {b.client: b.step for b in bodies if isinstance(b, ClientExcluded)}
    assert {name: left_out[name] for name in ("north", "south")} == {"north": "6.6", "south": "6.6"}
    assert model_hash(done.parameters) == made.site.protocol().log.ledger.rounds.model


def test_a_round_in_which_one_of_three_does_not_reveal_is_not_aggregated(founder: Founder) -> None:
    made = three(founder)
    made.plants["west"] = SilentFrom(made.plants["west"], b"update")
    before = three_weights(made)
    done = made.run(rounds=1)
    assert model_hash(done.parameters) == before
    left_out = {b.client: b.step for b in bodies_of(made) if isinstance(b, ClientExcluded)}
    assert {name: left_out[name] for name in ("north", "south")} == {"north": "6.6", "south": "6.6"}


def three_weights(made: Consortium) -> str:
    return model_hash(Driven.of(made).weights(seed=made.site.terms.seed))


def test_a_plant_reveals_nothing_to_a_coordinator_that_skips_the_rule(founder: Founder) -> None:
    made = three(founder)
    north = made.plants["north"]
    assert isinstance(north, Agent)
    driven = Driven.of(made)
    attestation = driven.attest(north)
    number = driven.open()
    driven.take(driven.ask(north, driven.token(attestation)))
    driven.close()
    assert isinstance(driven.ask(north, AskUpdate(round=number)), Declined)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"members_min": 0}, "at least 1 plant"),
        ({"quorum": 0.0}, "the quorum must be a share"),
        ({"grace_s": -1.0}, "the grace must be 0 or more seconds"),
        ({"update_max": 0.0}, "finite number above 0"),
    ],
)
def test_a_plan_that_no_round_can_keep_is_refused(changes: dict[str, float], says: str) -> None:
    with pytest.raises(SettingError, match=says):
        FederationPlan(
            federation="water",
            host="127.0.0.1",
            port=1,
            link_port=2,
            reference=TrainingRows(record="line.csv", start=0, stop=1),
            policy="",
            approvers=("ab" * 32,),
            **changes,  # type: ignore[arg-type]
        )
