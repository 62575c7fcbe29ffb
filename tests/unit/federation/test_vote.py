"""The vote as a rule: how many votes, whose sums, and what a member can change."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sluice.detector import VotedModel, load_detector, save_detector
from sluice.detector.registry import SUMMED
from sluice.detector.subspace import Moments
from sluice.errors import RefusedError, SettingError
from sluice.evaluation import Unlabelled
from sluice.federation import (
    Federated,
    FederationSettings,
    VoteSettings,
    ballots_of,
    certificate_of,
    federate,
    hold_vote,
    votes_needed,
)
from sluice.lab.plants import simulate
from sluice.telemetry import Label, Record

PLANT = simulate("line", seed=0, days=6)
CLIENTS = {name: PLANT.rows(at * 900, (at + 1) * 900) for at, name in enumerate("edcba")}
VALIDATION = PLANT.rows(5_000, 8_000)
SETTINGS = FederationSettings(
    clients=CLIENTS,
    validation=VALIDATION,
    detector="subspace",
    rule="vote",
    malicious=2,
    false_alarms_per_week=20,
)


@pytest.fixture(scope="module")
def held() -> Federated:
    return federate(SETTINGS)


@pytest.fixture(scope="module")
def attacked() -> Record:
    batch = PLANT.rows(8_000, 8_600)
    values, labels = batch.values.copy(), batch.labels.copy()
    column = batch.index("S_PU1")
    values[200:400, column] = 1 - values[200:400, column]
    labels[200:400] = Label.ATTACK
    return replace(batch, values=values, labels=labels)


def model_of(done: Federated) -> VotedModel:
    assert isinstance(done.detector.model, VotedModel)
    return done.detector.model


@pytest.mark.parametrize(
    ("members", "malicious", "needed"),
    [(1, 0, 1), (3, 1, 2), (5, 2, 3), (7, 2, 4), (10, 3, 5), (10, 0, 5), (10, 4, 5)],
)
def test_an_alarm_needs_half_of_the_votes(members: int, malicious: int, needed: int) -> None:
    assert votes_needed(members, malicious) == needed
    assert malicious < needed <= members - malicious


@pytest.mark.parametrize(("members", "malicious"), [(2, 1), (4, 2), (0, 0), (3, -1)])
def test_a_vote_needs_an_honest_majority(members: int, malicious: int) -> None:
    with pytest.raises(SettingError, match=f"{members} members cannot withstand {malicious}"):
        votes_needed(members, malicious)


def test_every_member_votes_with_its_own_sums(held: Federated) -> None:
    model = model_of(held)
    assert model.members == tuple("abcde")
    assert [voter.members for voter in model.voters] == [(name,) for name in "abcde"]
    assert (model.needed, model.malicious) == (3, 2)
    assert model.calibration.record == VALIDATION.name
    assert held.detector.training.rule == "vote"
    assert held.influence == dict.fromkeys("abcde", 0.2)
    framing = held.detector.framing
    own = SUMMED["subspace"].fit(
        Moments.of(framing.windows(CLIENTS["a"])), framing.windows(VALIDATION)
    )
    windows = framing.windows(PLANT.rows(0, 500))
    assert model.voters[0].model.scores(windows).tolist() == own.scores(windows).tolist()


def test_a_member_changes_its_own_vote_and_nothing_else(held: Federated) -> None:
    """Another member's model, threshold and the number of votes stay exactly the same."""
    poisoned = dict(CLIENTS)
    poisoned["c"] = PLANT.rows(0, 400)
    others = model_of(federate(replace(SETTINGS, clients=poisoned)))
    before = model_of(held)
    assert others.needed == before.needed
    windows = held.detector.framing.windows(PLANT.rows(0, 500))
    for at, name in enumerate("abcde"):
        same = np.array_equal(
            others.voters[at].model.scores(windows), before.voters[at].model.scores(windows)
        )
        equal = others.calibration.thresholds[at] == before.calibration.thresholds[at]
        assert same == equal == (name != "c")


def test_the_certificate_of_a_vote(held: Federated, attacked: Record) -> None:
    certificate = certificate_of(held.detector, attacked, malicious=2)
    scored = held.detector.score(attacked)
    alarms = scored.alarms[scored.labels == Label.ATTACK]
    assert certificate.actual.recall == pytest.approx(alarms.mean())
    assert 0 < certificate.certified.recall <= certificate.actual.recall
    assert (certificate.can_silence, certificate.can_force) == (False, False)


