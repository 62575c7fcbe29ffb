"""Hidden sums: exact, bound to the rows, refused where they must be, and silent about the rest."""

import hashlib
from dataclasses import replace
from datetime import timedelta
from functools import reduce
from itertools import pairwise
from operator import add
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.verifiers.compare import changed_hidden
from sluice.attestation.hidden import (
    ORDER,
    CoordinatorShare,
    Draw,
    GroupSums,
    Helper,
    HelperLedger,
    Shape,
    added,
    element_bytes,
    expand,
    negated,
    proof_totals,
    share_taken,
    vector_of,
)
from sluice.attestation.messages import (
    HELPER_ENTRIES,
    GroupReleased,
    ReleaseOrder,
    RetireOrder,
    SigningKey,
    context_of,
    draw_groups,
    groups_of,
    members_needed,
    sign,
)
from sluice.attestation.protocol.plant import Committed, Registered, shares_beside
from sluice.attestation.systems.full import (
    Full,
    StatisticName,
    core_identity,
    statistic_settings,
    verify_again,
)
from sluice.attestation.systems.full import system as full_system
from sluice.attestation.systems.full.chaining import Cut
from sluice.attestation.systems.system import ProofClaim
from sluice.errors import SettingError, VerificationError

from .full_plant import Wiring, clean_batch, policy_of, rules_of
from .hidden_federation import (
    DEADLINE,
    NAMES,
    SETTINGS,
    SHAPE,
    START,
    Member,
    Parties,
    group_sums,
    member,
    statistic,
)
from .hidden_vectors import VECTORS, document

LATER = DEADLINE + timedelta(seconds=1)
words = st.integers(0, ORDER - 1)


@pytest.fixture
def parties(tmp_path: Path) -> Parties:
    return Parties(tmp_path / "helper")


# Elements.


@given(st.lists(st.tuples(words, words), min_size=1, max_size=8))
def test_vectors_add_like_integers_modulo_the_order(pairs: list[tuple[int, int]]) -> None:
    one, other = (np.array(side, np.uint64) for side in zip(*pairs, strict=True))
    assert added(one, other).tolist() == [(a + b) % ORDER for a, b in pairs]
    assert not added(one, negated(one)).any()


def test_every_sum_at_the_edges_of_the_field_is_exact() -> None:
    edges = [0, 1, 2**32 - 2, 2**32 - 1, 2**32, 2**63, ORDER - 2**32, ORDER - 1]
    for one in edges:
        for other in edges:
            total = added(np.array([one], np.uint64), np.array([other], np.uint64))
            assert total.tolist() == [(one + other) % ORDER]


def test_seeds_expand_to_elements_that_depend_on_every_bit() -> None:
    seed = bytes(32)
    held = expand(seed, "sums", 100)
    assert (held < ORDER).all()
    assert held[:10].tolist() == expand(seed, "sums", 10).tolist()
    for other in (expand(seed, "masks", 100), expand(bytes(31) + b"\1", "sums", 100)):
        assert not (held == other).any()


# Groups.


@settings(max_examples=60)
@given(malicious=st.integers(0, 3), more=st.integers(0, 40), seed=st.binary(max_size=4))
def test_groups_are_large_and_many_enough(malicious: int, more: int, seed: bytes) -> None:
    names = [f"p{at}" for at in range(members_needed(malicious) + more)]
    groups = draw_groups(names, malicious=malicious, seed=seed)
    assert sorted(name for group in groups for name in group) == sorted(names)
    assert len(groups) >= 2 * malicious + 1
    sizes = [len(group) for group in groups]
    assert min(sizes) >= malicious + 2
    assert max(sizes) - min(sizes) <= 1
    assert groups == draw_groups(names[::-1], malicious=malicious, seed=seed)


@pytest.mark.parametrize("malicious", [0, 1, 2])
def test_one_member_too_few_is_refused(malicious: int) -> None:
    names = [f"p{at}" for at in range(members_needed(malicious) - 1)]
    with pytest.raises(SettingError, match="are too few for groups"):
        draw_groups(names, malicious=malicious, seed=b"")


