"""The paper's miners, step by step as in its implementation, so that its figures can be reproduced.

Their weaknesses are kept: balances regress a tank on every flow of the plant, Lasso's penalty
depends on units, channels are classified by name. Plants should use `hardened`.
"""

import re
from dataclasses import dataclass

import numpy as np

from sluice.arrays import Bools, Floats
from sluice.invariants.relations import (
    ActuatorState,
    Balance,
    Coupling,
    Evidence,
    Invariant,
    Relation,
    Term,
    Transition,
)
from sluice.invariants.residuals import residuals
from sluice.telemetry import Record

__all__ = [
    "MinedBalance",
    "MinedCoupling",
    "calibrate_as_paper",
    "mine_balances",
    "mine_couplings",
    "mine_expert_couplings",
]

MOST_STATES = 6
STEADY_QUANTILE = 0.99
LARGEST_VARIATION = 0.35
CLEAR_OF_OFF = 3.0
SMALLEST_COEFFICIENT = 1e-3
LASSO_ITERATIONS = 20_000
SAFETY = 1.5
QUANTILE = 0.999
NEVER_APPLIED = 1e-6
SMALLEST_TOLERANCE = 1e-9
ROWS_FOR_PERCENTILE = 1_000  # with fewer, the 99.9th percentile is hardly more than the maximum

LEVEL_NAME = re.compile(r"^L|LIT|LEVEL|TANK|PIT|PRESSURE|TIT|TEMP|_L_|_LT_|_L$")
FLOW_NAME = re.compile(r"^F|FT|FIT|FLOW|PUMP|VALVE|_F_|_F$")


@dataclass(frozen=True, slots=True, kw_only=True)
class MinedCoupling:
    """A coupling and the figures by which it was chosen."""

    relation: Coupling
    variation: float  # standard deviation over mean of the flow while on
    support: float  # share of rows in the rarer steady state
    evidence: Evidence


@dataclass(frozen=True, slots=True, kw_only=True)
class MinedBalance:
    """A balance and the figures by which it was chosen."""

    relation: Balance
    r2: float
    tightness: float  # standard deviation of the residual over that of the level step
    evidence: Evidence


def channel_types(record: Record) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (continuous, discrete) names, by their prefix or their number of distinct values."""
    continuous, discrete = [], []
    for name in record.names:
        if name.startswith(("L_", "F_", "P_")):
            continuous.append(name)
        elif name.startswith("S_") or len(np.unique(record.column(name))) <= MOST_STATES:
            discrete.append(name)
        else:
            continuous.append(name)
    return tuple(continuous), tuple(discrete)


def mine_couplings(
    record: Record, *, support: float, off_ratio: float
) -> tuple[MinedCoupling, ...]:
    """Try every discrete channel against every continuous one."""
    continuous, discrete = channel_types(record)
    couplings = []
    for actuator in discrete:
        states = np.rint(record.column(actuator))
        codes, counts = np.unique(states, return_counts=True)
        common = codes[counts >= support * len(record)]
        if len(common) < 2:
            continue
        steady = np.ones(len(record), bool)
        steady[1:] = states[1:] == states[:-1]
        off, on = steady & (states == common[0]), steady & (states == common[-1])
        if min(off.mean(), on.mean()) < support:
            continue
        for flow in continuous:
            steady_states = _SteadyFit(actuator=actuator, common=common, off=off, on=on)
            coupling = _coupling(record, steady_states, flow, off_ratio)
            if coupling:
                couplings.append(coupling)
    return tuple(couplings)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SteadyFit:
    """An actuator's common codes; the rows steady in the lowest (off) and in the highest (on)."""

    actuator: str
    common: Floats
    off: Bools
    on: Bools


def _coupling(
    record: Record, states: _SteadyFit, flow: str, off_ratio: float
) -> MinedCoupling | None:
    off, on, common = states.off, states.on, states.common
    readings = record.column(flow)
    leak = float(np.quantile(np.abs(readings[off]), STEADY_QUANTILE))
    largest = float(np.abs(readings).max())
    if largest == 0 or leak / largest > off_ratio:
        return None
    nominal = float(readings[on].mean())
    variation = float(readings[on].std() / abs(nominal)) if nominal else np.inf
    if nominal <= 0 or variation > LARGEST_VARIATION or nominal <= CLEAR_OF_OFF * leak:
        return None
    support = float(min(off.mean(), on.mean()))
    return MinedCoupling(
        relation=Coupling(
            name=f"{states.actuator}~{flow}",
            actuator=states.actuator,
            flow=flow,
            off=int(common[0]),
            states=(ActuatorState(code=int(common[-1]), nominal=nominal),),
            settle=1,
            transition=Transition.SILENT,
        ),
        variation=variation,
        support=support,
        evidence=Evidence(support=support, variation=variation),
    )