def test_the_certificate_of_pooled_sums_is_vacuous(attacked: Record) -> None:
    pooled = federate(replace(SETTINGS, rule="fedavg"))
    certificate = certificate_of(pooled.detector, attacked, malicious=1)
    assert certificate.vacuous
    assert certificate.members == tuple("abcde")
    assert certificate.actual.recall > 0


def test_any_of_subsets(attacked: Record) -> None:
    done = federate(replace(SETTINGS, rule="any-of-subsets"))
    model = model_of(done)
    assert (len(model.voters), model.needed) == (3, 1)
    assert sorted(m for voter in model.voters for m in voter.members) == list("abcde")
    assert model.calibration.false_alarms_per_week == pytest.approx(20 / 3)
    certificate = certificate_of(done.detector, attacked, malicious=2)
    assert (certificate.can_silence, certificate.can_force) == (False, True)


def test_a_member_without_a_usable_contribution_abstains(attacked: Record, tmp_path: Path) -> None:
    """Its vote counts as withheld. The votes needed stay, so it cannot lower them."""
    done = federate(SETTINGS)
    framing, kind = done.detector.framing, SUMMED["subspace"]
    clean = framing.windows(VALIDATION)
    sums = {name: kind.summarise(framing.windows(own)) for name, own in CLIENTS.items()}
    width = len(sums["b"].total)
    sums["b"] = Moments(count=10, total=np.zeros(width), outer=np.zeros((width, width)))
    settings = VoteSettings.on(VALIDATION, rule="vote", malicious=2, false_alarms_per_week=20)
    detector = hold_vote(
        sums, kind, framing, clean, settings=settings, training=done.detector.training
    )
    path = tmp_path / "vote.safetensors"
    save_detector(detector, path)
    model = load_detector(path).model
    assert isinstance(model, VotedModel)
    assert (model.abstaining, model.needed, len(model.voters)) == ((("b",),), 3, 4)
    cast = ballots_of(detector, attacked)
    assert cast.voters[-1] == frozenset("b")
    assert not cast.votes[-1].any()
    before = certificate_of(done.detector, attacked, malicious=2).certified
    assert certificate_of(detector, attacked, malicious=0).actual.recall >= before.recall


def test_a_vote_without_a_voter_is_refused() -> None:
    framing, kind = federate(SETTINGS).detector.framing, SUMMED["subspace"]
    width = framing.width
    nothing = Moments(count=10, total=np.zeros(width), outer=np.zeros((width, width)))
    settings = VoteSettings.on(VALIDATION, rule="vote", malicious=1, false_alarms_per_week=1)
    with pytest.raises(RefusedError, match="no contribution of a, b, c gives a detector"):
        hold_vote(
            dict.fromkeys("abc", nothing),
            kind,
            framing,
            framing.windows(VALIDATION),
            settings=settings,
            training=federate(SETTINGS).detector.training,
        )


def test_unlabelled_rows_are_left_out_or_normal(held: Federated, attacked: Record) -> None:
    labels = attacked.labels.copy()
    labels[450:] = Label.UNLABELLED
    partly = replace(attacked, labels=labels)
    left_out = certificate_of(held.detector, partly, malicious=2)
    counted = certificate_of(held.detector, partly, malicious=2, unlabelled=Unlabelled.NORMAL)
    assert left_out.normal_windows < counted.normal_windows
    assert counted.normal_windows + counted.attack_windows == counted.windows


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rule": "voting"}, "unknown rule 'voting'; known are .*vote, any-of-subsets"),
        ({"detector": "autoencoder"}, "an autoencoder is trained in rounds"),
        ({"rule": "krum"}, "no updates to weigh; use rule 'fedavg'"),
        ({"malicious": 3}, "5 members cannot withstand 3 malicious ones; it needs at least 7"),
        ({"rule": "any-of-subsets", "malicious": 5}, "5 malicious members of 5 leave no honest"),
        ({"false_alarms_per_week": 0.0}, "false alarms a week must be above 0"),
    ],
)
def test_a_federation_that_cannot_vote_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(SettingError, match=message):
        federate(replace(SETTINGS, **change))  # type: ignore[arg-type]


def test_an_unknown_vote_is_refused() -> None:
    with pytest.raises(SettingError, match="unknown vote 'quorum'; known are vote, any-of"):
        VoteSettings.on(VALIDATION, rule="quorum", malicious=1, false_alarms_per_week=1)
