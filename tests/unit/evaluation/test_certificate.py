"""Certificates by hand: what survives, what can be forced, what is vacuous, what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from sluice.errors import SettingError
from sluice.evaluation import Ballots, certify, covering_groups
from sluice.telemetry import Label

WEEK_S = 604_800


def of(*votes: str, labels: str, needed: int) -> Ballots:
    """Make ballots of rows of votes (`!` for, `.` against) and labels (`A` attack)."""
    truth = np.array([Label.ATTACK if mark == "A" else Label.NORMAL for mark in labels], np.int8)
    names = tuple("abcdefgh"[: len(votes)])
    return Ballots(
        members=names,
        voters=tuple(frozenset(name) for name in names),
        votes=np.array([[mark == "!" for mark in row] for row in votes]),
        needed=needed,
        labels=truth,
        last_rows=np.arange(len(truth)),
        row_labels=truth,
        stride_s=WEEK_S / len(truth),
    )


THREE = of(
    "!!..........................",
    "!!..........!...............",
    "!.......................!...",
    labels="AA..........................",
    needed=2,
)


def test_three_members_by_hand() -> None:
    found = certify(THREE, malicious=1)
    assert found.actual.recall == 1
    # Window 0 has three votes and survives any one member; window 1 has two, and a can withhold.
    assert found.certified.recall == 0.5
    assert found.worst_sets.recall == ("a",)
    assert found.certified.attacks_detected == 1
    # b votes on window 12 and c on window 24; a adds its vote to both, 12 rows apart.
    assert found.actual.false_events == 0
    assert found.certified.false_events == 2
    assert found.worst_sets.false_events == ("a",)
    assert found.certified.time_in_alarm == pytest.approx(2 / 26)
    assert found.certified.precision == pytest.approx(1 / 3)
    assert found.certified.false_alarms_per_week == pytest.approx(2 * 28 / 26)
    assert (found.sets, found.voters, found.needed) == (3, 3, 2)
    assert not found.vacuous


def test_each_member_has_its_own_worst_figures() -> None:
    risks = {risk.member: risk.worst for risk in certify(THREE, malicious=1).by_member}
    assert {member: worst.recall for member, worst in risks.items()} == {"a": 0.5, "b": 0.5, "c": 1}
    assert {member: worst.false_events for member, worst in risks.items()} == {
        "a": 2,
        "b": 1,
        "c": 1,
    }


def test_an_attack_has_a_latest_detection() -> None:
    cast = of("!!!.", "..!.", "!.!.", labels="AAA.", needed=2)
    (attack,) = certify(cast, malicious=1).attacks
    assert attack.delay_s == 0
    assert attack.certified_delay_s == pytest.approx(2 * cast.stride_s)
    (hidden,) = certify(replace(cast, needed=3), malicious=1).attacks
    assert hidden.delay_s == pytest.approx(2 * cast.stride_s)
    assert hidden.certified_delay_s is None


def test_an_alarm_that_never_ends_is_one_event() -> None:
    """The other voters alarm all the time, so a malicious member cannot make pauses."""
    quiet = "." * 40
    cast = of("!" * 40, "!" * 40, quiet, labels="A" + "." * 39, needed=2)
    assert certify(cast, malicious=0).actual.false_events == 0  # it begins in the attack
    both = of("." + "!" * 39, "." + "!" * 39, quiet, labels="A" + "." * 39, needed=2)
    assert certify(both, malicious=0).actual.false_events == 1
    # With one of the two malicious it can pause, and alarm every ten rows: 1, 11, 21, 31.
    assert certify(both, malicious=1).certified.false_events == 4


def test_the_pooled_sum_promises_nothing() -> None:
    pooled = replace(
        THREE, voters=(frozenset("abc"),), votes=THREE.votes[:1], needed=1, members=("a", "b", "c")
    )
    found = certify(pooled, malicious=1)
    assert found.vacuous
    assert (found.certified.recall, found.certified.attacks_detected) == (0, 0)
    assert found.certified.time_in_alarm == 1
    assert found.certified.precision == 0
    assert "vacuous" in found.sentences[0]


def test_any_of_subsets_keeps_recall_and_promises_nothing_about_false_alarms() -> None:
    members = ("a", "b", "c", "d")
    groups = covering_groups(members, malicious=1)
    cast = replace(
        THREE,
        members=members,
        voters=groups,
        votes=np.stack((THREE.votes[0], THREE.votes[1])),
        needed=1,
    )
    found = certify(cast, malicious=1)
    assert found.certified.recall == 1  # both groups find the attack
    assert (found.can_silence, found.can_force, found.vacuous) == (False, True, False)
    assert found.certified.time_in_alarm == 1
    assert any("every window" in sentence for sentence in found.sentences)


def test_too_many_malicious_members_can_suppress_every_alarm() -> None:
    found = certify(replace(THREE, needed=3), malicious=1)
    assert (found.can_silence, found.can_force) == (True, False)
    assert any("suppress every alarm" in sentence for sentence in found.sentences)


def test_the_sentences_name_the_assumptions() -> None:
    said = " ".join(certify(THREE, malicious=1).sentences)
    assert "recall is at least 0.500, and at least 1 of 1 attacks" in said
    for words in ("no more than 1 member", "not keys", "this record", "clean", "attested batch"):
        assert words in said


def test_the_assumption_counts_members_in_correct_words() -> None:
    assert any("no more than 1 member is" in s for s in certify(THREE, malicious=1).sentences)
    assert any("no more than 2 members are" in s for s in certify(THREE, malicious=2).sentences)


def test_groups_cover_every_set() -> None:
    groups = covering_groups(tuple("abcdefg"), malicious=2)
    assert len(groups) == 3
    assert sorted(member for group in groups for member in group) == list("abcdefg")


@pytest.mark.parametrize("malicious", [-1, 3])
def test_groups_need_an_honest_one(malicious: int) -> None:
    with pytest.raises(SettingError, match=f"{malicious} malicious members of 3 leave no honest"):
        covering_groups(("a", "b", "c"), malicious=malicious)


def test_too_many_sets_are_refused() -> None:
    many = tuple(f"m{at}" for at in range(40))
    cast = replace(
        THREE,
        members=many,
        voters=tuple(frozenset([name]) for name in many),
        votes=np.zeros((40, 28), dtype=np.bool_),
    )
    with pytest.raises(SettingError, match=r"15 of 40 members are 40,225,345,056 sets"):
        certify(cast, malicious=15)


@pytest.mark.parametrize("malicious", [-1, 4])
def test_more_malicious_members_than_members_are_refused(malicious: int) -> None:
    with pytest.raises(SettingError, match=f"{malicious} malicious members of 3; expected 0 to 3"):
        certify(THREE, malicious=malicious)


def test_a_record_without_attacks_has_no_certificate() -> None:
    clean = np.zeros(28, dtype=np.int8)
    with pytest.raises(SettingError, match="no window is labelled attack"):
        certify(replace(THREE, labels=clean, row_labels=clean), malicious=1)


def test_a_record_without_normal_windows_has_no_rates() -> None:
    attack = np.full(28, Label.ATTACK, dtype=np.int8)
    certified = certify(replace(THREE, labels=attack, row_labels=attack), malicious=1).certified
    assert certified.time_in_alarm is None
    assert certified.false_alarms_per_week is None
    assert certified.batadal_score is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"members": ()}, "members with different names, got none"),
        ({"members": ("a", "b", "c", "a")}, "different names, got a, b, c, a"),
        ({"members": ("a", "b")}, "a voter depends on c, who is no member; members are a, b"),
        ({"voters": (frozenset("a"), frozenset("b"), frozenset())}, "depends on no member"),
        ({"needed": 0}, "an alarm needs 0 votes of 3; expected 1 to 3"),
        ({"needed": 4}, "an alarm needs 4 votes of 3"),
        ({"votes": np.zeros((2, 28), dtype=np.bool_)}, r"3 voters x 28 windows"),
        ({"votes": np.zeros((3, 28))}, "votes are float64"),
        ({"row_labels": np.zeros(27, dtype=np.int8)}, "ends at row 27 of 27 labelled rows"),
        ({"stride_s": 0.0}, "stride must be more than 0"),
    ],
)
def test_ballots_that_cannot_be_counted_are_refused(
    change: dict[str, object], message: str
) -> None:
    with pytest.raises(SettingError, match=message):
        replace(THREE, **change)  # type: ignore[arg-type]
