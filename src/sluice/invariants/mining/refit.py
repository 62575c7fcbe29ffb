"""Fit a relation of known structure again: its channels and codes stay, its numbers are new."""

from dataclasses import replace

import numpy as np

from sluice.arrays import Bools, Floats
from sluice.invariants.mining.windows import window_of
from sluice.invariants.relations import (
    ActuatorState,
    Balance,
    Coupling,
    Relation,
    Term,
    Tie,
    Window,
)
from sluice.invariants.residuals import transition_rows
from sluice.telemetry import Record

__all__ = ["refitted"]


def refitted(relation: Relation, clean: Record) -> Relation:
    """Return the relation with its numbers fitted to clean rows."""
    match relation:
        case Coupling():
            return _coupling(relation, clean)
        case Balance():
            return _balance(relation, clean)
        case Window():
            balance = Balance(
                name="",
                level=relation.level,
                terms=relation.terms,
                constant=relation.constant,
                averaged=relation.averaged,
            )
            return replace(window_of(_balance(balance, clean), relation.rows), name=relation.name)
        case Tie():
            return _tie(relation, clean)
        case _:
            return relation


def _coupling(relation: Coupling, clean: Record) -> Coupling:
    states = np.rint(clean.column(relation.actuator))
    flow = clean.column(relation.flow)
    idle = np.ones(len(clean), bool)
    for pump, off in relation.standby:
        idle &= np.rint(clean.column(pump)) == off
    steady = ~transition_rows(states, relation.settle, clean.segment_starts) & ~np.isnan(flow)
    fitted = []
    for state in relation.states:
        there = steady & (states == state.code)
        there = there & idle if (there & idle).any() else there
        nominal = float(np.median(flow[there])) if there.any() else state.nominal
        fitted.append(ActuatorState(code=state.code, nominal=nominal))
    return replace(relation, states=tuple(fitted))


def _balance(relation: Balance, clean: Record) -> Balance:
    step = np.diff(clean.column(relation.level))
    columns = [_moved(term, clean, averaged=relation.averaged) for term in relation.terms]
    design = np.column_stack([*columns, np.ones(len(step))])
    whole = ~(np.isnan(step) | np.isnan(design).any(axis=1))
    whole[clean.segment_starts[1:] - 1] = False
    weights = _weights(design, step, whole)
    terms = tuple(
        replace(term, coefficient=float(weight))
        for term, weight in zip(relation.terms, weights, strict=False)
    )
    return replace(relation, terms=terms, constant=float(weights[-1]))


def _tie(relation: Tie, clean: Record) -> Tie:
    target = clean.column(relation.channel)
    columns = [_shown(term, clean) for term in relation.terms]
    design = np.column_stack([*columns, np.ones(len(clean))])
    whole = ~(np.isnan(target) | np.isnan(design).any(axis=1))
    weights = _weights(design, target, whole)
    terms = tuple(
        replace(term, coefficient=float(weight))
        for term, weight in zip(relation.terms, weights, strict=False)
    )
    return replace(relation, terms=terms, constant=float(weights[-1]))


def _moved(term: Term, clean: Record, *, averaged: bool) -> Floats:
    moved = _shown(term, clean)
    return (moved[1:] + moved[:-1]) / 2 if averaged else moved[1:]


def _shown(term: Term, clean: Record) -> Floats:
    readings = clean.column(term.channel)
    return np.isin(np.rint(readings), term.on).astype(np.float64) if term.on else readings


def _weights(design: Floats, target: Floats, whole: Bools) -> Floats:
    return np.asarray(np.linalg.lstsq(design[whole], target[whole], rcond=None)[0], np.float64)
