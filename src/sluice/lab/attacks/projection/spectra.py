"""Spectra as chains: tangents to sums of squared differences, taken where a block breaks a limit.

A block's differences y have a length |y|, the root of their sum of squares. With the direction u
that they have at a point, the demand is affine:

    at least   u y >= low    is enough, because |y| >= u y
    at most    u y <= high   is needed, and enough once u is the direction of the answer

So the projection is solved, tangents are taken at the answer, and it is solved again.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from sluice.admission import Gate
from sluice.arrays import Floats, Ints
from sluice.invariants import IntegerSpectrum, Register, Spectrum, block_ends, held
from sluice.lab.attacks.projection.demands import Chain, DemandPart, Limits
from sluice.seeding import stream
from sluice.telemetry import Record

__all__ = ["SpectrumTangents"]

DEVIATIONS = 3.0  # of what the rounding of readings to registers adds to a sum
INSIDE = 0.02  # of the upper limit: an answer reaches it after few tangents
ROUNDED = {1: 1 / 6, 2: 1 / 2}  # squared registers a row that rounding adds, per order


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sums:
    """One spectrum, and its limits as lengths of the differences, per order."""

    relation: Spectrum
    register: Register | None  # None: limits are in the channel's unit
    limits: dict[int, tuple[float, float]]
    anchored: bool

    def blocks(self, record: Record) -> tuple[Ints, Floats]:
        """Return the last rows of whole blocks without a time jump, and the blocks' readings."""
        relation = self.relation
        readings = record.column(relation.channel)
        if self.register:
            shown = self.register.quantise(readings).astype(np.float64)
        else:
            shown = held(readings, empty=0.0)
        at = block_ends(len(record), relation.rows, relation.offset)
        segment = np.searchsorted(record.segment_starts, np.arange(len(record)), side="right")
        at = at[segment[at] == segment[at - relation.rows + 1]]
        rows = at[:, None] - np.arange(relation.rows)[::-1]
        return at, shown[rows]

    @property
    def step(self) -> float:
        return self.register.step if self.register else 1.0


@dataclass(slots=True)
class _Tangent:
    """A direction of a block's differences, and the side of the limits that it serves."""

    sums: _Sums
    order: int
    row: int  # the last of its block
    low: bool
    direction: Floats = field(repr=False)

    def chain(self) -> Chain:
        """Return the demand on the block's readings, the last first."""
        rows = self.sums.relation.rows
        weights = self.direction
        for _ in range(self.order):  # differences, transposed
            weights = np.diff(np.concatenate([[0.0], weights, [0.0]])) * -1.0
        low, high = self.sums.limits[self.order]
        margin = self._margin(weights, low, high)
        limits = Limits.open(1)
        if self.low:
            limits.low[:] = low + margin
        else:
            limits.high[:] = (1 - INSIDE) * high - margin
        return Chain(
            rule=self.sums.relation.name,
            at=np.array([self.row]),
            parts=(
                DemandPart(
                    channel=self.sums.relation.channel,
                    back=np.arange(rows),
                    weights=weights[::-1] / self.sums.step,
                ),
            ),
            constant=np.zeros(1),
            limits=limits,
            sacrificed=Limits.open(1),
            anchored=self.sums.anchored,
        )

    def _margin(self, weights: Floats, low: float, high: float) -> float:
        if self.sums.register is None:
            return 0.0
        margin = DEVIATIONS * float(np.sqrt(np.square(weights).sum() / 12))
        if not self.low:
            added = ROUNDED[self.order] * self.sums.relation.rows
            margin += high - float(np.sqrt(max(high**2 - added, 0.0)))
        return min(margin, (high - low) / 4)


class SpectrumTangents:
    """The tangents taken so far; each point adds those of the blocks that it breaks."""

    def __init__(self, gate: Gate) -> None:
        self._sums = tuple(_sums(gate))
        self._lower: dict[tuple[str, int, int], _Tangent] = {}
        self._upper: list[_Tangent] = []

    def chains(self) -> tuple[Chain, ...]:
        """Return the demands of all tangents."""
        return tuple(tangent.chain() for tangent in (*self._lower.values(), *self._upper))

    def add(self, record: Record, *, given_up: Iterable[tuple[str, int]] = ()) -> bool:
        """Take tangents at the blocks that a record breaks; return whether there are any.

        Blocks that are given up, by rule and last row, are left out.
        """
        left_out = frozenset(given_up)
        more = False
        for sums in self._sums:
            at, blocks = sums.blocks(record)
            for order, (low, high) in sums.limits.items():
                differences = np.diff(blocks, n=order, axis=1)
                length = np.sqrt(np.square(differences).sum(axis=1))
                for number in np.flatnonzero((length < low) | (length > high)):
                    key = (sums.relation.name, order, int(at[number]))
                    if (key[0], key[2]) in left_out:
                        continue
                    below = bool(length[number] < low)
                    tangent = _Tangent(
                        sums, order, key[2], below, _direction(differences[number], key)
                    )
                    if below:
                        self._lower[key] = tangent
                    else:
                        self._upper.append(tangent)
                    more = True
        return more


def _direction(differences: Floats, key: tuple[str, int, int]) -> Floats:
    """Return the differences at unit length; a block that stands still gets a random direction."""
    if not differences.any():
        differences = stream(0, "spectrum", *key).normal(size=len(differences))
    return np.asarray(differences / np.sqrt(np.square(differences).sum()))


def _sums(gate: Gate) -> Iterator[_Sums]:
    if gate.encoding is None:
        for rule in gate.rules.invariants:
            if isinstance(rule.relation, Spectrum):
                relation, reach = rule.relation, rule.tolerance
                limits = {
                    1: (relation.first_low - reach, relation.first_high + reach),
                    2: (relation.second_low - reach, relation.second_high + reach),
                }
                yield _Sums(
                    relation=relation, register=None, limits=_lengths(limits), anchored=False
                )
        return
    for integers in gate.encoding.rules:
        if isinstance(integers, IntegerSpectrum):
            yield _Sums(
                relation=integers.relation,
                register=gate.encoding.register(integers.relation.channel),
                limits=_lengths(
                    {
                        1: (integers.first.low, integers.first.high),
                        2: (integers.second.low, integers.second.high),
                    }
                ),
                anchored=True,
            )


def _lengths(limits: dict[int, tuple[float, float]]) -> dict[int, tuple[float, float]]:
    return {
        order: (float(np.sqrt(max(low, 0))), float(np.sqrt(max(high, 0))))
        for order, (low, high) in limits.items()
    }