def test_groups_follow_from_roster_epoch_and_log(parties: Parties) -> None:
    held = groups_of(parties.order().content)
    assert len(held) == 3
    assert groups_of(parties.order(epoch=2).content) != held
    assert groups_of(parties.order(head="7" * 64).content) != held
    with pytest.raises(SettingError, match="sorted"):
        groups_of(parties.order(members=NAMES[::-1]).content)
    with pytest.raises(SettingError, match="twice"):
        draw_groups([*NAMES, NAMES[0]], malicious=1, seed=b"")


# The sum of a group.


def released(parties: Parties, group: int = 0) -> tuple[GroupSums, GroupReleased, bytes]:
    helper, members = parties.start(), parties.members()
    helper.open_epoch(parties.order(), at=START)
    sums = group_sums(parties, members, group)
    for client in sums.groups[group]:
        helper.take(members[client].submission(), at=START)
    order = sign(sums.release_order(group, helper.ledger), parties.coordinator)
    entry, content = helper.release(order, at=START)
    helper.close()
    return sums, entry, content


@pytest.mark.parametrize("group", [0, 1, 2])
def test_the_sum_of_a_group_is_exact(parties: Parties, group: int) -> None:
    sums, entry, content = released(parties, group)
    members = parties.members()
    expected = reduce(add, (members[client].statistic for client in sums.groups[group]))
    assert sums.total(entry, content) == expected


def test_a_sum_that_the_helper_changed_is_refused_if_the_log_or_the_range_shows_it(
    parties: Parties,
) -> None:
    sums, entry, content = released(parties)
    with pytest.raises(VerificationError, match="names another sum"):
        sums.total(entry, content[:-1] + bytes([content[-1] ^ 1]))
    for lie in (content[8:], element_bytes(expand(b"other", "sums", SHAPE.size)), b"\xff" * 8):
        false = replace(entry, sum=hashlib.sha256(lie).hexdigest())
        with pytest.raises(VerificationError, match="no sum of R"):
            sums.total(false, lie)


# What a plant may not do.


def test_a_false_share_never_matches(parties: Parties) -> None:
    honest = parties.members()[NAMES[0]]
    other = statistic(77)
    forged = member(0, honest.key, sums=other)
    # It proves its rows (the totals of `honest`), and shares other sums under its own commitment.
    lied = replace(forged, totals=_totals(forged, honest))
    sums = GroupSums(parties.order().content, SETTINGS)
    sums.accept(lied.contribution())
    taken = share_taken(lied.submission().content, SHAPE)
    with pytest.raises(VerificationError, match="do not match"):
        sums.demand_match(taken)
    sums = GroupSums(parties.order().content, SETTINGS)
    sums.accept(forged.contribution())
    sums.demand_match(share_taken(forged.submission().content, SHAPE))


def _totals(drawn: Member, proven: Member) -> tuple[int, ...]:
    """What a proof shows of the rows of one member at the weights of another."""
    forged = drawn.draw.forms(SHAPE, vector_of(drawn.statistic))
    true = drawn.draw.forms(SHAPE, vector_of(proven.statistic))
    pairs = zip(drawn.totals, forged, true, strict=True)
    return tuple((total - lie + truth) % ORDER for total, lie, truth in pairs)


@pytest.mark.parametrize("at", [0, 3, 50, SHAPE.size - 1])
def test_one_integer_off_by_one_does_not_match(parties: Parties, at: int) -> None:
    honest = parties.members()[NAMES[0]]
    changed = vector_of(honest.statistic)
    changed[at] += np.uint64(1)
    true = honest.draw.forms(SHAPE, vector_of(honest.statistic))
    assert all(
        one != other for one, other in zip(honest.draw.forms(SHAPE, changed), true, strict=True)
    )


def test_shares_that_do_not_open_the_seal_are_refused(parties: Parties) -> None:
    honest, other = parties.members()[NAMES[0]], parties.members()[NAMES[1]]
    sums = GroupSums(parties.order().content, SETTINGS)
    share = honest.shares.coordinator
    for lie in (
        replace(share, key=bytes(32)),
        replace(share, masks=added(share.masks, np.array([1, 0, 0], np.uint64))),
        replace(share, sums=other.shares.coordinator.sums),
    ):
        with pytest.raises(VerificationError, match="does not open"):
            sums.accept(honest.contribution(share=lie.canonical()))
    for bad, why in (
        (b"", "bytes"),
        (share.canonical()[:-1], "bytes"),
        (share.canonical()[:-8] + b"\xff" * 8, "order of the field"),
    ):
        with pytest.raises(VerificationError, match=why):
            sums.accept(honest.contribution(share=bad))
    with pytest.raises(VerificationError, match="commitment names"):
        sums.accept(honest.contribution(sealed=other.draw.sealed))
    with pytest.raises(VerificationError, match="canonical totals"):
        sums.accept(honest.contribution(proof=b"\xff" * 24))
    with pytest.raises(VerificationError, match="canonical totals"):
        proof_totals(bytes(23))
    sums.accept(honest.contribution())
    with pytest.raises(VerificationError, match="before"):
        sums.accept(honest.contribution())


