"""The hardened policy as demands: the integer evaluator's arithmetic, and all of its budgets.

Two checks of blocks of rows, liveness and repeats, are not convex and not demanded here: the gate
applies them to the result.
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
    wide_margins: bool = False,
) -> Demands:
    """Return the demands that keep each row within tolerance, and sacrificed rows below severe.

    A residual that is already within tolerance may stay inside the margin, unless `wide_margins`.
    """
    if rules.clean is None:
        raise SettingError(
            f"the rules of {rules.plant!r} have no statistics of clean batches, which the hardened "
            "policy needs; project under the paper policy or mine with --profile hardened"
        )
    measured = measure(rules, record, encoding=encoding)
    budgets = policy.budgets(rules, rows=len(record))
    counted = measured.missing | measured.illegal
    counted[record.segment_starts] = True
    slabs, chains = _read(
        RegisterReader(encoding, record, wide_margins=wide_margins), measured, budgets
    )
    anchors = {judged.rule.name: judged.anchors.size for judged in measured.judged}
    return Demands(
        slabs=slabs,
        chains=chains,
        source_rows=_last_known(record),
        shown=tuple(_instrument_range(register) for register in encoding.registers),
        counted=counted,
        rows=budgets.violating_rows,
        severe=budgets.severe_rows,
        anchors=tuple(
            # Windows that cross a time jump are broken, whatever the readings are.
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


def _instrument_range(register: Register) -> ShownReadings:
    top = register.low + register.step * REGISTER_TOP
    return ShownReadings(channel=register.channel, low=register.low, high=top)


def _last_known(record: Record) -> Ints:
    """Return the row whose reading each cell shows: its own, or the last known one."""
    numbers = np.arange(len(record), dtype=np.float64)
    columns = [held(np.where(missing, np.nan, numbers), empty=0.0) for missing in record.missing.T]
    return np.column_stack(columns).astype(np.int64)
