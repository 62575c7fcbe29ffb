"""Rules in words: one plain sentence each, in the plant's own units."""

import math

from sluice.invariants.relations import (
    Balance,
    Bound,
    Coupling,
    Invariant,
    Rate,
    Relation,
    Term,
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


def rule_in_words(rule: Invariant, rules: RuleSet) -> str:
    """Say what clean rows keep to, and how closely."""
    relation = rule.relation
    give = f"give or take {amount(rule.tolerance, unit_of(relation, rules))}"
    match relation:
        case Coupling():
            return _coupling(relation, rule.tolerance, rules)
        case Balance():
            moves = _moves(relation.level, relation.terms, relation.constant, rule, rules)
            return f"{relation.level} {moves} each {duration(rules.stride_s)}, {give}"
        case Window():
            moves = _moves(relation.level, relation.terms, relation.constant, rule, rules)
            span = f"{relation.rows} rows ({duration(relation.rows * rules.stride_s)})"
            ramp = amount(rule.tolerance / relation.rows, unit_of(relation, rules))
            shows = f"a ramp of {ramp} per row shows"
            return f"over {span} {relation.level} {moves} per row, {give}: {shows}"
        case Bound():
            unit = unit_of(relation, rules)
            return (
                f"{relation.channel} stays between {number(relation.low)} and "
                f"{amount(relation.high, unit)}"
            )
        case Rate():
            step = amount(rule.tolerance, unit_of(relation, rules))
            return f"{relation.channel} moves by at most {step} in {duration(rules.stride_s)}"


def power_in_words(rule: Invariant, rules: RuleSet) -> str:
    """Say what the rule would catch; nothing where its profile never measured that."""
    known, unit = rule.evidence, unit_of(rule.relation, rules)
    said = []
    if known.smallest_offset is not None:
        offset = amount(known.smallest_offset, unit)
        match rule.relation:
            case Coupling() as coupling:
                share = known.smallest_offset / coupling.nominal
                said.append(f"sees an offset of {offset} ({share:.0%} of nominal)")
            case Window():
                said.append(f"sees a ramp of {offset} per row")
            case _:
                said.append(f"sees a jump of {offset}")
    if known.sees_contradiction is not None:
        sees = "sees" if known.sees_contradiction else "does not see"
        said.append(f"{sees} on read as off")
    if known.smallest_freeze_rows is not None:
        rows = known.smallest_freeze_rows
        said.append(f"sees a freeze of {rows} row{'' if rows == 1 else 's'}")
    elif isinstance(rule.relation, Balance | Window) and known.smallest_offset is not None:
        said.append("sees no freeze by itself")
    return "; ".join(said)


def evidence_in_words(rule: Invariant) -> str:
    """Say what the rule rests on."""
    known = rule.evidence
    said = []
    if known.r2 is not None:
        held = "" if known.r2_held_out is None else f" ({known.r2_held_out:.3f} on rows never seen)"
        said.append(f"R2 {known.r2:.3f}{held}")
    if known.support is not None:
        said.append(f"rarer state on {known.support:.1%} of rows")
    if known.variation is not None:
        said.append(f"flow varies by {known.variation:.1%} while on")
    if known.judged_rows is not None:
        few = ", too few for a percentile: the tolerance is a maximum" if known.few_rows else ""
        said.append(f"tolerance set on {known.judged_rows:,} clean rows{few}")
    return "; ".join(said)


def unit_of(relation: Relation, rules: RuleSet) -> str:
    """Return the unit of a relation's residual and tolerance."""
    match relation:
        case Coupling():
            return _unit(relation.flow, rules)
        case Balance() | Window():
            return _unit(relation.level, rules)
        case Bound() | Rate():
            return _unit(relation.channel, rules)


def number(value: float, digits: int = DIGITS) -> str:
    """Write few significant digits, without an exponent where a person would write none."""
    if value == 0 or not math.isfinite(value):
        return f"{value:g}"
    size = math.floor(math.log10(abs(value)))
    if not -5 <= size <= 8:
        return f"{value:.{digits}g}"
    places = max(0, digits - 1 - size)
    text = f"{value:,.{places}f}"
    return text.rstrip("0").rstrip(".") if places else text


def amount(value: float, unit: str) -> str:
    """Write a number with its unit, if it has one."""
    return f"{number(value)} {unit}" if unit else number(value)


def duration(seconds: float) -> str:
    """Write a duration in the largest unit that leaves a short number."""
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size and seconds % size == 0:
            return f"{seconds / size:g} {unit}"
    return f"{seconds:g} s"


def _coupling(relation: Coupling, tolerance: float, rules: RuleSet) -> str:
    unit = unit_of(relation, rules)
    several = len(relation.states) > 1
    on = "; ".join(
        f"{f'at {state.code}' if several else 'on'}: {relation.flow} reads "
        f"{amount(state.nominal, unit)} give or take {number(tolerance)}"
        for state in relation.states
    )
    said = [f"{relation.actuator} {on}; off: 0"]
    if relation.settle and relation.transition is Transition.ENVELOPE:
        rows = f"{relation.settle} row{'' if relation.settle == 1 else 's'}"
        said.append(f"from a switch for {rows}: between 0 and {number(relation.nominal)}")
    elif relation.settle:
        said.append("nothing is said on the row of a switch")
    if relation.standby:
        pumps = " or ".join(pump for pump, _ in relation.standby)
        said.append(f"silent while {pumps} runs")
    return "; ".join(said)


def _moves(
    level: str, terms: tuple[Term, ...], constant: float, rule: Invariant, rules: RuleSet
) -> str:
    unit = _unit(level, rules)
    said = []
    for term in terms:
        verb = "rises" if term.coefficient > 0 else "falls"
        step = amount(abs(term.coefficient), unit)
        if term.on:
            said.append(f"{verb} {step} while {term.channel} is on")
        else:
            flow = _unit(term.channel, rules) or "unit"
            said.append(f"{verb} {step} per {flow} of {term.channel}")
    if abs(constant) > WORTH_SAYING * rule.tolerance:
        verb = "gains" if constant > 0 else "loses"
        said.append(f"{verb} {amount(abs(constant), unit)} that no meter shows")
    if not said:
        return "stays where it is"
    return " and ".join(said) if len(said) < 3 else f"{', '.join(said[:-1])} and {said[-1]}"


def _unit(channel: str, rules: RuleSet) -> str:
    return next((found.unit for found in rules.channels if found.name == channel), "")
