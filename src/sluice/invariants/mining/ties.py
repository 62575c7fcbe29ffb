"""Ties: a channel that other channels of the same row explain, chosen by held-out fit."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sluice.arrays import Floats
from sluice.invariants.mining.folds import CleanFold
from sluice.invariants.relations import Term, Tie
from sluice.invariants.ruleset import Dropped
from sluice.telemetry import Channel, Record, Role

__all__ = ["TieFind", "mine_ties"]

MOST_TERMS = 5
LEAST_GAIN = 0.02  # of the unexplained held-out variance, for each further term
LEAST_R2 = 0.8
METER_ERROR = 0.0025  # of what a meter measures: a channel that moves by less explains no other
PARALLEL = 0.95  # correlation from which two channels count as one reading, taken twice
TRIED = 4  # terms tried in each step: those closest to what is still unexplained


@dataclass(frozen=True, slots=True, kw_only=True)
class TieFind:
    """A tie and its R2 on held-out rows."""

    relation: Tie
    r2_held_out: float


@dataclass(frozen=True, slots=True)
class _Sums:
    """Sums of products of all columns over a fold, and over all rows."""

    held_out: tuple[Floats, ...]

    def without(self, fold: int) -> Floats:
        kept = [part for at, part in enumerate(self.held_out) if at != fold]
        return np.asarray(np.sum(kept, axis=0), np.float64)


def mine_ties(
    record: Record, folds: Sequence[CleanFold], channels: Sequence[Channel]
) -> tuple[tuple[TieFind, ...], tuple[Dropped, ...]]:
    """Explain each of the channels by others, where held-out rows confirm it."""
    names, columns, centre, scale = _columns(record)
    parts, start = [], 0
    for fold in folds:
        rows = columns[start : start + len(fold.held_out)]
        start += len(fold.held_out)
        rows = rows[~np.isnan(rows).any(axis=1)]
        parts.append(rows.T @ rows)
    sums = _Sums(tuple(parts))
    found, dropped = [], []
    for channel in channels:
        at = names.index(channel.name)
        rising = _rising(record, names, channel)
        allowed = _allowed(record, names, channel)
        terms, r2 = _select(sums, at, allowed, rising)
        if r2 < LEAST_R2:
            why = (
                f"held-out R2 {max(r2, 0.0):.2f} is below {LEAST_R2}: no other channel explains it"
            )
            dropped.append(Dropped(name=f"{channel.name} tie", why=why))
            continue
        chosen = [(f"{channel.name} tie", terms, r2)]
        parallel = _parallel(sums, at, allowed)
        if parallel & set(terms):
            others = [term for term in allowed if term not in parallel]
            terms, r2 = _select(sums, at, others, rising)
            if r2 >= LEAST_R2:
                chosen.append((f"{channel.name} tie apart", terms, r2))
        for name, terms, r2 in chosen:
            weights = _solve(sums.without(-1), at, terms)
            tie = _tie(
                record,
                channel,
                [names[term] for term in terms],
                weights,
                (centre, scale, at, terms),
            )
            found.append(TieFind(relation=replace(tie, name=name), r2_held_out=r2))
    return tuple(found), tuple(dropped)


def _parallel(sums: _Sums, target: int, allowed: list[int]) -> set[int]:
    """Return the channels that show the same as the target, as two gauges side by side do.

    A tie between them says that they agree, but both can be replaced together. So the target is
    also explained by channels apart from them.
    """
    total = sums.without(-1)
    usual = np.sqrt(total[allowed, allowed] * total[target, target])
    alike = np.abs(total[allowed, target]) >= PARALLEL * usual
    return {at for at, same in zip(allowed, alike, strict=True) if same}


def _columns(record: Record) -> tuple[list[str], Floats, Floats, Floats]:
    """Return all moving columns, standardised, after a column of ones; actuators as on or off."""
    names, columns = [""], [np.ones(len(record))]
    for channel in record.channels:
        readings = record.column(channel.name)
        if channel.codes:
            readings = np.isin(np.rint(readings), channel.codes.on).astype(np.float64)
        names.append(channel.name)
        columns.append(readings)
    stacked = np.column_stack(columns)
    centre, scale = np.nanmean(stacked, axis=0), np.nanstd(stacked, axis=0)
    centre[0], scale[0] = 0.0, 1.0
    scale[~(scale > 0)] = np.inf
    return names, (stacked - centre) / scale, centre, scale


def _allowed(record: Record, names: list[str], channel: Channel) -> list[int]:
    return [
        at
        for at, name in enumerate(names)
        if at and name != channel.name and _moves(record, record.channel(name))
    ]


def _moves(record: Record, channel: Channel) -> bool:
    """Whether a channel moves by more than the error of its meter.

    A rule would have to multiply smaller movements many times, and with them the error and the
    rounding of the reading. The meter measures no more than its largest reading, and no more than
    the widest range of its kind: a level in metres above sea is a small part of its reading.
    """
    readings = record.column(channel.name)
    if channel.codes:
        return bool(np.nanstd(readings) > 0)
    alike = [other for other in record.of_role(channel.role) if other.unit == channel.unit]
    widest = max(float(np.ptp(_shown(record, other))) for other in alike)
    measured = min(widest, float(np.abs(_shown(record, channel)).max()))
    return bool(np.nanstd(readings) > METER_ERROR * measured)


def _shown(record: Record, channel: Channel) -> Floats:
    """Return the readings that are not missing, and 0 where there are none."""
    readings = record.column(channel.name)
    shown = readings[~np.isnan(readings)]
    return shown if shown.size else np.zeros(1)


def _rising(record: Record, names: list[str], channel: Channel) -> frozenset[int]:
    """Return the terms that can only raise the channel: a pressure rises with a tank's level."""
    if channel.role is not Role.PRESSURE:
        return frozenset()
    return frozenset(names.index(level.name) for level in record.of_role(Role.LEVEL))


