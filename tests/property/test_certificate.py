"""The certificate against brute force: every behaviour of every set of malicious members."""

from collections.abc import Iterator
from functools import partial
from itertools import combinations, pairwise, product
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from sluice.arrays import Bools
from sluice.detector import (
    Detector,
    Framing,
    ReceiverMoments,
    TrainingSummary,
    cross_fitted_tail,
    moment_settings,
    moment_statistic,
    robust_scaler,
)
from sluice.evaluation import (
    Ballots,
    Outcome,
    VoteCertificate,
    alarm_events,
    attacks_found,
    batadal_score,
    certify,
    covering_groups,
    hits,
    row_alarms,
)
from sluice.federation import VoteSettings, ballots_of, hold_vote, point_support
from sluice.lab.plants import simulate
from sluice.telemetry import Label, feature_names

MERGE_ROWS = 3  # short, so that a short record has several events
WEEK_S = 604_800


def ballots(
    votes: Bools,
    labels: NDArray[np.int8],
    needed: int,
    *,
    voters: tuple[frozenset[str], ...] | None = None,
    members: int | None = None,
    rules: Bools | None = None,
) -> Ballots:
    names = tuple("abcdefgh"[: members or len(votes)])
    return Ballots(
        members=names,
        voters=voters or tuple(frozenset(name) for name in names),
        votes=votes,
        needed=needed,
        labels=labels,
        last_rows=np.arange(len(labels)),
        row_labels=labels,
        stride_s=WEEK_S / 100,
        rules=rules,
    )


def behaviours(cast: Ballots, malicious: int) -> Iterator[Outcome]:
    """Replace the votes of every set of members by every possible votes; yield distinct alarms."""
    windows = len(cast.labels)
    reached: dict[bytes, Bools] = {}
    for chosen in combinations(cast.members, malicious):
        corrupted = [at for at, on in enumerate(cast.voters) if on & set(chosen)]
        votes = cast.votes.copy()
        for replaced in product((False, True), repeat=len(corrupted) * windows):
            votes[corrupted] = np.reshape(replaced, (len(corrupted), windows))
            alarms = votes.sum(axis=0) >= cast.needed
            if cast.rules is not None:
                alarms = alarms | cast.rules
            reached[alarms.tobytes()] = alarms
    for alarms in reached.values():
        yield Outcome(
            scores=alarms.astype(np.float64),
            alarms=alarms,
            labels=cast.labels,
            last_rows=cast.last_rows,
            stride_s=cast.stride_s,
        )


def worst_of(cast: Ballots, malicious: int) -> tuple[float, int, float | None, float, int, float]:
    """Return the worst of each figure over all behaviours, by the package's metrics."""
    recall, attacks, precision, in_alarm, events, score = 1.0, 99, None, 0.0, 0, 1.0
    normal = cast.labels == Label.NORMAL
    for outcome in behaviours(cast, malicious):
        counted = hits(outcome.alarms, outcome.attack)
        recall = min(recall, counted.recall)
        attacks = min(attacks, sum(attack.detected for attack in attacks_found(outcome)))
        if counted.precision is not None:
            precision = min(counted.precision, 1.0 if precision is None else precision)
        in_alarm = max(in_alarm, float(outcome.alarms[normal].mean()))
        stretches = alarm_events(outcome, merge_rows=MERGE_ROWS)
        events = max(events, int((stretches.counts(outcome.alarms & ~normal) == 0).sum()))
        rows = row_alarms(outcome.last_rows, outcome.alarms, rows=len(cast.row_labels))
        score = min(score, batadal_score(rows, cast.row_labels).score)
    return recall, attacks, precision, in_alarm, events, score


def assert_tight(cast: Ballots, malicious: int) -> None:
    """The certificate is neither better nor worse than the worst behaviour."""
    certified = certify(cast, malicious=malicious, merge_rows=MERGE_ROWS).certified
    recall, attacks, precision, in_alarm, events, score = worst_of(cast, malicious)
    assert certified.recall == pytest.approx(recall)
    assert certified.attacks_detected == attacks
    assert certified.precision == pytest.approx(precision)
    assert certified.time_in_alarm == pytest.approx(in_alarm)
    assert certified.false_events == events
    assert certified.batadal_score == pytest.approx(score)


