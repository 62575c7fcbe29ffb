"""Rules for detectors from sums that do not add the members' sums: a vote, and any of subsets.

Each voter depends on the sums of its own members and on the clean rows of the plant that uses the
detector. The number of votes depends on the number of members alone. If it depended on what they
send, malicious members could choose it, and the certificate would be void.
"""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sluice.arrays import Bools
from sluice.detector import (
    Detector,
    Framing,
    LentTail,
    Model,
    MomentModel,
    MomentStatistic,
    OrRules,
    SummedDetector,
    TrainingSummary,
    VotedModel,
    Voter,
    borrow_thresholds,
    borrows_thresholds,
    calibrate_voters,
    shared_sum,
    voted_detector,
)
from sluice.errors import RefusedError, SettingError
from sluice.evaluation import (
    Ballots,
    PointSupport,
    Unlabelled,
    VoteCertificate,
    certify,
    covering_groups,
)
from sluice.telemetry import Label, Record, Windows

__all__ = [
    "ANY_OF_SUBSETS",
    "VOTE_RULES",
    "VoteSettings",
    "ballots_of",
    "certificate_of",
    "hold_vote",
    "point_support",
    "supported",
    "votes_needed",
]

VOTE = "vote"
ANY_OF_SUBSETS = "any-of-subsets"
VOTE_RULES = (VOTE, ANY_OF_SUBSETS)


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteSettings:
    """What a vote must withstand, and how often it may alarm on clean rows."""

    rule: str
    malicious: int  # count owners and integrators, not keys
    false_alarms_per_week: float  # of each voter of a vote; of all subsets together
    record: str  # the clean record that sets the thresholds
    time: datetime  # of its last row
    borrowed: bool = False  # whether members' tails set the thresholds

    @classmethod
    def on(
        cls,
        clean: Record,
        *,
        rule: str,
        malicious: int,
        false_alarms_per_week: float,
        borrowed: bool = False,
    ) -> "VoteSettings":
        """Return the settings of a vote that is calibrated on a clean record."""
        last = int(clean.times[-1].astype("datetime64[s]").astype(np.int64))
        return cls(
            rule=rule,
            malicious=malicious,
            false_alarms_per_week=false_alarms_per_week,
            record=clean.name,
            time=datetime.fromtimestamp(last, UTC),
            borrowed=borrowed,
        )

    def __post_init__(self) -> None:
        if self.rule not in VOTE_RULES:
            raise SettingError(f"unknown vote {self.rule!r}; known are {', '.join(VOTE_RULES)}")


def votes_needed(members: int, malicious: int) -> int:
    """Return the votes that an alarm needs: half of the members, rounded up.

    With n members, f of them malicious, an alarm must need more than f votes, so that they cannot
    force one alone, and at most n - f, so that they cannot suppress one that all others raise. Half
    of n lies in the middle of that range: as many honest voters may miss an attack as may raise a
    false alarm.
    """
    if malicious < 0 or members < 2 * malicious + 1:
        raise SettingError(
            f"a vote of {members} members cannot withstand {malicious} malicious ones; it needs at "
            f"least {2 * max(malicious, 0) + 1} members, or fewer malicious ones "
            f"(at most {max((members - 1) // 2, 0)})"
        )
    return (members + 1) // 2


def hold_vote(  # noqa: PLR0913 - a vote is these parts
    sums: Mapping[str, Any],
    kind: SummedDetector,
    framing: Framing,
    clean: Windows,
    *,
    settings: VoteSettings,
    training: TrainingSummary,
    tails: Mapping[str, LentTail] | None = None,
) -> Detector:
    """Return the detector of a vote from each member's sums; `clean` are the receiver's windows.

    `tails` are those that members lend, each for its own voter.
    """
    members = tuple(sorted(sums))
    if settings.rule == VOTE:
        groups = tuple(frozenset((member,)) for member in members)
        needed, asked = votes_needed(len(members), settings.malicious), 1.0
    else:
        groups = covering_groups(members, malicious=settings.malicious)
        needed, asked = 1, 1.0 / len(groups)
    voters, abstaining = [], []
    for group in groups:
        own = tuple(sorted(group))
        model = _fitted(kind, [sums[member] for member in own], clean)
        if model is None:
            abstaining.append(own)
        else:
            tail = tails.get(own[0]) if tails and len(own) == 1 else None
            voters.append(Voter(members=own, model=model, tail=tail))
    if not voters:
        raise RefusedError(
            f"no contribution of {', '.join(members)} gives a detector, so there is no voter"
        )
    votes = (borrow_thresholds if settings.borrowed else calibrate_voters)(
        voters,
        clean,
        stride_s=framing.stride_s,
        false_alarms_per_week=asked * settings.false_alarms_per_week,
        record=settings.record,
    )
    return voted_detector(
        votes,
        framing,
        members=members,
        needed=needed,
        malicious=settings.malicious,
        training=training,
        time=settings.time,
        abstaining=tuple(abstaining),
    )