def mine_expert_couplings(record: Record) -> tuple[MinedCoupling, ...]:
    """BATADAL's expert set: each state S_x with the flow F_x of its name, transitions included."""
    couplings = []
    for actuator in record.names:
        flow = f"F_{actuator.removeprefix('S_')}"
        if not actuator.startswith("S_") or flow not in record.names:
            continue
        on = np.rint(record.column(actuator)) == 1
        readings = record.column(flow)
        if on.sum() < 20 or on.all() or np.abs(readings[~on]).max() >= 1e-3:
            continue
        nominal = float(readings[on].mean())
        variation = float(readings[on].std() / abs(nominal)) if nominal else np.inf
        if variation > 0.10:
            continue
        support = float(min(on.mean(), 1 - on.mean()))
        couplings.append(
            MinedCoupling(
                relation=Coupling(
                    name=f"{actuator}~{flow}",
                    actuator=actuator,
                    flow=flow,
                    off=0,
                    states=(ActuatorState(code=1, nominal=nominal),),
                    settle=0,
                    transition=Transition.SILENT,
                ),
                variation=variation,
                support=support,
                evidence=Evidence(support=support, variation=variation),
            )
        )
    return tuple(couplings)


def mine_balances(record: Record, *, alpha: float, most_terms: int) -> tuple[MinedBalance, ...]:
    """Regress the step of each channel named like a level on all channels named like a flow."""
    # Imported here because the import takes a second, which other commands must not pay.
    from sklearn.linear_model import Lasso  # noqa: PLC0415
    from sklearn.preprocessing import StandardScaler  # noqa: PLC0415

    continuous, _ = channel_types(record)
    levels = [name for name in continuous if LEVEL_NAME.search(name.upper())]
    flows = [n for n in continuous if FLOW_NAME.search(n.upper()) and n not in levels]
    if not flows or len(record) < 3:
        return ()
    readings = np.column_stack([record.column(name)[1:] for name in flows])
    scaler = StandardScaler().fit(readings)
    scaled = scaler.transform(readings)
    balances = []
    for level in levels:
        step = np.diff(record.column(level))
        if step.std() == 0:
            continue
        lasso = Lasso(alpha=alpha, max_iter=LASSO_ITERATIONS).fit(scaled, step)
        weights = lasso.coef_ / scaler.scale_
        order = np.argsort(-np.abs(weights), kind="stable")[:most_terms]
        kept = [int(at) for at in order if abs(weights[at]) > SMALLEST_COEFFICIENT]
        predicted = readings[:, kept] @ weights[kept]
        constant = float((step - predicted).mean())
        residual = step - predicted - constant
        r2 = float(1 - residual.var() / step.var())
        relation = Balance(
            name=f"d{level}",
            level=level,
            terms=tuple(Term(channel=flows[at], coefficient=float(weights[at])) for at in kept),
            constant=constant,
            averaged=False,
        )
        tightness = float(residual.std() / step.std())
        balances.append(
            MinedBalance(relation=relation, r2=r2, tightness=tightness, evidence=Evidence(r2=r2))
        )
    return tuple(balances)


def calibrate_as_paper(relation: Relation, evidence: Evidence, clean: Record) -> Invariant:
    """Return the invariant with 1.5 times the 99.9th percentile of its clean residuals (eq. 3)."""
    on_clean = residuals(relation, clean)
    size = np.abs(on_clean.values[on_clean.applies])
    tolerance = SAFETY * float(np.quantile(size, QUANTILE)) if size.size else NEVER_APPLIED
    known = Evidence(
        r2=evidence.r2,
        support=evidence.support,
        variation=evidence.variation,
        judged_rows=int(size.size),
        few_rows=size.size < ROWS_FOR_PERCENTILE,
    )
    return Invariant(
        relation=relation, tolerance=max(tolerance, SMALLEST_TOLERANCE), evidence=known
    )
