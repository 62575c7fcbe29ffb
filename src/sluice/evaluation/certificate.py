"""The certificate of a vote: what f malicious members can do at worst, counted and not sampled.

The certificate is exact for this record, these voters and this calibration, whatever the malicious
members contribute. It assumes that at most f members are malicious (f counts owners and
integrators, not keys), that the same members are malicious on the whole record, that a voter
depends on its own members and on the receiver's clean rows only, and that those rows are clean.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sluice.arrays import Bools, Floats
from sluice.errors import SettingError
from sluice.evaluation.ballots import Ballots
from sluice.evaluation.events import MERGE_ROWS, per_week
from sluice.evaluation.worst_case import Damage, MaliciousSets, Members, damage_of
from sluice.telemetry import Label

__all__ = [
    "AttackCertificate",
    "CertifiedFigures",
    "MemberRisk",
    "MemberSupport",
    "PlantSupport",
    "PointSupport",
    "VoteCertificate",
    "certify",
]

ASSUMES_COUNT = (
    "It holds if no more than {who} malicious. Count owners and integrators, not keys: members "
    "that one party controls are malicious together."
)
OWN_RULES = (
    "The plant's own rules alarm on {windows:,} windows. No member has a say in these rules, so "
    "these alarms stand whatever members contribute."
)
ASSUMES_RECORD = (
    "It speaks of this record, these rules and this calibration. Another record has another "
    "certificate."
)
BORROWED = (
    "The thresholds are borrowed: each member's own tail sets the threshold of its own voter, so a "
    "member that lies about its tail changes its own vote only, which is counted here. Recalibrate "
    "when the plant has more clean rows."
)
ASSUMES_CLEAN = (
    "It assumes that the rows that set the thresholds are clean, and that the contribution of each "
    "honest member is what its attested batch gives."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class CertifiedFigures:
    """Figures of one record: as votes stand, or at worst."""

    recall: float  # of attack windows
    attacks_detected: int
    precision: float | None  # of alarms; None if there is none
    time_in_alarm: float | None  # share of normal windows; None if no window is normal
    false_events: int
    false_alarms_per_week: float | None  # None if no window is normal
    batadal_score: float | None  # None if no row is normal


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackCertificate:
    """One attack: when it is detected as votes stand, and at the latest."""

    first_row: int
    last_row: int
    delay_s: float | None  # None: not detected
    certified_delay_s: float | None  # the largest over all sets; None: some set can hide it


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberRisk:
    """The worst figures over the sets that contain one member."""

    member: str
    worst: CertifiedFigures


@dataclass(frozen=True, slots=True, kw_only=True)
class PointSupport:
    """One point of the plant, and the members whose contributions tell about it."""

    point: str
    members: Members


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberSupport:
    """One member, and the points that its contribution tells about."""

    member: str
    points: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantSupport:
    """One plant, and the members that a vote on its points rests on."""

    plant: str | None  # None: the plant that the certificate is for
    points: tuple[str, ...]  # that it has, of those of the certificate
    members: Members  # whose contributions tell about at least one of these points
    complete: Members  # whose contributions tell about all of them
    fewest: int  # members of the point that the fewest have
    weakest: tuple[str, ...]  # the points that so few members have


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstSets:
    """The set that reaches each worst figure; the first one if several do."""

    recall: Members
    attacks_detected: Members
    precision: Members
    time_in_alarm: Members
    false_events: Members
    batadal_score: Members


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteCertificate:
    """Figures as votes stand, and the worst over all behaviours of any `malicious` members."""

    members: Members
    voters: int
    needed: int
    malicious: int
    sets: int
    windows: int
    attack_windows: int
    normal_windows: int
    actual: CertifiedFigures
    certified: CertifiedFigures
    worst_sets: WorstSets
    attacks: tuple[AttackCertificate, ...]
    by_member: tuple[MemberRisk, ...]  # empty if no member is malicious
    can_silence: bool  # some set can suppress every alarm of the vote, on any record
    can_force: bool  # some set can raise an alarm on every window, on any record
    rule_windows: int | None = None  # with an alarm of the receiver's own rules; None: no rules
    points: tuple[PointSupport, ...] = ()  # what the vote rests on; empty: not known
    borrowed: bool = False  # whether tails that members lend set the thresholds
    groups: tuple[tuple[str, tuple[str, ...]], ...] = ()  # members that are groups of plants

    @property
    def by_support(self) -> tuple[MemberSupport, ...]:
        """For each member, the points that its contribution tells about."""
        return tuple(
            MemberSupport(
                member=member,
                points=tuple(each.point for each in self.points if member in each.members),
            )
            for member in self.members
            if self.points
        )

    @property
    def by_plant(self) -> tuple[PlantSupport, ...]:
        """The members that the vote rests on: for this plant, then for each member's points.

        A member's line says what a plant with that member's points can rest on. Points that this
        plant does not have are not counted: its detector does not read them.
        """
        return tuple(
            _plant_support(plant, [each for each in self.points if plant in (None, *each.members)])
            for plant in (None, *self.members)
            if self.points
        )

    @property
    def partial(self) -> tuple[PointSupport, ...]:
        """The points that some members do not have."""
        return tuple(each for each in self.points if len(each.members) < len(self.members))

    @property
    def vacuous(self) -> bool:
        """Whether it promises nothing: malicious members can suppress and force every alarm."""
        return self.can_silence and self.can_force and self.rule_windows is None

    @property
    def _promise(self) -> str:
        return (
            f"Whatever any {self.malicious} of {len(self.members)} members contribute, recall is "
            f"at least {self.certified.recall:.3f}, and at least "
            f"{self.certified.attacks_detected} of {len(self.attacks)} attacks are detected."
        )

    @property
    def sentences(self) -> tuple[str, ...]:
        """What the certificate says and what it assumes, in words."""
        who = _members(self.malicious)
        said = [
            f"The certificate is vacuous: {who} can suppress and force every alarm."
            if self.vacuous
            else self._promise
        ]
        if not self.vacuous:
            if self.can_silence:
                what = "" if self.rule_windows is None else " of the vote"
                said.append(f"{who} can suppress every alarm{what}.")
            if self.can_force:
                said.append(
                    f"{who} can raise an alarm on every window, so nothing is promised about "
                    "false alarms."
                )
        if self.rule_windows is not None:
            said.append(OWN_RULES.format(windows=self.rule_windows))
        if self.borrowed:
            said.append(BORROWED)
        if self.points:
            said.append(_rests_on(self.by_plant[0], len(self.members)))
        for each in self.partial:
            said.append(
                f"Point {each.point} rests on {len(each.members)} of {len(self.members)} members; "
                f"an alarm needs {self.needed} votes."
            )
        if self.groups:
            plants = "; ".join(f"{name}: {', '.join(plants)}" for name, plants in self.groups)
            said.append(
                f"Each member is a group of plants ({plants}). {self.malicious} malicious plants "
                f"are in at most {self.malicious} groups, so all this holds for as many plants."
            )
        counted = ASSUMES_COUNT.format(who=f"{who} {'is' if self.malicious == 1 else 'are'}")
        return (*said, counted, ASSUMES_RECORD, ASSUMES_CLEAN)


def certify(ballots: Ballots, *, malicious: int, merge_rows: int = MERGE_ROWS) -> VoteCertificate:
    """Certify a vote on a labelled record against any `malicious` members.

    Raises if no window is labelled attack, or if there are too many sets to count one by one.
    """
    outcome = ballots.outcome
    if not outcome.attack.any():
        raise SettingError(
            "a certificate states how many attacks are found, and no window is labelled attack; "
            "give a record with labelled attacks"
        )
    sets = MaliciousSets.of(ballots, malicious=malicious)
    no_malicious = MaliciousSets.of(ballots, malicious=0)
    actual = _Counted(ballots, damage_of(ballots, no_malicious, merge_rows=merge_rows))
    counted = _Counted(ballots, damage_of(ballots, sets, merge_rows=merge_rows))
    everyone = np.ones(len(sets.sets), dtype=np.bool_)
    corrupted = sets.corrupted.sum(axis=1)
    return VoteCertificate(
        members=ballots.members,
        voters=len(ballots.voters),
        needed=ballots.needed,
        malicious=malicious,
        sets=len(sets.sets),
        windows=len(outcome),
        attack_windows=counted.attack_windows,
        normal_windows=counted.normal_windows,
        actual=actual.worst(np.ones(1, dtype=np.bool_)),
        certified=counted.worst(everyone),
        worst_sets=counted.worst_sets(sets),
        attacks=_attacks(ballots, actual.damage, counted.damage),
        by_member=tuple(
            MemberRisk(member=member, worst=counted.worst(within))
            for member in (ballots.members if malicious else ())
            if (within := np.array([member in one for one in sets.sets])).any()
        ),
        can_silence=bool((len(ballots.voters) - corrupted < ballots.needed).any()),
        can_force=bool((corrupted >= ballots.needed).any()),
        rule_windows=None if ballots.rules is None else int(ballots.rules.sum()),
    )


def _plant_support(plant: str | None, points: Sequence[PointSupport]) -> PlantSupport:
    having = [set(each.members) for each in points]
    fewest = min((len(each) for each in having), default=0)
    return PlantSupport(
        plant=plant,
        points=tuple(each.point for each in points),
        members=tuple(sorted(set().union(*having))),
        complete=tuple(sorted(set.intersection(*having))) if having else (),
        fewest=fewest,
        weakest=tuple(each.point for each in points if len(each.members) == fewest),
    )


def _rests_on(own: PlantSupport, members: int) -> str:
    return (
        f"This plant's detector reads {len(own.points)} points and rests on {len(own.members)} of "
        f"{members} members; {len(own.complete)} of them have all of its points, and every point "
        f"has at least {own.fewest}."
    )


def _members(count: int) -> str:
    return "1 member" if count == 1 else f"{count} members"


class _Counted:
    """The figures of every set."""

    def __init__(self, ballots: Ballots, damage: Damage) -> None:
        self.damage = damage
        self.attack_windows = int((ballots.labels == Label.ATTACK).sum())
        self.normal_windows = int((ballots.labels == Label.NORMAL).sum())
        self._stride_s = ballots.stride_s
        found, false = damage.surviving_attack_windows, damage.forced_normal_windows
        # Without an alarm that survives or is false, every alarm that can be raised is right.
        undefined = np.where(damage.forced_attack_windows > 0, 1.0, np.nan)
        self._attacks_detected = np.isfinite(damage.attack_delays).sum(axis=1)
        self._precision = np.divide(found, found + false, out=undefined, where=found + false > 0)

    def worst(self, which: Bools) -> CertifiedFigures:
        """Return the worst of each figure over some of the sets."""
        damage, normal = self.damage, self.normal_windows
        events = int(damage.false_events[which].max())
        return CertifiedFigures(
            recall=int(damage.surviving_attack_windows[which].min()) / self.attack_windows,
            attacks_detected=int(self._attacks_detected[which].min()),
            precision=_least(self._precision[which]),
            time_in_alarm=int(damage.forced_normal_windows[which].max()) / normal
            if normal
            else None,
            false_events=events,
            false_alarms_per_week=per_week(events, windows=normal, stride_s=self._stride_s),
            batadal_score=_least(damage.batadal[which]),
        )

    def worst_sets(self, sets: MaliciousSets) -> WorstSets:
        """Return the set that reaches each worst figure."""
        damage = self.damage
        return WorstSets(
            recall=sets.sets[int(damage.surviving_attack_windows.argmin())],
            attacks_detected=sets.sets[int(self._attacks_detected.argmin())],
            precision=sets.sets[int(np.nan_to_num(self._precision, nan=np.inf).argmin())],
            time_in_alarm=sets.sets[int(damage.forced_normal_windows.argmax())],
            false_events=sets.sets[int(damage.false_events.argmax())],
            batadal_score=sets.sets[int(np.nan_to_num(damage.batadal, nan=np.inf).argmin())],
        )


def _least(values: Floats) -> float | None:
    """Return the least value; None if none is defined."""
    defined = values[~np.isnan(values)]
    return float(defined.min()) if defined.size else None


def _attacks(ballots: Ballots, actual: Damage, damage: Damage) -> tuple[AttackCertificate, ...]:
    attacks = ballots.outcome.attacks
    latest = damage.attack_delays.max(axis=0)
    return tuple(
        AttackCertificate(
            first_row=int(ballots.last_rows[start]),
            last_row=int(ballots.last_rows[stop - 1]),
            delay_s=_delay(now, ballots.stride_s),
            certified_delay_s=_delay(late, ballots.stride_s),
        )
        for start, stop, now, late in zip(
            attacks.starts, attacks.stops, actual.attack_delays[0], latest, strict=True
        )
    )


def _delay(windows: float, stride_s: float) -> float | None:
    return float(windows) * stride_s if np.isfinite(windows) else None