def refusal(helper: Helper, submission: object, *, at: object = START) -> str:
    with pytest.raises((VerificationError, SettingError)) as refused:
        helper.take(submission, at=at)  # type: ignore[arg-type]
    return str(refused.value)


def test_the_helper_takes_a_share_once_and_only_from_its_member(parties: Parties) -> None:
    helper, members = parties.start(), parties.members()
    honest, other = members[NAMES[0]], members[NAMES[1]]
    assert "no epoch is open" in refusal(helper, honest.submission())
    helper.open_epoch(parties.order(), at=START)
    assert "signature" in refusal(helper, sign(honest.submission().content, other.key))
    assert "does not open" in refusal(helper, honest.submission(share=bytes(32)))
    assert "32 bytes" in refusal(helper, honest.submission(share=b""))
    shorter = honest.submission(sealed=honest.draw.sealed[1:])
    assert "other settings" in refusal(helper, shorter)
    longer = honest.submission(sealed=honest.draw.sealed + b"0")
    assert "commitment names" in refusal(helper, longer)
    assert "signature" in refusal(helper, honest.submission(commit=other.commit))
    assert "'south'" in refusal(helper, honest.submission(federation="south"))
    assert "epoch 2 is not open" in refusal(helper, honest.submission(epoch=2))
    stranger = replace(honest, client="stranger")
    assert "no member" in refusal(helper, stranger.submission())
    taken = helper.take(honest.submission(), at=START)
    size = helper.ledger.size
    assert helper.take(honest.submission(), at=START) == taken  # an answer that was lost
    assert helper.ledger.size == size
    again = member(0, honest.key, tape=b"again")
    assert "before" in refusal(helper, again.submission())


def test_answers_cannot_be_asked_for_at_other_weights(parties: Parties) -> None:
    """Two answers for one share at two sets of weights would show a form of R."""
    helper, honest = parties.start(), parties.members()[NAMES[0]]
    helper.open_epoch(parties.order(), at=START)
    helper.take(honest.submission(), at=START)
    assert "before" in refusal(helper, honest.submission(context=bytes(32).hex()))
    assert "before" in refusal(helper, honest.submission(identity=bytes(32).hex()))
    helper.open_epoch(parties.order(epoch=2, deadline="2026-01-02T00:00:00.000000Z"), at=START)
    assert "used before" in refusal(helper, honest.submission(epoch=2))


def test_rows_are_shared_once(parties: Parties) -> None:
    helper, honest = parties.start(), parties.members()[NAMES[0]]
    helper.open_epoch(parties.order(), at=START)
    helper.take(honest.submission(), at=START)
    helper.open_epoch(parties.order(epoch=2), at=START)
    overlapping = member(0, honest.key, tape=b"the same rows again")
    assert "share later rows" in refusal(helper, replace(overlapping, epoch=2).submission())
    helper.take(member(0, honest.key, epoch=2).submission(), at=START)


# What a coordinator may not do.


def order_for(parties: Parties, members: dict[str, Member], group: int) -> ReleaseOrder:
    sums = group_sums(parties, members, group)
    ledger = HelperLedger()
    ledger.shares = {
        client: share_taken(members[client].submission().content, SHAPE)
        for client in sums.groups[group]
    }
    return sums.release_order(group, ledger)


