"""The hardened policy as demands: the integer evaluator's arithmetic, and every budget it has.

What blocks of rows must show (liveness) and must not (repeats) is not convex and not demanded here:
the gate has the last word.
"""

import numpy as np

from sluice.admission import HardenedPolicy
from sluice.arrays import Ints
from sluice.errors import SettingError
from sluice.invariants import (
    REGISTER_TOP,
    Budgets,
    Encoding,
    IntegerBalance,
    IntegerBound,
    IntegerCoupling,
    IntegerRate,
    Measurement,
    Register,
    RuleSet,
    budgets_for,
    held,
    measure,
)
from sluice.lab.attacks.projection.demands import Chain, Demands, ShownReadings, Slab
from sluice.lab.attacks.projection.registers import RegisterReader
from sluice.telemetry import Record

__all__ = ["hardened_demands"]


def hardened_demands(
    rules: RuleSet,
    policy: HardenedPolicy,
    record: Record,
    encoding: Encoding,
    *,
    wary: bool = False,
) -> Demands:
    """Return what keeps each row within tolerance and each sacrificed row short of severe.

    What the evaluator finds within tolerance may stay where it is, margin or not; unless `wary`.
    """
    if rules.clean is None:
        raise SettingError(
            f"the rules of {rules.plant!r} say nothing of clean batches; project under the paper "
            "policy or mine with --profile hardened"
        )
    measured = measure(rules, record, encoding=encoding)
    budgets = budgets_for(rules, rules.clean, policy.margins, rows=len(record))
    counted = measured.missing | measured.illegal
    counted[record.segment_starts] = True
    slabs, chains = _read(RegisterReader(encoding, record, wary=wary), measured, budgets)
    anchors = {found.rule.name: found.anchors.size for found in measured.judged}
    return Demands(
        slabs=slabs,
        chains=chains,
        held=_last_known(record),
        shown=tuple(_shown(register) for register in encoding.registers),
        counted=counted,
        rows=budgets.violating_rows,
        severe=budgets.severe_rows,
        anchors=tuple(
            # Windows that reach back over a time jump are broken whatever is read.
            (chain.rule, budgets.anchors[chain.rule] - (anchors[chain.rule] - len(chain.at)))
            for chain in chains
            if chain.anchored
        ),
    )


def _read(
    reader: RegisterReader, measured: Measurement, budgets: Budgets
) -> tuple[tuple[Slab, ...], tuple[Chain, ...]]:
    slabs: list[Slab] = []
    chains: list[Chain] = []
    for rule, judged in zip(reader.encoding.rules, measured.judged, strict=True):
        severe = budgets.severe_multiple[rule.rule.name]
        match rule:
            case IntegerCoupling():
                slabs.append(reader.coupling(rule, judged, severe))
            case IntegerBound():
                slabs.append(reader.bound(rule, judged, severe))
            case IntegerBalance() | IntegerRate():
                chains.append(reader.chain(rule, judged, severe))
    return tuple(slabs), tuple(chains)


def _shown(register: Register) -> ShownReadings:
    top = register.low + register.step * REGISTER_TOP
    return ShownReadings(channel=register.channel, low=register.low, high=top)


def _last_known(record: Record) -> Ints:
    """Return the row whose reading each cell shows: its own, or the last known one."""
    numbers = np.arange(len(record), dtype=np.float64)
    columns = [held(np.where(missing, np.nan, numbers), empty=0.0) for missing in record.missing.T]
    return np.column_stack(columns).astype(np.int64)