def _select(
    sums: _Sums, target: int, allowed: list[int], rising: frozenset[int]
) -> tuple[list[int], float]:
    """Add the term that explains most of the held-out rows until none explains enough."""
    chosen: list[int] = []
    best = _held_out(sums, target, chosen)
    while len(chosen) < MOST_TERMS:
        left = [at for at in allowed if at not in chosen]
        total = sums.without(-1)
        weights = _solve(total, target, chosen)
        used = [0, *chosen]
        partial = total[left, target] - total[np.ix_(left, used)] @ weights
        ranked = [left[at] for at in np.argsort(-np.abs(partial) / np.sqrt(total[left, left]))]
        tried = [
            (_held_out(sums, target, [*chosen, at]), at)
            for at in ranked[:TRIED]
            if _physical(total, target, [*chosen, at], rising)
        ]
        if not tried:
            break
        winner, at = max(tried)
        if 1 - winner > (1 - best) * (1 - LEAST_GAIN):
            break
        chosen.append(at)
        best = winner
    return chosen, best if chosen else 0.0


def _physical(total: Floats, target: int, terms: list[int], rising: frozenset[int]) -> bool:
    """Whether an engineer would accept the sign of each term.

    Columns are standardised, so a product sum of two has the sign of their correlation. A channel
    that rises with another in the plant must not fall with it in the rule.
    """
    weights = _solve(total, target, terms)[1:]
    return all(
        weight * total[term, target] >= 0 and (weight >= 0 or term not in rising)
        for term, weight in zip(terms, weights, strict=True)
    )


def _held_out(sums: _Sums, target: int, terms: list[int]) -> float:
    """Return the R2 of all folds, each predicted by weights fitted to the others."""
    error = total = 0.0
    for fold, part in enumerate(sums.held_out):
        used = [0, *terms]
        weights = _solve(sums.without(fold), target, terms)
        error += part[target, target] - 2 * float(weights @ part[used, target])
        error += float(weights @ part[np.ix_(used, used)] @ weights)
        total += float(part[target, target])
    return 1 - error / total if total > 0 else 0.0


def _solve(total: Floats, target: int, terms: list[int]) -> Floats:
    used = [0, *terms]
    return np.asarray(
        np.linalg.lstsq(total[np.ix_(used, used)], total[used, target], rcond=1e-10)[0]
    )


def _tie(
    record: Record,
    channel: Channel,
    names: list[str],
    weights: Floats,
    scaling: tuple[Floats, Floats, int, list[int]],
) -> Tie:
    """Return the tie in the units of its channels."""
    centre, scale, target, columns = scaling
    coefficients = weights[1:] * scale[target] / scale[columns]
    constant = centre[target] + weights[0] * scale[target] - float(coefficients @ centre[columns])
    terms = []
    for name, coefficient in zip(names, coefficients, strict=True):
        codes = record.channel(name).codes
        terms.append(
            Term(channel=name, coefficient=float(coefficient), on=codes.on if codes else ())
        )
    return Tie(
        name=f"{channel.name} tie",
        channel=channel.name,
        terms=tuple(terms),
        constant=float(constant),
    )
