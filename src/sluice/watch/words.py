"""Alarms in words: what the plant shows, what was expected, and what to check."""

import numpy as np

from sluice.invariants import (
    Balance,
    Bound,
    Constant,
    Coupling,
    Invariant,
    Mean,
    Rate,
    RuleSet,
    Spectrum,
    SwitchBand,
    Term,
    Tie,
    Window,
    amount,
    duration,
    number,
    residuals,
    unit_of,
)
from sluice.telemetry import Record

__all__ = ["say_code", "say_missing", "say_rule", "say_score", "say_votes"]

JUST_ABOVE = 1.005  # a ratio that three digits show as 1
MOST_TAGS = 4


def say_rule(  # noqa: C901, PLR0911 - one case a kind
    rule: Invariant, rules: RuleSet, record: Record, row: int
) -> str:
    """Return how a row breaks a rule, and what to check."""
    match rule.relation:
        case Coupling() as coupling:
            return _coupling(coupling, rule, rules, record, row)
        case Balance() as balance:
            return _balance(balance, rule, rules, record, row, rows=1)
        case Window() as window:
            return _balance(window, rule, rules, record, row, rows=window.rows)
        case Bound() as bound:
            value, unit = float(record.column(bound.channel)[row]), unit_of(bound, rules)
            side = "below" if value < bound.low else "above"
            limits = f"{number(bound.low)} to {amount(bound.high, unit)}"
            return (
                f"{bound.channel} shows {amount(value, unit)}, {side} the {limits} of clean "
                f"operation: compare it with another instrument, and check set points that changed"
            )
        case Tie() as tie:
            return _tie(tie, rule, rules, record, row)
        case Constant() as constant:
            return _constant(constant, rules, record, row)
        case SwitchBand() as band:
            return _switch(band, rules, record, row)
        case Mean() as mean:
            over, unit = duration(mean.rows * rules.stride_s), unit_of(mean, rules)
            first = max(row - mean.rows + 1, 0)
            shown = float(np.nanmean(record.column(mean.channel)[first : row + 1]))
            usual = f"{number(mean.mean)} ± {amount(rule.tolerance, unit)}"
            return (
                f"{mean.channel} shows {amount(shown, unit)} in the mean over {over}; in clean "
                f"operation it is {usual}: check the instrument's zero, and set points that changed"
            )
        case Spectrum() as spectrum:
            over = duration(spectrum.rows * rules.stride_s)
            return (
                f"the noise of {spectrum.channel} over {over} is not that of clean operation: "
                f"check whether the instrument is live, and its signal path"
            )
        case Rate() as rate:
            column, unit = record.column(rate.channel), unit_of(rate, rules)
            step = float(column[row] - column[row - 1]) if row else 0.0
            return (
                f"{rate.channel} {_moved(step, unit)} in {duration(rules.stride_s)}; in clean "
                f"operation it changes by at most {amount(rule.tolerance, unit)}: check the "
                f"instrument and its signal path"
            )


def _tie(tie: Tie, rule: Invariant, rules: RuleSet, record: Record, row: int) -> str:
    unit = unit_of(tie, rules)
    shown = float(record.column(tie.channel)[row])
    expected = shown - float(residuals(tie, record).values[row])
    others = _listed(tuple(term.channel for term in tie.terms))
    predicted = f"{_predict(tie.terms)} {number(expected)} ± {amount(rule.tolerance, unit)}"
    return (
        f"{tie.channel} shows {amount(shown, unit)}, but {others} {predicted}: compare "
        f"{tie.channel} with another instrument, and check what it is predicted from"
    )


def _constant(constant: Constant, rules: RuleSet, record: Record, row: int) -> str:
    shown = amount(float(record.column(constant.channel)[row]), unit_of(constant, rules))
    return (
        f"{constant.channel} shows {shown}; in clean operation it always shows "
        f"{number(constant.value)}: check on site whether it was operated, and by whom"
    )