def test_sums_are_released_for_whole_groups_whose_forms_match(parties: Parties) -> None:
    helper, members = parties.start(), parties.members()
    helper.open_epoch(parties.order(), at=START)
    groups = groups_of(parties.order().content)
    order = order_for(parties, members, 0)

    def refused(content: ReleaseOrder, key: SigningKey = parties.coordinator) -> str:
        with pytest.raises(VerificationError) as found:
            helper.release(sign(content, key), at=START)
        return str(found.value)

    for client in groups[0][:-1]:
        helper.take(members[client].submission(), at=START)
    assert "incomplete" in refused(order)
    helper.take(members[groups[0][-1]].submission(), at=START)
    assert "signature" in refused(order, parties.helper)
    assert "signature" in refused(order, members[groups[0][0]].key)
    assert "whole group" in refused(replace(order, members=order.members[:-1]))
    assert "whole group" in refused(replace(order, members=order.members[::-1]))
    assert "whole group" in refused(replace(order, members=(*order.members, order.members[0])))
    assert "incomplete" in refused(replace(order, group=1))
    assert "no group" in refused(replace(order, group=3))
    assert "not open" in refused(replace(order, epoch=2))
    assert "federation" in refused(replace(order, federation="south"))
    for field, value in (("values", "0" * 48), ("commit", "0" * 64)):
        lied = replace(order.members[0], **{field: value})
        assert "do not match" in refused(replace(order, members=(lied, *order.members[1:])))
    assert len(list((parties.folder / "shares").iterdir())) == 3
    signed = sign(order, parties.coordinator)
    first = helper.release(signed, at=START)
    assert list((parties.folder / "shares").iterdir()) == []
    assert helper.release(signed, at=START) == first
    assert "was released" in refused(replace(order, members=order.members[::-1]))


def test_epochs_that_would_show_too_much_are_refused(parties: Parties) -> None:
    helper = parties.start()

    def refused(**changes: object) -> str:
        with pytest.raises(VerificationError) as found:
            helper.open_epoch(parties.order(**changes), at=START)
        return str(found.value)

    assert "too few for groups" in refused(members=NAMES[:8])
    assert "too few for groups" in refused(malicious=2)
    assert "no member" in refused(members=(*NAMES[:8], "sybil"))
    assert "sorted" in refused(members=NAMES[::-1])
    assert "twice" in refused(members=(NAMES[0], *NAMES))
    assert "deadline" in refused(deadline="2025-01-01T00:00:00.000000Z")
    assert "members" in refused(members=())
    assert "channels" in refused(channels=257)
    assert "lags" in refused(lags=0)
    assert "federation" in refused(federation="south")
    with pytest.raises(VerificationError, match="signature"):
        helper.open_epoch(sign(parties.order().content, parties.helper), at=START)
    helper.open_epoch(parties.order(), at=START)
    assert "does not follow" in refused()
    assert helper.ledger.size == 2


# Drop-out.


def test_a_member_that_drops_out_costs_its_group_a_deadline_and_no_secret(
    parties: Parties,
) -> None:
    helper, members = parties.start(), parties.members()
    helper.open_epoch(parties.order(), at=START)
    groups = groups_of(parties.order().content)
    silent = groups[0][0]
    for client in NAMES:
        if client != silent:
            helper.take(members[client].submission(), at=START)
    helper.expire(at=DEADLINE)
    assert helper.ledger.open_groups == [0, 1, 2]
    helper.expire(at=LATER)
    assert helper.ledger.open_groups == [1, 2]
    assert helper.ledger.retired == {0: f"no share of {silent}"}
    kept = {path.name for path in (parties.folder / "shares").iterdir()}
    assert kept == {*groups[1], *groups[2]}
    assert "is retired" in refusal(helper, members[silent].submission(), at=LATER)
    order = sign(order_for(parties, members, 0), parties.coordinator)
    with pytest.raises(VerificationError, match="is retired"):
        helper.release(order, at=LATER)
    helper.release(sign(order_for(parties, members, 1), parties.coordinator), at=LATER)


def test_late_shares_are_refused(parties: Parties) -> None:
    helper, members = parties.start(), parties.members()
    helper.open_epoch(parties.order(), at=START)
    late = share_taken(members[NAMES[0]].submission().content, SHAPE)
    with pytest.raises(VerificationError, match="deadline of epoch 1 has passed"):
        helper.ledger.check_body(late, time="2026-01-01T01:00:00.000001Z")


