"""Rules in words: one sentence each, in the plant's units."""

import math
from collections.abc import Iterator

from sluice.invariants.relations import (
    Balance,
    Bound,
    Constant,
    Coupling,
    Invariant,
    Mean,
    Rate,
    Relation,
    Spectrum,
    SwitchBand,
    Term,
    Tie,
    Transition,
    Window,
)
from sluice.invariants.ruleset import RuleSet

__all__ = [
    "amount",
    "duration",
    "evidence_in_words",
    "number",
    "power_in_words",
    "rule_in_words",
    "unit_of",
]

DIGITS = 3
WORTH_SAYING = 0.01  # of the tolerance: a smaller constant is rounding


def rule_in_words(  # noqa: C901, PLR0911 - one case a kind
    rule: Invariant, rules: RuleSet
) -> str:
    """Return the rule and its tolerance as a sentence."""
    relation = rule.relation
    tolerance = f"± {amount(rule.tolerance, unit_of(relation, rules))}"
    match relation:
        case Coupling():
            return _coupling(relation, rule.tolerance, rules)
        case Balance():
            moves = _moves(relation.level, relation.terms, relation.constant, rule, rules)
            return f"in {duration(rules.stride_s)}, {relation.level} {moves}, {tolerance}"
        case Window():
            moves = _moves(relation.level, relation.terms, relation.constant, rule, rules)
            span = f"{relation.rows} rows ({duration(relation.rows * rules.stride_s)})"
            ramp = amount(rule.tolerance / relation.rows, unit_of(relation, rules))
            power = f"detects a ramp of {ramp} per row"
            return f"over {span}, {relation.level} {moves} per row, {tolerance} in total: {power}"
        case Bound():
            unit = unit_of(relation, rules)
            return (
                f"{relation.channel} stays between {number(relation.low)} and "
                f"{amount(relation.high, unit)}"
            )
        case Rate():
            step = amount(rule.tolerance, unit_of(relation, rules))
            return f"{relation.channel} changes by at most {step} in {duration(rules.stride_s)}"
        case Tie():
            return f"{relation.channel} reads {_prediction(relation, rules)}, {tolerance}"
        case Constant():
            return _constant(relation, tolerance, rules)
        case SwitchBand():
            return _switch_band(relation, rules)
        case Spectrum():
            return _spectrum(relation, rules)
        case Mean():
            span = f"{relation.rows} rows ({duration(relation.rows * rules.stride_s)})"
            usual = amount(relation.mean, unit_of(relation, rules))
            return f"over {span}, the mean of {relation.channel} is {usual}, {tolerance}"


def power_in_words(rule: Invariant, rules: RuleSet) -> str:
    """Return what the rule detects; empty where its profile does not measure that."""
    evidence, unit = rule.evidence, unit_of(rule.relation, rules)
    parts = [*_power_of_limits(rule, rules)]
    if evidence.smallest_offset is not None:
        offset = amount(evidence.smallest_offset, unit)
        match rule.relation:
            case Coupling() as coupling:
                share = evidence.smallest_offset / coupling.nominal
                parts.append(f"detects an offset of {offset} ({share:.0%} of nominal)")
            case Window():
                parts.append(f"detects a ramp of {offset} per row")
            case Tie() | Mean():
                parts.append(f"detects an offset of {offset}")
            case _:
                parts.append(f"detects a jump of {offset}")
    if evidence.sees_contradiction is not None:
        detects = "detects" if evidence.sees_contradiction else "does not detect"
        parts.append(f"{detects} on reported as off")
    if evidence.smallest_freeze_rows is not None:
        rows = evidence.smallest_freeze_rows
        parts.append(f"detects a freeze of {rows} row{'' if rows == 1 else 's'}")
    elif isinstance(rule.relation, Balance | Window) and evidence.smallest_offset is not None:
        parts.append("does not detect a freeze by itself")
    return "; ".join(parts)


def evidence_in_words(rule: Invariant) -> str:
    """Return why the rule is trusted."""
    evidence = rule.evidence
    parts = []
    if evidence.r2 is not None:
        held_out = evidence.r2_held_out
        on_held_out = "" if held_out is None else f" ({held_out:.3f} on held-out rows)"
        parts.append(f"R2 {evidence.r2:.3f}{on_held_out}")
    if evidence.support is not None:
        parts.append(f"rarer state on {evidence.support:.1%} of rows")
    if evidence.variation is not None:
        parts.append(f"flow varies by {evidence.variation:.1%} while on")
    if evidence.judged_rows is not None:
        few = (
            ", too few for a percentile: the largest residuals set it" if evidence.few_rows else ""
        )
        parts.append(f"tolerance set on {evidence.judged_rows:,} clean rows{few}")
    return "; ".join(parts)


def unit_of(relation: Relation, rules: RuleSet) -> str:
    """Return the unit of a relation's residual and tolerance."""
    match relation:
        case Coupling():
            return _unit(relation.flow, rules)
        case Balance() | Window():
            return _unit(relation.level, rules)
        case Bound() | Rate() | Tie() | Constant() | Mean():
            return _unit(relation.channel, rules)
        case SwitchBand():
            return _unit(relation.level, rules)
        case Spectrum():
            unit = _unit(relation.channel, rules)
            return f"({unit})^2" if unit else ""


