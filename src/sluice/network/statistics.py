"""The shared model of plants that share statistics: the statistic of each member, in one encoding.

Nothing is added up. Each member's statistic stays as the member sent it, under the attestation and
the round that tie it to an entry of the log. So a member can be taken out again exactly, and every
plant makes the same detectors of it.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from sluice.attestation import digest
from sluice.detector import (
    Detector,
    MemberContribution,
    MomentSettings,
    MomentStatistic,
    Parameters,
    Physics,
    TrainingSummary,
    statistic_bytes,
    with_rules,
)
from sluice.errors import DocumentError, SettingError
from sluice.federation import VoteSettings, hold_vote
from sluice.invariants import RuleSet
from sluice.network.terms import FederationTerms
from sluice.telemetry import Record

__all__ = [
    "LARGEST_MODEL",
    "MemberStatistic",
    "MemberStatistics",
    "demand_points",
    "encoded",
    "members_max",
    "points_bytes",
    "read_encoded",
    "settings_in",
    "vote_of",
]

MAGIC = b"sluice-members-1"
HEADER = struct.Struct("<16s32sQ")
POINTS_MAGIC = b"sluice-points-1\0"
MEMBER = struct.Struct("<64s32sQ")
LARGEST_MODEL = 16 * 1024 * 1024
"""Bytes of all statistics together, so that one question holds them and a page of the log."""


def encoded(statistic: MomentStatistic, settings: MomentSettings) -> bytes:
    """Return the encoding of a statistic of a federation with these settings.

    A plant that lacks points sums those that it has. It then names them first, one bit a point.
    """
    if statistic.settings == settings:
        return statistic.canonical()
    has = np.array([name in statistic.settings.channels for name in settings.channels])
    return POINTS_MAGIC + np.packbits(has).tobytes() + statistic.canonical()


def settings_in(raw: bytes, settings: MomentSettings) -> tuple[MomentSettings, int]:
    """Return the settings of the statistic that begins here, and the bytes before its sums."""
    if raw[: len(POINTS_MAGIC)] != POINTS_MAGIC:
        return settings, 0
    count = len(settings.registers)
    start = points_bytes(settings)
    bits = np.unpackbits(np.frombuffer(raw[len(POINTS_MAGIC) : start], np.uint8))
    if len(bits) < count or bits[count:].any() or not 0 < bits[:count].sum() < count:
        raise SettingError(
            "the points of a statistic are named by one bit each; a plant with all points names "
            "none, and one without any cannot share"
        )
    chosen = [name for name, has in zip(settings.channels, bits, strict=False) if has]
    return settings.only(chosen), start


def points_bytes(settings: MomentSettings) -> int:
    """Return the bytes by which a plant that lacks points names those that it has."""
    return len(POINTS_MAGIC) + -(-len(settings.registers) // 8)


def demand_points(statistic: MomentStatistic, own: MomentSettings) -> None:
    """Raise unless a statistic is of these points."""
    if statistic.settings != own:
        strange = set(statistic.settings.channels) ^ set(own.channels)
        raise SettingError(
            f"it is of other points than the plant's registered rules describe: {min(strange)!r} "
            "differs"
        )


def read_encoded(raw: bytes, settings: MomentSettings) -> MomentStatistic:
    """Read one encoded statistic under the settings of its federation; refuse any other bytes."""
    own, start = settings_in(raw, settings)
    return MomentStatistic.from_canonical(raw[start:], own)


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberStatistic:
    """What one member shares, and the log entries that it belongs to."""

    name: str
    attestation: str  # of the batch that was summed
    round: int  # in which it was revealed
    statistic: MomentStatistic


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberStatistics:
    """The statistics of all members, by name."""

    settings: MomentSettings
    members: tuple[MemberStatistic, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The members, by name."""
        return tuple(member.name for member in self.members)

    def of(self, name: str) -> MemberStatistic | None:
        """Return what a member shares; None if it is no member."""
        return next((member for member in self.members if member.name == name), None)

    def joined_by(self, members: Iterable[MemberStatistic]) -> "MemberStatistics":
        """Return the model with more members; a statistic replaces an earlier one of its member."""
        named = {member.name: member for member in (*self.members, *members)}
        ordered = tuple(named[name] for name in sorted(named))
        return MemberStatistics(settings=self.settings, members=ordered)

    def without(self, name: str) -> "MemberStatistics":
        """Return the model without a member; all other statistics stay as they are."""
        left = tuple(member for member in self.members if member.name != name)
        return MemberStatistics(settings=self.settings, members=left)

    def canonical(self) -> bytes:
        """Return the one encoding of these statistics, members by name."""
        parts = [HEADER.pack(MAGIC, bytes.fromhex(self.settings.digest), len(self.members))]
        for member in self.members:
            name, attested = member.name.encode(), bytes.fromhex(member.attestation)
            parts.append(MEMBER.pack(name, attested, member.round))
            parts.append(encoded(member.statistic, self.settings))
        return b"".join(parts)

    @property
    def parameters(self) -> Parameters:
        """The encoding as a checkpoint holds it: bytes, in place of weights."""
        return cast("Parameters", np.frombuffer(self.canonical(), np.uint8))

    @property
    def digest(self) -> str:
        """The hash by which the log names this model."""
        return digest("model", self.canonical()).hex()

    @classmethod
    def from_canonical(cls, raw: bytes, settings: MomentSettings) -> "MemberStatistics":
        """Read the encoding of statistics under known settings; refuse any other bytes."""
        if not HEADER.size <= len(raw) <= LARGEST_MODEL:
            raise DocumentError(
                f"the statistics of the members have {len(raw):,} bytes; expected at least "
                f"{HEADER.size:,} and at most {LARGEST_MODEL:,}"
            )
        magic, named, count = HEADER.unpack_from(raw)
        if magic != MAGIC or named.hex() != settings.digest:
            raise DocumentError("the statistics of the members are of another federation's terms")
        members, start = [], HEADER.size
        while start < len(raw):
            own = raw[start + MEMBER.size :]
            try:
                sums, before = settings_in(own, settings)
                size = before + statistic_bytes(sums)
                if len(own) < size:
                    raise DocumentError(
                        f"the statistics of the members have {len(raw):,} bytes, and the last one "
                        f"is cut: it has {len(own):,} of {size:,}"
                    )
                name, attestation, round_ = MEMBER.unpack_from(raw, start)
                members.append(
                    MemberStatistic(
                        name=name.rstrip(b"\0").decode("ascii"),
                        attestation=attestation.hex(),
                        round=round_,
                        statistic=MomentStatistic.from_canonical(own[before:size], sums),
                    )
                )
            except (SettingError, UnicodeDecodeError) as error:
                raise DocumentError(f"the statistic of a member cannot be read: {error}") from None
            start += MEMBER.size + size
        read = cls(settings=settings, members=tuple(members))
        if len(members) != count or list(read.names) != sorted(set(read.names)):
            raise DocumentError("the statistics of the members are not in their one order")
        return read


