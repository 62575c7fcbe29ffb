"""Entries that a ledger refuses where plants share statistics, each for one reason alone."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from sluice.attestation.log.entries import (
    Body,
    ClientRemoved,
    Entry,
    EpochDrawn,
    GroupGivenUp,
    LogOpened,
    RoundOpened,
    StatisticTerms,
    UpdatePledged,
    UpdateRevealed,
)
from sluice.attestation.log.heads import EMPTY_LOG
from sluice.attestation.log.ledger import Enrolment, Ledger, LedgerState, Logged
from sluice.attestation.log.rounds import RoundState
from sluice.attestation.messages import (
    HelperCard,
    Registration,
    RegistrationTerms,
    Signed,
    Token,
    instant,
    sign,
    update_digest,
)
from sluice.detector import LENT_BYTES
from sluice.errors import VerificationError

from .hidden_federation import NAMES, SHAPE, START, Parties

NOW = instant(START)
LAST, MODEL, ATTESTED = "6" * 64, "0" * 64, "a" * 64
NORTH = NAMES[0]
BOUND = StatisticTerms(
    lags=SHAPE.lags, stride_s=60.0, channels=(), rule="vote", malicious=1, bound=True
)
TERMS = RegistrationTerms(rows_min=1, rows_max=4_096, stride_us=60_000_000, overlaps=False)


@pytest.fixture(scope="module")
def parties(tmp_path_factory: pytest.TempPathFactory) -> Parties:
    return Parties(tmp_path_factory.mktemp("helper"))


def grouped(parties: Parties) -> StatisticTerms:
    """Statistics that are shared in groups."""
    key = parties.helper.public
    card = HelperCard(federation="north", host="localhost", port=1, key=key, authority="")
    return replace(BOUND, helper=card)


def ledger_with(parties: Parties, statistic: StatisticTerms | None) -> Ledger:
    """Return a ledger in which every plant has attested a batch and shared none."""
    coordinator = parties.coordinator.public
    opened = LogOpened(
        federation="north", coordinator=coordinator, approvers=(), statistic=statistic
    )
    state = LedgerState(opened=opened, coordinator=coordinator, size=1, time=NOW, recent=[LAST])
    for client, member in parties.members().items():
        commit = member.commit.content
        registration = Registration(
            federation="north",
            client=client,
            key=commit.key,
            system=commit.system,
            circuit=commit.circuit,
            rules=commit.rules,
            policy=commit.policy,
            terms=TERMS,
        )
        state.clients[client] = Enrolment(index=0, registration=registration)
        state.commits[commit.commitment] = Logged(
            index=0, time=NOW, registration=registration, commit=member.commit
        )
        state.batches[client] = [commit.commitment]
        state.attestations[commit.commitment] = ATTESTED
    return Ledger(state)


def check(ledger: Ledger, body: Body) -> None:
    ledger.check(Entry(index=1, previous=LAST, time=NOW, body=body))


# -- groups ---------------------------------------------------------------------------------------


def remove(ledger: Ledger) -> None:
    body = ClientRemoved(client=NORTH, since=0, model_of=1, model=MODEL)
    ledger.state.rounds.removed[NORTH] = body


def forget_its_proof(ledger: Ledger) -> None:
    del ledger.state.attestations[ledger.state.batches[NORTH][0]]


def share_its_rows(ledger: Ledger) -> None:
    ledger.state.groups.used.append(f"{NORTH} shared")
    ledger.state.attestations[ledger.state.batches[NORTH][0]] = f"{NORTH} shared"


@pytest.mark.parametrize("change", [remove, forget_its_proof, share_its_rows])
def test_a_plant_without_attested_rows_to_share_is_not_drawn(
    parties: Parties, change: Callable[[Ledger], None]
) -> None:
    ledger, drawn = ledger_with(parties, grouped(parties)), EpochDrawn(order=parties.order())
    check(ledger, drawn)
    change(ledger)
    with pytest.raises(VerificationError, match=f"'{NORTH}' was removed, or has no attested rows"):
        check(ledger, drawn)


@pytest.mark.parametrize("statistic", [None, BOUND])
def test_entries_about_groups_are_refused_where_plants_share_alone(
    parties: Parties, statistic: StatisticTerms | None
) -> None:
    ledger = ledger_with(parties, statistic)
    for body in (
        EpochDrawn(order=parties.order()),
        GroupGivenUp(epoch=1, group=0, step="6.9.2"),
    ):
        with pytest.raises(VerificationError, match="do not share in groups"):
            check(ledger, body)


def test_a_share_of_an_incomplete_group_is_not_logged(parties: Parties) -> None:
    ledger = in_round(parties, grouped(parties))
    current, groups = ledger.state.rounds.current, ledger.state.groups
    assert current is not None
    token = token_of(parties).content
    current.pledges[NORTH], current.closed = token, 1
    groups.epoch, groups.round = parties.order().content, 1
    body = UpdateRevealed(round=1, client=NORTH, update=token.update)
    with pytest.raises(VerificationError, match=f"the group of '{NORTH}' is incomplete"):
        check(ledger, body)
    groups.sharing = [0, 1, 2]
    check(ledger, body)


# -- pledges --------------------------------------------------------------------------------------


def in_round(parties: Parties, statistic: StatisticTerms) -> Ledger:
    """Return a ledger in which round 1 takes tokens."""
    ledger = ledger_with(parties, statistic)
    ledger.state.rounds.current = RoundState(opened=RoundOpened(round=1, model=MODEL, deadline=NOW))
    return ledger


def token_of(parties: Parties, **changes: object) -> Signed[Token]:
    """Return a token of the statistic that its plant's commitment names."""
    member = parties.members()[NORTH]
    named = bytes.fromhex(member.commit.content.statistic or "")
    content = Token(
        federation="north",
        client=NORTH,
        round=1,
        model=MODEL,
        attestation=ATTESTED,
        update=update_digest("north", NORTH, 1, named),
    )
    return sign(replace(content, **changes), member.key)  # type: ignore[arg-type]


