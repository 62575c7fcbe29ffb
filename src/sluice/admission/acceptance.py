"""Acceptance: a coordinator checks a plant's rules against its policy before they gate that plant.

A plant must not choose its own gate. Only the rules file is read, never telemetry. What a file
states about clean rows is the plant's own claim, so every number from which a budget follows has a
ceiling or a floor. The next file is compared with the last accepted one by the integer budgets that
follow from both. Text in a rules file decides nothing: why a channel has no rule is declared in the
policy, or by the approver.
"""

import math
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType

from sluice.errors import RulesFileError
from sluice.invariants import (
    TOLERANCE,
    Balance,
    Bound,
    Budgets,
    CleanFacts,
    Constant,
    Coupling,
    Invariant,
    Margins,
    Mean,
    Rate,
    Relation,
    RuleSet,
    Spectrum,
    SwitchBand,
    Term,
    Tie,
    Window,
    amount,
    budgets_for,
    duration,
    encode,
    fact_faults,
    number,
    prediction_shift,
    register_of,
    unit_of,
    untied_channels,
)
from sluice.telemetry import Role, Span

__all__ = [
    "ROWS_MAX",
    "ROWS_MIN",
    "Acceptance",
    "Objection",
    "ObjectionKind",
    "commands",
    "objections",
    "unsound",
]

ROWS_MIN, ROWS_MAX = 200, 1 << 20
"""Rows of the shortest and of the longest batch, unless a policy states others."""
LEAST_EFFECT = 0.5
"""Of a tolerance: a rule reads a term only if the term alone can move its residual by more."""
HARDENED_MARGINS = Margins()
RENEW = "mine with --update, or get a second approval"
NOTHING_DECLARED: Mapping[str, str] = MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """What a plant's rules must be before they may gate that plant."""

    rules_min: int = 3  # couplings, balances and windows
    coupling_tolerance_max: float = 0.5  # of each nominal flow: looser cannot tell on from off
    balance_tolerance_max: float = 0.25  # of the level's span
    tank_power: float = 0.5  # of the change its flows can make: one rule per tank must detect it
    every_tank: bool = True  # a balance or window for each level, or a declared reason
    every_pump: bool = True  # a rule that reads each actuator, or a declared reason
    reasons: dict[str, str] = field(default_factory=dict)  # channel or rule -> why it has none
    refused_max: float = 0.005  # share of honest batches that would be refused: `mine`'s target
    untied_max: float = 0.35  # share of channels that no rule may tie down
    tie_tolerance_max: float = 0.25  # of the channel's span
    idle_tolerance_max: float = 0.05  # of the channel's span, for a channel that never moved
    band_max: float = 0.5  # of the level's span: the width of a switch band
    noise_max: float = 1e4  # largest over smallest sum of squares that a spectrum may allow
    switches_max: float = 0.01  # share of clean rows with a switch out of band, per rule
    noisy_blocks_max: float = 0.05  # share of clean blocks out of their limits, per spectrum
    severe_max: float = 1.0  # of nominal flow or span: the largest residual a file may claim
    envelope_max: float = 0.3  # share of clean rows claimed to be in transition, per coupling
    anchors_max: float = 0.01  # share of clean windows claimed not to balance, per rule
    jumps_max: float = 0.01  # time jumps claimed for clean data, per row
    repeats_max: float = 0.1  # share of clean rows claimed to repeat, per level
    liveness_min: float = 0.0002  # of the span: each level moves by this within one block
    blocks_max: int = 1_024  # rows of the longest block that counts for this
    looser_than_last: float = 1.0  # tolerances and budgets over those of the last accepted file


class ObjectionKind(StrEnum):
    """What is wrong with a rules file."""

    DUPLICATE_NAME = "duplicate-name"
    BAD_TOLERANCE = "bad-tolerance"
    UNDESCRIBED_CHANNEL = "undescribed-channel"
    CLEAN_FACTS = "clean-facts"
    NOT_ENCODABLE = "not-encodable"
    NO_PHYSICS = "no-physics"
    TOO_FEW_RULES = "too-few-rules"
    NO_CLEAN_FACTS = "no-clean-facts"
    LOOSE_TOLERANCE = "loose-tolerance"
    WIDE_LIMITS = "wide-limits"
    UNCOVERED_TANK = "uncovered-tank"
    UNCOVERED_ACTUATOR = "uncovered-actuator"
    UNEXPLAINED_STANDBY = "unexplained-standby"
    REFUSES_CLEAN_BATCHES = "refuses-clean-batches"
    CLAIMED_RESIDUAL = "claimed-residual"
    CLAIMED_TRANSITIONS = "claimed-transitions"
    CLAIMED_WINDOWS = "claimed-windows"
    CLAIMED_REPEATS = "claimed-repeats"
    CLAIMED_JUMPS = "claimed-jumps"
    CLAIMED_SWITCHES = "claimed-switches"
    CLAIMED_BLOCKS = "claimed-blocks"
    UNTIED_CHANNELS = "untied-channels"
    MAY_STAND_STILL = "may-stand-still"
    LONGER_THAN_BATCHES = "longer-than-batches"
    NOT_COMPARABLE = "not-comparable"
    MISSING_SINCE_LAST = "missing-since-last"
    WIDER_RANGE = "wider-range"
    LONGER_SETTLING = "longer-settling"
    LOOSER_THAN_LAST = "looser-than-last"
    OTHER_PREDICTION = "other-prediction"
    LARGER_RESIDUAL = "larger-residual"
    MORE_JUMPS = "more-jumps"
    MORE_TRANSITIONS = "more-transitions"
    MORE_WINDOWS = "more-windows"
    MORE_REPEATS = "more-repeats"
    MORE_SWITCHES = "more-switches"
    MORE_BLOCKS = "more-blocks"
    LESS_MOVEMENT = "less-movement"
    CHANGED_CHANNEL = "changed-channel"
    WIDER_SPAN = "wider-span"
    CHANGED_CODES = "changed-codes"


