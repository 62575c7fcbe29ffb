"""Hardened couplings: a mined settle time per actuator, several on states, none vacuous."""

import re
from dataclasses import dataclass

import numpy as np

from sluice.arrays import Bools, Floats
from sluice.invariants.relations import ActuatorState, Coupling, Transition
from sluice.invariants.residuals import transition_rows
from sluice.invariants.ruleset import Dropped
from sluice.telemetry import Channel, Record, Role

__all__ = ["CouplingFind", "mine_couplings"]

LEAST_ROWS = 12  # steady rows that a state needs to be used
RARE_ROWS = 2  # steady rows that suffice if the flow is exactly zero in the off state
LONGEST_SETTLE_S = 60.0  # a longer transient is caused by another actuator
SETTLED = 1.1  # settled when waiting longer shrinks the spread by less than this factor
LARGEST_LEAK = 0.15  # of nominal, in the off state
CLOSE = 0.999
RARE = 0.05  # of rows: a pump that runs less often may be a standby
EXPLAINS = 1.3  # without the rows of a standby, the spread must fall by this factor


@dataclass(frozen=True, slots=True, kw_only=True)
class CouplingFind:
    """A coupling, how tight it is, and how often its rarer state occurs."""

    relation: Coupling
    spread: float  # 99.9th percentile of the steady residual over nominal
    support: float
    variation: float


def mine_couplings(record: Record) -> tuple[tuple[CouplingFind, ...], tuple[Dropped, ...]]:
    """Find for each actuator the one flow that its state determines best."""
    flows = record.of_role(Role.FLOW)
    kept: list[CouplingFind] = []
    dropped: list[Dropped] = []
    for actuator in record.of_role(Role.ACTUATOR):
        finds, reasons = [], []
        for flow in flows:
            find = _coupling(record, actuator, flow)
            if isinstance(find, str):
                reasons.append(find)
            else:
                finds.append(find)
        if finds:
            best = min(finds, key=lambda find: find.spread)
            kept.append(best)
            others = [f.relation.name for f in finds if f is not best]
            dropped += [
                Dropped(name=name, why=f"redundant: {best.relation.name} is tighter")
                for name in others
            ]
        else:
            why = _commonest(reasons) if reasons else "the plant meters no flow"
            dropped.append(Dropped(name=f"{actuator.name}~flow", why=why))
    return tuple(kept), tuple(dropped)


def _commonest(reasons: list[str]) -> str:
    return max(sorted(set(reasons)), key=reasons.count)


def _coupling(record: Record, actuator: Channel, flow: Channel) -> CouplingFind | str:
    """Return the coupling, or why there is none."""
    assert actuator.codes is not None
    states = np.rint(record.column(actuator.name))
    readings = record.column(flow.name)
    off = states == actuator.codes.off
    least = _least_rows(states, readings, off)
    on_codes = [code for code in actuator.codes.on if (states == code).sum() >= least]
    if off.sum() < LEAST_ROWS or not on_codes:
        return "it hardly ever switched in the clean record"
    settle = 0 if least < LEAST_ROWS else _settle(states, readings, off, on_codes, record)
    steady = ~transition_rows(states, settle, record.segment_starts) & ~np.isnan(readings)
    if (steady & off).sum() < LEAST_ROWS:
        return "too few rows settled in the off state"
    nominal = _nominals(states, readings, steady, on_codes, least=least)
    if not nominal:
        return "too few rows settled in an on state"
    largest = max(state.nominal for state in nominal)
    leak = float(np.quantile(np.abs(readings[steady & off]), 0.99))
    if largest <= 0 or leak > LARGEST_LEAK * largest:
        return "the flow goes on while it is off"
    residual = np.where(steady, _residual(states, readings, off, nominal), np.nan)
    standby = _standby(record, actuator, residual)
    spread = _spread(residual, _running(record, standby)) / largest
    if spread > 1 / 3:  # the tolerance is 1.5 times this; at half of nominal, on looks like off
        return "vacuous: the flow varies too much to tell on from off"
    on = np.isin(states, [state.code for state in nominal])
    return CouplingFind(
        relation=Coupling(
            name=f"{actuator.name}~{flow.name}",
            actuator=actuator.name,
            flow=flow.name,
            off=actuator.codes.off,
            states=nominal,
            settle=settle,
            transition=Transition.ENVELOPE,
            standby=standby,
        ),
        spread=spread,
        support=float(min(off.mean(), on.mean())),
        variation=float(readings[steady & on].std() / largest),
    )


