"""The shared model of plants that share statistics: the statistic of each member, in one encoding.

Nothing is added up. Each member's statistic stays as the member sent it, under the attestation and
the round that tie it to an entry of the log. So a member can be taken out again exactly, and every
plant makes the same detectors of it.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
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
from sluice.invariants import RuleSet, tied_channels
from sluice.network.terms import FederationTerms
from sluice.telemetry import Record

__all__ = [
    "LARGEST_MODEL",
    "MemberStatistic",
    "MemberStatistics",
    "members_max",
    "untied_in",
    "vote_of",
]

MAGIC = b"sluice-members-1"
HEADER = struct.Struct("<16s32sQ")
MEMBER = struct.Struct("<64s32sQ")
LARGEST_MODEL = 16 * 1024 * 1024
"""Bytes of all statistics together, so that one question holds them and a page of the log."""


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
            parts += (MEMBER.pack(name, attested, member.round), member.statistic.canonical())
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
        each = MEMBER.size + statistic_bytes(settings)
        if len(raw) < HEADER.size or (len(raw) - HEADER.size) % each or len(raw) > LARGEST_MODEL:
            raise DocumentError(
                f"the statistics of the members have {len(raw):,} bytes; expected "
                f"{HEADER.size:,} and {each:,} for each member, at most {LARGEST_MODEL:,}"
            )
        magic, named, count = HEADER.unpack_from(raw)
        if magic != MAGIC or named.hex() != settings.digest:
            raise DocumentError("the statistics of the members are of another federation's terms")
        members = []
        for start in range(HEADER.size, len(raw), each):
            name, attestation, round_ = MEMBER.unpack_from(raw, start)
            own = raw[start + MEMBER.size : start + each]
            try:
                members.append(
                    MemberStatistic(
                        name=name.rstrip(b"\0").decode("ascii"),
                        attestation=attestation.hex(),
                        round=round_,
                        statistic=MomentStatistic.from_canonical(own, settings),
                    )
                )
            except (SettingError, UnicodeDecodeError) as error:
                raise DocumentError(f"the statistic of a member cannot be read: {error}") from None
        read = cls(settings=settings, members=tuple(members))
        if len(members) != count or list(read.names) != sorted(set(read.names)):
            raise DocumentError("the statistics of the members are not in their one order")
        return read


def untied_in(settings: MomentSettings, rules: RuleSet) -> tuple[str, ...]:
    """Return the channels of a statistic that no rule of a plant ties to others.

    A plant can report anything in them, so its statistic has zeros there, and its voter does not
    read them.
    """
    tied = tied_channels(rules)
    return tuple(name for name in settings.channels if name not in tied)


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

    With the plant's own `rules`, an alarm of the rules is an alarm too. Then the voters and the
    rules each get half of the false alarms that were asked for.
    """
    statistic, moments, framing = terms.statistic, terms.moments, terms.framing
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