def test_a_pledge_of_another_statistic_than_the_attested_one_is_refused(parties: Parties) -> None:
    ledger = in_round(parties, BOUND)
    check(ledger, UpdatePledged(token=token_of(parties)))
    other = token_of(parties, update="1" * 64)
    with pytest.raises(VerificationError, match=r"step 6\.9: .* pledges another statistic"):
        check(ledger, UpdatePledged(token=other))
    check(in_round(parties, replace(BOUND, bound=False)), UpdatePledged(token=other))


def test_a_pledge_of_a_plant_that_was_not_drawn_is_refused(parties: Parties) -> None:
    ledger = in_round(parties, grouped(parties))
    pledged = UpdatePledged(token=token_of(parties, update="1" * 64))
    with pytest.raises(VerificationError, match=f"'{NORTH}' is in no group of the epoch"):
        check(ledger, pledged)
    ledger.state.groups.epoch = parties.order().content
    check(ledger, pledged)


def test_a_tail_is_lent_only_where_the_first_entry_says_so(parties: Parties) -> None:
    lent = UpdatePledged(token=token_of(parties, tail="00" * LENT_BYTES))
    with pytest.raises(VerificationError, match=f"the token of '{NORTH}' lends a tail"):
        check(in_round(parties, BOUND), lent)
    check(in_round(parties, replace(BOUND, lends=True)), lent)


# -- the first entry ------------------------------------------------------------------------------


def test_only_bound_statistics_must_say_how_much_one_covers() -> None:
    opened = LogOpened(federation="north", coordinator="1" * 64, approvers=(), statistic=BOUND)
    first = Entry(index=0, previous=EMPTY_LOG, time=NOW, body=opened)
    with pytest.raises(VerificationError, match="must say how much one covers"):
        Ledger().check(first)
    free = replace(opened, statistic=replace(BOUND, bound=False))
    Ledger().check(replace(first, body=free))