def _fitted(kind: SummedDetector, sums: Sequence[Any], clean: Windows) -> Model | None:
    """Return the model of some members; None if their sums cannot come from a plant's rows.

    One member must not stop the others. Its vote then counts as withheld, and the number of votes
    that an alarm needs stays as it was: otherwise a member could change it.
    """
    try:
        if all(isinstance(each, MomentStatistic) for each in sums):
            return kind.fit(shared_sum(sums), clean)
        return kind.fit(reduce(operator.add, sums), clean)
    except (SettingError, np.linalg.LinAlgError):
        return None


def ballots_of(
    detector: Detector, record: Record, *, unlabelled: Unlabelled = Unlabelled.EXCLUDE
) -> Ballots:
    """Return the votes of a detector on a record.

    A detector that is no vote counts as one voter that depends on all members: the pooled sum.
    """
    model, windows = detector.model, detector.framing.windows(record)
    rules = None
    if isinstance(model, VotedModel):
        if isinstance(detector.fusion, OrRules):
            rules = _rule_alarms(detector.fusion, detector.framing, record, windows)
        members, needed = model.members, model.needed
        silent = np.zeros((len(model.abstaining), len(windows)), dtype=np.bool_)
        voters = tuple(
            frozenset(group)
            for group in (*(voter.members for voter in model.voters), *model.abstaining)
        )
        votes = np.concatenate((model.votes(windows), silent))
    else:
        members, needed = tuple(sorted(detector.training.records)), 1
        voters = (frozenset(members),)
        votes = detector.score(record).alarms[np.newaxis]
    return Ballots(
        members=members,
        voters=voters,
        votes=votes,
        needed=needed,
        labels=_settled(windows.labels, unlabelled),
        last_rows=windows.last_rows,
        row_labels=_settled(record.labels, unlabelled),
        stride_s=detector.framing.stride_s,
        rules=rules,
    )


def _rule_alarms(fusion: OrRules, framing: Framing, record: Record, windows: Windows) -> Bools:
    rounded, last = framing.scaler.rounded(record), windows.last_rows
    no_votes = np.zeros(len(windows))
    alarms: Bools = fusion.surprises(no_votes, rounded, last, rows=windows.length).rules > 1
    return alarms


def certificate_of(
    detector: Detector,
    record: Record,
    *,
    malicious: int,
    unlabelled: Unlabelled = Unlabelled.EXCLUDE,
) -> VoteCertificate:
    """Certify a detector on a labelled record against any `malicious` of its members."""
    ballots = ballots_of(detector, record, unlabelled=unlabelled)
    return supported(certify(ballots, malicious=malicious), detector)


def supported(certificate: VoteCertificate, detector: Detector) -> VoteCertificate:
    """Return the certificate with what it rests on: points, groups and thresholds."""
    return replace(
        certificate,
        points=point_support(detector),
        borrowed=borrows_thresholds(detector),
        groups=tuple(
            (each.member, each.plants) for each in detector.training.contributions if each.plants
        ),
    )


def point_support(detector: Detector) -> tuple[PointSupport, ...]:
    """Return, for each point that the detector reads, the members whose sums tell about it.

    A member that lacks a point does not vote on what happens there. A member that abstains votes
    nowhere. Empty for a detector that is no vote of moments.
    """
    model, names = detector.model, detector.framing.scaler.names
    if not isinstance(model, VotedModel):
        return ()
    voters = [(v.members, v.model) for v in model.voters if isinstance(v.model, MomentModel)]
    return tuple(
        PointSupport(
            point=name,
            members=tuple(
                sorted({m for members, own in voters if at not in own.absent for m in members})
            ),
        )
        for at, name in enumerate(names)
        if voters
    )


def _settled(labels: NDArray[np.int8], unlabelled: Unlabelled) -> NDArray[np.int8]:
    if unlabelled is Unlabelled.EXCLUDE:
        return labels
    return np.where(labels == Label.UNLABELLED, Label.NORMAL, labels).astype(np.int8)
