"""Acceptance: a coordinator checks a plant's rules against its policy before they gate that plant.

A plant must not choose its own gate. Only the rules file is read, never telemetry. What a file
states about clean rows is the plant's own claim, so every number from which a budget follows has a
ceiling, and the last accepted file is the reference for the next one.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from enum import StrEnum

from sluice.errors import RulesFileError
from sluice.invariants import (
    Balance,
    Bound,
    CleanFacts,
    Coupling,
    Invariant,
    RelationKind,
    RuleSet,
    Window,
    amount,
    encode,
    number,
    unit_of,
)
from sluice.telemetry import Role, Span

__all__ = ["Acceptance", "Objection", "ObjectionKind", "objections", "unsound"]

NEVER_RAN = "hardly ever switched"


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """What a plant's rules must be before they may gate that plant."""

    rules_min: int = 3  # couplings, balances and windows
    coupling_tolerance_max: float = 0.5  # of nominal flow: looser cannot tell on from off
    balance_tolerance_max: float = 0.25  # of the level's span
    tank_power: float = 0.5  # of the change its flows can make: one rule per tank must detect it
    every_tank: bool = True  # a balance or window for each level, or a declared reason
    every_pump: bool = True  # a rule that reads each actuator that ran, or a declared reason
    reasons: dict[str, str] = field(default_factory=dict)  # channel or rule -> why it has none
    refused_max: float = 0.05  # share of clean batches that would be refused
    severe_max: float = 1.0  # of nominal flow or span: the largest residual a file may claim
    envelope_max: float = 0.5  # share of clean rows claimed to be in transition, per coupling
    anchors_max: float = 0.05  # share of clean windows claimed not to balance, per rule
    jumps_max: float = 0.01  # time jumps claimed for clean data, per row
    repeats_max: float = 0.1  # share of clean rows claimed to repeat, per level
    looser_than_last: float = 1.0  # tolerances over those of the last accepted file


class ObjectionKind(StrEnum):
    """What is wrong with a rules file."""

    DUPLICATE_NAME = "duplicate-name"
    BAD_TOLERANCE = "bad-tolerance"
    UNDESCRIBED_CHANNEL = "undescribed-channel"
    NOT_ENCODABLE = "not-encodable"
    NO_PHYSICS = "no-physics"
    TOO_FEW_RULES = "too-few-rules"
    NO_CLEAN_FACTS = "no-clean-facts"
    LOOSE_TOLERANCE = "loose-tolerance"
    UNCOVERED_TANK = "uncovered-tank"
    UNCOVERED_ACTUATOR = "uncovered-actuator"
    UNEXPLAINED_STANDBY = "unexplained-standby"
    REFUSES_CLEAN_BATCHES = "refuses-clean-batches"
    CLAIMED_RESIDUAL = "claimed-residual"
    CLAIMED_TRANSITIONS = "claimed-transitions"
    CLAIMED_WINDOWS = "claimed-windows"
    CLAIMED_REPEATS = "claimed-repeats"
    CLAIMED_JUMPS = "claimed-jumps"
    MISSING_SINCE_LAST = "missing-since-last"
    WIDER_RANGE = "wider-range"
    LONGER_SETTLING = "longer-settling"
    LOOSER_THAN_LAST = "looser-than-last"
    MAY_STAND_STILL = "may-stand-still"
    CHANGED_CHANNEL = "changed-channel"
    WIDER_SPAN = "wider-span"
    CHANGED_CODES = "changed-codes"


