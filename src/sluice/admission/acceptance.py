"""Acceptance: a plant under suspicion must not choose its own gate.

The coordinator holds a plant's rules against its policy before they may gate that plant. Only the
rules file is read, never telemetry: what a file says of clean rows is the plant's own word, so
every number from which a budget follows has a ceiling, and the last accepted file is a witness.
"""

from collections.abc import Iterator

from sluice.admission.policy import Acceptance, HardenedPolicy
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

__all__ = ["accept", "unsound"]

NEVER_RAN = "hardly ever switched"


def accept(
    rules: RuleSet, policy: HardenedPolicy, *, last: RuleSet | None = None
) -> tuple[str, ...]:
    """Return why the rules are not accepted; nothing where they are."""
    wrong = unsound(rules)
    if wrong:
        return wrong
    asked = policy.acceptance
    reasons = [*_enough(rules, asked), *_tight(rules, asked), *_covered(rules, asked)]
    if rules.clean is None:
        reasons.append(
            f"the rules are of profile {rules.profile.value!r}, which says nothing of clean "
            "batches; mine with --profile hardened"
        )
    else:
        reasons += _believable(rules, rules.clean, asked)
    if last is not None:
        reasons += _no_looser(rules, last, asked)
    return tuple(reasons)


def unsound(rules: RuleSet) -> tuple[str, ...]:
    """Return what no gate could work with: rules that contradict their own file."""
    reasons = []
    known = {channel.name for channel in rules.channels}
    seen: set[str] = set()
    for rule in rules.invariants:
        if rule.name in seen:
            reasons.append(f"two rules are named {rule.name!r}; rename one")
        seen.add(rule.name)
        if not rule.tolerance > 0:
            reasons.append(
                f"{rule.name}: the tolerance is {rule.tolerance:g}; it must be more than 0"
            )
        missing = [name for name in rule.relation.channels if name not in known]
        if missing:
            reasons.append(
                f"{rule.name} reads {', '.join(missing)}, which the file does not describe; add "
                "the channel or drop the rule"
            )
    if not reasons and rules.clean is not None:
        try:
            encode(rules)
        except RulesFileError as error:
            reasons.append(str(error))
    return tuple(reasons)


def _enough(rules: RuleSet, asked: Acceptance) -> Iterator[str]:
    if rules.empty:
        yield (
            "the rules hold no coupling, balance or window: every batch in range would be "
            "admitted; mine other rows"
        )
        return
    physical = sum(rule.kind.physical for rule in rules.invariants)
    if physical < asked.rules_min:
        yield (
            f"{physical} rules tie channels together; the policy asks for {asked.rules_min}: mine "
            "more rows or more channels"
        )


def _tight(rules: RuleSet, asked: Acceptance) -> Iterator[str]:
    """Hold tolerances against what they are tolerances of."""
    by_row = {
        rule.relation.level: rule for rule in rules.invariants if isinstance(rule.relation, Balance)
    }
    for rule in rules.invariants:
        match rule.relation:
            case Coupling() as coupling:
                most = asked.coupling_tolerance_max * coupling.nominal
                if not rule.tolerance < most:
                    share = f"{asked.coupling_tolerance_max:.0%} of its nominal flow"
                    yield _loose(rule, rules, most, share)
            case Balance() as balance:
                span = rules.channel(balance.level).span
                if span and rule.tolerance > asked.balance_tolerance_max * _width(span):
                    most = asked.balance_tolerance_max * _width(span)
                    share = f"{asked.balance_tolerance_max:.0%} of the span of {balance.level}"
                    yield _loose(rule, rules, most, share)
            case Window() as window if window.level in by_row:
                most = by_row[window.level].tolerance * window.rows
                if rule.tolerance > most:
                    yield _loose(rule, rules, most, f"as loose as {window.rows} single rows")