_WORDS = {
    ObjectionKind.DUPLICATE_NAME: "{found} rules are named {subject!r}",
    ObjectionKind.BAD_TOLERANCE: "{subject}: the tolerance is {found}; it must be above {allowed}",
    ObjectionKind.UNDESCRIBED_CHANNEL: "{subject} reads {found}, which the file does not describe",
    ObjectionKind.CLEAN_FACTS: "{subject}: {found}; it must be {allowed}",
    ObjectionKind.NOT_ENCODABLE: "{found}",
    ObjectionKind.NO_PHYSICS: (
        "the rules hold no coupling, balance or window: every batch in range would be admitted"
    ),
    ObjectionKind.TOO_FEW_RULES: (
        "{found} rules relate channels to each other; the policy requires {allowed}"
    ),
    ObjectionKind.NO_CLEAN_FACTS: (
        "the rules are of profile {found!r}, which states nothing about clean batches"
    ),
    ObjectionKind.LOOSE_TOLERANCE: (
        "{subject}: tolerance {found}; the policy allows less than {allowed}"
    ),
    ObjectionKind.WIDE_LIMITS: "{subject}: {found}; the policy allows {allowed}",
    ObjectionKind.UNCOVERED_TANK: (
        "{subject} has no balance or window tight enough to detect {allowed} of the change that "
        "its flows can make"
    ),
    ObjectionKind.UNCOVERED_ACTUATOR: "no coupling or balance reads {subject}",
    ObjectionKind.UNEXPLAINED_STANDBY: (
        "{subject} is not checked while {found} runs, and nothing declares that {found} is on "
        "standby"
    ),
    ObjectionKind.REFUSES_CLEAN_BATCHES: (
        "{found} of clean batches would be refused; the policy allows {allowed}"
    ),
    ObjectionKind.CLAIMED_RESIDUAL: (
        "{subject}: the file claims clean residuals up to {found}; the policy accepts {allowed}"
    ),
    ObjectionKind.CLAIMED_TRANSITIONS: (
        "{subject}: the file claims {found} of clean rows in transition; the policy accepts "
        "{allowed}"
    ),
    ObjectionKind.CLAIMED_WINDOWS: (
        "{subject}: the file claims that {found} of clean windows do not balance; the policy "
        "accepts {allowed}"
    ),
    ObjectionKind.CLAIMED_REPEATS: (
        "{subject}: the file claims that {found} of clean rows repeat; the policy accepts {allowed}"
    ),
    ObjectionKind.CLAIMED_JUMPS: (
        "the file claims that {found} of clean rows follow a time jump; the policy accepts "
        "{allowed}"
    ),
    ObjectionKind.CLAIMED_SWITCHES: (
        "{subject}: the file claims that {found} of clean rows have a switch out of band; the "
        "policy accepts {allowed}"
    ),
    ObjectionKind.CLAIMED_BLOCKS: (
        "{subject}: the file claims that {found} of clean blocks are out of their limits; the "
        "policy accepts {allowed}"
    ),
    ObjectionKind.UNTIED_CHANNELS: (
        "no rule besides a bound or a rate reads {found}; the policy allows {allowed}"
    ),
    ObjectionKind.MAY_STAND_STILL: (
        "{subject} may stand still: the file has it move by {found}; the policy requires {allowed}"
    ),
    ObjectionKind.LONGER_THAN_BATCHES: (
        "the longest window or block of the rules needs {found} rows; the longest batch has "
        "{allowed}"
    ),
    ObjectionKind.NOT_COMPARABLE: (
        "the rules cannot be compared with the last accepted ones: {found}; expected {allowed}"
    ),
    ObjectionKind.MISSING_SINCE_LAST: "{subject} is missing; the last accepted file has it",
    ObjectionKind.WIDER_RANGE: "{subject}: {found} is wider than the last accepted {allowed}",
    ObjectionKind.LONGER_SETTLING: (
        "{subject} settles in {found} rows; the last accepted file has {allowed}"
    ),
    ObjectionKind.OTHER_PREDICTION: (
        "{subject}: its coefficients or nominal flows moved; it accepts readings up to {found} "
        "from what the last accepted file predicts, which allows {allowed}"
    ),
    ObjectionKind.LOOSER_THAN_LAST: (
        "{subject}: tolerance {found} is looser than the last accepted file allows ({allowed})"
    ),
    ObjectionKind.LARGER_RESIDUAL: (
        "{subject}: residuals up to {found} would not be severe; the last accepted file allows "
        "{allowed}"
    ),
    ObjectionKind.MORE_JUMPS: (
        "a batch may have {found} segments; the last accepted file allows {allowed}"
    ),
    ObjectionKind.MORE_TRANSITIONS: (
        "{subject} may be in transition on {found} rows; the last accepted file allows {allowed}"
    ),
    ObjectionKind.MORE_WINDOWS: (
        "{subject}: {found} windows may be out of balance; the last accepted file allows {allowed}"
    ),
    ObjectionKind.MORE_REPEATS: (
        "{subject} may repeat on {found} rows; the last accepted file allows {allowed}"
    ),
    ObjectionKind.MORE_SWITCHES: (
        "{subject}: {found} switches may be out of band; the last accepted file allows {allowed}"
    ),
    ObjectionKind.MORE_BLOCKS: (
        "{subject}: {found} blocks may be out of their limits; the last accepted file allows "
        "{allowed}"
    ),
    ObjectionKind.LESS_MOVEMENT: (
        "{subject} needs to move by {found}; the last accepted file requires {allowed}"
    ),
    ObjectionKind.CHANGED_CHANNEL: (
        "channel {subject} is no longer described as a {allowed} with its span"
    ),
    ObjectionKind.WIDER_SPAN: "the span of channel {subject} grew from {allowed} to {found}",
    ObjectionKind.CHANGED_CODES: "the codes of actuator {subject} changed",
}


