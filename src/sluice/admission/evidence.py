"""Evidence for an operator: which tags, how many rows, since when, in plant units."""

import numpy as np

from sluice.admission.verdict import Finding, WorstRow
from sluice.arrays import Bools, Floats
from sluice.invariants import (
    Balance,
    Bound,
    Budgets,
    Constant,
    Coupling,
    Invariant,
    Judged,
    Mean,
    Rate,
    Spectrum,
    SwitchBand,
    Tie,
    Window,
    amount,
    residuals,
)
from sluice.telemetry import Record

__all__ = ["finding_of", "operator_sentence", "worst_rows"]

WORST_ROWS = 3


def finding_of(judged: Judged, batch: Record, budgets: Budgets, alpha: float) -> Finding:
    """Turn one rule's result into evidence."""
    rule, rows = judged.rule, len(batch)
    limit = alpha
    judged_rows = rows
    if judged.own_budget:
        limit = budgets.own[rule.name] / rows
        judged_rows = judged.anchors.size
    count = int(judged.violating.sum())
    return Finding(
        name=rule.name,
        kind=rule.kind,
        violating_rows=count,
        violating_share=count / rows,
        inapplicable_share=1 - judged_rows / rows,
        envelope_share=float(judged.envelope.mean()),
        limit=limit,
        sentence=operator_sentence(rule, batch, judged.violating),
        worst=worst_rows(rule, batch, judged.violating, judged.excess),
        violating=judged.violating,
    )


def operator_sentence(  # noqa: C901, PLR0911 - one case a kind
    rule: Invariant, batch: Record, broken: Bools
) -> str:
    """Return how a rule is broken, with the plant's tags and units; empty where it holds."""
    count = int(np.count_nonzero(broken))
    if not count:
        return ""
    first = int(broken.argmax())
    tail = f"on {count:,} of {len(batch):,} rows, first at {_when(batch, first)}"
    match rule.relation:
        case Coupling() as coupling:
            state = _state(coupling, batch.column(coupling.actuator)[first])
            flow = _reading(batch, coupling.flow, first)
            return f"{coupling.actuator} reads {state} while {coupling.flow} shows {flow} {tail}"
        case Balance() as balance:
            return f"{balance.level} does not change as its flows predict {tail}"
        case Window() as window:
            over = f"over {window.rows} rows"
            return f"{window.level} does not change {over} as its flows predict {tail}"
        case Bound() as bound:
            unit = batch.channel(bound.channel).unit
            value = _reading(batch, bound.channel, first)
            allowed = f"{amount(bound.low, '')} to {amount(bound.high, unit)}"
            return f"{bound.channel} shows {value}, outside {allowed} {tail}"
        case Rate() as rate:
            step = amount(rule.tolerance, batch.channel(rate.channel).unit)
            return f"{rate.channel} jumps by more than {step} in one row {tail}"
        case Tie() as tie:
            others = " and ".join(dict.fromkeys(term.channel for term in tie.terms))
            value = _reading(batch, tie.channel, first)
            return f"{tie.channel} shows {value}, which does not agree with {others} {tail}"
        case Constant() as constant:
            value = _reading(batch, constant.channel, first)
            usual = amount(constant.value, batch.channel(constant.channel).unit)
            return f"{constant.channel} shows {value} instead of its constant {usual} {tail}"
        case SwitchBand() as band:
            at = max(first - band.before, 0)
            value = _reading(batch, band.level, at)
            return f"{band.actuator} switches while {band.level} shows {value} {tail}"
        case Mean() as mean:
            over = f"over {mean.rows} rows"
            return f"the mean of {mean.channel} {over} is not that of clean rows {tail}"
        case Spectrum() as spectrum:
            over = f"over {spectrum.rows} rows"
            return f"{spectrum.channel} is smoother or rougher {over} than in clean rows {tail}"


def worst_rows(
    rule: Invariant, batch: Record, violating: Bools, excess: Floats
) -> tuple[WorstRow, ...]:
    """Return the violating rows furthest beyond tolerance, furthest first.

    A window that spans a time jump violates but has no residual, so it is not listed.
    """
    if not violating.any():
        return ()
    values = residuals(rule.relation, batch).values
    known = violating & ~np.isnan(values)
    order = np.argsort(np.where(known, -excess, np.inf), kind="stable")[:WORST_ROWS]
    return tuple(
        WorstRow(
            row=int(row),
            time=str(batch.times[row].astype("datetime64[s]")),
            residual=float(values[row]),
            tolerance=rule.tolerance,
        )
        for row in order
        if known[row]
    )


def _when(batch: Record, row: int) -> str:
    """Return the time of day, with the date where the batch spans more than one."""
    date, clock = str(batch.times[row].astype("datetime64[s]")).split("T")
    days = batch.times[[0, -1]].astype("datetime64[D]")
    return clock if days[0] == days[1] else f"{date} {clock}"


def _reading(batch: Record, channel: str, row: int) -> str:
    value = float(batch.column(channel)[row])
    return "no value" if np.isnan(value) else amount(value, batch.channel(channel).unit)


def _state(coupling: Coupling, code: float) -> str:
    if np.isnan(code):
        return "no value"
    if round(code) == coupling.off:
        return "off"
    return "on" if any(round(code) == state.code for state in coupling.states) else "moving"