def members_max(settings: MomentSettings) -> int:
    """Return how many members one message can hold."""
    return (LARGEST_MODEL - HEADER.size) // (MEMBER.size + statistic_bytes(settings))


def vote_of(  # noqa: PLR0913 - a detector is these parts
    shared: MemberStatistics,
    terms: FederationTerms,
    clean: Record,
    *,
    rounds: int,
    rules: RuleSet | None,
    false_alarms_per_week: float,
) -> Detector:
    """Make the vote of all members, with thresholds from a plant's own clean rows.

    The vote reads the points that the plant has. A member votes on those that it has too.
    With the plant's own `rules`, an alarm of the rules is an alarm too. Then the voters and the
    rules each get half of the false alarms that were asked for.
    """
    statistic, framing = terms.statistic, terms.framing_on(clean.names)
    moments = replace(terms.moments, scaler=framing.scaler)
    assert statistic is not None
    share = 1.0 if rules is None else 0.5
    settings = VoteSettings.on(
        clean,
        rule=statistic.rule,
        malicious=statistic.malicious,
        false_alarms_per_week=share * false_alarms_per_week,
    )
    training = TrainingSummary(
        records=(),  # no plant knows the others' records
        windows=sum(member.statistic.count for member in shared.members),
        seed=terms.seed,
        clients=len(shared.members),
        rounds=rounds,
        rule=statistic.rule,
        federation=terms.federation,
        model=shared.digest,
        contributions=tuple(
            MemberContribution(
                member=member.name,
                statistic=member.statistic.digest,
                attestation=member.attestation,
                windows=member.statistic.count,
            )
            for member in shared.members
        ),
    )
    sums = {member.name: member.statistic for member in shared.members}
    detector = hold_vote(
        sums, moments, framing, framing.windows(clean), settings=settings, training=training
    )
    return detector if rules is None else with_rules(detector, Physics(rules=rules), clean)