def _loose(rule: Invariant, rules: RuleSet, most: float, share: str) -> str:
    unit = unit_of(rule.relation, rules)
    return (
        f"{rule.name}: tolerance {amount(rule.tolerance, unit)}; the policy allows less than "
        f"{amount(most, unit)} ({share}): mine it on calmer rows or drop the rule"
    )


def _covered(rules: RuleSet, asked: Acceptance) -> Iterator[str]:
    """Ask for a rule with power on every tank and on every actuator that ran."""
    told = {_subject(gone.name): gone.why for gone in rules.dropped}
    idle = {name for name, why in told.items() if NEVER_RAN in why}
    read = _actuators_read(rules)
    for channel in rules.channels:
        name = channel.name
        if name in asked.reasons:
            continue
        miner = f" (the miner says: {told[name]})" if name in told else ""
        remedy = f"mine other rows, or declare why in [acceptance.reasons]{miner}"
        if channel.role is Role.LEVEL and channel.span and asked.every_tank:
            if not any(_sees_tank(rule, name, rules, asked) for rule in rules.invariants):
                power = f"{asked.tank_power:.0%} of what its flows can move"
                yield f"{name} has no balance or window tight enough to see {power}; {remedy}"
        elif channel.role is Role.ACTUATOR and asked.every_pump and name not in read | idle:
            yield f"no coupling or balance reads {name}; {remedy}"
    for rule in rules.of_kind(RelationKind.COUPLING):
        for pump in rule.relation.channels[2:]:
            if pump not in idle and pump not in asked.reasons:
                yield (
                    f"{rule.name} is silent while {pump} runs, and nothing says that {pump} "
                    "stands by; drop it from the rule's standby pumps"
                )


def _subject(dropped: str) -> str:
    """Return the actuator of a coupling's name, or the level of a balance's."""
    actuator, tie, _ = dropped.partition("~")
    return actuator if tie else dropped.removeprefix("d")


def _actuators_read(rules: RuleSet) -> set[str]:
    """Return the actuators whose state some rule checks; a standby pump only silences a rule."""
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


def _sees_tank(rule: Invariant, level: str, rules: RuleSet, asked: Acceptance) -> bool:
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
    return rule.tolerance < asked.tank_power * reach * rows


def _believable(rules: RuleSet, clean: CleanFacts, asked: Acceptance) -> Iterator[str]:
    """Put a ceiling on everything the file says of clean rows: budgets follow from it."""
    if clean.refused_share > asked.refused_max:
        yield (
            f"{clean.refused_share:.1%} of clean batches would be refused; the policy allows "
            f"{asked.refused_max:.1%}: mine on rows that show the plant's normal range"
        )
    largest = {rule.name: _largest(rule, rules) for rule in rules.invariants}
    tolerance = {rule.name: rule.tolerance for rule in rules.invariants}
    for fact in clean.severe:
        shown = fact.share * tolerance.get(fact.rule, 0.0)
        most = asked.severe_max * largest.get(fact.rule, 0.0)
        if shown > most:
            yield (
                f"{fact.rule}: clean rows are said to stray by {number(shown)}; the policy "
                f"believes {number(most)}: mine it on calmer rows"
            )
    for facts, most, what in (
        (clean.envelope, asked.envelope_max, "of clean rows are said to be in transition"),
        (clean.anchors, asked.anchors_max, "of clean windows are said not to balance"),
        (clean.repeats, asked.repeats_max, "of clean rows are said to stand twice"),
    ):
        for fact in facts:
            if fact.share > most:
                yield (
                    f"{fact.rule}: {fact.share:.1%} {what}; the policy believes {most:.1%}: mine "
                    "it on other rows"
                )
    if clean.segments_per_row > asked.jumps_max:
        yield (
            f"{clean.segments_per_row:.2%} of clean rows are said to follow a time jump; the "
            f"policy believes {asked.jumps_max:.2%}: mine a record with fewer gaps"
        )


