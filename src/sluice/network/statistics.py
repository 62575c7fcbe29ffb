"""The shared model of plants that share statistics: the statistic of each member, in one encoding.

If the statistics are bound, the rules of each member decide what it sums. Then the encoding also
holds the settings of each statistic, which the statistic names by their hash.

Nothing is added up. Each member's statistic stays as the member sent it, under the attestation and
the round that tie it to an entry of the log. So a member can be taken out again exactly, and every
plant makes the same detectors of it.

If plants share in groups, a member of the model is a group, and its statistic is the group's sum.
"""

import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import rfc8785
from pydantic import TypeAdapter, ValidationError

from sluice.attestation import digest
from sluice.attestation.log import GroupInForce
from sluice.attestation.systems import Circuit
from sluice.attestation.systems.full import statistic_settings
from sluice.detector import (
    LENT_BYTES,
    Detector,
    LentTail,
    MemberContribution,
    MomentSettings,
    MomentStatistic,
    Parameters,
    Physics,
    ReceiverMoments,
    TrainingSummary,
    moment_statistic,
    statistic_bytes,
    with_rules,
)
from sluice.errors import DocumentError, RefusedError, SettingError
from sluice.federation import ANY_OF_SUBSETS, VoteSettings, hold_vote
from sluice.invariants import Register, RuleSet, tied_channels
from sluice.network.terms import FederationTerms
from sluice.telemetry import Record

__all__ = [
    "LARGEST_MODEL",
    "MemberStatistic",
    "MemberStatistics",
    "demand_fitting",
    "demand_points",
    "encoded",
    "largest_settings",
    "members_max",
    "plant_statistic",
    "points_bytes",
    "read_encoded",
    "settings_in",
    "untied_in",
    "vote_of",
]

MAGIC = b"sluice-members-1"
BOUND_MAGIC = b"sluice-members-2"
NO_SETTINGS = bytes(32)
LENGTH = struct.Struct("<Q")
HEADER = struct.Struct("<16s32sQ")
POINTS_MAGIC = b"sluice-points-1\0"
MEMBER = struct.Struct("<64s32sQ")
SETTINGS_ROOM = 512
"""Bytes of the settings of a statistic for each channel, at most."""
LARGEST_MODEL = 16 * 1024 * 1024
"""Bytes of all statistics together, so that one question holds them and a page of the log."""


def encoded(statistic: MomentStatistic, settings: MomentSettings | None) -> bytes:
    """Return the encoding of a statistic of a federation with these settings.

    A plant that lacks points sums those that it has. It then names them first, one bit a point.
    A bound statistic (of no common settings) is encoded as its proof binds it.
    """
    if settings is None or statistic.settings == settings:
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
    tail: LentTail | None = None  # that it lends to plants with few clean rows


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberStatistics:
    """The statistics of all members, by name."""

    settings: MomentSettings | None  # None: bound statistics, each with settings of its own
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
        if self.settings is None:
            parts = [HEADER.pack(BOUND_MAGIC, NO_SETTINGS, len(self.members))]
        else:
            parts = [HEADER.pack(MAGIC, bytes.fromhex(self.settings.digest), len(self.members))]
        for member in self.members:
            name, attested = member.name.encode(), bytes.fromhex(member.attestation)
            parts.append(MEMBER.pack(name, attested, member.round))
            if self.settings is None:
                own = rfc8785.dumps(_SETTINGS.dump_python(member.statistic.settings, mode="json"))
                parts += (LENGTH.pack(len(own)), own)
            parts.append(encoded(member.statistic, self.settings))
            if member.tail is not None:
                parts.append(member.tail.canonical())
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
    def from_canonical(cls, raw: bytes, settings: MomentSettings | None) -> "MemberStatistics":
        """Read the encoding of statistics under known settings; refuse any other bytes.

        Without settings, the statistics are bound, and each comes with its own.
        """
        if not HEADER.size <= len(raw) <= LARGEST_MODEL:
            raise DocumentError(
                f"the statistics of the members have {len(raw):,} bytes; expected at least "
                f"{HEADER.size:,} and at most {LARGEST_MODEL:,}"
            )
        magic, named, _ = HEADER.unpack_from(raw)
        expected = (
            (MAGIC, bytes.fromhex(settings.digest)) if settings else (BOUND_MAGIC, NO_SETTINGS)
        )
        if (magic, named) != expected:
            raise DocumentError("the statistics of the members are of another federation's terms")
        members, at = [], HEADER.size
        while at < len(raw):
            try:
                member, at = _read_member(raw, at, settings)
            except (SettingError, UnicodeDecodeError, struct.error) as error:
                raise DocumentError(f"the statistic of a member cannot be read: {error}") from None
            members.append(member)
        read = cls(settings=settings, members=tuple(members))
        if list(read.names) != sorted(set(read.names)):
            raise DocumentError("the statistics of the members are not in their one order")
        if read.canonical() != raw:
            raise DocumentError("the statistics of the members are not in their one encoding")
        return read


def plant_statistic(batch: Record, terms: FederationTerms, circuit: Circuit) -> MomentStatistic:
    """Sum a plant's rows over the points that it has, as the terms say or as its proof binds them.

    Channels that no rule of the plant ties have zeros.
    """
    rules, settings = circuit.rules, statistic_settings(circuit) if terms.binds else None
    if settings is None:
        settings = terms.moments.settings.only({channel.name for channel in rules.channels})
    return moment_statistic(batch, settings).without(untied_in(settings, rules))


def untied_in(settings: MomentSettings, rules: RuleSet) -> tuple[str, ...]:
    """Return the channels of a statistic that no rule of a plant ties to others.

    A plant can report anything in them, so its statistic has zeros there, and its voter does not
    read them.
    """
    tied = tied_channels(rules)
    return tuple(name for name in settings.channels if name not in tied)


