"""The gate as an analyst would write it: columns, shifts and masks of a pandas frame.

It is the rival of the benchmark `gate` and returns the same results: which rows break a rule, and
for each rule on how many rows it is broken and judged. It supports the rules of the paper's
profiles: couplings that are silent in transition, and balances.
"""

from dataclasses import dataclass
from typing import Any

from sluice.errors import SettingError
from sluice.invariants import Balance, Coupling, Invariant, RuleSet, Transition
from sluice.telemetry import Record

__all__ = ["Judgement", "frame_of", "judge"]

Frame = Any  # pandas is imported when needed and has no types
Series = Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Judgement:
    """The gate's counts, without its sentences."""

    violating: Series
    broken_rows: tuple[int, ...]
    judged_rows: tuple[int, ...]


def frame_of(record: Record) -> Frame:
    """Return the readings as a frame, with a column that marks segment starts."""
    import pandas as pd  # noqa: PLC0415

    frame = pd.DataFrame(record.values, columns=list(record.names), copy=False)
    starts = pd.Series(False, index=frame.index)
    starts.iloc[record.segment_starts] = True
    return frame.assign(starts=starts)


def judge(frame: Frame, rules: RuleSet) -> Judgement:
    """Return the rows that break any rule, and the counts of each rule."""
    violating, broken_rows, judged_rows = frame["starts"] & False, [], []
    for rule in rules.invariants:
        residual = _residual(frame, rule)
        broken = residual.abs() > rule.tolerance  # a missing residual compares false
        violating |= broken
        broken_rows.append(int(broken.sum()))
        judged_rows.append(int(residual.count()))
    return Judgement(
        violating=violating, broken_rows=tuple(broken_rows), judged_rows=tuple(judged_rows)
    )


def _residual(frame: Frame, rule: Invariant) -> Series:
    match rule.relation:
        case Coupling(transition=Transition.SILENT, standby=()) as coupling:
            return _coupling(frame, coupling)
        case Balance(averaged=False) as balance:
            return _balance(frame, balance)
        case _:
            raise SettingError(
                f"the pandas gate judges couplings and balances of the paper's profiles only, got "
                f"rule {rule.name!r}"
            )


def _coupling(frame: Frame, coupling: Coupling) -> Series:
    states, flow = frame[coupling.actuator].round(), frame[coupling.flow]
    residual = flow.where(states == coupling.off)
    for state in coupling.states:
        residual = residual.mask(states == state.code, flow - state.nominal)
    switched = (states != states.shift()) | frame["starts"]
    for rows in range(coupling.settle):
        residual = residual.mask(switched.shift(rows, fill_value=False) if rows else switched)
    return residual


def _balance(frame: Frame, balance: Balance) -> Series:
    flow = sum(term.coefficient * frame[term.channel] for term in balance.terms)
    step = frame[balance.level].diff().mask(frame["starts"])
    return step - flow - balance.constant