def _largest(rule: Invariant, rules: RuleSet) -> float:
    """Return the largest residual that could mean anything: nominal flow, or the span."""
    relation = rule.relation
    if isinstance(relation, Coupling):
        return relation.nominal
    span = rules.channel(relation.channels[0]).span
    return _width(span) if span else 0.0


def _no_looser(rules: RuleSet, last: RuleSet, asked: Acceptance) -> Iterator[str]:
    """Hold the rules against the last accepted file; a looser one needs a second signature."""
    now = {rule.name: rule for rule in rules.invariants}
    for old in last.invariants:
        rule = now.get(old.name)
        if old.name in asked.reasons:
            continue
        if rule is None or rule.kind is not old.kind:
            if old.kind.physical and not _replaced(old, rules, asked):
                yield (
                    f"{old.name} is gone since the last accepted file; mine it again, or declare "
                    "why in [acceptance.reasons]"
                )
            continue
        yield from _looser(old, rule, rules, asked)
    yield from _wider_channels(rules, last, asked)
    if last.clean and rules.clean:
        lively = {fact.level for fact in rules.clean.liveness if fact.smallest_range > 0}
        for level in dict.fromkeys(fact.level for fact in last.clean.liveness):
            if level not in lively and level not in asked.reasons:
                yield (
                    f"{level} may stand still, which the last accepted file did not allow; mine "
                    "rows in which it moves"
                )


def _replaced(old: Invariant, rules: RuleSet, asked: Acceptance) -> bool:
    """Whether another window on the same tank sees as slow a ramp."""
    if not isinstance(old.relation, Window):
        return False
    ramp = asked.looser_than_last * old.tolerance / old.relation.rows
    return any(
        isinstance(rule.relation, Window)
        and rule.relation.level == old.relation.level
        and rule.tolerance / rule.relation.rows <= ramp
        for rule in rules.invariants
    )


def _looser(old: Invariant, new: Invariant, rules: RuleSet, asked: Acceptance) -> Iterator[str]:
    unit = unit_of(new.relation, rules)
    match old.relation, new.relation:
        case Bound() as before, Bound() as after:
            if after.low < before.low or after.high > before.high:
                allowed = f"{number(before.low)} to {amount(before.high, unit)}"
                yield (
                    f"{new.name}: {number(after.low)} to {amount(after.high, unit)} is wider than "
                    f"the last accepted {allowed}; keep that"
                )
            return
        case Coupling() as before, Coupling() as after:
            if after.settle > before.settle:
                yield (
                    f"{new.name}: settles in {after.settle} rows, {before.settle} in the last "
                    "accepted file; keep it or let it be signed a second time"
                )
        case _:
            pass
    most = asked.looser_than_last * old.tolerance
    if new.tolerance > most:
        yield (
            f"{new.name}: tolerance {amount(new.tolerance, unit)} is looser than the last accepted "
            f"{amount(old.tolerance, unit)} (the policy allows {amount(most, unit)}); mine with "
            "--update or let it be signed a second time"
        )


def _wider_channels(rules: RuleSet, last: RuleSet, asked: Acceptance) -> Iterator[str]:
    now = {channel.name: channel for channel in rules.channels}
    for old in last.channels:
        if old.name in asked.reasons:
            continue
        new = now.get(old.name)
        if new is None or new.role is not old.role or (old.span and not new.span):
            yield (
                f"channel {old.name} is no longer described as a {old.role.value} with its span; "
                "restore it, or declare why in [acceptance.reasons]"
            )
        elif old.span and new.span and _width(new.span) > _width(old.span):
            yield (
                f"channel {old.name}'s span grew from {_said(old.span)} to {_said(new.span)}; "
                "state the instrument's span in the plant file"
            )
        elif new.codes != old.codes:
            yield f"actuator {old.name}'s codes changed; restore them in the plant file"


def _width(span: Span) -> float:
    return span.high - span.low


def _said(span: Span) -> str:
    return f"{number(span.low)} to {number(span.high)}"
