"""Entries about groups that the coordinator's log refuses, each for one reason alone."""

from pathlib import Path

import pytest

from sluice.attestation.log.entries import (
    GroupGivenUp,
    GroupSummed,
    ModelAggregated,
    RoundOpened,
    StatisticTerms,
)
from sluice.attestation.log.groups import GroupInForce, Groups, GroupsState
from sluice.attestation.log.rounds import Rounds, RoundsState, RoundState
from sluice.attestation.messages import (
    EpochOrder,
    GroupReleased,
    GroupRetired,
    HelperBody,
    HelperEntry,
    MemberAnswer,
    ReleaseOrder,
    SigningKey,
    instant,
    sign,
)
from sluice.errors import VerificationError

from .hidden_federation import NAMES, SHAPE, START, Parties

NOW = instant(START)
KEY = SigningKey.generate()
COMMITS = dict.fromkeys(NAMES, "c" * 64)
TERMS = StatisticTerms(
    lags=SHAPE.lags, stride_s=60.0, channels=(), rule="vote", malicious=1, bound=True
)


@pytest.fixture
def epoch(tmp_path: Path) -> EpochOrder:
    return Parties(tmp_path / "helper").order().content


def groups_with(*, ended: object = False, silent: object = "", **state: object) -> Groups:
    """Return groups while round 1 has revealed updates of all plants but one, or has ended."""
    opened = RoundOpened(round=1, model="0" * 64, deadline=NOW)
    revealed = {name for name in NAMES if name != silent}
    current = RoundState(opened=opened, revealed=revealed, abandoned=bool(ended))
    return Groups(GroupsState(**state), Rounds(RoundsState(current=current)))  # type: ignore[arg-type]


def in_force(groups: Groups, at: int) -> GroupInForce:
    members = groups.drawn[at]
    return GroupInForce(
        epoch=1, group=at, round=1, members=members, commits=(), order="", statistic="5" * 64
    )


def summed(groups: Groups, at: int, body: HelperBody | None = None) -> GroupSummed:
    members = tuple(
        MemberAnswer(client=name, commit=COMMITS[name], values="0" * 48)
        for name in groups.drawn[at]
    )
    order = ReleaseOrder(federation="north", epoch=1, group=at, members=members)
    released = body or GroupReleased(order=sign(order, KEY), sum="0" * 64)
    entry = HelperEntry(index=9, previous="0" * 64, time=NOW, body=released)
    return GroupSummed(round=1, released=sign(entry, KEY), statistic="5" * 64)


def test_an_epoch_is_drawn_only_when_no_round_is_in_progress(epoch: EpochOrder) -> None:
    groups_with(ended=True).check_drawn(epoch, TERMS, head=epoch.head, at=NOW)
    with pytest.raises(VerificationError, match="drawn between rounds"):
        groups_with().check_drawn(epoch, TERMS, head=epoch.head, at=NOW)


def test_a_second_round_cannot_take_the_shares_of_an_epoch(epoch: EpochOrder) -> None:
    groups_with(epoch=epoch).check_opened()
    for state in ({"epoch": epoch, "round": 1}, {}):
        with pytest.raises(VerificationError, match="draw one first"):
            groups_with(**state).check_opened()


def test_a_token_is_of_a_member_and_of_rows_that_were_not_shared(epoch: EpochOrder) -> None:
    groups = groups_with(epoch=epoch, round=1, used=["a" * 64])
    groups.check_pledged(NAMES[0], "b" * 64)
    for client, attestation in (("stranger", "b" * 64), (NAMES[0], "a" * 64)):
        with pytest.raises(VerificationError, match="must attest later rows"):
            groups.check_pledged(client, attestation)


def test_a_share_is_taken_only_of_a_group_that_shares(epoch: EpochOrder) -> None:
    groups = groups_with(epoch=epoch, round=1, sharing=[0, 1], given_up={1: "6.9.2"})
    first, second, third = (group[0] for group in groups.drawn)
    groups.check_revealed(first)
    for client in (second, third, "stranger"):
        with pytest.raises(VerificationError, match=f"the group of '{client}' is incomplete"):
            groups.check_revealed(client)


def test_a_group_is_summed_once_and_only_if_it_shares(epoch: EpochOrder) -> None:
    drawn = groups_with(epoch=epoch)
    groups = groups_with(
        epoch=epoch, round=1, sharing=[0, 1], pending=[in_force(drawn, 0)], given_up={}
    )
    groups.check_summed(summed(groups, 1), COMMITS)
    for over in (0, 2):
        with pytest.raises(VerificationError, match=f"group {over} is over, or has a sum"):
            groups.check_summed(summed(groups, over), COMMITS)


def test_a_sum_with_a_member_whose_share_was_not_accepted_is_refused(epoch: EpochOrder) -> None:
    silent = groups_with(epoch=epoch).drawn[0][1]
    groups = groups_with(epoch=epoch, round=1, sharing=[0], silent=silent)
    with pytest.raises(VerificationError, match=f"; no share of {silent} was accepted"):
        groups.check_summed(summed(groups, 0), COMMITS)


def test_a_sum_needs_the_entry_in_which_the_helper_released_it(epoch: EpochOrder) -> None:
    groups = groups_with(epoch=epoch, round=1, sharing=[0])
    retired = GroupRetired(epoch=1, group=0, reason="x")
    with pytest.raises(VerificationError, match="does not release a sum"):
        groups.check_summed(summed(groups, 0, retired), COMMITS)


def test_a_sum_without_an_open_epoch_is_of_no_round(epoch: EpochOrder) -> None:
    body = summed(groups_with(epoch=epoch), 0)
    with pytest.raises(VerificationError, match="the sum is of epoch 1, not of this round"):
        groups_with(round=1).check_summed(body, COMMITS)


def test_a_group_is_given_up_once_in_a_round_and_before_its_sum(epoch: EpochOrder) -> None:
    drawn = groups_with(epoch=epoch)
    state = {"epoch": epoch, "round": 1, "pending": [in_force(drawn, 0)], "given_up": {1: "6"}}
    groups_with(**state).check_given_up(GroupGivenUp(epoch=1, group=2, step="6.9.2"))
    for changes, group in (({}, 0), ({}, 1), ({}, 3), ({"round": 0}, 2), ({"epoch": None}, 2)):
        body = GroupGivenUp(epoch=1, group=group, step="6.9.2")
        with pytest.raises(VerificationError, match=f"group {group} of epoch 1 is not open"):
            groups_with(**state | changes).check_given_up(body)


def test_a_round_in_which_no_group_was_summed_keeps_the_model(epoch: EpochOrder) -> None:
    groups = groups_with(epoch=epoch, round=1)
    groups.check_aggregated(ModelAggregated(round=1, model="0" * 64, clients=()), TERMS)
    with pytest.raises(VerificationError, match="whose group has no sum"):
        groups.check_aggregated(ModelAggregated(round=1, model="0" * 64, clients=NAMES), TERMS)