def _switch(band: SwitchBand, rules: RuleSet, record: Record, row: int) -> str:
    at = row - 1 if band.before and row else row
    level, unit = float(record.column(band.level)[at]), unit_of(band, rules)
    on = round(float(record.column(band.actuator)[row])) in band.on
    low, high = (band.on_low, band.on_high) if on else (band.off_low, band.off_high)
    return (
        f"{band.actuator} switches {'on' if on else 'off'} while {band.level} shows "
        f"{amount(level, unit)}; it does so at {number(low)} to {amount(high, unit)}: check the "
        f"control's set points, and read {band.level} on site"
    )


def _coupling(coupling: Coupling, rule: Invariant, rules: RuleSet, record: Record, row: int) -> str:
    code, unit = float(record.column(coupling.actuator)[row]), unit_of(coupling, rules)
    flow = amount(float(record.column(coupling.flow)[row]), unit)
    expected = {coupling.off: ("off", 0.0)} | {
        state.code: ("on", state.nominal) for state in coupling.states
    }
    state, nominal = expected.get(round(code), ("moving", np.nan))
    within = f"between 0 and {amount(coupling.nominal, unit)}"
    if np.isfinite(nominal):
        within = f"{number(nominal)} ± {amount(rule.tolerance, unit)}"
    return (
        f"{coupling.flow} shows {flow} while {coupling.actuator} reads {state}; expected {within}: "
        f"check on site whether {coupling.actuator} runs, and compare {coupling.flow} with it"
    )


def _balance(  # noqa: PLR0913 - the numbers of one sentence
    balance: Balance | Window,
    rule: Invariant,
    rules: RuleSet,
    record: Record,
    row: int,
    *,
    rows: int,
) -> str:
    unit = unit_of(balance, rules)
    column = record.column(balance.level)
    step = float(column[row] - column[row - rows]) if row >= rows else np.nan
    residual = float(residuals(balance, record).values[row])
    flows = _listed(tuple(term.channel for term in balance.terms)) or "its flows"
    over = duration(rows * rules.stride_s)
    if not (np.isfinite(step) and np.isfinite(residual)):
        return f"{balance.level} does not change over {over} as {flows} predict"
    return (
        f"{balance.level} {_moved(step, unit)} in {over}, but {flows} {_predict(balance.terms)} "
        f"that it {_moved(step - residual, unit)} (± {amount(rule.tolerance, unit)}): read the "
        f"tank's level on site, and check whether the meters and pumps show what really runs"
    )


def say_score(
    ratio: float, tags: tuple[str, ...], shares: tuple[float, ...], *, rules_first: bool = False
) -> str:
    """Return how far the detector's score is above its threshold, and which tags to check."""
    blamed = [f"{tag} ({share:.0%})" for tag, share in zip(tags, shares, strict=True)]
    above = "just above its limit" if ratio < JUST_ABOVE else f"{ratio:.3g} times its limit"
    text = f"the readings differ from normal operation: the score is {above}"
    if rules_first:
        text = f"{text}, because rules are strained together"
    if not blamed:
        return text
    return f"{text}, most of it from {_listed(tuple(blamed))}: check these signals first"


def say_votes(voted: tuple[str, ...], dissented: tuple[str, ...]) -> str:
    """Return which members voted for an alarm and which did not."""
    if not voted:
        return "no member voted for it: the plant's own rules alarm"
    return f"voted for it: {', '.join(voted)}; against: {', '.join(dissented) or 'none'}"


def say_missing(tag: str) -> str:
    """Return that a tag has no reading."""
    return f"{tag} has no reading: check the instrument and its connection"


def say_code(tag: str, code: float, legal: frozenset[int]) -> str:
    """Return that an actuator shows a code it does not have."""
    known = _listed(tuple(map(str, sorted(legal))))
    return (
        f"{tag} shows the code {code:g}; it has only {known}: check the controller that writes it"
    )


def _predict(terms: tuple[Term, ...]) -> str:
    return "predicts" if len(terms) == 1 else "predict"


def _moved(step: float, unit: str) -> str:
    if step == 0:
        return "stays the same"
    return f"{'rises' if step > 0 else 'falls'} by {amount(abs(step), unit)}"


def _listed(names: tuple[str, ...]) -> str:
    shown = names if len(names) <= MOST_TAGS else (*names[: MOST_TAGS - 1], "others")
    return " and ".join(filter(None, (", ".join(shown[:-1]), *shown[-1:])))
