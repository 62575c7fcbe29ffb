"""Renewal: a plant's next rules file beside the last accepted one, by the budgets of both."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from sluice.admission.objections import Objection, ObjectionKind
from sluice.invariants import (
    TOLERANCE,
    Balance,
    Bound,
    Budgets,
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
    Tie,
    Window,
    amount,
    budgets_for,
    duration,
    fact_faults,
    number,
    prediction_shift,
    register_of,
    unit_of,
)
from sluice.telemetry import Span

__all__ = ["looser_than_last"]

RENEW = "mine with --update, or get a second approval"


def looser_than_last(  # noqa: PLR0913 - two files, and what policy and approver say about them
    rules: RuleSet,
    last: RuleSet,
    *,
    factor: float,
    reasons: Mapping[str, str],
    margins: Margins,
    rows_min: int,
    rows_max: int,
) -> Iterator[Objection]:
    """Yield what the rules allow beyond the last accepted ones, times `factor`.

    `reasons` excuse channels and rules by name. `margins` and the numbers of rows give the budgets
    of both files.
    """
    renewal = _Renewal.of(rules, last, factor, reasons)
    yield from _no_looser(renewal)
    yield from _wider_channels(renewal)
    counts = _row_counts(max(rows_min, rules.rows_needed), rows_max)
    yield from _larger_budgets(renewal, margins, counts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Renewal:
    """Rules beside the last accepted ones, and what may have changed between them."""

    rules: RuleSet
    last: RuleSet
    factor: float  # how much looser than the last file a tolerance or budget may be
    channels: frozenset[str]  # excused by a declared reason
    names: frozenset[str]  # of excused rules

    @classmethod
    def of(
        cls, rules: RuleSet, last: RuleSet, factor: float, reasons: Mapping[str, str]
    ) -> "_Renewal":
        """A reason for a channel excuses no rule that a plant gave the name of that channel."""
        known = {channel.name for file in (rules, last) for channel in file.channels}
        return cls(
            rules=rules,
            last=last,
            factor=factor,
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
            yield from _looser(old, new, rules, renewal.factor)
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
    factor = renewal.factor
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
    rules, last, factor = renewal.rules, renewal.last, renewal.factor
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
    most *= renewal.factor
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
    factor = renewal.factor
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


def _looser(old: Invariant, new: Invariant, rules: RuleSet, factor: float) -> Iterator[Objection]:
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
    most = factor * old.tolerance
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
        elif old.span and new.span and new.span.width > old.span.width:
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


def _span_words(span: Span) -> str:
    return f"{number(span.low)} to {number(span.high)}"
