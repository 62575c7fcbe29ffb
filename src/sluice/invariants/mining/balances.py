"""Hardened balances: sparse, chosen by their fit on held-out rows, consistent with the pipes.

Water in a pipe leaves at most one tank and enters at most one. A meter that seems to raise two
tanks is therefore a proxy for one of them; only the tank that needs it more keeps it. For a pipe
without a meter, the on-time of its pump or valve may serve as a term.
"""

from dataclasses import dataclass

import numpy as np

from sluice.arrays import Bools, Floats
from sluice.invariants.mining.couplings import CouplingFind
from sluice.invariants.relations import Balance, SwitchBand, Term
from sluice.invariants.ruleset import Dropped
from sluice.telemetry import Record, Role

__all__ = ["BalanceFind", "mine_balances"]

MOST_TERMS = 6
LEAST_GAIN = 0.01  # of held-out R2, for each further term
METER_BONUS = 0.01  # an on-time must beat a meter by this much
LEAST_R2 = 0.6
HELD_OUT = 0.4  # of the fit slice
MOST_PASSES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class BalanceFind:
    """A balance and its R2 on fitted and on held-out rows."""

    relation: Balance
    r2: float
    r2_held_out: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Pipe:
    """Something that moves water: a meter, or an actuator's on-time."""

    channel: str
    on: tuple[int, ...]
    moved: Floats  # the flow through it from each row to the next
    identity: str  # a meter and the actuator coupled to it are one pipe


@dataclass(frozen=True, slots=True)
class _Fit:
    pipes: tuple[int, ...]
    weights: Floats  # one per pipe, then the constant
    r2: float
    held_out: float


def mine_balances(
    record: Record, couplings: tuple[CouplingFind, ...], bands: tuple[SwitchBand, ...] = ()
) -> tuple[tuple[BalanceFind, ...], tuple[Dropped, ...]]:
    """Find the balance of every tank whose level moves."""
    whole = _whole_steps(record)
    steps = {
        level.name: np.diff(record.column(level.name))[whole]
        for level in record.of_role(Role.LEVEL)
    }
    dropped = [
        Dropped(name=f"d{name}", why="the level never moves")
        for name, step in steps.items()
        if not step.std() > 0
    ]
    moving = {name: step for name, step in steps.items() if step.std() > 0}
    finds = []
    for level, (fit, pipes, averaged) in _better_timed(
        record, couplings, bands, moving, whole
    ).items():
        if fit.held_out < LEAST_R2:
            why = f"held-out R2 {fit.held_out:.2f} is below {LEAST_R2}: unmetered flow dominates"
            dropped.append(Dropped(name=f"d{level}", why=why))
            continue
        terms = tuple(
            Term(channel=pipes[at].channel, coefficient=float(weight), on=pipes[at].on)
            for at, weight in zip(fit.pipes, fit.weights, strict=False)
        )
        relation = Balance(
            name=f"d{level}",
            level=level,
            terms=terms,
            constant=float(fit.weights[-1]),
            averaged=averaged,
        )
        finds.append(BalanceFind(relation=relation, r2=fit.r2, r2_held_out=fit.held_out))
    return tuple(finds), tuple(dropped)


def _better_timed(
    record: Record,
    couplings: tuple[CouplingFind, ...],
    bands: tuple[SwitchBand, ...],
    steps: dict[str, Floats],
    whole: Bools,
) -> dict[str, tuple["_Fit", tuple[Pipe, ...], bool]]:
    """Fit each tank with flows averaged over both rows and with flows at the later row.

    Snapshots need the average; a meter that already reports the mean over its row does not.
    """
    best: dict[str, tuple[_Fit, tuple[Pipe, ...], bool]] = {}
    wrong = _wrong_ways(couplings, bands)
    for averaged in (True, False):
        pipes = _pipes(record, couplings, averaged=averaged)
        design = np.column_stack([p.moved[whole] for p in pipes]) if pipes else np.empty((0, 0))
        for level, fit in _consistent(steps, design, pipes, wrong).items():
            if level not in best or fit.held_out > best[level][0].held_out + LEAST_GAIN:
                best[level] = (fit, pipes, averaged)
    return best


def _wrong_ways(
    couplings: tuple[CouplingFind, ...], bands: tuple[SwitchBand, ...]
) -> frozenset[tuple[str, str, bool]]:
    """Return (tank, pipe, whether it rises) that an engineer would reject.

    A pump that is switched on when a tank is low fills it, so the tank does not fall with its flow.
    """
    metered = {find.relation.actuator: find.relation.flow for find in couplings}
    wrong = set()
    for band in bands:
        pipe = metered.get(band.actuator, band.actuator)
        if band.on_high < band.off_low:
            wrong.add((band.level, pipe, False))
        elif band.off_high < band.on_low:
            wrong.add((band.level, pipe, True))
    return frozenset(wrong)


