"""The certificate against malicious members of a real vote: varied sites, some without a point."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import ClassVar

import numpy as np
import pytest

from sluice.arrays import Floats
from sluice.detector import (
    Detector,
    Framing,
    MomentStatistic,
    ReceiverMoments,
    TrainingSummary,
    VotedModel,
    moment_settings,
    moment_statistic,
    robust_scaler,
    voted_model,
)
from sluice.evaluation import Ballots, CertifiedFigures, VoteCertificate, certify
from sluice.federation import VoteSettings, ballots_of, certificate_of, hold_vote, point_support
from sluice.lab.plants import simulate, varied_site
from sluice.telemetry import Label, Placement, Record, Scaler, Windows, feature_names
from sluice.template import derive_template, placements

MISSING = "F_PU2"  # site 3 has no such meter
SITES = {1: "north", 2: "south", 3: "west", 4: "east", 5: "hill"}
SEED = 7
LOUD = 1e9  # a score above every threshold


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Told:
    """A voter whose scores its member makes up, whatever the windows are."""

    kind: ClassVar[str] = "told"

    told: Floats
    width: int

    def scores(self, windows: Windows) -> Floats:
        assert len(windows) == len(self.told)
        return self.told

    def blame(self, windows: Windows) -> Floats:
        raise NotImplementedError

    def tensors(self) -> dict[str, Floats]:
        raise NotImplementedError

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Floats]) -> "Told":
        raise NotImplementedError


def placed(record: Record, placed_: Mapping[str, Placement]) -> Record:
    """Return a site's record in the template's points and units."""
    values = np.column_stack([placed_[tag].readings(record.column(tag)) for tag in placed_])
    channels = tuple(placed_[tag].place(record.channel(tag)) for tag in placed_)
    return replace(record, channels=channels, values=values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Plants:
    """Five members' sums, and for each site clean and attacked rows in points of the template."""

    sums: dict[str, MomentStatistic]
    clean: dict[int, Record]
    attacked: dict[int, Record]
    framing: Framing
    receiver: ReceiverMoments

    def vote_at(self, site: int, sums: Mapping[str, MomentStatistic]) -> Detector:
        """Return the vote of members with these sums, as one site holds it."""
        whole, clean = self.framing.scaler, self.clean[site]
        at = [place for place, name in enumerate(whole.names) if name in clean.names]
        scaler = Scaler(
            names=tuple(whole.names[place] for place in at),
            mean=whole.mean[at],
            spread=whole.spread[at],
            resolution=whole.resolution[at] if len(whole.resolution) else whole.resolution,
        )
        framing = replace(self.framing, scaler=scaler)
        return hold_vote(
            sums,
            replace(self.receiver, scaler=scaler),
            framing,
            framing.windows(clean),
            settings=VoteSettings.on(clean, rule="vote", malicious=2, false_alarms_per_week=7.0),
            training=TrainingSummary(records=(), windows=0, seed=0),
        )


@pytest.fixture(scope="module")
def plants() -> Plants:
    reference = simulate("line", seed=50, days=4)
    template = derive_template(reference)
    scaler = robust_scaler(reference, feature_names(reference))
    framing = Framing(scaler=scaler, stride_s=reference.stride_s)
    settings = moment_settings(reference, lags=framing.window_rows)
    sums, clean, attacked = {}, {}, {}
    for site, name in SITES.items():
        made = varied_site("line", site, seed=SEED, days=4)
        where = placements(made.record, template, made.reference)
        rows = placed(made.record, where)
        half = len(rows) // 2
        sums[name] = moment_statistic(rows.rows(0, half), settings.only(set(rows.names)))
        clean[site] = rows.rows(half, len(rows))
        unsafe = varied_site("line", site, seed=SEED, days=2, attacks=True)
        assert unsafe.reference == made.reference
        attacked[site] = placed(unsafe.record, where)
    return Plants(
        sums=sums,
        clean=clean,
        attacked=attacked,
        framing=framing,
        receiver=ReceiverMoments(settings=settings, scaler=scaler),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Vote:
    """A vote and its windows of an attacked record, with honest scores computed once."""

    model: VotedModel
    windows: Windows
    honest: Ballots

    @classmethod
    def on(cls, detector: Detector, attacked: Record) -> "Vote":
        model, windows = voted_model(detector), detector.framing.windows(attacked)
        scores = {at: voter.model.scores(windows) for at, voter in enumerate(model.voters)}
        honest = ballots_of(detector, attacked)
        vote = cls(model=with_scores(model, scores), windows=windows, honest=honest)
        assert np.array_equal(vote.model.votes(windows), honest.votes)
        return vote

    def told(self, scores: Mapping[int, Floats]) -> Ballots:
        """Return the votes if some members make up their scores."""
        return replace(self.honest, votes=with_scores(self.model, scores).votes(self.windows))


def with_scores(model: VotedModel, told: Mapping[int, Floats]) -> VotedModel:
    """Return the vote with the scores of some voters replaced."""
    voters = [
        replace(voter, model=Told(told=told[at], width=model.width)) if at in told else voter
        for at, voter in enumerate(model.voters)
    ]
    return replace(model, voters=tuple(voters))


def lies(rng: np.random.Generator, windows: Windows) -> dict[str, Floats]:
    """Return what a malicious member may tell of each window."""
    normal = windows.labels == Label.NORMAL
    return {
        "always": np.full(len(windows), LOUD),
        "never": np.zeros(len(windows)),
        "random": LOUD * (rng.random(len(windows)) < 0.5),
        "rarely": LOUD * (rng.random(len(windows)) < 0.02),
        "informed": np.where(normal, LOUD, 0.0),  # it knows the labels
    }


def behaviours(
    vote: Vote, malicious: int
) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], CertifiedFigures]]:
    """Replace the scores of every set of members in every way; yield the set, the way, figures."""
    members = vote.honest.members
    known = lies(np.random.default_rng(malicious), vote.windows)
    for chosen in combinations(range(len(members)), malicious):
        for told in product(known, repeat=malicious):
            changed = vote.told({at: known[way] for at, way in zip(chosen, told, strict=True)})
            named = tuple(members[at] for at in chosen)
            yield named, told, certify(changed, malicious=0).actual


