"""Which rules can be broken at all: one pass over all couplings, ranges and rates at once.

In clean operation nearly every row obeys every rule. The screen finds the rules that may not hold,
with the arithmetic of the integer evaluator; only these are given to it. A rule that the screen
leaves out is not broken: a steady flow within tolerance is also within the range of a transition.
"""

from collections.abc import Sequence

import numpy as np

from sluice.arrays import Bools, Floats, Ints
from sluice.invariants import (
    REGISTER_TOP,
    TOLERANCE,
    Encoding,
    IntegerBound,
    IntegerCoupling,
    IntegerRate,
)

__all__ = ["Screen"]


class Screen:
    """The row rules of an encoding as arrays."""

    def __init__(self, encoding: Encoding, names: Sequence[str]) -> None:
        column = {name: at for at, name in enumerate(names)}
        self._rules = encoding.rules
        bounds = [r for r in encoding.rules if isinstance(r, IntegerBound)]
        rates = [r for r in encoding.rules if isinstance(r, IntegerRate)]
        couplings = [r for r in encoding.rules if isinstance(r, IntegerCoupling)]
        screened = (IntegerBound, IntegerRate, IntegerCoupling)
        self._always = [r for r in encoding.rules if not isinstance(r, screened)]
        self._bounds, self._rates, self._couplings = bounds, rates, couplings

        read = [r.channel for r in bounds] + [r.channel for r in rates]
        read += [c.relation.flow for c in couplings]
        quantised = list(dict.fromkeys(read))
        at = {name: number for number, name in enumerate(quantised)}
        registers = [encoding.register(name) for name in quantised]
        self._columns = [column[name] for name in quantised]
        self._low = np.array([register.low for register in registers])
        self._step = np.array([register.step for register in registers])
        self._bound_at = [at[r.channel] for r in bounds]
        self._bound_low = np.array([r.low for r in bounds], np.int64)
        self._bound_high = np.array([r.high for r in bounds], np.int64)
        self._rate_at = [at[r.channel] for r in rates]
        self._rate_weight = np.array([r.weight for r in rates], np.int64)
        self._states(couplings, at, column)

    def _states(
        self, couplings: list[IntegerCoupling], at: dict[str, int], column: dict[str, int]
    ) -> None:
        """Lay out one entry for each coupling and state."""
        flows: list[int] = []
        actuators: list[int] = []
        codes: list[float] = []
        weights: list[int] = []
        offsets: list[int] = []
        first: list[int] = []
        for coupling in couplings:
            first.append(len(codes))
            for code, offset in (
                (coupling.relation.off, coupling.off_offset),
                *coupling.on_offsets,
            ):
                flows.append(at[coupling.relation.flow])
                actuators.append(column[coupling.relation.actuator])
                codes.append(float(code))
                weights.append(coupling.weight)
                offsets.append(offset)
        self._flow_at, self._actuator_at = flows, actuators
        self._codes = np.array(codes)
        self._weights, self._offsets = np.array(weights, np.int64), np.array(offsets, np.int64)
        self._first = np.array(first, np.int64)

    def suspects(self, held: Floats, fresh: int) -> tuple[object, ...]:
        """Return the rules that the rows from `fresh` on may break, in no special order."""
        start = max(0, fresh - 1)
        registers = self._quantised(held[start:])
        new = fresh - start
        found: list[object] = [*self._always]
        if self._bounds:
            at = registers[new:, self._bound_at]
            outside = ((at < self._bound_low) | (at > self._bound_high)).any(axis=0)
            found += [self._bounds[rule] for rule in np.flatnonzero(outside)]
        if self._rates and len(registers) > 1:
            steps = np.diff(registers[:, self._rate_at], axis=0) * self._rate_weight
            jumped = (np.abs(steps) > TOLERANCE).any(axis=0)
            found += [self._rates[rule] for rule in np.flatnonzero(jumped)]
        if self._couplings:
            steady = self._steady(registers[new:], held[fresh:])
            found += [self._couplings[rule] for rule in np.flatnonzero(~steady)]
        return tuple(found)

    def _quantised(self, held: Floats) -> Ints:
        scaled = (held[:, self._columns] - self._low) / self._step
        registers: Ints = np.clip(np.rint(np.nan_to_num(scaled)), 0, REGISTER_TOP).astype(np.int64)
        return registers

    def _steady(self, registers: Ints, held: Floats) -> Bools:
        """Return which couplings hold on all rows as if their actuators rested."""
        shown = np.rint(held[:, self._actuator_at]) == self._codes
        residual = registers[:, self._flow_at] * self._weights + self._offsets
        fits = shown & (np.abs(residual) <= TOLERANCE)
        rows = np.logical_or.reduceat(fits, self._first, axis=1)
        return np.asarray(rows.all(axis=0))