_SETTINGS = TypeAdapter(MomentSettings)


def _read_member(
    raw: bytes, at: int, settings: MomentSettings | None
) -> tuple[MemberStatistic, int]:
    """Read one member from its place on; return it, and where the next one begins."""
    name, attestation, round_ = MEMBER.unpack_from(raw, at)
    at += MEMBER.size
    if settings is None:
        (length,) = LENGTH.unpack_from(raw, at)
        at += LENGTH.size
        try:
            settings = _SETTINGS.validate_json(raw[at : at + length], strict=True)
        except ValidationError as error:
            raise SettingError(f"settings: {error.errors(include_input=False)[0]['msg']}") from None
        at += length
    else:
        settings, named = settings_in(raw[at:], settings)
        at += named
    size = statistic_bytes(settings)
    member = MemberStatistic(
        name=name.rstrip(b"\0").decode("ascii"),
        attestation=attestation.hex(),
        round=round_,
        statistic=MomentStatistic.from_canonical(raw[at : at + size], settings),
        tail=LentTail.at(raw[at + size : at + size + LENT_BYTES]),
    )
    return member, at + size + (LENT_BYTES if member.tail else 0)


def largest_settings(terms: FederationTerms) -> MomentSettings:
    """Return settings of the longest statistic that a plant can share under these terms."""
    statistic = terms.statistic
    assert statistic is not None
    if not statistic.bound:
        return terms.moments.settings
    registers = tuple(Register(channel=name, low=0.0, step=1.0) for name in terms.channels)
    return MomentSettings(registers=registers, lags=statistic.lags)


def demand_fitting(
    plant: str, own: MomentSettings, terms: FederationTerms, others: Iterable[MomentSettings] = ()
) -> None:
    """Raise unless a plant's bound statistic can be read under the federation's terms."""
    statistic = terms.statistic
    assert statistic is not None
    unknown = sorted(set(own.channels) - set(terms.channels))
    if unknown or own.lags != statistic.lags:
        raise RefusedError(
            f"the rules of {plant!r} sum channel {unknown[0]!r}, which the federation's terms do "
            "not name; the coordinator's reference needs it, or the rules must leave it out"
            if unknown
            else f"the statistic of {plant!r} has {own.lags} lags, and the federation's terms name "
            f"{statistic.lags}; use the same version of the software"
        )
    added = statistic.rule == ANY_OF_SUBSETS or terms.grouped
    if added and any(other != own for other in others):
        why = (
            "groups need equal ones: give all plants rules with the same channels and ranges"
            if terms.grouped
            else f"rule {ANY_OF_SUBSETS!r} needs equal ones: use rule 'vote'"
        )
        raise RefusedError(
            f"the rules of {plant!r} sum other channels or registers than those of the other "
            f"plants, so their sums cannot be added; {why}"
        )


def members_max(settings: MomentSettings, *, bound: bool = False) -> int:
    """Return how many members one message can hold."""
    own = 0
    if bound:
        own = LENGTH.size + SETTINGS_ROOM * (1 + len(settings.registers))
    member = MEMBER.size + own + statistic_bytes(settings) + LENT_BYTES
    return (LARGEST_MODEL - HEADER.size) // member


def vote_of(  # noqa: PLR0913 - a detector is these parts
    shared: MemberStatistics,
    terms: FederationTerms,
    clean: Record,
    *,
    rounds: int,
    rules: RuleSet | None,
    false_alarms_per_week: float,
    borrowed: bool = False,
    groups: Iterable[GroupInForce] = (),
) -> Detector:
    """Make the vote of all members, with thresholds from a plant's own clean rows.

    The vote reads the points that the plant has. A member votes on those that it has too.
    With the plant's own `rules`, an alarm of the rules is an alarm too. Then the voters and the
    rules each get half of the false alarms that were asked for. `groups` are the groups that vote,
    if plants share in groups.

    With `borrowed`, the tails that members lend set the thresholds of their voters. The rules are
    left out if the clean rows are too few to set their threshold: members do not lend it.
    """
    statistic, framing = terms.statistic, terms.framing_on(clean.names)
    assert statistic is not None
    if not shared.members:
        raise RefusedError("no plant has shared a statistic yet, so there is no vote")
    for member in shared.members if statistic.bound else ():
        others = (other.statistic.settings for other in shared.members)
        demand_fitting(member.name, member.statistic.settings, terms, others)
    moments = ReceiverMoments(
        settings=shared.settings or shared.members[0].statistic.settings, scaler=framing.scaler
    )
    share = 1.0 if rules is None else 0.5
    settings = VoteSettings.on(
        clean,
        rule=statistic.rule,
        malicious=statistic.malicious,
        false_alarms_per_week=share * false_alarms_per_week,
        borrowed=borrowed,
    )
    plants = {group.name: group.members for group in groups}
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
                plants=plants.get(member.name, ()),
            )
            for member in shared.members
        ),
    )
    sums = {member.name: member.statistic for member in shared.members}
    tails = {member.name: member.tail for member in shared.members if member.tail is not None}
    windows = framing.windows(clean)
    detector = hold_vote(
        sums, moments, framing, windows, settings=settings, training=training, tails=tails
    )
    if rules is None:
        return detector
    try:
        return with_rules(detector, Physics(rules=rules), clean)
    except SettingError:
        if not borrowed:
            raise
    alone = replace(settings, false_alarms_per_week=false_alarms_per_week)
    return hold_vote(
        sums, moments, framing, windows, settings=alone, training=training, tails=tails
    )