def test_a_removed_member_retires_its_group_until_the_next_epoch(parties: Parties) -> None:
    helper, members = parties.start(), parties.members()
    helper.open_epoch(parties.order(), at=START)
    for each in members.values():
        helper.take(each.submission(), at=START)
    content = RetireOrder(federation="north", epoch=1, group=2, reason="plant-4 was removed")
    for order, why in (
        (sign(content, parties.helper), "signature"),
        (sign(replace(content, federation="south"), parties.coordinator), "south"),
        (sign(replace(content, epoch=3), parties.coordinator), "not open"),
    ):
        with pytest.raises(VerificationError, match=why):
            helper.retire(order, at=START)
    helper.retire(sign(content, parties.coordinator), at=START)
    with pytest.raises(VerificationError, match="is retired: plant-4 was removed"):
        helper.release(sign(order_for(parties, members, 2), parties.coordinator), at=START)
    helper.open_epoch(parties.order(epoch=2), at=START)
    assert list((parties.folder / "shares").iterdir()) == []
    later = parties.members(epoch=2)
    for client in helper.ledger.groups[2]:
        helper.take(later[client].submission(), at=START)
    assert helper.ledger.complete(2)


# The helper's log.


def test_a_helper_continues_from_its_log(parties: Parties) -> None:
    helper, members = parties.start(), parties.members()
    helper.open_epoch(parties.order(), at=START)
    helper.take(members[NAMES[0]].submission(), at=START)
    with pytest.raises(SettingError, match="another process"):
        Helper(parties.folder, parties.helper)
    helper.close()
    with (parties.folder / "helper.log").open("ab") as log:
        log.write(b'{"content":{"body"')  # a crash in the middle of an entry
    (parties.folder / "shares" / NAMES[1]).write_bytes(bytes(32))  # a crash before the entry
    again = Helper(parties.folder, parties.helper)
    assert again.ledger.size == 3
    assert [path.name for path in (parties.folder / "shares").iterdir()] == [NAMES[0]]
    again.close()
    with pytest.raises((SettingError, VerificationError)):
        Helper(parties.folder, parties.coordinator)


def test_a_changed_log_does_not_verify(parties: Parties) -> None:
    helper, members = parties.start(), parties.members()
    helper.open_epoch(parties.order(), at=START)
    for client in NAMES[:3]:
        helper.take(members[client].submission(), at=START)
    lines = helper.lines()
    assert len(HelperLedger().read(lines, parties.helper.public)) == 5
    for lie in (lines[1:], lines[:2] + lines[3:], [*lines[:3], lines[4]], [*lines, lines[-1]]):
        with pytest.raises(VerificationError):
            HelperLedger().read(lie, parties.helper.public)
    with pytest.raises(VerificationError, match="signature"):
        HelperLedger().read(lines, parties.coordinator.public)
    with pytest.raises(VerificationError, match="entry 0"):
        HelperLedger().read([b"{}"], parties.helper.public)


def test_members_and_coordinator_are_logged_again_only_if_one_of_them_changes(
    parties: Parties,
) -> None:
    helper = parties.start()
    coordinator, members = parties.coordinator.public, parties.opened.members
    later = SigningKey.generate().public
    assert not helper.accept(coordinator, members, at=START)
    assert helper.ledger.size == 1
    assert helper.accept(coordinator, members[1:], at=START)
    assert helper.ledger.members == members[1:]
    assert helper.accept(later, members[1:], at=START)
    assert helper.ledger.coordinator == later
    assert not helper.accept(later, members[1:], at=START)


def test_a_false_answer_names_the_helper_once_the_plant_shows_its_share(parties: Parties) -> None:
    honest = parties.members()[NAMES[0]]
    true = share_taken(honest.submission().content, SHAPE)
    logged = replace(true, values="0" * 48)
    sums = GroupSums(parties.order().content, SETTINGS)
    sums.accept(honest.contribution())
    with pytest.raises(VerificationError, match="or the helper's answer is false"):
        sums.demand_match(logged)
    assert share_taken(honest.submission().content, SHAPE) != logged


# What each party sees.


def coordinator_view(members: list[Member], hidden: bytes) -> list[bytes]:
    """Everything that the coordinator receives about a group, in order."""
    seen = []
    for each in members:
        content = each.contribution()
        answer = share_taken(each.submission().content, SHAPE)
        seen += [content.sealed, content.share, content.proof[:24], bytes.fromhex(answer.values)]
    return [*seen, hidden]