def drawn(rng: np.random.Generator, windows: int) -> NDArray[np.int8]:
    """Draw labels with at least one attack and one normal window."""
    while True:
        labels = (rng.random(windows) < 0.35).astype(np.int8)
        if 0 < labels.sum() < windows:
            return labels


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("n", "f", "windows"), [(3, 1, 8), (4, 1, 8), (5, 2, 5), (4, 2, 5)])
def test_every_behaviour_of_every_set(n: int, f: int, windows: int, seed: int) -> None:
    rng = np.random.default_rng([seed, n, f])
    needed = 1 + seed % n
    cast = ballots(rng.random((n, windows)) < rng.uniform(0.2, 0.8), drawn(rng, windows), needed)
    assert_tight(cast, f)


@pytest.mark.parametrize("seed", range(10))
def test_members_that_lack_points_are_counted_as_they_vote(seed: int) -> None:
    """Members without the attacked point never vote there; the worst case is still the worst."""
    rng = np.random.default_rng([seed, 7])
    labels = drawn(rng, 6)
    votes = rng.random((4, 6)) < 0.6
    votes[: 1 + seed % 3] &= labels == Label.NORMAL  # they do not have what is attacked
    for needed in (1, 2, 3):
        assert_tight(ballots(votes, labels, needed), 1)


@pytest.fixture(scope="module")
def real_votes() -> tuple[Detector, Detector]:
    """Votes of four plants, two of which lack a point: with own and with borrowed thresholds."""
    clean = simulate("line", seed=9, days=2)
    framing = Framing(scaler=robust_scaler(clean, feature_names(clean)), stride_s=clean.stride_s)
    settings_ = moment_settings(clean, lags=framing.window_rows)
    sums, tails = {}, {}
    for name, lacks in {"a": None, "b": "F_PU2", "c": None, "d": "S_PU1"}.items():
        rows = simulate("line", seed=ord(name), days=1)
        own = settings_.only(set(rows.names) - {lacks})
        sums[name] = moment_statistic(rows, own)
        tails[name] = cross_fitted_tail(rows, framing, partial(moment_statistic, settings=own))
    votes = [
        hold_vote(
            sums,
            ReceiverMoments(settings=settings_, scaler=framing.scaler),
            framing,
            framing.windows(clean),
            settings=VoteSettings.on(
                clean, rule="vote", malicious=1, false_alarms_per_week=7.0, borrowed=borrowed
            ),
            training=TrainingSummary(records=(), windows=0, seed=0),
            tails=tails,
        )
        for borrowed in (False, True)
    ]
    return votes[0], votes[1]


@pytest.mark.parametrize("borrowed", [False, True])
def test_real_votes_of_members_that_lack_points(
    real_votes: tuple[Detector, Detector], *, borrowed: bool
) -> None:
    """Real ballots where attacks begin: the members disagree, and every behaviour is tried."""
    vote = real_votes[borrowed]
    support = {each.point: each.members for each in point_support(vote)}
    assert support["F_PU2"] == ("a", "c", "d")
    assert support["S_PU1"] == ("a", "b", "c")
    attacked = simulate("line", seed=4, days=2, attacks=True)
    split = 0
    for segment in attacked.attack_segments:
        first = segment.start - 13
        cast = ballots_of(vote, attacked.rows(first, first + 17))
        assert cast.votes.shape == (4, 8)
        split += int((cast.votes.any(axis=0) & ~cast.votes.all(axis=0)).any())
        assert_tight(cast, 1)
    assert split  # on some window, members disagree


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize(("n", "f", "windows"), [(3, 1, 8), (4, 1, 8), (5, 2, 5), (4, 2, 5)])
def test_every_behaviour_beside_the_receivers_own_rules(
    n: int, f: int, windows: int, seed: int
) -> None:
    rng = np.random.default_rng([seed, n, f, 1])
    votes, rules = rng.random((n, windows)) < 0.5, rng.random(windows) < 0.3
    assert_tight(ballots(votes, drawn(rng, windows), 1 + seed % n, rules=rules), f)


