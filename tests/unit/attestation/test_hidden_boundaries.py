"""Hidden sums: every limit at its number, and every part of what must agree."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from pathlib import Path

import numpy as np
import pytest

from sluice.attestation.hidden import (
    ORDER,
    CoordinatorShare,
    GroupSums,
    Helper,
    HelperLedger,
    HelperShare,
    added,
    demand_group,
    element_bytes,
    negated,
    proof_totals,
    share_sums,
    share_taken,
)
from sluice.attestation.hidden.elements import read_elements
from sluice.attestation.log.entries import GroupGivenUp, ModelAggregated, StatisticTerms
from sluice.attestation.log.groups import GroupInForce, Groups, GroupsState
from sluice.attestation.log.rounds import Rounds, RoundsState
from sluice.attestation.messages import (
    EpochOpened,
    EpochOrder,
    GroupReleased,
    GroupRetired,
    HelperEntry,
    Interval,
    MemberKey,
    ReleaseOrder,
    RetireOrder,
    ShareTaken,
    Signed,
    Submission,
    instant,
    sign,
)
from sluice.errors import SettingError, VerificationError

from .hidden_federation import (
    DEADLINE,
    NAMES,
    SETTINGS,
    SHAPE,
    START,
    Member,
    Parties,
    group_sums,
    statistic,
)

NOW, END = instant(START), instant(DEADLINE)


@pytest.fixture
def parties(tmp_path: Path) -> Parties:
    return Parties(tmp_path / "helper")


@pytest.fixture
def members(parties: Parties) -> dict[str, Member]:
    return parties.members()


def refused(act: Callable[..., object], *given: object, **named: object) -> str:
    with pytest.raises(VerificationError) as found:
        act(*given, **named)
    return str(found.value)


# Elements and shares.


def test_the_order_of_the_field_is_no_element() -> None:
    assert read_elements(element_bytes([ORDER - 1])).tolist() == [ORDER - 1]
    with pytest.raises(ValueError, match="not below the order"):
        read_elements(element_bytes([ORDER]))
    with pytest.raises(ValueError, match="no whole number of field elements"):
        read_elements(bytes(9))


def test_totals_are_three_canonical_words() -> None:
    assert proof_totals(element_bytes([1, 2, ORDER - 1])) == (1, 2, ORDER - 1)
    for lie in ([1, 2, ORDER], [ORDER, 1, 2]):
        assert "canonical totals" in refused(proof_totals, element_bytes(lie))
    assert "canonical totals" in refused(proof_totals, bytes(23))


def test_shares_have_one_length_each() -> None:
    share = share_sums(statistic(1), (1, 2, 3), rows=40, entropy=bytes(64)).coordinator
    for key, masks in ((bytes(31), share.masks), (share.key, share.masks[:2])):
        with pytest.raises(SettingError, match="begins with 32 bytes and 3 masks"):
            CoordinatorShare(key=key, masks=masks, sums=share.sums)
    for content in (share.canonical()[:-8], share.canonical() + bytes(8)):
        with pytest.raises(SettingError, match="a coordinator's share has"):
            CoordinatorShare.from_canonical(content, SHAPE)
    with pytest.raises(SettingError, match="has 32 bytes, not 33"):
        HelperShare(seed=bytes(33))
    for length in (63, 65):
        with pytest.raises(SettingError, match="takes 64 random bytes"):
            share_sums(statistic(1), (1, 2, 3), rows=40, entropy=bytes(length))


def test_a_share_of_another_commitment_is_not_taken(members: dict[str, Member]) -> None:
    own, other = members[NAMES[0]], members[NAMES[1]]
    content = own.submission().content
    for change in ({"client": other.client}, {"federation": "south"}):
        commit = replace(own.commit.content, **change)  # type: ignore[arg-type]
        lie = replace(content, commit=sign(commit, own.key))
        assert "another client or federation" in refused(share_taken, lie, SHAPE)
    longer = content.sealed[:104] + bytes(8) + content.sealed[104:]  # ends in the commitment too
    commit = replace(own.commit.content, statistic=hashlib.sha256(longer).hexdigest())
    lie = replace(content, sealed=longer, commit=sign(commit, own.key))
    assert "does not open" in refused(lambda: share_taken(lie, SHAPE))


# The coordinator.


def test_an_epoch_of_other_settings_is_not_summed(parties: Parties) -> None:
    order = parties.order().content
    GroupSums(order, SETTINGS)
    for change in ({"settings": "0" * 64}, {"channels": 4}, {"lags": SHAPE.lags + 1}):
        with pytest.raises(SettingError, match="other settings"):
            GroupSums(replace(order, **change), SETTINGS)


def test_only_members_of_the_epoch_contribute(parties: Parties, members: dict[str, Member]) -> None:
    sums, own = GroupSums(parties.order().content, SETTINGS), members[NAMES[0]]
    for change in ({"federation": "south"}, {"client": "stranger"}):
        commit = replace(own.commit.content, **change)  # type: ignore[arg-type]
        assert "no part in this epoch" in refused(sums.accept, own.contribution(commit=commit))


def test_answers_match_in_commitment_and_values(
    parties: Parties, members: dict[str, Member]
) -> None:
    sums, own = GroupSums(parties.order().content, SETTINGS), members[NAMES[0]]
    taken = share_taken(own.submission().content, SHAPE)
    assert "has not contributed" in refused(lambda: sums.demand_match(taken))
    sums.accept(own.contribution())
    sums.demand_match(taken)
    for lie in (replace(taken, commit="0" * 64), replace(taken, values="0" * 48)):
        assert "do not match" in refused(sums.demand_match, lie)


def test_no_sum_is_asked_for_unless_all_contributed_and_match(
    parties: Parties, members: dict[str, Member]
) -> None:
    sums = group_sums(parties, members, 0)
    group = sums.groups[0]
    taken = {name: share_taken(members[name].submission().content, SHAPE) for name in group}
    assert sums.release_order(0, HelperLedger(shares=dict(taken))).group == 0
    fewer = {name: taken[name] for name in group[1:]}
    assert "group 0 is incomplete" in refused(
        lambda: sums.release_order(0, HelperLedger(shares=fewer))
    )
    lied = taken | {group[0]: replace(taken[group[0]], values="0" * 48)}
    assert "do not match" in refused(lambda: sums.release_order(0, HelperLedger(shares=lied)))
    empty = GroupSums(parties.order().content, SETTINGS)
    assert "group 0 is incomplete" in refused(
        lambda: empty.release_order(0, HelperLedger(shares=taken))
    )


def entry_for(sums: GroupSums, parties: Parties, content: bytes) -> GroupReleased:
    group = sums.groups[0]
    answers = tuple(sums.answers[name] for name in group)
    shares = {
        each.client: ShareTaken(
            epoch=1,
            client=each.client,
            commit=each.commit,
            helper="0" * 64,
            interval=Interval(start=NOW[:-1], end=NOW[:-1]),
            values=each.values,
        )
        for each in answers
    }
    order = sums.release_order(0, HelperLedger(shares=shares))
    digest = hashlib.sha256(content).hexdigest()
    return GroupReleased(order=sign(order, parties.coordinator), sum=digest)


def test_a_sum_of_another_epoch_or_order_is_refused(
    parties: Parties, members: dict[str, Member]
) -> None:
    sums = group_sums(parties, members, 0)
    masks = reduce(added, (members[name].shares.helper.sums(SHAPE) for name in sums.groups[0]))
    content = element_bytes(masks)
    entry = entry_for(sums, parties, content)
    sums.total(entry, content)
    order = entry.order.content
    for change, why in (
        ({"epoch": 2}, "another epoch"),
        ({"federation": "south"}, "another epoch"),
        ({"members": order.members[::-1]}, "not of the order that was given"),
    ):
        lie = replace(entry, order=sign(replace(order, **change), parties.coordinator))
        assert why in refused(sums.total, lie, content)
    shorter = content[8:]
    lie = entry_for(sums, parties, shorter)
    assert "elements, not" in refused(lambda: sums.total(lie, shorter))


def test_a_sum_as_large_as_no_rows_give_is_refused(
    parties: Parties, members: dict[str, Member]
) -> None:
    sums = group_sums(parties, members, 0)
    shares = (members[name].shares.coordinator.sums for name in sums.groups[0])
    wanted = np.zeros(SHAPE.size, np.uint64)
    wanted[0] = 1 << 63
    content = element_bytes(added(reduce(added, shares), negated(wanted)))
    assert "larger than any rows give" in refused(
        lambda: sums.total(entry_for(sums, parties, content), content)
    )


# The helper.


def test_a_helper_opens_its_own_log_only(parties: Parties, tmp_path: Path) -> None:
    other = replace(parties.opened, helper=parties.coordinator.public)
    Helper.create(tmp_path / "other", other, parties.helper, at=START)
    with pytest.raises(SettingError, match="not the folder of a helper with this key"):
        Helper(tmp_path / "other", parties.helper)
    parties.start().close()
    (parties.folder / "helper.log").write_bytes(b"")
    with pytest.raises(SettingError, match="not the folder of a helper with this key"):
        Helper(parties.folder, parties.helper)


def test_every_member_of_a_helper_has_one_name_and_one_key(
    parties: Parties, tmp_path: Path
) -> None:
    one, two, *others = parties.opened.members
    for at, lie in enumerate(
        ((two, one, *others), (one, one, *others), (one, MemberKey(client="x", key=one.key)))
    ):
        opened = replace(parties.opened, members=lie)
        assert "one name and one key" in refused(
            Helper.create, tmp_path / str(at), opened, parties.helper, at=START
        )


def test_an_epoch_that_is_refused_ends_no_group(parties: Parties) -> None:
    helper = parties.start()
    helper.open_epoch(parties.order(), at=START)
    refused(lambda: helper.open_epoch(parties.order(), at=START))
    assert helper.ledger.open_groups == [0, 1, 2]


def test_a_share_that_is_refused_leaves_no_file(
    parties: Parties, members: dict[str, Member]
) -> None:
    helper, own = parties.start(), members[NAMES[0]]
    helper.open_epoch(parties.order(), at=START)
    assert "not open" in refused(lambda: helper.take(own.submission(epoch=2), at=START))
    assert list((parties.folder / "shares").iterdir()) == []


def test_a_sum_that_is_refused_is_not_written(parties: Parties, members: dict[str, Member]) -> None:
    helper = parties.start()
    helper.open_epoch(parties.order(), at=START)
    order = sums_order(parties, members)
    for name in helper.ledger.groups[0]:
        helper.take(members[name].submission(), at=START)
    refused(lambda: helper.release(sign(order.content, parties.helper), at=START))
    assert list((parties.folder / "sums").iterdir()) == []
    helper.release(order, at=START)


def sums_order(parties: Parties, members: dict[str, Member]) -> Signed[ReleaseOrder]:
    sums = group_sums(parties, members, 0)
    content = element_bytes(np.zeros(SHAPE.size, np.uint64))
    return entry_for(sums, parties, content).order


def test_a_commitment_is_signed_by_the_member_and_names_its_key(
    parties: Parties, members: dict[str, Member]
) -> None:
    helper, own, other = parties.start(), members[NAMES[0]], members[NAMES[1]]
    helper.open_epoch(parties.order(), at=START)
    commit = own.commit.content
    stolen = own.submission(commit=sign(commit, other.key))
    assert "signature" in refused(lambda: helper.take(stolen, at=START))
    renamed = own.submission(commit=sign(replace(commit, key=other.key.public), own.key))
    assert "names another key" in refused(lambda: helper.take(renamed, at=START))


def test_a_group_is_retired_once(parties: Parties) -> None:
    helper = parties.start()
    helper.open_epoch(parties.order(), at=START)
    order = RetireOrder(federation="north", epoch=1, group=0, reason="x")
    helper.retire(sign(order, parties.coordinator), at=START)
    assert "is retired: x" in refused(
        lambda: helper.retire(sign(order, parties.coordinator), at=START)
    )
    beyond = sign(replace(order, group=3), parties.coordinator)
    assert "no group 3" in refused(lambda: helper.retire(beyond, at=START))


# The helper's log.


def opened_ledger(parties: Parties, *, names: tuple[str, ...] = ()) -> HelperLedger:
    extra = tuple(MemberKey(client=name, key=f"{at:064x}") for at, name in enumerate(names))
    opened = replace(parties.opened, members=(*extra, *parties.opened.members))
    ledger = HelperLedger()
    ledger.note(HelperEntry(index=0, previous="0" * 64, time=NOW, body=opened), b"")
    return ledger


def with_epoch(parties: Parties, **changes: object) -> HelperLedger:
    ledger = opened_ledger(parties)
    body = EpochOpened(order=parties.order(**changes))
    entry = HelperEntry(index=1, previous=ledger.last, time=NOW, body=body)
    ledger.check(entry)
    ledger.note(entry, b"")
    return ledger


def test_an_entry_follows_in_number_hash_and_time(parties: Parties) -> None:
    ledger = opened_ledger(parties)
    entry = HelperEntry(
        index=1, previous=ledger.last, time=NOW, body=EpochOpened(order=parties.order())
    )
    ledger.check(entry)
    for change in (
        {"index": 2},
        {"previous": "1" * 64},
        {"time": "2025-12-31T23:59:59.999999Z"},
    ):
        lie = replace(entry, **change)
        assert "does not follow" in refused(ledger.check, lie)


def test_the_first_entry_and_no_other_opens_the_log(parties: Parties) -> None:
    epoch = EpochOpened(order=parties.order())
    assert "opens the helper's log" in refused(lambda: HelperLedger().check_body(epoch, time=NOW))
    ledger = opened_ledger(parties)
    assert "opens the helper's log" in refused(lambda: ledger.check_body(parties.opened, time=NOW))


def epoch_refusal(ledger: HelperLedger, order: Signed[EpochOrder]) -> str:
    return refused(lambda: ledger.check_body(EpochOpened(order=order), time=NOW))


def test_an_epoch_has_limits_at_their_numbers(parties: Parties) -> None:
    ledger = opened_ledger(parties)
    for allowed in (
        {"channels": 1},
        {"channels": 256},
        {"lags": 1},
        {"lags": 64},
        {"deadline": "2026-01-01T00:00:00.000001Z"},
    ):
        ledger.check_body(EpochOpened(order=parties.order(**allowed)), time=NOW)
    for denied in ({"channels": 0}, {"channels": 257}, {"lags": 0}, {"lags": 65}):
        assert "1 to 256 channels" in epoch_refusal(ledger, parties.order(**denied))
    assert "deadline has passed" in epoch_refusal(ledger, parties.order(deadline=NOW))
    assert "no or too many members" in epoch_refusal(ledger, parties.order(members=()))
    alone = parties.order(members=NAMES[:1], malicious=0)
    assert "too few for groups" in epoch_refusal(ledger, alone)


def test_an_epoch_has_at_most_1_024_members(parties: Parties) -> None:
    names = tuple(f"m-{at:04}" for at in range(1_025))
    ledger = opened_ledger(parties, names=names)
    most = parties.order(members=names[:1_024])
    ledger.check_body(EpochOpened(order=most), time=NOW)
    assert "too many members" in epoch_refusal(ledger, parties.order(members=names))


def test_the_first_epoch_may_have_any_number(parties: Parties) -> None:
    ledger = opened_ledger(parties)
    ledger.check_body(EpochOpened(order=parties.order(epoch=0)), time=NOW)
    later = with_epoch(parties, epoch=5)
    assert "does not follow epoch 5" in epoch_refusal(later, parties.order(epoch=5))
    later.check_body(EpochOpened(order=parties.order(epoch=6)), time=NOW)


def test_a_share_is_taken_until_the_deadline_and_of_later_rows(
    parties: Parties, members: dict[str, Member]
) -> None:
    ledger, own = with_epoch(parties), members[NAMES[0]]
    share = share_taken(own.submission().content, SHAPE)
    ledger.check_body(share, time=END)
    ledger.note(HelperEntry(index=2, previous=ledger.last, time=NOW, body=share), b"")
    second = EpochOpened(order=parties.order(epoch=2))
    ledger.note(HelperEntry(index=3, previous=ledger.last, time=NOW, body=second), b"")
    fresh = replace(share, epoch=2, commit="1" * 64, helper="2" * 64)
    for old, why in (
        (replace(fresh, commit=share.commit), "used before"),
        (replace(fresh, helper=share.helper), "used before"),
        (fresh, "share later rows"),
        (replace(fresh, interval=_from(share.interval.end)), "share later rows"),
    ):
        assert why in refused(ledger.check_body, old, time=NOW)
    ledger.check_body(replace(fresh, interval=_from("2026-01-01T12:00:00.000001")), time=NOW)


def _from(start: str) -> Interval:
    return Interval(start=start, end="2026-01-09T00:00:00.000000")


def test_nothing_happens_in_an_epoch_or_group_that_is_not_open(parties: Parties) -> None:
    body = GroupRetired(epoch=1, group=0, reason="x")
    assert "epoch 1 is not open" in refused(
        lambda: opened_ledger(parties).check_body(body, time=NOW)
    )
    ledger = with_epoch(parties)
    ledger.check_body(body, time=NOW)
    ledger.check_body(replace(body, group=2), time=NOW)
    for group in (-1, 3):
        lie = replace(body, group=group)
        assert f"no group {group}" in refused(ledger.check_body, lie, time=NOW)


def test_a_group_is_complete_with_its_last_share(
    parties: Parties, members: dict[str, Member]
) -> None:
    ledger = with_epoch(parties)
    group = ledger.groups[0]
    for name in group:
        assert not ledger.complete(0)
        ledger.shares[name] = share_taken(members[name].submission().content, SHAPE)
    assert ledger.complete(0)


# What a plant checks before it shares.


def test_a_plant_shares_in_the_epoch_and_group_it_agreed_to_only(
    parties: Parties, members: dict[str, Member]
) -> None:
    own = members[NAMES[0]]
    content: Submission = own.submission().content

    def why(ledger: HelperLedger, shared: Submission = content, malicious: int = 1) -> str:
        return refused(lambda: demand_group(ledger, shared, malicious=malicious))

    ledger = with_epoch(parties)
    demand_group(ledger, content, malicious=1)
    demand_group(ledger, content, malicious=0)
    assert "not opened epoch 1" in why(opened_ledger(parties))
    assert "not opened epoch 2" in why(ledger, replace(content, epoch=2))
    assert "the terms say 2" in why(ledger, malicious=2)
    stranger = replace(own.commit.content, key=members[NAMES[1]].key.public)
    renamed = replace(content, commit=sign(stranger, own.key))
    assert "under another key" in why(ledger, renamed)
    assert "other settings" in why(with_epoch(parties, settings="0" * 64))
    small = with_epoch(parties)
    small.groups = ((NAMES[0], NAMES[1]),)
    assert "a group of 2 members shows too much" in why(small)


# What the coordinator's log says about groups.


TERMS = StatisticTerms(
    lags=SHAPE.lags, stride_s=60.0, channels=(), rule="vote", malicious=1, bound=True
)


def groups_with(**state: object) -> Groups:
    return Groups(GroupsState(**state), Rounds(RoundsState()))  # type: ignore[arg-type]


def test_a_later_epoch_is_drawn_before_its_deadline(parties: Parties) -> None:
    groups = groups_with(epoch=parties.order(epoch=5).content)
    order = parties.order(epoch=6).content

    def draw(order: EpochOrder) -> None:
        groups.check_drawn(order, TERMS, head=order.head, at=NOW)

    draw(order)
    draw(replace(order, deadline="2026-01-01T00:00:00.000001Z"))
    assert "does not follow epoch 5" in refused(draw, replace(order, epoch=5))
    assert f"and it is {NOW}" in refused(draw, replace(order, deadline=NOW))


def test_only_a_group_that_was_drawn_is_given_up(parties: Parties) -> None:
    groups = groups_with(epoch=parties.order().content, round=1)
    assert len(groups.drawn) == 3
    for group in (0, 2):
        groups.check_given_up(GroupGivenUp(epoch=1, group=group, step="6.9.2"))
    beyond = GroupGivenUp(epoch=1, group=3, step="6.9.2")
    assert "group 3 of epoch 1 is not open" in refused(groups.check_given_up, beyond)


@pytest.mark.parametrize(("summed", "enough"), [(3, True), (2, False)])
def test_a_model_needs_one_group_more_than_twice_the_malicious(
    parties: Parties,
    summed: int,
    enough: bool,  # noqa: FBT001
) -> None:
    epoch = parties.order().content
    pending = [
        GroupInForce(
            epoch=1, group=at, round=1, members=members, commits=(), order="", statistic=""
        )
        for at, members in enumerate(groups_with(epoch=epoch).drawn[:summed])
    ]
    groups = groups_with(epoch=epoch, round=1, pending=pending)
    clients = tuple(sorted(client for each in pending for client in each.members))
    body = ModelAggregated(round=1, model="0" * 64, clients=clients)
    if enough:
        groups.check_aggregated(body, TERMS)
    else:
        assert "needs 3" in refused(groups.check_aggregated, body, TERMS)
