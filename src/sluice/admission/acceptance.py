"""Acceptance: a coordinator checks a plant's rules against its policy before they gate that plant.

A plant must not choose its own gate. Only the rules file is read, never telemetry. What a file
states about clean rows is the plant's own claim, so every number from which a budget follows has a
ceiling or a floor. The next file is compared with the last accepted one by the integer budgets that
follow from both. Text in a rules file decides nothing: why a channel has no rule is declared in the
policy, or by the approver.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from sluice.admission.objections import Objection, ObjectionKind
from sluice.admission.renewal import looser_than_last
from sluice.errors import RulesFileError
from sluice.invariants import (
    Balance,
    CleanFacts,
    Constant,
    Coupling,
    Invariant,
    Margins,
    Mean,
    RuleSet,
    Spectrum,
    SwitchBand,
    Term,
    Tie,
    Window,
    amount,
    encode,
    fact_faults,
    number,
    unit_of,
    untied_channels,
)
from sluice.telemetry import Role

__all__ = ["ROWS_MAX", "ROWS_MIN", "Acceptance", "objections", "unsound"]

ROWS_MIN, ROWS_MAX = 200, 1 << 20
"""Rows of the shortest and of the longest batch, unless a policy states others."""
LEAST_EFFECT = 0.5
"""Of a tolerance: a rule reads a term only if the term alone can move its residual by more."""
HARDENED_MARGINS = Margins()
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
        objected += looser_than_last(
            rules,
            last,
            factor=required.looser_than_last,
            reasons=reasons,
            margins=margins,
            rows_min=rows_min,
            rows_max=rows_max,
        )
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
                if span and rule.tolerance > required.balance_tolerance_max * span.width:
                    most = required.balance_tolerance_max * span.width
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
    if span and rule.tolerance > share * span.width:
        yield _loose(rule, rules, share * span.width, f"{share:.0%} of the span of {channel}")


def _narrow_band(
    rule: Invariant, band: SwitchBand, rules: RuleSet, required: Acceptance
) -> Iterator[Objection]:
    span = rules.channel(band.level).span
    width = max(band.on_high - band.on_low, band.off_high - band.off_low)
    if span and width > required.band_max * span.width:
        unit = unit_of(band, rules)
        most = amount(required.band_max * span.width, unit)
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
    width = 1.0 if term.on else span.width if span else 0.0
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
        least = required.liveness_min * channel.span.width
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
    return span.width if span else 0.0