@pytest.mark.parametrize("seed", range(6))
def test_groups_that_vote_together(seed: int) -> None:
    rng = np.random.default_rng(seed)
    groups = covering_groups(tuple("abcde"), malicious=1)
    votes = rng.random((2, 8)) < 0.5
    assert_tight(ballots(votes, drawn(rng, 8), 1, voters=groups, members=5), 1)


@pytest.mark.parametrize("seed", range(6))
def test_subsets_that_share_members(seed: int) -> None:
    rng = np.random.default_rng(seed)
    subsets = (frozenset("ab"), frozenset("bc"), frozenset("cd"))
    votes = rng.random((3, 5)) < 0.5
    assert_tight(ballots(votes, drawn(rng, 5), 1 + seed % 3, voters=subsets, members=4), 1)


def alarms_between(survives: Bools, forced: Bools) -> Iterator[Bools]:
    free = np.flatnonzero(forced & ~survives)
    for choice in product((False, True), repeat=len(free)):
        alarms = survives.copy()
        alarms[free] = choice
        yield alarms


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), merge_rows=st.integers(1, 5))
def test_most_false_events_on_records_with_gaps_and_unlabelled_windows(
    seed: int, merge_rows: int
) -> None:
    """Here a window may be missing or unlabelled, and an alarm may be impossible."""
    rng = np.random.default_rng(seed)
    windows = 9
    labels = rng.choice([Label.NORMAL, Label.ATTACK, Label.UNLABELLED], windows, p=[0.7, 0.2, 0.1])
    labels[0] = Label.ATTACK
    votes = rng.random((3, windows)) < 0.4
    cast = Ballots(
        members=("a", "b", "c"),
        voters=(frozenset("a"), frozenset("b"), frozenset("c")),
        votes=votes,
        needed=2,
        labels=labels.astype(np.int8),
        last_rows=np.cumsum(rng.integers(1, 4, windows)),
        row_labels=np.zeros(60, dtype=np.int8),
        stride_s=5.0,
    )
    most = 0
    for member in range(3):
        others = np.delete(votes, member, axis=0).sum(axis=0)
        for alarms in alarms_between(others >= 2, others >= 1):
            outcome = Outcome(
                scores=alarms.astype(np.float64),
                alarms=alarms,
                labels=cast.labels,
                last_rows=cast.last_rows,
                stride_s=5.0,
            )
            events = alarm_events(outcome, merge_rows=merge_rows)
            touched = events.counts(alarms & (cast.labels != Label.NORMAL))
            most = max(most, int((touched == 0).sum()))
    assert certify(cast, malicious=1, merge_rows=merge_rows).certified.false_events == most


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1), f=st.integers(0, 3))
def test_always_never_and_random_votes_are_never_worse(seed: int, f: int) -> None:
    """A longer record of seven members, where brute force only samples behaviours."""
    rng = np.random.default_rng(seed)
    votes, labels = rng.random((7, 120)) < 0.3, drawn(rng, 120)
    certified = certify(ballots(votes, labels, 4), malicious=f).certified
    chosen = rng.choice(7, f, replace=False)
    for replaced in (False, True, rng.random((f, 120)) < 0.5):
        sent = votes.copy()
        sent[chosen] = replaced
        now = certify(ballots(sent, labels, 4), malicious=0).actual
        assert now.recall >= certified.recall
        assert now.attacks_detected >= certified.attacks_detected
        assert now.false_events <= certified.false_events
        assert now.batadal_score is not None
        assert certified.batadal_score is not None
        assert now.batadal_score >= certified.batadal_score


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**32 - 1))
def test_more_malicious_members_are_never_better(seed: int) -> None:
    rng = np.random.default_rng(seed)
    cast = ballots(rng.random((5, 60)) < 0.4, drawn(rng, 60), 3)
    some: list[VoteCertificate] = [certify(cast, malicious=f) for f in range(6)]
    for fewer, more in pairwise(some):
        assert more.certified.recall <= fewer.certified.recall
        assert more.certified.time_in_alarm is not None
        assert fewer.certified.time_in_alarm is not None
        assert more.certified.time_in_alarm >= fewer.certified.time_in_alarm
    assert some[0].certified == some[0].actual
    assert [one.sets for one in some] == [comb(5, f) for f in range(6)]