def _least_rows(states: Floats, readings: Floats, off: Bools) -> int:
    """Return how many steady rows an on state needs.

    A standby pump hardly ever runs. If its meter shows exactly zero on every row on which it is
    off, and on no other, a few rows tell enough.
    """
    shown = ~np.isnan(readings) & ~np.isnan(states)
    on = shown & ~off
    rare = RARE_ROWS <= on.sum() < LEAST_ROWS and on.mean() <= RARE
    clear = not np.any(readings[shown & off]) and bool(np.all(readings[on] > 0))
    return RARE_ROWS if rare and clear else LEAST_ROWS


def _nominals(
    states: Floats, readings: Floats, steady: Bools, codes: list[int], *, least: int = LEAST_ROWS
) -> tuple[ActuatorState, ...]:
    nominals = []
    for code in codes:
        there = steady & (states == code)
        if there.sum() >= least:
            nominals.append(ActuatorState(code=code, nominal=float(np.median(readings[there]))))
    return tuple(nominals)


def _residual(
    states: Floats, readings: Floats, off: Bools, nominal: tuple[ActuatorState, ...]
) -> Floats:
    """Return the flow minus the nominal flow of the state; NaN in states without one."""
    expected = np.where(off, 0.0, np.nan)
    for state in nominal:
        expected[states == state.code] = state.nominal
    return np.asarray(readings - expected)


def _spread(residual: Floats, skipped: Bools, *, empty: float = np.inf) -> float:
    judged = residual[~np.isnan(residual) & ~skipped]
    return float(np.quantile(np.abs(judged), CLOSE)) if judged.size else empty


def _settle(states: Floats, readings: Floats, off: Bools, codes: list[int], record: Record) -> int:
    """Return the fewest rows from a switch after which waiting longer hardly reduces the spread.

    A pump that seldom switches has few rows after a switch, so these also count by themselves.
    """
    spreads = []
    longest = max(1, round(LONGEST_SETTLE_S / record.stride_s))
    later = ~transition_rows(states, longest + 1, record.segment_starts)
    for settle in range(longest + 1):
        steady = ~transition_rows(states, settle, record.segment_starts) & ~np.isnan(readings)
        nominal = _nominals(states, readings, steady, codes)
        if (steady & off).sum() < LEAST_ROWS or not nominal:
            break
        residual = _residual(states, readings, off, nominal)
        # Rows in transition are not judged, so a spread over fewer rows weighs more.
        spread = max(_spread(residual, ~steady), _spread(residual, ~steady | later, empty=0.0))
        spreads.append(spread / steady.mean())
    if not spreads:
        return 0
    floor = min(spreads)
    return next(at for at, spread in enumerate(spreads) if spread <= SETTLED * floor)


def _standby(record: Record, actuator: Channel, residual: Floats) -> tuple[tuple[str, int], ...]:
    """Return the standby pumps: the coupling is not checked while one of them runs.

    These are neighbours by number that hardly ever ran (P102 is the standby of P101), and pumps
    that ran rarely and whose running explains where the flow was not nominal.
    """
    chosen: list[tuple[str, int]] = []
    rare: list[tuple[str, int]] = []
    for channel in record.of_role(Role.ACTUATOR):
        if channel.codes is None or channel.name == actuator.name:
            continue
        runs = _running(record, ((channel.name, channel.codes.off),))
        share = float(runs.mean())
        if runs.sum() < LEAST_ROWS and _are_neighbours(actuator.name, channel.name):
            chosen.append((channel.name, channel.codes.off))
        elif 0 < share <= RARE:
            rare.append((channel.name, channel.codes.off))
    while rare:
        now = _spread(residual, _running(record, tuple(chosen)))
        best = min(rare, key=lambda pump: _spread(residual, _running(record, (*chosen, pump))))
        if _spread(residual, _running(record, (*chosen, best))) * EXPLAINS > now:
            break
        rare.remove(best)
        chosen.append(best)
    return tuple(chosen)


def _running(record: Record, pumps: tuple[tuple[str, int], ...]) -> Bools:
    running = np.zeros(len(record), bool)
    for pump, off in pumps:
        running |= np.rint(record.column(pump)) != off
    return running


def _are_neighbours(one: str, other: str) -> bool:
    """Whether two names differ by 1: P101 and P102, 1_P_005_STATUS and 1_P_006_STATUS."""
    first, second = (re.fullmatch(r"(.*?)(\d+)(\D*)", name) for name in (one, other))
    return bool(
        first
        and second
        and first.group(1, 3) == second.group(1, 3)
        and abs(int(first.group(2)) - int(second.group(2))) == 1
    )