_MINE = "sluice mine RECORD --out {rules}"
_UPDATE = "sluice mine RECORD --out {rules} --update {last}"
_EDIT = "sluice rules seal {rules}"
_APPROVE = "sluice rules approve {rules} --key approver.key --out approval.json"
_PLANT_FILE = "sluice data inspect RECORD --write-plant plant.toml"
_COMMANDS = {
    ObjectionKind.DUPLICATE_NAME: _EDIT,
    ObjectionKind.UNDESCRIBED_CHANNEL: _EDIT,
    ObjectionKind.NO_CLEAN_FACTS: _MINE + " --profile hardened",
    ObjectionKind.WIDER_SPAN: _PLANT_FILE,
    ObjectionKind.CHANGED_CODES: _PLANT_FILE,
    ObjectionKind.NOT_COMPARABLE: _UPDATE,
    ObjectionKind.WIDER_RANGE: _UPDATE,
    ObjectionKind.LONGER_SETTLING: _UPDATE,
    ObjectionKind.LOOSER_THAN_LAST: _UPDATE,
    ObjectionKind.OTHER_PREDICTION: _UPDATE,
    ObjectionKind.LARGER_RESIDUAL: _UPDATE,
    ObjectionKind.MORE_JUMPS: _UPDATE,
    ObjectionKind.MORE_TRANSITIONS: _UPDATE,
    ObjectionKind.MORE_WINDOWS: _UPDATE,
    ObjectionKind.MORE_REPEATS: _UPDATE,
    ObjectionKind.MORE_SWITCHES: _UPDATE,
    ObjectionKind.MORE_BLOCKS: _UPDATE,
    ObjectionKind.LESS_MOVEMENT: _UPDATE,
}
"""The command for an objection that no declaration cures; `_MINE`, on other rows, for the rest."""
_DECLARED = {
    ObjectionKind.UNCOVERED_TANK,
    ObjectionKind.UNCOVERED_ACTUATOR,
    ObjectionKind.UNEXPLAINED_STANDBY,
    ObjectionKind.MAY_STAND_STILL,
    ObjectionKind.MISSING_SINCE_LAST,
    ObjectionKind.CHANGED_CHANNEL,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Objection:
    """One thing that is wrong with a rules file, and what to do about it."""

    kind: ObjectionKind
    subject: str = ""  # the rule or channel; empty where the whole file is meant
    found: str = ""  # in the plant's units
    allowed: str = ""
    remedy: str

    @property
    def sentence(self) -> str:
        """The objection in words."""
        problem = _WORDS[self.kind].format(
            subject=self.subject, found=self.found, allowed=self.allowed
        )
        return f"{problem}; {self.remedy}"

    @property
    def declares(self) -> str:
        """The channel or rule for which an approver can declare a reason; empty if none can."""
        if self.kind not in _DECLARED:
            return ""
        return self.found if self.kind is ObjectionKind.UNEXPLAINED_STANDBY else self.subject


def commands(
    objections: Sequence[Objection],
    *,
    rules: str = "rules.json",
    last: str = "accepted.json",
) -> tuple[str, ...]:
    """Return a command for each objection; the user fills in what is in capitals.

    One approval declares every reason, so all objections that a reason cures have one command.
    """
    files = {"rules": shlex.quote(rules), "last": shlex.quote(last)}
    names = dict.fromkeys(each.declares for each in objections if each.declares)
    reasons = "".join(f" --declare {shlex.quote(name)}=REASON" for name in names)
    return tuple(
        (_APPROVE + reasons if each.declares else _COMMANDS.get(each.kind, _MINE)).format(**files)
        for each in objections
    )


def objections(  # noqa: PLR0913 - two files, and what policy and approver say about them
    rules: RuleSet,
    required: Acceptance,
    *,
    last: RuleSet | None = None,
    declared: Mapping[str, str] = NOTHING_DECLARED,
    margins: Margins = HARDENED_MARGINS,
    rows_min: int = ROWS_MIN,
    rows_max: int = ROWS_MAX,
) -> tuple[Objection, ...]:
    """Return the objections to the rules; empty if they are accepted.

    `declared` are an approver's reasons, by channel, beside those of the policy. `margins` and the
    numbers of rows give the budgets that are compared with those of the last accepted rules.
    """
    contradictions = unsound(rules)
    if contradictions:
        return contradictions
    reasons = {**required.reasons, **declared}
    objected = [
        *_enough(rules, required),
        *_tight(rules, required),
        *_covered(rules, required, reasons),
        *_tied(rules, required, reasons),
        *_short_enough(rules, rows_max),
    ]
    if rules.clean is None:
        objected.append(
            Objection(
                kind=ObjectionKind.NO_CLEAN_FACTS,
                found=rules.profile.value,
                remedy="mine with --profile hardened",
            )
        )
    else:
        objected += _believable(rules, rules.clean, required)
        objected += _moving(rules, rules.clean, required, reasons)
    if last is not None:
        renewal = _Renewal.of(rules, last, required, reasons)
        objected += [*_no_looser(renewal), *_wider_channels(renewal)]
        counts = _row_counts(max(rows_min, rules.rows_needed), rows_max)
        objected += _larger_budgets(renewal, margins, counts)
    return tuple(objected)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Renewal:
    """Rules beside the last accepted ones, and what may have changed between them."""

    rules: RuleSet
    last: RuleSet
    required: Acceptance
    channels: frozenset[str]  # excused by a declared reason
    names: frozenset[str]  # of excused rules

    @classmethod
    def of(
        cls, rules: RuleSet, last: RuleSet, required: Acceptance, reasons: Mapping[str, str]
    ) -> "_Renewal":
        """A reason for a channel excuses no rule that a plant gave the name of that channel."""
        known = {channel.name for file in (rules, last) for channel in file.channels}
        return cls(
            rules=rules,
            last=last,
            required=required,
            channels=frozenset(reasons),
            names=frozenset(set(reasons) - known),
        )

    def pairs(self) -> Iterator[tuple[Invariant, Invariant | None]]:
        """Yield each rule of the last file, and the rule about the same thing under its name."""
        now = {rule.name: rule for rule in self.rules.invariants}
        for old in self.last.invariants:
            if old.name not in self.names:
                new = now.get(old.name)
                same = new is not None and _judges(new.relation) == _judges(old.relation)
                yield old, new if same else None


def unsound(rules: RuleSet) -> tuple[Objection, ...]:
    """Return the objections to rules that contradict their own file: no gate can use them."""
    contradictions = []
    described = {channel.name for channel in rules.channels}
    names = Counter(rule.name for rule in rules.invariants)
    for name, count in names.items():
        if count > 1:
            contradictions.append(
                Objection(
                    kind=ObjectionKind.DUPLICATE_NAME,
                    subject=name,
                    found=str(count),
                    remedy="rename them",
                )
            )
    for rule in rules.invariants:
        if not 0 < rule.tolerance < math.inf:
            contradictions.append(
                Objection(
                    kind=ObjectionKind.BAD_TOLERANCE,
                    subject=rule.name,
                    found=f"{rule.tolerance:g}",
                    allowed="0",
                    remedy="mine the rule again",
                )
            )
        missing = [name for name in rule.relation.channels if name not in described]
        if missing:
            contradictions.append(
                Objection(
                    kind=ObjectionKind.UNDESCRIBED_CHANNEL,
                    subject=rule.name,
                    found=", ".join(missing),
                    remedy="add the channel or drop the rule",
                )
            )
    if not contradictions and rules.clean is not None:
        contradictions += [
            Objection(
                kind=ObjectionKind.CLEAN_FACTS,
                subject=fault.subject or "the file",
                found=fault.found,
                allowed=fault.allowed,
                remedy="mine the rules again",
            )
            for fault in fact_faults(rules, rules.clean)
        ]
    if not contradictions and rules.clean is not None:
        try:
            encode(rules)
        except RulesFileError as error:
            contradictions.append(
                Objection(
                    kind=ObjectionKind.NOT_ENCODABLE,
                    found=str(error),
                    remedy="mine the rules again",
                )
            )
    return tuple(contradictions)


def _enough(rules: RuleSet, required: Acceptance) -> Iterator[Objection]:
    if rules.empty:
        yield Objection(kind=ObjectionKind.NO_PHYSICS, remedy="mine other rows")
        return
    physical = sum(rule.kind.physical for rule in rules.invariants)
    if physical < required.rules_min:
        yield Objection(
            kind=ObjectionKind.TOO_FEW_RULES,
            found=str(physical),
            allowed=str(required.rules_min),
            remedy="mine more rows or more channels",
        )


def _tight(  # noqa: C901 - one case a kind
    rules: RuleSet, required: Acceptance
) -> Iterator[Objection]:
    """Compare each tolerance with the quantity it applies to."""
    by_row = {
        rule.relation.level: rule for rule in rules.invariants if isinstance(rule.relation, Balance)
    }
    for rule in rules.invariants:
        match rule.relation:
            case Coupling() as coupling:
                least = min(state.nominal for state in coupling.states)
                most = required.coupling_tolerance_max * least
                if not rule.tolerance < most:
                    basis = f"{required.coupling_tolerance_max:.0%} of its nominal flow"
                    yield _loose(rule, rules, most, basis)
                yield from _reachable(rule, coupling, rules)
            case Balance() as balance:
                span = rules.channel(balance.level).span
                if span and rule.tolerance > required.balance_tolerance_max * _width(span):
                    most = required.balance_tolerance_max * _width(span)
                    basis = f"{required.balance_tolerance_max:.0%} of the span of {balance.level}"
                    yield _loose(rule, rules, most, basis)
            case Tie(channel=channel) | Constant(channel=channel) | Mean(channel=channel):
                yield from _tight_reading(rule, channel, rules, required)
            case SwitchBand() as band:
                yield from _narrow_band(rule, band, rules, required)
            case Spectrum() as spectrum:
                yield from _narrow_noise(rule, spectrum, rules, required)
            case Window() as window if window.level in by_row:
                most = by_row[window.level].tolerance * window.rows
                if rule.tolerance > most:
                    yield _loose(rule, rules, most, f"the tolerance of {window.rows} single rows")


def _reachable(rule: Invariant, coupling: Coupling, rules: RuleSet) -> Iterator[Objection]:
    """A flow beyond the span of its meter is never read; it only widens what follows from it."""
    span = rules.channel(coupling.flow).span
    if span and coupling.nominal > span.high:
        unit = unit_of(coupling, rules)
        yield Objection(
            kind=ObjectionKind.WIDE_LIMITS,
            subject=rule.name,
            found=f"a flow of {amount(coupling.nominal, unit)}",
            allowed=f"{amount(span.high, unit)} (the span of {coupling.flow})",
            remedy="mine it on other rows or state the instrument's span in the plant file",
        )


def _tight_reading(
    rule: Invariant, channel: str, rules: RuleSet, required: Acceptance
) -> Iterator[Objection]:
    """A tie or mean that allows most of the range says nothing; an idle channel hardly moves."""
    span = rules.channel(channel).span
    share = required.tie_tolerance_max
    if isinstance(rule.relation, Constant):
        share = required.idle_tolerance_max
    if span and rule.tolerance > share * _width(span):
        yield _loose(rule, rules, share * _width(span), f"{share:.0%} of the span of {channel}")


def _narrow_band(
    rule: Invariant, band: SwitchBand, rules: RuleSet, required: Acceptance
) -> Iterator[Objection]:
    span = rules.channel(band.level).span
    width = max(band.on_high - band.on_low, band.off_high - band.off_low)
    if span and width > required.band_max * _width(span):
        unit = unit_of(band, rules)
        most = amount(required.band_max * _width(span), unit)
        yield Objection(
            kind=ObjectionKind.WIDE_LIMITS,
            subject=rule.name,
            found=f"a band of {amount(width, unit)}",
            allowed=f"{most} ({required.band_max:.0%} of the span of {band.level})",
            remedy="mine it on other rows or drop the rule",
        )


def _narrow_noise(
    rule: Invariant, spectrum: Spectrum, rules: RuleSet, required: Acceptance
) -> Iterator[Objection]:
    for low, high, what in (
        (spectrum.first_low, spectrum.first_high, "first differences"),
        (spectrum.second_low, spectrum.second_high, "second differences"),
    ):
        if high > required.noise_max * low:
            unit = unit_of(spectrum, rules)
            yield Objection(
                kind=ObjectionKind.WIDE_LIMITS,
                subject=rule.name,
                found=f"{what} from {number(low)} to {amount(high, unit)}",
                allowed=f"a factor of {required.noise_max:g}",
                remedy="mine it on other rows or drop the rule",
            )


def _tied(rules: RuleSet, required: Acceptance, reasons: Mapping[str, str]) -> Iterator[Objection]:
    """Limit the channels that a plant could replace within their range, unless it is declared."""
    untied = [name for name in untied_channels(rules) if name not in reasons]
    if len(untied) > required.untied_max * len(rules.channels):
        yield Objection(
            kind=ObjectionKind.UNTIED_CHANNELS,
            found=f"{len(untied)} of {len(rules.channels)} channels ({', '.join(untied)})",
            allowed=f"{required.untied_max:.0%}",
            remedy="mine more rows, or declare why for each of them",
        )


def _loose(rule: Invariant, rules: RuleSet, most: float, basis: str) -> Objection:
    unit = unit_of(rule.relation, rules)
    return Objection(
        kind=ObjectionKind.LOOSE_TOLERANCE,
        subject=rule.name,
        found=amount(rule.tolerance, unit),
        allowed=f"{amount(most, unit)} ({basis})",
        remedy="mine it on calmer rows or drop the rule",
    )


def _covered(
    rules: RuleSet, required: Acceptance, reasons: Mapping[str, str]
) -> Iterator[Objection]:
    """Require a tight rule for every tank and a rule for every actuator, or a declared reason.

    What the miner says about a dropped candidate is text of the plant: it is quoted, no more.
    """
    said = {_subject(candidate.name): candidate.why for candidate in rules.dropped}
    read = _actuators_read(rules)
    for channel in rules.channels:
        name = channel.name
        if name in reasons:
            continue
        if channel.role is Role.LEVEL and required.every_tank:
            if not any(_sees_tank(rule, name, rules, required) for rule in rules.invariants):
                yield Objection(
                    kind=ObjectionKind.UNCOVERED_TANK,
                    subject=name,
                    found="0",
                    allowed=f"{required.tank_power:.0%}",
                    remedy=_mine_or_declare(name, said),
                )
        elif channel.role is Role.ACTUATOR and required.every_pump and name not in read:
            yield Objection(
                kind=ObjectionKind.UNCOVERED_ACTUATOR,
                subject=name,
                found="0",
                allowed="1",
                remedy=_mine_or_declare(name, said),
            )
    for rule in rules.invariants:
        if not isinstance(rule.relation, Coupling):
            continue
        for pump, _ in rule.relation.standby:
            if pump not in reasons:
                yield Objection(
                    kind=ObjectionKind.UNEXPLAINED_STANDBY,
                    subject=rule.name,
                    found=pump,
                    remedy=f"drop it from the rule's standby pumps, or {_declare(pump)}",
                )


def _declare(subject: str) -> str:
    """Return both ways in which a reason can be declared."""
    return (
        f"declare why: {subject} in [acceptance.reasons] of the policy, or "
        f"sluice rules approve --declare {subject}=REASON"
    )


def _mine_or_declare(subject: str, said: Mapping[str, str]) -> str:
    quoted = f" (the miner says: {said[subject]})" if subject in said else ""
    return f"mine other rows, or {_declare(subject)}{quoted}"


def _short_enough(rules: RuleSet, rows_max: int) -> Iterator[Objection]:
    """Refuse rules that judge no batch of the policy in full."""
    if rules.rows_needed > rows_max:
        yield Objection(
            kind=ObjectionKind.LONGER_THAN_BATCHES,
            found=f"{rules.rows_needed:,}",
            allowed=f"{rows_max:,}",
            remedy="drop it, or mine rows in which levels move more often",
        )


def _subject(dropped: str) -> str:
    """Return the actuator of a coupling's name, or the level of a balance's."""
    actuator, tie, _ = dropped.partition("~")
    return actuator if tie else dropped.removeprefix("d")


def _actuators_read(rules: RuleSet) -> set[str]:
    """Return the actuators whose state a rule checks; a standby pump only suspends a rule."""
    read: set[str] = set()
    for rule in rules.invariants:
        match rule.relation:
            case Coupling() as coupling:
                read.add(coupling.actuator)
            case Balance(terms=terms) | Window(terms=terms) | Tie(terms=terms):
                read |= {term.channel for term in terms if term.on and _counts(term, rule, rules)}
            case Constant(channel=channel):
                read.add(channel)
            case SwitchBand(actuator=actuator):
                read.add(actuator)
            case _:
                pass
    return read


def _counts(term: Term, rule: Invariant, rules: RuleSet) -> bool:
    """Whether the channel of a term can move the rule's residual by a share of its tolerance."""
    span = rules.channel(term.channel).span
    width = 1.0 if term.on else _width(span) if span else 0.0
    rows = rule.relation.rows if isinstance(rule.relation, Window) else 1
    return abs(term.coefficient) * width * rows > LEAST_EFFECT * rule.tolerance


def _sees_tank(rule: Invariant, level: str, rules: RuleSet, required: Acceptance) -> bool:
    relation = rule.relation
    if not isinstance(relation, Balance | Window) or relation.level != level:
        return False
    nominal = {
        other.relation.flow: other.relation.nominal
        for other in rules.invariants
        if isinstance(other.relation, Coupling)
    }
    reach = 0.0
    for term in relation.terms:
        span = rules.channel(term.channel).span
        widest = max(abs(span.low), abs(span.high)) if span else 0.0
        reach += abs(term.coefficient) * (1.0 if term.on else nominal.get(term.channel, widest))
    rows = relation.rows if isinstance(relation, Window) else 1
    return rule.tolerance < required.tank_power * reach * rows


def _believable(rules: RuleSet, clean: CleanFacts, required: Acceptance) -> Iterator[Objection]:
    """Limit everything the file claims about clean rows, because budgets follow from it."""
    if clean.refused_share > required.refused_max:
        yield Objection(
            kind=ObjectionKind.REFUSES_CLEAN_BATCHES,
            found=f"{clean.refused_share:.1%}",
            allowed=f"{required.refused_max:.1%}",
            remedy="mine on rows that show the plant's normal range",
        )
    largest = {rule.name: _largest(rule, rules) for rule in rules.invariants}
    tolerance = {rule.name: rule.tolerance for rule in rules.invariants}
    for fact in clean.severe:
        claimed = fact.share * tolerance[fact.rule]
        most = required.severe_max * largest[fact.rule]
        if claimed > most:
            yield Objection(
                kind=ObjectionKind.CLAIMED_RESIDUAL,
                subject=fact.rule,
                found=number(claimed),
                allowed=number(most),
                remedy="mine it on calmer rows",
            )
    for facts, most, kind in (
        (clean.envelope, required.envelope_max, ObjectionKind.CLAIMED_TRANSITIONS),
        (clean.anchors, required.anchors_max, ObjectionKind.CLAIMED_WINDOWS),
        (clean.repeats, required.repeats_max, ObjectionKind.CLAIMED_REPEATS),
        (clean.switches, required.switches_max, ObjectionKind.CLAIMED_SWITCHES),
        (clean.blocks, required.noisy_blocks_max, ObjectionKind.CLAIMED_BLOCKS),
    ):
        for fact in facts:
            if fact.share > most:
                yield Objection(
                    kind=kind,
                    subject=fact.rule,
                    found=f"{fact.share:.1%}",
                    allowed=f"{most:.1%}",
                    remedy="mine it on other rows",
                )
    if clean.segments_per_row > required.jumps_max:
        yield Objection(
            kind=ObjectionKind.CLAIMED_JUMPS,
            found=f"{clean.segments_per_row:.2%}",
            allowed=f"{required.jumps_max:.2%}",
            remedy="mine a record with fewer gaps",
        )


def _moving(
    rules: RuleSet, clean: CleanFacts, required: Acceptance, reasons: Mapping[str, str]
) -> Iterator[Objection]:
    """Require that each level moves, by a least share of its span, within a block of rows."""
    for channel in rules.channels:
        if channel.role is not Role.LEVEL or channel.span is None or channel.name in reasons:
            continue
        least = required.liveness_min * _width(channel.span)
        moves = max(
            (
                fact.smallest_range
                for fact in clean.liveness
                if fact.level == channel.name and fact.rows <= required.blocks_max
            ),
            default=0.0,
        )
        if not moves > 0 or moves < least:
            yield Objection(
                kind=ObjectionKind.MAY_STAND_STILL,
                subject=channel.name,
                found=amount(moves, channel.unit),
                allowed=f"{amount(least, channel.unit)} within {required.blocks_max:,} rows",
                remedy=f"mine rows in which it moves, or {_declare(channel.name)}",
            )


def _largest(rule: Invariant, rules: RuleSet) -> float:
    """Return the largest residual with a meaning: the nominal flow, or the span."""
    relation = rule.relation
    if isinstance(relation, Coupling):
        return relation.nominal
    span = rules.channel(relation.channels[0]).span
    return _width(span) if span else 0.0


def _no_looser(renewal: _Renewal) -> Iterator[Objection]:
    """Compare the rules with the last accepted file; looser rules need a second approval."""
    rules, last = renewal.rules, renewal.last
    if rules.stride_s != last.stride_s:
        yield Objection(
            kind=ObjectionKind.NOT_COMPARABLE,
            found=f"one row every {duration(rules.stride_s)}",
            allowed=f"one every {duration(last.stride_s)}",
            remedy="mine rows of the last accepted stride, or get a second approval",
        )
    for old, new in renewal.pairs():
        if new is not None:
            yield from _looser(old, new, rules, renewal.required)
        elif not _replaced(old, renewal):
            yield Objection(
                kind=ObjectionKind.MISSING_SINCE_LAST,
                subject=old.name,
                remedy="mine it again, or declare why in [acceptance.reasons]",
            )


def _judges(relation: Relation) -> tuple[object, ...]:
    """Return what a rule is about: another rule under its name is not the same rule."""
    match relation:
        case Coupling():
            return relation.kind, relation.actuator, relation.flow
        case Balance():
            return relation.kind, relation.level
        case Window():
            return relation.kind, relation.level, relation.rows
        case Spectrum() | Mean():
            return relation.kind, relation.channel, relation.rows
        case Bound() | Rate() | Tie() | Constant():
            return relation.kind, relation.channel
        case SwitchBand():
            return relation.kind, relation.actuator, relation.level


def _replaced(old: Invariant, renewal: _Renewal) -> bool:
    """Whether another window on the same tank detects a ramp as slow, at no more exceptions."""
    if not isinstance(old.relation, Window):
        return False
    factor = renewal.required.looser_than_last
    ramp = factor * old.tolerance / old.relation.rows
    before, now = _broken_windows(renewal.last), _broken_windows(renewal.rules)
    return any(
        isinstance(rule.relation, Window)
        and rule.relation.level == old.relation.level
        and (rule.tolerance + prediction_shift(old.relation, rule.relation, renewal.rules))
        <= ramp * rule.relation.rows
        and now.get(rule.name, math.inf) <= factor * before.get(old.name, 0.0)
        for rule in renewal.rules.invariants
    )


def _broken_windows(rules: RuleSet) -> dict[str, float]:
    """Return the share of clean windows out of balance, for each window rule."""
    return {fact.rule: fact.share for fact in rules.clean.anchors} if rules.clean else {}


def _row_counts(least: int, most: int) -> tuple[int, ...]:
    """Return the shortest and the longest batch, and the powers of two between them."""
    doubled = (1 << power for power in range(least.bit_length(), most.bit_length()))
    return tuple(sorted({least, most, *(rows for rows in doubled if rows < most)}))


def _larger_budgets(
    renewal: _Renewal, margins: Margins, counts: tuple[int, ...]
) -> Iterator[Objection]:
    """Compare the integer budgets that follow from both files, for batches of several lengths."""
    rules, last, factor = renewal.rules, renewal.last, renewal.required.looser_than_last
    if rules.clean is None:
        return  # objected to already
    faults = fact_faults(last, last.clean) if last.clean else ()
    if last.clean is None or faults:
        yield Objection(
            kind=ObjectionKind.NOT_COMPARABLE,
            found=faults[0].sentence if faults else "the last file has none",
            allowed="facts about clean rows, from which its budgets follow",
            remedy="get a second approval",
        )
        return
    same = {old.name: (old, new) for old, new in renewal.pairs() if new is not None}
    compared = {"", *same} | {channel.name for channel in last.channels} - renewal.channels
    larger: dict[tuple[ObjectionKind, str], Objection] = {}
    for rows in counts:
        new = budgets_for(rules, rules.clean, margins, rows=rows)
        old = budgets_for(last, last.clean, margins, rows=rows)
        before = _row_budgets(old)
        for (kind, subject), found in _row_budgets(new).items():
            if subject not in compared or (kind, subject) not in before:
                continue  # a new rule: it can only refuse more
            most = math.floor(factor * before[kind, subject])
            if found > most:
                objection = Objection(
                    kind=kind,
                    subject=subject,
                    found=f"{found:,} of {rows:,}",
                    allowed=f"{most:,}",
                    remedy=RENEW,
                )
                larger.setdefault((kind, subject), objection)
    yield from larger.values()
    for was, now in same.values():
        yield from _severer(renewal, (was, old), (now, new))
    yield from _stiller(renewal, old, new)


def _row_budgets(budgets: Budgets) -> dict[tuple[ObjectionKind, str], int]:
    """Return the budgets that count rows, windows or segments, by what a larger one is called."""
    return {
        (ObjectionKind.MORE_JUMPS, ""): budgets.segments,
        **{
            (kind, subject): count
            for kind, counted in (
                (ObjectionKind.MORE_TRANSITIONS, budgets.envelope_rows),
                (ObjectionKind.MORE_WINDOWS, budgets.anchors),
                (ObjectionKind.MORE_REPEATS, budgets.repeated_rows),
                (ObjectionKind.MORE_SWITCHES, budgets.switches),
                (ObjectionKind.MORE_BLOCKS, budgets.blocks),
            )
            for subject, count in counted.items()
        },
    }


def _severer(
    renewal: _Renewal, last: tuple[Invariant, Budgets], new: tuple[Invariant, Budgets]
) -> Iterator[Objection]:
    """Compare the largest residual that is not severe, in the unit of the rule."""
    rule, budgets = new
    if isinstance(rule.relation, Bound | Constant) or rule.kind.own_budget:
        return  # a range is broken by any amount, and no window, switch or block is severe
    (before, allowed), step = last, rule.tolerance / TOLERANCE  # one unit of the integers
    size = budgets.severe[rule.name] * step
    most = allowed.severe[before.name] * before.tolerance / TOLERANCE
    most *= renewal.required.looser_than_last
    if size > most + 2 * step:  # rounding does not count
        unit = unit_of(rule.relation, renewal.rules)
        yield Objection(
            kind=ObjectionKind.LARGER_RESIDUAL,
            subject=rule.name,
            found=amount(size, unit),
            allowed=amount(most, unit),
            remedy=RENEW,
        )


def _stiller(renewal: _Renewal, old: Budgets, new: Budgets) -> Iterator[Objection]:
    """Compare by how much a level must move: no less, over no more rows than before."""
    channels = {channel.name: channel for channel in renewal.rules.channels}
    factor = renewal.required.looser_than_last
    for (level, block), least in old.quietest.items():
        channel = channels.get(level)
        if level in renewal.channels or channel is None or channel.span is None or not least:
            continue
        step = register_of(channel).step
        wanted = least * register_of(renewal.last.channel(level)).step
        moves = max(
            (
                registers * step
                for (name, rows), registers in new.quietest.items()
                if name == level and rows <= factor * block
            ),
            default=0.0,
        )
        if factor * (moves + step) <= wanted:  # by a whole register: rounding does not count
            yield Objection(
                kind=ObjectionKind.LESS_MOVEMENT,
                subject=level,
                found=amount(moves, channel.unit),
                allowed=f"{amount(wanted, channel.unit)} within {block:,} rows",
                remedy=RENEW,
            )


def _looser(
    old: Invariant, new: Invariant, rules: RuleSet, required: Acceptance
) -> Iterator[Objection]:
    unit = unit_of(new.relation, rules)
    match old.relation, new.relation:
        case Bound() as before, Bound() as after:
            yield from _wider(new, unit, (before.low, before.high), (after.low, after.high))
            return
        case SwitchBand() as before, SwitchBand() as after:
            yield from _wider(
                new, unit, (before.on_low, before.on_high), (after.on_low, after.on_high)
            )
            yield from _wider(
                new, unit, (before.off_low, before.off_high), (after.off_low, after.off_high)
            )
            return
        case Spectrum() as before, Spectrum() as after:
            yield from _wider(
                new,
                unit,
                (before.first_low, before.first_high),
                (after.first_low, after.first_high),
            )
            yield from _wider(
                new,
                unit,
                (before.second_low, before.second_high),
                (after.second_low, after.second_high),
            )
            return
        case Constant() as before, Constant() as after if after.value != before.value:
            yield _moved(new, number(after.value), number(before.value))
        case Coupling() as before, Coupling() as after:
            if after.settle > before.settle:
                yield Objection(
                    kind=ObjectionKind.LONGER_SETTLING,
                    subject=new.name,
                    found=str(after.settle),
                    allowed=str(before.settle),
                    remedy="keep it, or get a second approval",
                )
        case _:
            pass
    most = required.looser_than_last * old.tolerance
    if new.tolerance > most:
        yield Objection(
            kind=ObjectionKind.LOOSER_THAN_LAST,
            subject=new.name,
            found=amount(new.tolerance, unit),
            allowed=amount(most, unit),
            remedy=RENEW,
        )
        return
    shift = prediction_shift(old.relation, new.relation, rules)
    if new.tolerance + shift > most:
        yield Objection(
            kind=ObjectionKind.OTHER_PREDICTION,
            subject=new.name,
            found=amount(new.tolerance + shift, unit) if shift < math.inf else "any distance",
            allowed=amount(most, unit),
            remedy=RENEW,
        )


def _wider(
    rule: Invariant, unit: str, before: tuple[float, float], after: tuple[float, float]
) -> Iterator[Objection]:
    """Compare two limits of a rule with those of the last accepted file."""
    if after[0] < before[0] or after[1] > before[1]:
        shown, allowed = (f"{number(low)} to {amount(high, unit)}" for low, high in (after, before))
        yield _moved(rule, shown, allowed)


def _moved(rule: Invariant, found: str, allowed: str) -> Objection:
    return Objection(
        kind=ObjectionKind.WIDER_RANGE,
        subject=rule.name,
        found=found,
        allowed=allowed,
        remedy="keep the last accepted range",
    )


def _wider_channels(renewal: _Renewal) -> Iterator[Objection]:
    now = {channel.name: channel for channel in renewal.rules.channels}
    for old in renewal.last.channels:
        if old.name in renewal.channels:
            continue
        new = now.get(old.name)
        if new is None or new.role is not old.role or (old.span and not new.span):
            yield Objection(
                kind=ObjectionKind.CHANGED_CHANNEL,
                subject=old.name,
                found=new.role.value if new else "",
                allowed=old.role.value,
                remedy="restore it, or declare why in [acceptance.reasons]",
            )
        elif old.span and new.span and _width(new.span) > _width(old.span):
            yield Objection(
                kind=ObjectionKind.WIDER_SPAN,
                subject=old.name,
                found=_span_words(new.span),
                allowed=_span_words(old.span),
                remedy="state the instrument's span in the plant file",
            )
        elif new.codes != old.codes:
            yield Objection(
                kind=ObjectionKind.CHANGED_CODES,
                subject=old.name,
                remedy="restore them in the plant file",
            )


def _width(span: Span) -> float:
    return span.high - span.low


def _span_words(span: Span) -> str:
    return f"{number(span.low)} to {number(span.high)}"