def assert_no_worse(now: CertifiedFigures, certified: CertifiedFigures) -> None:
    assert now.recall >= certified.recall
    assert now.attacks_detected >= certified.attacks_detected
    assert now.precision is None or certified.precision is not None
    if now.precision is not None and certified.precision is not None:
        assert now.precision >= certified.precision - 1e-12
    assert now.time_in_alarm is not None
    assert certified.time_in_alarm is not None
    assert now.time_in_alarm <= certified.time_in_alarm
    assert now.false_events <= certified.false_events
    assert now.batadal_score is not None
    assert certified.batadal_score is not None
    assert now.batadal_score >= certified.batadal_score - 1e-12


@pytest.mark.parametrize(("site", "malicious"), [(1, 1), (1, 2), (3, 1), (3, 2)])
def test_no_member_that_lies_does_more_than_the_certificate_says(
    plants: Plants, site: int, malicious: int
) -> None:
    """Site 1 has every point, and one member lacks one; site 3 lacks it itself."""
    vote = Vote.on(plants.vote_at(site, plants.sums), plants.attacked[site])
    certificate = certify(vote.honest, malicious=malicious)
    certified, sets = certificate.certified, certificate.worst_sets
    assert 0 < certified.recall < certificate.actual.recall  # there is something to lose
    figures = {}
    for chosen, told, now in behaviours(vote, malicious):
        assert_no_worse(now, certified)
        figures[chosen, told] = now
    never, always, informed = ((way,) * malicious for way in ("never", "always", "informed"))
    tight = figures[sets.recall, never]
    assert tight.recall == certified.recall
    assert figures[sets.attacks_detected, never].attacks_detected == certified.attacks_detected
    assert figures[sets.time_in_alarm, always].time_in_alarm == certified.time_in_alarm
    assert figures[sets.precision, informed].precision == pytest.approx(certified.precision)


@pytest.mark.parametrize("member", sorted(SITES.values()))
def test_other_sums_of_one_member_change_its_own_vote_only(plants: Plants, member: str) -> None:
    """The certificate counts votes; it needs that a contribution reaches one voter only."""
    attacked = plants.attacked[1]
    honest = plants.vote_at(1, plants.sums)
    certified: VoteCertificate = certificate_of(honest, attacked, malicious=1)
    before = ballots_of(honest, attacked)
    place = before.members.index(member)
    whole = moment_statistic(attacked, plants.receiver.settings)  # learns attacks as usual
    for told in (whole, whole.only(set(whole.settings.channels) - {"L_T1", MISSING})):
        vote = plants.vote_at(1, plants.sums | {member: told})
        after = ballots_of(vote, attacked)
        others = [at for at in range(len(before.members)) if at != place]
        assert np.array_equal(after.votes[others], before.votes[others])
        assert_no_worse(certificate_of(vote, attacked, malicious=0).actual, certified.certified)


def test_members_are_counted_per_point_and_per_plant(plants: Plants) -> None:
    vote = plants.vote_at(1, plants.sums)
    assert isinstance(vote.model, VotedModel)
    certificate = certificate_of(vote, plants.attacked[1], malicious=1)
    assert certificate.points == point_support(vote)
    everyone = tuple(sorted(SITES.values()))
    owners = tuple(name for name in everyone if name != "west")
    assert {each.point: each.members for each in certificate.points} == {
        point: owners if point == MISSING else everyone for point in vote.framing.scaler.names
    }
    own, *others = certificate.by_plant
    assert own.plant is None
    assert own.points == vote.framing.scaler.names
    assert (own.members, own.complete) == (everyone, owners)
    assert (own.fewest, own.weakest) == (4, (MISSING,))
    assert [each.plant for each in others] == list(everyone)
    for each in others:
        assert each.complete == (everyone if each.plant == "west" else owners)
        assert each.fewest == (5 if each.plant == "west" else 4)
    lacking = certificate_of(plants.vote_at(3, plants.sums), plants.attacked[3], malicious=1)
    assert {each.fewest for each in lacking.by_plant} == {5}
    assert MISSING not in lacking.by_plant[0].points
    assert (
        "This plant's detector reads 11 points and rests on 5 of 5 members; 4 of them have all of "
        "its points, and every point has at least 4." in certificate.sentences
    )