def number(value: float, digits: int = DIGITS) -> str:
    """Return a few significant digits, without an exponent for numbers of usual size."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    size = math.floor(math.log10(abs(value)))
    if not -5 <= size <= 8:
        return f"{value:.{digits}g}"
    places = max(0, digits - 1 - size)
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if places else text


def amount(value: float, unit: str) -> str:
    """Return a number with its unit, if it has one."""
    return f"{number(value)} {unit}" if unit else number(value)


def duration(seconds: float) -> str:
    """Return a duration in the largest unit of which it is a whole multiple."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def _coupling(relation: Coupling, tolerance: float, rules: RuleSet) -> str:
    unit = unit_of(relation, rules)
    several = len(relation.states) > 1
    on = "; ".join(
        f"{f'at {state.code}' if several else 'on'}: {relation.flow} reads "
        f"{number(state.nominal)} ± {amount(tolerance, unit)}"
        for state in relation.states
    )
    parts = [f"{relation.actuator} {on}; off: 0"]
    if relation.settle and relation.transition is Transition.ENVELOPE:
        rows = f"{relation.settle} row{'' if relation.settle == 1 else 's'}"
        parts.append(f"for {rows} from a switch: between 0 and {number(relation.nominal)}")
    elif relation.settle:
        parts.append("not checked on the row of a switch")
    if relation.standby:
        pumps = " or ".join(pump for pump, _ in relation.standby)
        parts.append(f"not checked while {pumps} runs")
    return "; ".join(parts)


def _prediction(relation: Tie, rules: RuleSet) -> str:
    """Return the sum that a tie compares a reading with."""
    unit = _unit(relation.channel, rules)
    parts = [number(relation.constant)] if relation.constant or not relation.terms else []
    for term in relation.terms:
        sign = ("" if term.coefficient >= 0 else "-") if not parts else _sign(term.coefficient)
        if term.on:
            step = amount(abs(term.coefficient), unit)
            parts.append(f"{sign}{step} while {term.channel} is on")
        else:
            parts.append(f"{sign}{number(abs(term.coefficient))} x {term.channel}")
    return " ".join(parts)


def _sign(value: float) -> str:
    return "+ " if value >= 0 else "- "


def _constant(relation: Constant, tolerance: str, rules: RuleSet) -> str:
    channel = rules.channel(relation.channel)
    if channel.codes is None:
        value = amount(relation.value, channel.unit)
        return f"{relation.channel} stays at {value}, {tolerance}; it never moved in clean rows"
    state = "off" if relation.value == channel.codes.off else f"at code {relation.value:g}"
    return f"{relation.channel} stays {state}; it never switched in clean rows"


def _switch_band(relation: SwitchBand, rules: RuleSet) -> str:
    unit = _unit(relation.level, rules)
    when = "on the row before the switch" if relation.before else "on the row of the switch"
    return (
        f"{relation.actuator} switches on while {relation.level} reads {number(relation.on_low)} "
        f"to {amount(relation.on_high, unit)}, and off at {number(relation.off_low)} to "
        f"{amount(relation.off_high, unit)}, {when}"
    )


def _spectrum(relation: Spectrum, rules: RuleSet) -> str:
    unit = _unit(relation.channel, rules)
    first, second = _typical_steps(relation)
    span = f"{relation.rows} rows ({duration(relation.rows * rules.stride_s)})"
    return (
        f"over blocks of {span}, {relation.channel} moves by {number(first[0])} to "
        f"{amount(first[1], unit)} from row to row (root mean square), and its steps differ by "
        f"{number(second[0])} to {amount(second[1], unit)}"
    )


def _typical_steps(relation: Spectrum) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return the limits as root mean squares of first and of second differences."""
    first, second = relation.rows - 1, relation.rows - 2
    return (
        (math.sqrt(relation.first_low / first), math.sqrt(relation.first_high / first)),
        (math.sqrt(relation.second_low / second), math.sqrt(relation.second_high / second)),
    )


def _power_of_limits(rule: Invariant, rules: RuleSet) -> Iterator[str]:
    """Yield what a rule with limits of its own detects; it follows from the limits."""
    match rule.relation:
        case Constant(channel=channel):
            known = rules.channel(channel)
            if known.codes is None:
                yield f"detects an offset of {amount(rule.tolerance, known.unit)}"
            else:
                yield "detects any switch"
        case SwitchBand() as band:
            unit = _unit(band.level, rules)
            width = max(band.on_high - band.on_low, band.off_high - band.off_low)
            yield f"detects an offset of {amount(width, unit)} at the next switch"
        case Spectrum() as spectrum:
            unit = _unit(spectrum.channel, rules)
            quiet, loud = _typical_steps(spectrum)[1]
            yield (
                f"detects noise below {amount(quiet, unit)} or above {amount(loud, unit)} "
                f"within {2 * spectrum.rows - 1} rows"
            )
        case _:
            pass


def _moves(
    level: str, terms: tuple[Term, ...], constant: float, rule: Invariant, rules: RuleSet
) -> str:
    unit = _unit(level, rules)
    parts = []
    for term in terms:
        verb = "rises" if term.coefficient > 0 else "falls"
        step = amount(abs(term.coefficient), unit)
        if term.on:
            parts.append(f"{verb} {step} while {term.channel} is on")
        else:
            flow = _unit(term.channel, rules) or "unit"
            parts.append(f"{verb} {step} per {flow} of {term.channel}")
    if abs(constant) > WORTH_SAYING * rule.tolerance:
        verb = "gains" if constant > 0 else "loses"
        parts.append(f"{verb} {amount(abs(constant), unit)} that no meter measures")
    if not parts:
        return "does not change"
    return " and ".join(parts) if len(parts) < 3 else f"{', '.join(parts[:-1])} and {parts[-1]}"


def _unit(channel: str, rules: RuleSet) -> str:
    return next((known.unit for known in rules.channels if known.name == channel), "")
