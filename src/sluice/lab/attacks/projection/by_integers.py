"""The hardened policy as demands: the integer evaluator's arithmetic, and all of its budgets.

Two checks of levels, liveness and repeats, are not convex and not demanded here: the gate applies
them to the result.
"""

from collections.abc import Iterator
from typing import assert_never

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
    IntegerConstant,
    IntegerCoupling,
    IntegerRate,
    IntegerSpectrum,
    IntegerSwitchBand,
    IntegerTie,
    Mean,
    Measurement,
    Register,
    RuleSet,
    Spectrum,
    Window,
    held,
    measure,
)
from sluice.lab.attacks.projection.demands import Chain, Demands, ShownReadings, Slab
from sluice.lab.attacks.projection.registers import RegisterReader
from sluice.telemetry import Record

__all__ = ["hardened_demands"]


def hardened_demands(  # noqa: PLR0913 - the gate's parts, the batch, and how to read it
    rules: RuleSet,
    policy: HardenedPolicy,
    record: Record,
    encoding: Encoding,
    *,
    wide_margins: bool = False,
    tangents: tuple[Chain, ...] = (),
) -> Demands:
    """Return the demands that keep each row within tolerance, and sacrificed rows below severe.

    A residual that is already within tolerance may stay inside the margin, unless `wide_margins`.
    `tangents` are what spectra demand (`SpectrumTangents`).
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
    return Demands(
        slabs=slabs,
        chains=(*chains, *tangents),
        source_rows=_last_known(record),
        shown=tuple(_instrument_range(register) for register in encoding.registers),
        counted=counted,
        rows=budgets.violating_rows,
        severe=budgets.severe_rows,
        anchors=tuple(_own_budgets(measured, budgets, record)),
    )


def _own_budgets(
    measured: Measurement, budgets: Budgets, record: Record
) -> Iterator[tuple[str, int]]:
    """Yield what each rule with a budget of its own leaves.

    Windows and blocks that cross a time jump are broken, whatever the readings are.
    """
    segment = np.searchsorted(record.segment_starts, np.arange(len(record)), side="right")
    for judged in measured.judged:
        if judged.own_budget:
            match judged.rule.relation:
                case Window(rows=rows) | Mean(rows=rows):
                    before = judged.anchors - rows
                case Spectrum(rows=rows):
                    before = judged.anchors - rows + 1
                case _:
                    before = judged.anchors
            jumps = int(np.count_nonzero(segment[judged.anchors] != segment[before]))
            yield judged.rule.name, budgets.own[judged.rule.name] - jumps


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
            case IntegerConstant():
                slabs.append(reader.constant(rule, judged, severe))
            case IntegerBalance() | IntegerRate():
                chains.append(reader.chain(rule, judged, severe))
            case IntegerTie():
                chains.append(reader.tie(rule, judged, severe))
            case IntegerSwitchBand():
                chains.append(reader.switches(rule, judged))
            case IntegerSpectrum():
                pass  # its demands depend on the point at which they are taken: the tangents
            case _:
                assert_never(rule)
    return tuple(slabs), tuple(chains)


def _instrument_range(register: Register) -> ShownReadings:
    top = register.low + register.step * REGISTER_TOP
    return ShownReadings(channel=register.channel, low=register.low, high=top)


def _last_known(record: Record) -> Ints:
    """Return the row whose reading each cell shows: its own, or the last known one."""
    numbers = np.arange(len(record), dtype=np.float64)
    columns = [held(np.where(missing, np.nan, numbers), empty=0.0) for missing in record.missing.T]
    return np.column_stack(columns).astype(np.int64)