def test_the_coordinators_view_follows_from_the_sum_alone(parties: Parties) -> None:
    """A simulator that knows the sum of the group, and no statistic, writes the same bytes.

    Its random choices are what an honest run also draws uniformly: Y, keys, masks, answers and the
    helpers' commitments.
    """
    members = [parties.members()[client] for client in groups_of(parties.order().content)[0]]
    _, entry, content = released(parties)
    real = coordinator_view(members, content)

    leaked = reduce(added, (vector_of(each.statistic) for each in members))
    tape = [
        (
            each.shares.coordinator,
            each.shares.helper.commitment,
            share_taken(each.submission().content, SHAPE).values,
        )
        for each in members
    ]
    simulated, total = [], np.zeros(SHAPE.size, np.uint64)
    for each, (share, helper, values) in zip(members, tape, strict=True):
        header = each.draw.sealed[:72]  # settings and number of rows
        sealed = header + share.commitment + helper
        answers = np.frombuffer(bytes.fromhex(values), "<u8").tolist()
        draw = replace(each.draw, sealed=sealed)
        forms = draw.forms(SHAPE, share.sums)
        shown = [
            (answer + mask + form) % ORDER
            for answer, mask, form in zip(answers, share.masks.tolist(), forms, strict=True)
        ]
        simulated += [sealed, share.canonical(), element_bytes(shown), bytes.fromhex(values)]
        total = added(total, share.sums)
    simulated.append(element_bytes(added(total, negated(leaked))))
    assert simulated == real
    assert entry.order.content.members  # what it orders is its own


def test_every_group_with_the_same_sum_explains_the_coordinators_view(parties: Parties) -> None:
    """For other statistics with the same sum there is randomness that gives the same view.

    It is one choice of R and masks for each, so no view is likelier under either.
    """
    members = [parties.members()[client] for client in groups_of(parties.order().content)[0]]
    difference = expand(b"another world", "difference", SHAPE.size)
    moved = [difference, negated(difference), np.zeros(SHAPE.size, np.uint64)]
    total = np.zeros(SHAPE.size, np.uint64)
    for each, move in zip(members, moved, strict=True):
        share, answer = each.shares.coordinator, share_taken(each.submission().content, SHAPE)
        other = added(vector_of(each.statistic), move)
        masking = added(share.sums, negated(other))  # R in the other world
        forms = each.draw.forms(SHAPE, masking)
        answers = np.frombuffer(bytes.fromhex(answer.values), "<u8").tolist()
        helper_masks = [(v + form) % ORDER for v, form in zip(answers, forms, strict=True)]
        sigma = [(a + b) % ORDER for a, b in zip(share.masks.tolist(), helper_masks, strict=True)]
        shown = [
            (mask + form) % ORDER
            for mask, form in zip(sigma, each.draw.forms(SHAPE, other), strict=True)
        ]
        assert tuple(shown) == each.totals
        assert (other != vector_of(each.statistic)).any() == move.any()
        total = added(total, masking)
    true = reduce(added, (each.shares.helper.sums(SHAPE) for each in members))
    assert (total == true).all()


def test_the_helpers_view_follows_from_nothing_but_its_own_seeds(tmp_path: Path) -> None:
    """Two federations with other statistics leave the same bytes in the helper's folder.

    The coordinator's commitment is a keyed hash. It is the same in both, as a random value would
    be; the test replaces it in the second.
    """
    one = Parties(tmp_path / "one")
    two = Parties(
        tmp_path / "two", coordinator=one.coordinator, helper=one.helper, plants=one.plants
    )
    folders = []
    for parties, shift in ((one, 0), (two, 5_000)):
        helper = parties.start()
        helper.open_epoch(parties.order(), at=START)
        for at in range(len(NAMES)):
            real = member(at, one.plants[at])
            other = member(at, one.plants[at], sums=statistic(shift + 100 + at))
            assert other.shares.helper == real.shares.helper
            assert (other.statistic == real.statistic) == (shift == 0)
            # Everything but the keyed hash of Y is the same without any replacement.
            assert other.draw.sealed[:72] == real.draw.sealed[:72]
            assert other.draw.sealed[104:] == real.draw.sealed[104:]
            helper.take(real.submission(share=other.shares.helper.seed), at=START)
        for group in range(3):
            members = {client: member(at, one.plants[at]) for at, client in enumerate(NAMES)}
            order = sign(order_for(parties, members, group), parties.coordinator)
            helper.release(order, at=START)
        helper.close()
        folders.append(
            {
                str(path.relative_to(parties.folder)): path.read_bytes()
                for path in sorted(parties.folder.rglob("*"))
                if path.is_file()
            }
        )
    assert folders[0] == folders[1]
    assert len(folders[0]) == 4  # the log and three sums