_WORDS = {
    ObjectionKind.DUPLICATE_NAME: "{found} rules are named {subject!r}",
    ObjectionKind.BAD_TOLERANCE: "{subject}: the tolerance is {found}; it must be above {allowed}",
    ObjectionKind.UNDESCRIBED_CHANNEL: "{subject} reads {found}, which the file does not describe",
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
    ObjectionKind.UNCOVERED_TANK: (
        "{subject} has no balance or window tight enough to detect {allowed} of the change that "
        "its flows can make"
    ),
    ObjectionKind.UNCOVERED_ACTUATOR: "no coupling or balance reads {subject}",
    ObjectionKind.UNEXPLAINED_STANDBY: (
        "{subject} is not checked while {found} runs, and nothing states that {found} is on standby"
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
    ObjectionKind.MISSING_SINCE_LAST: "{subject} is missing; the last accepted file has it",
    ObjectionKind.WIDER_RANGE: "{subject}: {found} is wider than the last accepted {allowed}",
    ObjectionKind.LONGER_SETTLING: (
        "{subject} settles in {found} rows; the last accepted file has {allowed}"
    ),
    ObjectionKind.LOOSER_THAN_LAST: (
        "{subject}: tolerance {found} is looser than the last accepted file allows ({allowed})"
    ),
    ObjectionKind.MAY_STAND_STILL: (
        "{subject} may stand still, which the last accepted file does not allow"
    ),
    ObjectionKind.CHANGED_CHANNEL: (
        "channel {subject} is no longer described as a {allowed} with its span"
    ),
    ObjectionKind.WIDER_SPAN: "the span of channel {subject} grew from {allowed} to {found}",
    ObjectionKind.CHANGED_CODES: "the codes of actuator {subject} changed",
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


def objections(
    rules: RuleSet, required: Acceptance, *, last: RuleSet | None = None
) -> tuple[Objection, ...]:
    """Return the objections to the rules; empty if they are accepted."""
    contradictions = unsound(rules)
    if contradictions:
        return contradictions
    objected = [*_enough(rules, required), *_tight(rules, required), *_covered(rules, required)]
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
    if last is not None:
        objected += _no_looser(rules, last, required)
    return tuple(objected)


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
        if not rule.tolerance > 0:
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


def _tight(rules: RuleSet, required: Acceptance) -> Iterator[Objection]:
    """Compare each tolerance with the quantity it applies to."""
    by_row = {
        rule.relation.level: rule for rule in rules.invariants if isinstance(rule.relation, Balance)
    }
    for rule in rules.invariants:
        match rule.relation:
            case Coupling() as coupling:
                most = required.coupling_tolerance_max * coupling.nominal
                if not rule.tolerance < most:
                    basis = f"{required.coupling_tolerance_max:.0%} of its nominal flow"
                    yield _loose(rule, rules, most, basis)
            case Balance() as balance:
                span = rules.channel(balance.level).span
                if span and rule.tolerance > required.balance_tolerance_max * _width(span):
                    most = required.balance_tolerance_max * _width(span)
                    basis = f"{required.balance_tolerance_max:.0%} of the span of {balance.level}"
                    yield _loose(rule, rules, most, basis)
            case Window() as window if window.level in by_row:
                most = by_row[window.level].tolerance * window.rows
                if rule.tolerance > most:
                    yield _loose(rule, rules, most, f"the tolerance of {window.rows} single rows")


def _loose(rule: Invariant, rules: RuleSet, most: float, basis: str) -> Objection:
    unit = unit_of(rule.relation, rules)
    return Objection(
        kind=ObjectionKind.LOOSE_TOLERANCE,
        subject=rule.name,
        found=amount(rule.tolerance, unit),
        allowed=f"{amount(most, unit)} ({basis})",
        remedy="mine it on calmer rows or drop the rule",
    )


def _covered(rules: RuleSet, required: Acceptance) -> Iterator[Objection]:
    """Require a tight rule for every tank and a rule for every actuator that ran."""
    dropped = {_subject(candidate.name): candidate.why for candidate in rules.dropped}
    idle = {name for name, why in dropped.items() if NEVER_RAN in why}
    read = _actuators_read(rules)
    for channel in rules.channels:
        name = channel.name
        if name in required.reasons:
            continue
        miner = f" (the miner says: {dropped[name]})" if name in dropped else ""
        remedy = f"mine other rows, or declare why in [acceptance.reasons]{miner}"
        if channel.role is Role.LEVEL and channel.span and required.every_tank:
            if not any(_sees_tank(rule, name, rules, required) for rule in rules.invariants):
                yield Objection(
                    kind=ObjectionKind.UNCOVERED_TANK,
                    subject=name,
                    found="0",
                    allowed=f"{required.tank_power:.0%}",
                    remedy=remedy,
                )
        elif channel.role is Role.ACTUATOR and required.every_pump and name not in read | idle:
            yield Objection(
                kind=ObjectionKind.UNCOVERED_ACTUATOR,
                subject=name,
                found="0",
                allowed="1",
                remedy=remedy,
            )
    for rule in rules.of_kind(RelationKind.COUPLING):
        for pump in rule.relation.channels[2:]:
            if pump not in idle and pump not in required.reasons:
                yield Objection(
                    kind=ObjectionKind.UNEXPLAINED_STANDBY,
                    subject=rule.name,
                    found=pump,
                    remedy="drop it from the rule's standby pumps",
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
            case Balance(terms=terms) | Window(terms=terms):
                read |= {term.channel for term in terms if term.on}
            case _:
                pass
    return read


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
        claimed = fact.share * tolerance.get(fact.rule, 0.0)
        most = required.severe_max * largest.get(fact.rule, 0.0)
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


def _largest(rule: Invariant, rules: RuleSet) -> float:
    """Return the largest residual with a meaning: the nominal flow, or the span."""
    relation = rule.relation
    if isinstance(relation, Coupling):
        return relation.nominal
    span = rules.channel(relation.channels[0]).span
    return _width(span) if span else 0.0


def _no_looser(rules: RuleSet, last: RuleSet, required: Acceptance) -> Iterator[Objection]:
    """Compare the rules with the last accepted file; looser rules need a second approval."""
    now = {rule.name: rule for rule in rules.invariants}
    for old in last.invariants:
        rule = now.get(old.name)
        if old.name in required.reasons:
            continue
        if rule is None or rule.kind is not old.kind:
            if old.kind.physical and not _replaced(old, rules, required):
                yield Objection(
                    kind=ObjectionKind.MISSING_SINCE_LAST,
                    subject=old.name,
                    remedy="mine it again, or declare why in [acceptance.reasons]",
                )
            continue
        yield from _looser(old, rule, rules, required)
    yield from _wider_channels(rules, last, required)
    if last.clean and rules.clean:
        lively = {fact.level for fact in rules.clean.liveness if fact.smallest_range > 0}
        for level in dict.fromkeys(fact.level for fact in last.clean.liveness):
            if level not in lively and level not in required.reasons:
                yield Objection(
                    kind=ObjectionKind.MAY_STAND_STILL,
                    subject=level,
                    remedy="mine rows in which it moves",
                )


def _replaced(old: Invariant, rules: RuleSet, required: Acceptance) -> bool:
    """Whether another window on the same tank detects a ramp as slow."""
    if not isinstance(old.relation, Window):
        return False
    ramp = required.looser_than_last * old.tolerance / old.relation.rows
    return any(
        isinstance(rule.relation, Window)
        and rule.relation.level == old.relation.level
        and rule.tolerance / rule.relation.rows <= ramp
        for rule in rules.invariants
    )


def _looser(
    old: Invariant, new: Invariant, rules: RuleSet, required: Acceptance
) -> Iterator[Objection]:
    unit = unit_of(new.relation, rules)
    match old.relation, new.relation:
        case Bound() as before, Bound() as after:
            if after.low < before.low or after.high > before.high:
                yield Objection(
                    kind=ObjectionKind.WIDER_RANGE,
                    subject=new.name,
                    found=f"{number(after.low)} to {amount(after.high, unit)}",
                    allowed=f"{number(before.low)} to {amount(before.high, unit)}",
                    remedy="keep the last accepted range",
                )
            return
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
            remedy="mine with --update, or get a second approval",
        )


def _wider_channels(rules: RuleSet, last: RuleSet, required: Acceptance) -> Iterator[Objection]:
    now = {channel.name: channel for channel in rules.channels}
    for old in last.channels:
        if old.name in required.reasons:
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