def _pipes(
    record: Record, couplings: tuple[CouplingFind, ...], *, averaged: bool
) -> tuple[Pipe, ...]:
    metered = {find.relation.actuator: find.relation.flow for find in couplings}
    pipes = []
    for channel in record.of_role(Role.FLOW, Role.ACTUATOR):
        readings = record.column(channel.name)
        on = channel.codes.on if channel.codes else ()
        moved = np.isin(np.rint(readings), on).astype(np.float64) if on else readings
        through = (moved[1:] + moved[:-1]) / 2 if averaged else moved[1:]
        if np.nanstd(through) > 0:
            identity = metered.get(channel.name, channel.name)
            pipes.append(Pipe(channel=channel.name, on=on, moved=through, identity=identity))
    return tuple(pipes)


def _whole_steps(record: Record) -> Bools:
    """Mark the steps from row to row that cross no time jump and miss no reading."""
    needed = [c.name for c in record.of_role(Role.LEVEL, Role.FLOW, Role.ACTUATOR)]
    readings = record.values[:, [record.index(name) for name in needed]]
    incomplete = np.asarray(np.isnan(readings).any(axis=1))
    whole: Bools = np.logical_not(incomplete[1:] | incomplete[:-1])
    whole[record.segment_starts[1:] - 1] = False
    return whole


def _consistent(
    steps: dict[str, Floats],
    design: Floats,
    pipes: tuple[Pipe, ...],
    wrong: frozenset[tuple[str, str, bool]],
) -> dict[str, _Fit]:
    """Fit all tanks; of two that claim a pipe in one direction, the one with more need keeps it."""
    forbidden: dict[str, set[tuple[str, bool]]] = {
        level: {(pipe, rises) for tank, pipe, rises in wrong if tank == level} for level in steps
    }
    fits = {level: _select(step, design, pipes, forbidden[level]) for level, step in steps.items()}
    for _ in range(MOST_PASSES):
        claims: dict[tuple[str, bool], list[tuple[float, str]]] = {}
        for level, fit in fits.items():
            for at, weight in zip(fit.pipes, fit.weights, strict=False):
                need = fit.held_out - _without(steps[level], design, fit, at)
                claims.setdefault((pipes[at].identity, bool(weight > 0)), []).append((need, level))
        yielding = set()
        for claim, wanting in claims.items():
            for _, level in sorted(wanting)[:-1]:
                forbidden[level].add(claim)
                yielding.add(level)
        if not yielding:
            break
        for level in yielding:
            fits[level] = _select(steps[level], design, pipes, forbidden[level])
    return fits


def _select(
    step: Floats, design: Floats, pipes: tuple[Pipe, ...], forbidden: set[tuple[str, bool]]
) -> _Fit:
    """Add the pipe that helps most on held-out rows until none helps enough."""
    best = _fit(step, design, ())
    while len(best.pipes) < MOST_TERMS:
        used = {pipes[at].identity for at in best.pipes}
        tried = [
            _fit(step, design, (*best.pipes, at))
            for at in range(len(pipes))
            if pipes[at].identity not in used
        ]
        legal = [
            fit
            for fit in tried
            if all(
                (pipes[at].identity, bool(weight > 0)) not in forbidden
                for at, weight in zip(fit.pipes, fit.weights, strict=False)
            )
        ]
        if not legal:
            break
        winner = max(
            legal, key=lambda fit: fit.held_out - (METER_BONUS if pipes[fit.pipes[-1]].on else 0)
        )
        if winner.held_out - best.held_out < LEAST_GAIN:
            break
        best = winner
    return best


def _without(step: Floats, design: Floats, fit: _Fit, pipe: int) -> float:
    return _fit(step, design, tuple(at for at in fit.pipes if at != pipe)).held_out


def _fit(step: Floats, design: Floats, pipes: tuple[int, ...]) -> _Fit:
    fitted = round(len(step) * (1 - HELD_OUT))
    columns = np.column_stack([*(design[:, at] for at in pipes), np.ones(len(step))])
    weights = np.linalg.lstsq(columns[:fitted], step[:fitted], rcond=None)[0]
    residual = step - columns @ weights
    return _Fit(
        pipes=pipes,
        weights=np.asarray(weights, np.float64),
        r2=_r2(step[:fitted], residual[:fitted]),
        held_out=_r2(step[fitted:], residual[fitted:]),
    )


def _r2(step: Floats, residual: Floats) -> float:
    total = float(np.var(step))
    return 1 - float(np.mean(residual**2)) / total if total > 0 else 0.0
