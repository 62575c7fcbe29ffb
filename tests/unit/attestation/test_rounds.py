"""Step 6: pledges before reveals, attested clients only, silence is exclusion."""

from dataclasses import replace
from pathlib import Path

import pytest

from sluice.attestation.log.chain import read_log
from sluice.attestation.log.entries import (
    ClientExcluded,
    ModelAggregated,
    PledgesClosed,
    RoundAbandoned,
    RoundOpened,
    UpdatePledged,
    UpdateRevealed,
)
from sluice.attestation.messages.signing import SigningKey, sign
from sluice.attestation.messages.tokens import TOKENS, Token, update_digest
from sluice.attestation.protocol.coordinator import Agreement, Attested, Pledging, Revealing
from sluice.attestation.protocol.transition import TRANSITION
from sluice.errors import VerificationError

from .conftest import NOW, PlantRun, World, later, run_plant

MODEL, NEXT = "a" * 64, "b" * 64
UPDATE = b"an update"


def refused(words: str) -> "pytest.RaisesExc[VerificationError]":
    return pytest.raises(VerificationError, match=rf"step 6: .*{words}")


@pytest.fixture
def pair(world: World) -> tuple[tuple[PlantRun, Attested], tuple[PlantRun, Attested]]:
    one, two = run_plant(world, "north"), run_plant(world, "south", batch=1)
    return (
        (one, one.received.attest(one.proof, at=NOW)),
        (two, two.received.attest(two.proof, at=NOW)),
    )


@pytest.fixture
def north(
    pair: tuple[tuple[PlantRun, Attested], tuple[PlantRun, Attested]],
) -> tuple[PlantRun, Attested]:
    return pair[0]


def opened(world: World) -> Pledging:
    return world.protocol.open_round(MODEL, later(60), at=NOW)


def token(run: PlantRun, update: bytes = UPDATE, /, **changes: object) -> bytes:
    content: Token = replace(
        run.proven.pledge(1, MODEL, update).message.content,
        **changes,  # type: ignore[arg-type]
    )
    return TOKENS.write(sign(content, run.plant.key))


def test_a_round_from_its_opening_to_its_model(
    world: World, pair: tuple[tuple[PlantRun, Attested], tuple[PlantRun, Attested]]
) -> None:
    (north, of_north), (south, of_south) = pair
    world.enrol(world.plant("silent"))
    pledging = opened(world)
    pledges = [
        pledging.pledge(of_north, token(north), at=later(1)),
        pledging.pledge(of_south, token(south), at=later(2)),
    ]
    revealing = pledging.close(at=later(3))
    revealed = [revealing.reveal(pledge, UPDATE, at=later(4)) for pledge in pledges]
    assert [update.client for update in revealed] == ["north", "south"]
    for run in (north, south):
        world.countersign(run.plant)
    assert revealing.finish(NEXT, at=later(5)) == ("north", "south")
    assert b'"client":"silent","kind":"excluded","round":1,"step":"6"' in world.path.read_bytes()
    assert read_log(world.path).rounds.last == 1
    assert world.protocol.open_round(NEXT, later(120), at=later(60)).round == 2


def test_out_of_order_cannot_be_written_down(
    world: World, north: tuple[PlantRun, Attested]
) -> None:
    run, attested = north
    pledging = opened(world)
    pledge = pledging.pledge(attested, token(run), at=NOW)
    with pytest.raises(AttributeError):
        pledging.reveal(pledge, UPDATE, at=NOW)  # type: ignore[attr-defined]
    revealing = pledging.close(at=NOW)
    with pytest.raises(AttributeError):
        revealing.pledge(attested, token(run), at=NOW)  # type: ignore[attr-defined]
    with pytest.raises(AttributeError):
        revealing.reveal(attested, UPDATE, at=NOW)  # type: ignore[arg-type]


