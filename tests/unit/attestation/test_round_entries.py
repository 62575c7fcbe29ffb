"""Entries about rounds that the log refuses, each for one reason alone."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import replace

import pytest

from sluice.attestation.log.entries import (
    ClientExcluded,
    ClientRemoved,
    ModelAggregated,
    PledgesClosed,
    RoundAbandoned,
    RoundBody,
    RoundOpened,
    UpdatePledged,
    UpdateRevealed,
)
from sluice.attestation.log.rounds import Rounds, RoundsState, RoundState
from sluice.attestation.messages import SigningKey, Token, sign
from sluice.errors import VerificationError

KEY = SigningKey.generate()
FIRST, SECOND, UPDATE, OTHER = ("1" * 64, "2" * 64, "a" * 64, "b" * 64)
NOW, LATER = "2026-01-01T00:00:00.000000Z", "2026-01-01T00:00:00.000001Z"
TOKEN = Token(
    federation="water", client="north", round=2, model=SECOND, attestation="c" * 64, update=UPDATE
)
OPENED = RoundOpened(round=2, model=SECOND, deadline=NOW)
REVEALED = UpdateRevealed(round=2, client="north", update=UPDATE)
AGGREGATED = ModelAggregated(round=2, model=OTHER, clients=("north",))


def rounds(**changes: object) -> Rounds:
    """Return rounds of which the second is in progress, with these changes."""
    state = RoundsState(first=FIRST, models=[SECOND], counts=[1])
    state.current = replace(RoundState(opened=OPENED), **changes)  # type: ignore[arg-type]
    return Rounds(state)


def pledged(**changes: object) -> Rounds:
    """Return rounds of which the second is closed to tokens, with one of `north`."""
    return rounds(**{"pledges": {"north": TOKEN}, "closed": 9} | changes)


def revealed(**changes: object) -> Rounds:
    """Return rounds in the second of which `north` has revealed its update."""
    return pledged(**{"revealed": {"north"}, "countersigned": {"north"}} | changes)


def pledge(**changes: object) -> UpdatePledged:
    return UpdatePledged(token=sign(replace(TOKEN, **changes), KEY))  # type: ignore[arg-type]


def removing(client: str) -> Rounds:
    made = rounds()
    made._state.removed[client] = ClientRemoved(client=client, since=2, model_of=1, model=SECOND)
    return made


ACCEPTED: dict[str, tuple[Callable[[], Rounds], RoundBody]] = {
    "the first round": (lambda: Rounds(RoundsState()), replace(OPENED, round=1)),
    "a round after one that has ended": (lambda: rounds(abandoned=True), replace(OPENED, round=3)),
    "a token": (rounds, pledge()),
    "a token of a client after another was removed": (lambda: removing("south"), pledge()),
    "the end of tokens": (rounds, PledgesClosed(round=2)),
    "an update": (pledged, REVEALED),
    "a model": (revealed, AGGREGATED),
    "an exclusion": (rounds, ClientExcluded(round=2, client="north", step="6")),
    "an abandoned round": (rounds, RoundAbandoned(round=2)),
}

REFUSED: dict[str, tuple[Callable[[], Rounds], RoundBody, str]] = {
    "a round that skips one": (
        lambda: rounds(abandoned=True),
        replace(OPENED, round=4),
        "round 4 cannot follow round 2",
    ),
    "a round while one is in progress": (rounds, replace(OPENED, round=3), "cannot follow round 2"),
    "a round on another model": (
        lambda: rounds(aggregated=True),
        replace(OPENED, round=3, model=FIRST),
        "the federation's model is 2222",
    ),
    "a token before the first round": (lambda: Rounds(RoundsState()), pledge(), "last round is 0"),
    "a token of no round": (
        lambda: Rounds(RoundsState()),
        pledge(round=0),
        "a token for round 0; the last round is 0",
    ),
    "a token of another round": (rounds, pledge(round=1), "the last round is 2"),
    "a token of an abandoned round": (lambda: rounds(abandoned=True), pledge(), "was abandoned"),
    "a token after the others": (lambda: rounds(closed=9), pledge(), "accepts no more tokens"),
    "a token on another model": (rounds, pledge(model=FIRST), "is for model 1111"),
    "a token of an excluded client": (
        lambda: rounds(excluded={"north": "6.1"}),
        pledge(),
        "'north' is excluded from the round, by step 6.1",
    ),
    "a token of a removed client": (lambda: removing("north"), pledge(), "'north' was removed"),
    "a second token": (lambda: pledged(closed=0), pledge(update=OTHER), "already has a token"),
    "a second end of tokens": (pledged, PledgesClosed(round=2), "already closed to tokens"),
    "an update among tokens": (lambda: pledged(closed=0), REVEALED, "still accepts tokens"),
    "an update after the model": (lambda: pledged(aggregated=True), REVEALED, "is finished"),
    "an update for the second time": (revealed, REVEALED, "is already revealed"),
    "an update of an excluded client": (
        lambda: pledged(excluded={"north": "6.1"}),
        REVEALED,
        "'north' is excluded from the round, by step 6.1",
    ),
    "an update without a pledge": (lambda: pledged(pledges={}), REVEALED, "pledged no update"),
    "another update than the pledged one": (
        pledged,
        replace(REVEALED, update=OTHER),
        "it pledged aaaa",
    ),
    "a second model": (lambda: revealed(aggregated=True), AGGREGATED, "the model of round 2"),
    "a model among tokens": (lambda: revealed(closed=0), AGGREGATED, "the model of round 2"),
    "a model of other clients": (
        revealed,
        replace(AGGREGATED, clients=()),
        "revealed and not excluded are",
    ),
    "a model of an excluded client": (
        lambda: revealed(excluded={"north": "6"}),
        AGGREGATED,
        "revealed and not excluded are",
    ),
    "a model that a member has not countersigned": (
        lambda: revealed(countersigned=set()),
        AGGREGATED,
        "did not countersign its log",
    ),
    "an exclusion after the model": (
        lambda: rounds(aggregated=True),
        ClientExcluded(round=2, client="north", step="6"),
        "round 2 is finished",
    ),
    "the end of a round that has a model": (
        lambda: rounds(aggregated=True),
        RoundAbandoned(round=2),
        "round 2 is finished",
    ),
}


@pytest.mark.parametrize("case", ACCEPTED)
def test_an_entry_that_follows_is_accepted_and_then_noted(case: str) -> None:
    made, body = ACCEPTED[case]
    log = made()
    before = deepcopy(log._state)
    log.check(body, at=NOW)
    assert log._state == before
    log.note(body, size=9)
    assert log._state != before


@pytest.mark.parametrize("case", REFUSED)
def test_an_entry_out_of_order_is_refused(case: str) -> None:
    made, body, why = REFUSED[case]
    with pytest.raises(VerificationError, match=why):
        made().check(body, at=NOW)


def test_a_token_that_is_late_by_the_least_is_refused() -> None:
    with pytest.raises(VerificationError, match=f"'north' arrived after {NOW}"):
        rounds().check(pledge(), at=LATER)


def test_a_client_is_removed_once_between_rounds_and_back_to_an_earlier_model() -> None:
    body = ClientRemoved(client="north", since=2, model_of=1, model=SECOND)
    ended = rounds(abandoned=True)
    ended.check_removed(body, statistics=False)
    ended.check_removed(replace(body, model_of=0, model=FIRST), statistics=False)
    for wrong, why in (
        (replace(body, since=3), "the last round is 2"),
        (replace(body, since=1), "cannot discard rounds from 1 on and go back to 1"),
        (replace(body, model=FIRST), "is not the model after round 1"),
    ):
        with pytest.raises(VerificationError, match=why):
            ended.check_removed(wrong, statistics=False)
    again = rounds(abandoned=True)
    again._state.removed["north"] = body
    for made in (again, rounds()):
        with pytest.raises(VerificationError, match="already removed, or a round is in progress"):
            made.check_removed(body, statistics=False)


def test_a_statistic_is_taken_out_of_the_last_model_and_of_no_other() -> None:
    body = ClientRemoved(client="north", since=0, model_of=2, model=SECOND)
    ended = rounds(aggregated=True)
    ended.check_removed(body, statistics=True)
    for made, wrong in (
        (ended, replace(body, since=1)),
        (ended, replace(body, model_of=1)),
        (Rounds(RoundsState()), replace(body, model_of=0)),
    ):
        with pytest.raises(VerificationError, match="a statistic is taken out of the model"):
            made.check_removed(wrong, statistics=True)


def test_an_update_counts_as_revealed_in_its_own_round_only() -> None:
    assert revealed().revealed(REVEALED)
    for number in (0, 2):  # before the first round, the last one is number 0
        assert not Rounds(RoundsState()).revealed(replace(REVEALED, round=number))
    assert not pledged().revealed(REVEALED)
    assert not revealed().revealed(replace(REVEALED, round=1))
    assert not revealed().revealed(replace(REVEALED, update=OTHER))


@pytest.mark.parametrize(
    ("changes", "ended"), [({}, False), ({"aggregated": True}, True), ({"abandoned": True}, True)]
)
def test_a_round_ends_with_a_model_or_without(
    changes: dict[str, object],
    ended: bool,  # noqa: FBT001
) -> None:
    standing = rounds(**changes).standing
    assert standing is not None
    assert standing.ended == ended