def test_the_helper_cannot_test_guesses_of_the_sums(parties: Parties) -> None:
    """It knows R. With an unkeyed hash of Y it could compare guesses with the seal."""
    honest = parties.members()[NAMES[0]]
    share = honest.shares.coordinator
    guessed = added(vector_of(honest.statistic), honest.shares.helper.sums(SHAPE))
    assert (guessed == share.sums).all()
    for key in (bytes(32), bytes([1]) * 32):
        again = CoordinatorShare(key=key, masks=share.masks, sums=guessed)
        assert again.commitment != honest.draw.sealed[72:104]


def test_no_entry_or_share_file_holds_a_sum(parties: Parties) -> None:
    released(parties)
    members = parties.members()
    log = (parties.folder / "helper.log").read_bytes()
    for each in members.values():
        assert each.shares.helper.seed.hex().encode() not in log
        for number in each.statistic.sums.tolist():
            assert str(number).encode() not in log
    for before, after in pairwise(log.splitlines()):
        entry = HELPER_ENTRIES.read(after).content
        assert entry.previous != HELPER_ENTRIES.read(before).content.previous


# With a proof.


def test_vectors_are_as_they_were() -> None:
    assert VECTORS.read_text(encoding="utf-8") == document()


@pytest.mark.parametrize(
    ("rows", "cut"), [(80, Cut()), (300, Cut(log_rows=8))], ids=["one proof", "a chain"]
)
def test_hidden_sums_of_a_proven_batch_match(
    rows: int, cut: Cut, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(full_system, "cut_of", lambda *_, **__: cut)
    system = Full(binds=StatisticName.HIDDEN)
    circuit = system.circuit(rules_of(Wiring()), policy_of(Wiring()), rows_max=512)
    key, batch = SigningKey.generate(), clean_batch(rows, 1)
    plant = Registered(federation="north", client=NAMES[0], key=key, system=system, circuit=circuit)
    made = plant.commit(batch)
    made.save(tmp_path / "commit.json")
    for share in shares_beside(tmp_path / "commit.json"):
        content = share.read_bytes()
        share.write_bytes(bytes([content[0] ^ 1]) + content[1:])
        with pytest.raises(SettingError, match="do not open its sealed statistic"):
            Committed.load(tmp_path / "commit.json", key, system, circuit)
        share.write_bytes(content)
    committed = Committed.load(tmp_path / "commit.json", key, system, circuit)
    assert committed.shares is not None
    assert committed.statistic is not None
    commit, proof = committed.message.content, committed.prove(batch).message.content.proof
    context = context_of(commit, circuit).digest()
    claim = ProofClaim(
        commitment=bytes.fromhex(commit.commitment),
        rows=rows,
        context=context,
        proof=proof,
        statistic=committed.statistic,
    )
    assert system.verify_many(circuit, [claim]) == (None,)
    verify_again(circuit, claim)
    changed = replace(claim, proof=bytes([proof[0] ^ 1]) + proof[1:])
    for lie in (changed, replace(claim, statistic=committed.statistic[:-1] + b"\0")):
        assert system.verify_many(circuit, [lie])[0] is not None
        with pytest.raises(VerificationError):
            verify_again(circuit, lie)
    found = statistic_settings(circuit)
    assert found is not None
    shape = Shape.of(found)
    draw = Draw(
        identity=core_identity(circuit),
        commitment=claim.commitment,
        context=context,
        sealed=committed.statistic,
    )
    answer = committed.shares.helper.answer(shape, draw)
    assert committed.shares.coordinator.expected(shape, draw, proof_totals(proof)) == answer

    other = Draw(identity=draw.identity, commitment=bytes(32), context=context, sealed=draw.sealed)
    assert committed.shares.coordinator.expected(shape, other, proof_totals(proof)) != answer


def test_both_verifiers_agree_on_changed_proofs_of_hidden_sums() -> None:
    found = [changed_hidden(100, index) for index in range(12)]
    assert [each for each in found if not each.agree] == []
    assert {each.core for each in found} >= {"5.7", "5.8"}
    assert {"totals: bit", "statistic: bit"} <= {each.kind for each in found}