def test_the_log_refuses_what_types_did_not_see(
    world: World, north: tuple[PlantRun, Attested]
) -> None:
    """A state kept from before does not reach round the order: the log knows it too."""
    run, attested = north
    pledging = opened(world)
    early = Revealing(log=world.log, round=1, transition=TRANSITION)
    pledge = pledging.pledge(attested, token(run), at=NOW)
    with refused("still accepts tokens"):
        early.reveal(pledge, UPDATE, at=NOW)
    with refused("names clients"):
        world.log.append(ModelAggregated(round=1, model=NEXT, clients=("north",)), at=NOW)
    revealing = pledging.close(at=NOW)
    with refused("accepts no more tokens"):
        pledging.pledge(attested, token(run, b"second thoughts"), at=NOW)
    with refused("already closed to tokens"):
        pledging.close(at=NOW)
    revealing.reveal(pledge, UPDATE, at=NOW)
    size = world.ledger.size
    revealing.reveal(pledge, UPDATE, at=NOW)  # networks duplicate
    assert world.ledger.size == size
    with refused("already revealed, or the round is finished"):
        revealing.reveal(pledge, b"second thoughts", at=NOW)
    world.countersign(run.plant)
    revealing.finish(NEXT, at=NOW)
    with refused("is finished"):
        revealing.exclude("north", "6", at=NOW)
    with refused("names clients"):
        world.log.append(ModelAggregated(round=1, model=NEXT, clients=("north",)), at=NOW)
    second = world.protocol.open_round(NEXT, later(60), at=NOW).close(at=NOW)
    with refused("the pledge is for round 1, expected 2"):
        second.reveal(pledge, UPDATE, at=NOW)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"federation": "power"}, "federation 'power'"),
        ({"round": 2}, "the token is for round 2, expected 1"),
        ({"model": NEXT}, "is for model"),
        ({"attestation": "0" * 64}, "not for this batch"),
        ({"client": "south"}, "not for this batch"),
    ],
)
def test_a_token_is_for_one_round_model_batch_and_client(
    world: World, north: tuple[PlantRun, Attested], changes: dict[str, object], words: str
) -> None:
    run, attested = north
    pledging = opened(world)
    with refused(words):
        pledging.pledge(attested, token(run, **changes), at=NOW)
    pledging.pledge(attested, token(run), at=NOW)


def test_a_token_is_signed_canonical_in_time_and_the_only_one(
    world: World, north: tuple[PlantRun, Attested]
) -> None:
    run, attested = north
    pledging = opened(world)
    with refused("signature"):
        forged = sign(TOKENS.read(token(run)).content, SigningKey.generate())
        pledging.pledge(attested, TOKENS.write(forged), at=NOW)
    with refused("canonical"):
        pledging.pledge(attested, token(run) + b" ", at=NOW)
    with refused("arrived after"):
        pledging.pledge(attested, token(run), at=later(61))
    pledge = pledging.pledge(attested, token(run), at=later(60))
    size = world.ledger.size
    assert pledging.pledge(attested, token(run), at=later(61)) == pledge  # networks duplicate
    assert world.ledger.size == size
    with refused("already has a token in round 1"):
        pledging.pledge(attested, token(run, b"second thoughts"), at=later(1))


def test_only_attested_clients_take_part(world: World, north: tuple[PlantRun, Attested]) -> None:
    late = run_plant(world, "late", batch=2)
    pledging = opened(world)
    claimed = Attested(client="late", attestation=late.proven.attestation, transition=TRANSITION)
    with refused("has no attestation"):
        pledging.pledge(claimed, token(late), at=NOW)
    borrowed = Attested(client="late", attestation=north[1].attestation, transition=TRANSITION)
    with refused("has no attestation"):
        pledging.pledge(borrowed, token(late, attestation=north[1].attestation), at=NOW)
    with refused("no client 'stranger'"):
        stranger = Attested(
            client="stranger", attestation=north[1].attestation, transition=TRANSITION
        )
        pledging.pledge(stranger, token(north[0], client="stranger"), at=NOW)


def test_another_update_than_the_pledged_one_is_refused(
    world: World, north: tuple[PlantRun, Attested]
) -> None:
    run, attested = north
    pledging = opened(world)
    pledge = pledging.pledge(attested, token(run), at=NOW)
    revealing = pledging.close(at=NOW)
    with refused("it pledged"):
        revealing.reveal(pledge, b"shaped after seeing the others", at=NOW)
    revealing.exclude("north", "6", at=NOW)
    with refused("excluded from the round, by step 6"):
        revealing.reveal(pledge, UPDATE, at=NOW)
    assert revealing.finish(NEXT, at=NOW) == ()


def test_a_copied_pledge_cannot_be_redeemed(
    world: World, pair: tuple[tuple[PlantRun, Attested], tuple[PlantRun, Attested]]
) -> None:
    (north, of_north), (south, of_south) = pair
    pledging = opened(world)
    pledging.pledge(of_north, token(north), at=NOW)
    seen = TOKENS.read(token(north)).content.update
    copied = pledging.pledge(of_south, token(south, update=seen), at=NOW)
    revealing = pledging.close(at=NOW)
    with refused("it pledged"):
        revealing.reveal(copied, UPDATE, at=NOW)
    assert update_digest("water", "north", 1, UPDATE) != update_digest("water", "south", 1, UPDATE)
    assert update_digest("water", "north", 1, UPDATE) != update_digest("water", "north", 2, UPDATE)


def test_an_excluded_client_has_no_token(world: World, north: tuple[PlantRun, Attested]) -> None:
    run, attested = north
    pledging = opened(world)
    pledging.exclude("north", "5.8", at=NOW)
    with refused("excluded from the round, by step 5.8"):
        pledging.pledge(attested, token(run), at=NOW)
    with refused("no client 'stranger'"):
        pledging.exclude("stranger", "6", at=NOW)


def test_entries_of_no_round_are_refused(world: World, north: tuple[PlantRun, Attested]) -> None:
    signed = TOKENS.read(token(north[0]))
    assert world.ledger.rounds.standing is None
    with refused("closing for round 0; the last round is 0"):
        world.log.append(PledgesClosed(round=0), at=NOW)
    for body in (
        UpdatePledged(token=signed),
        PledgesClosed(round=1),
        UpdateRevealed(round=1, client="north", update="0" * 64),
        ClientExcluded(round=1, client="north", step="6"),
        ModelAggregated(round=1, model=NEXT, clients=()),
        RoundAbandoned(round=1),
    ):
        with refused("the last round is 0"):
            world.log.append(body, at=NOW)
    with refused("round 2 cannot follow round 0"):
        world.log.append(
            RoundOpened(round=2, model=MODEL, deadline="2026-05-01T13:00:00.000000Z"), at=NOW
        )


def test_a_token_is_found_by_round_and_client(
    world: World, north: tuple[PlantRun, Attested], tmp_path: Path
) -> None:
    run, attested = north
    opened(world).pledge(attested, token(run), at=NOW)
    again = read_log(world.path).rounds
    assert again.token(1, "north") == TOKENS.read(token(run)).content
    assert again.token(1, "south") is again.token(0, "north") is again.token(2, "north") is None
    assert isinstance(run.enrolled.agreement, Agreement)


@pytest.mark.parametrize("closed", [False, True])
def test_an_abandoned_round_keeps_its_model_and_accepts_nothing_more(
    world: World, north: tuple[PlantRun, Attested], *, closed: bool
) -> None:
    run, attested = north
    opened(world).close(at=NOW)
    revealing = world.protocol.revealing(1)
    revealing.finish(NEXT, at=NOW)
    pledging = world.protocol.open_round(NEXT, later(60), at=NOW)
    second = token(run, round=2, model=NEXT)
    pledge = pledging.pledge(attested, second, at=NOW)
    if closed:
        revealing = pledging.close(at=NOW)
    world.log.append(RoundAbandoned(round=2), at=NOW)

    rounds = read_log(world.path).rounds
    assert rounds.between
    assert rounds.standing is not None
    assert rounds.standing.ended
    assert (rounds.last, rounds.counted, rounds.model) == (2, 1, NEXT)
    for body in (
        UpdatePledged(token=TOKENS.read(second)),
        PledgesClosed(round=2),
        UpdateRevealed(round=2, client="north", update=TOKENS.read(second).content.update),
        ClientExcluded(round=2, client="north", step="6"),
        ModelAggregated(round=2, model=MODEL, clients=()),
        RoundAbandoned(round=2),
    ):
        with refused("round 2, which was abandoned"):
            world.log.append(body, at=NOW)
    assert pledge.round == 2
    with refused("is opened on"):
        world.protocol.open_round(MODEL, later(60), at=NOW)
    world.protocol.open_round(NEXT, later(60), at=NOW)
    assert world.ledger.rounds.last == 3


def test_a_finished_round_cannot_be_abandoned(world: World) -> None:
    opened(world).close(at=NOW).finish(NEXT, at=NOW)
    with refused("round 1 is finished"):
        world.log.append(RoundAbandoned(round=1), at=NOW)
    assert world.ledger.rounds.model == NEXT


def test_a_round_is_not_opened_while_another_is_in_progress(world: World) -> None:
    opened(world)
    with refused("round 2 cannot follow round 1"):
        world.protocol.open_round(MODEL, later(60), at=NOW)


def test_entries_of_an_earlier_round_are_refused(world: World) -> None:
    opened(world).close(at=NOW).finish(NEXT, at=NOW)
    world.protocol.open_round(NEXT, later(60), at=NOW)
    for number in (1, 3):
        with refused(f"closing for round {number}; the last round is 2"):
            world.log.append(PledgesClosed(round=number), at=NOW)


def test_a_model_of_a_round_that_still_accepts_tokens_is_refused(world: World) -> None:
    opened(world)
    with refused("the model of round 1 names clients"):
        world.log.append(ModelAggregated(round=1, model=NEXT, clients=()), at=NOW)


def test_a_model_that_leaves_out_or_adds_a_client_is_refused(
    world: World, pair: tuple[tuple[PlantRun, Attested], tuple[PlantRun, Attested]]
) -> None:
    pledging = opened(world)
    pledges = [pledging.pledge(attested, token(run), at=NOW) for run, attested in pair]
    revealing = pledging.close(at=NOW)
    revealing.reveal(pledges[0], UPDATE, at=NOW)
    for run, _ in pair:
        world.countersign(run.plant)
    for clients in ((), ("south",), ("north", "south"), ("north", "north")):
        with refused("revealed and not excluded are \\['north'\\]"):
            world.log.append(ModelAggregated(round=1, model=NEXT, clients=clients), at=NOW)
    world.log.append(ModelAggregated(round=1, model=NEXT, clients=("north",)), at=NOW)
    with refused("already revealed, or the round is finished"):
        revealing.reveal(pledges[1], UPDATE, at=NOW)


def test_an_update_without_a_pledge_is_refused(
    world: World, north: tuple[PlantRun, Attested]
) -> None:
    opened(world).close(at=NOW)
    update = update_digest("water", "north", 1, UPDATE)
    with refused("it pledged no update"):
        world.log.append(UpdateRevealed(round=1, client="north", update=update), at=NOW)


def test_an_update_counts_only_with_a_countersigned_log(
    world: World, pair: tuple[tuple[PlantRun, Attested], tuple[PlantRun, Attested]]
) -> None:
    """Otherwise a coordinator could show one half of the plants another log."""
    (north, of_north), (south, of_south) = pair
    pledging = opened(world)
    pledges = [
        pledging.pledge(of_north, token(north), at=NOW),
        pledging.pledge(of_south, token(south), at=NOW),
    ]
    world.countersign(south.plant)  # before pledges are closed: too early
    revealing = pledging.close(at=NOW)
    world.countersign(north.plant)
    for pledge in pledges:
        revealing.reveal(pledge, UPDATE, at=NOW)
    assert world.ledger.rounds.unseen == ("south",)
    with refused("south revealed an update in round 1 and did not countersign its log"):
        revealing.finish(NEXT, at=NOW)
    assert revealing.leave_out_unseen(at=NOW) == ("south",)
    assert revealing.finish(NEXT, at=NOW) == ("north",)
    assert read_log(world.path).rounds.model == NEXT


def test_a_head_of_the_last_round_does_not_serve_for_this_one(
    world: World, north: tuple[PlantRun, Attested]
) -> None:
    run, attested = north
    opened(world).close(at=NOW)
    world.countersign(run.plant)
    world.protocol.revealing(1).finish(NEXT, at=NOW)
    pledging = world.protocol.open_round(NEXT, later(60), at=NOW)
    pledge = pledging.pledge(attested, token(run, round=2, model=NEXT,
                                             update=update_digest("water", "north", 2, UPDATE)),
                             at=NOW)  # fmt: skip
    revealing = pledging.close(at=NOW)
    revealing.reveal(pledge, UPDATE, at=NOW)
    assert world.ledger.rounds.unseen == ("north",)
