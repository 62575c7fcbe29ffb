"""Where to plant: the same attack rows, placed where a gate sees least of them.

aligned   each attack is placed where its levels meet the shard's own and where the fewest rows
          and anchors of window rules count against it (anchors are public rows)
jumps     a time jump is declared before each join, because no rule reads across a jump
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from sluice.admission import Gate
from sluice.arrays import Bools, Floats, Ints, Run, runs
from sluice.invariants import Balance, Rate, RuleSet
from sluice.lab.attacks.knowledge import Knowledge
from sluice.lab.attacks.makers import PoisonMaker, Replayed
from sluice.lab.attacks.poison import EXPOSURE, Poison
from sluice.lab.attacks.replay import Targets
from sluice.telemetry import Record

__all__ = ["Aligned", "Jumps", "joins"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aligned:
    """Plant only attack rows that pass unchanged, each stretch where it joins most smoothly.

    The attacker knows the rules, the policy and the attacks. A stretch that passes nowhere is
    halved and tried again, down to what fills a detector's window. If nothing passes, the shortest
    piece is planted where the gate suspects the fewest rows.
    """

    places: int = 8  # per piece: the smoothest ones, which the gate judges
    least_rows: int = 12
    exposure: float = EXPOSURE
    shaped: ClassVar[bool] = True

    def __call__(
        self,
        shard: Record,
        known: Knowledge,
        *,
        seed: int,  # noqa: ARG002 - as every maker
    ) -> Poison:
        """Return the shard with every piece in its place; the seed is not used."""
        targets = known.targets
        field = _Field(shard, targets, known.require_gate("align attacks with them"))
        pieces = list(targets.stretches)
        while pieces:
            piece = pieces.pop(0)
            if (
                not field.plant_if_admitted(piece, self.places)
                and piece.rows >= 2 * self.least_rows
            ):
                middle = (piece.start + piece.stop) // 2
                pieces += [Run(piece.start, middle), Run(middle, piece.stop)]
        if not field.planted.any():
            shortest = min(targets.stretches, key=lambda run: run.rows)
            taken = min(shortest.rows, self.least_rows, len(shard) - 2)
            field.plant_anyway(Run(shortest.start, shortest.start + taken), self.places)
        record = shard.with_values(field.values)
        return Poison(shown=record, trained=record, planted=field.planted, exposure=self.exposure)


@dataclass(frozen=True, slots=True, kw_only=True)
class Jumps:
    """Another maker's poison, shown with a time jump before each row that would violate.

    The attacker knows the rules and the policy. If jumps have a budget, the joins of planted
    stretches get them first. Its own training uses the original clock, because jumps would cost it
    windows.
    """

    of: PoisonMaker = Replayed()  # noqa: RUF009 - frozen, so sharing it is safe
    strides: int = 10  # length of a jump
    looks: int = 3  # a jump changes what is judged, so the gate judges again
    shaped: ClassVar[bool] = True

    def __call__(self, shard: Record, known: Knowledge, *, seed: int) -> Poison:
        """Make the poison and put jumps into the clock that it shows."""
        gate = known.require_gate("hide rows from them")
        poison = self.of(shard, known, seed=seed)
        left = _jumps_left(poison.shown, gate)
        shown, preferred = poison.shown, joins(poison.planted)
        for _ in range(self.looks):
            verdict = gate.judge(shown)
            if verdict.admitted or not left:
                break
            rows = np.flatnonzero(verdict.violating)
            rows = rows[~np.isin(rows, shown.segment_starts)]
            rows = np.concatenate([np.intersect1d(rows, preferred), np.setdiff1d(rows, preferred)])
            shown = _with_jumps(shown, rows[:left], self.strides)
            left -= len(rows[:left])
        return replace(poison, shown=shown)


def _jumps_left(record: Record, gate: Gate) -> int:
    """Return how many more jumps the gate accepts; the paper's policy accepts any number."""
    most = gate.policy.budgets(gate.rules, rows=len(record)).segments
    return max(0, most - len(record.segment_starts))


class _Field:
    """A shard in which attacks are planted one after the other."""

    def __init__(self, shard: Record, targets: Targets, gate: Gate) -> None:
        self.values = shard.values.copy()
        self.planted: Bools = np.zeros(len(shard), bool)
        self._shard = shard
        self._attacks = targets.labelled.select(shard.names).values
        self._gate = gate

    def plant_if_admitted(self, piece: Run, places: int) -> bool:
        """Plant a piece in the smoothest place that the gate admits; return whether one exists."""
        for start in self._smoothest(piece)[:places]:
            written = self._written(piece, int(start))
            if self._gate.judge(self._shard.with_values(written)).admitted:
                self._keep(piece, int(start), written)
                return True
        return False

    def plant_anyway(self, piece: Run, places: int) -> None:
        """Plant a piece where the gate suspects the fewest rows."""
        starts = [int(start) for start in self._smoothest(piece)[:places]]

        def suspected(start: int) -> int:
            written = self._shard.with_values(self._written(piece, start))
            return int(self._gate.judge(written).suspect.sum())

        start = min(starts, key=suspected)
        self._keep(piece, start, self._written(piece, start))

    def _keep(self, piece: Run, start: int, written: Floats) -> None:
        self.values = written
        self.planted[start : start + piece.rows] = True

    def _written(self, piece: Run, start: int) -> Floats:
        written = self.values.copy()
        written[start : start + piece.rows] = self._attacks[piece.slice]
        return written

    def _smoothest(self, piece: Run) -> Ints:
        """Return where the piece fits, sorted by how far levels step at its ends."""
        starts = _free_starts(self.planted, piece.rows)
        block = self._attacks[piece.slice]
        steps: Floats = np.zeros(len(starts))
        for level, step in _steps(self._gate.rules).items():
            column = self._shard.index(level)
            into = np.abs(self.values[starts - 1, column] - block[0, column])
            out = np.abs(self.values[starts + piece.rows, column] - block[-1, column])
            steps += (into + out) / step
        return starts[np.argsort(np.nan_to_num(steps, nan=np.inf), kind="stable")]


def joins(planted: Bools) -> Ints:
    """Return the rows at the joins: the first row of each planted stretch, and the row after it."""
    return np.array(
        [at for run in runs(planted) for at in run if 0 < at < len(planted)], dtype=np.int64
    )


def _with_jumps(record: Record, at: Ints, strides: int) -> Record:
    later = np.zeros(len(record), np.int64)
    later[at] = strides
    stride = np.timedelta64(round(record.stride_s * 1e6), "us")
    return replace(record, times=record.times + stride * np.cumsum(later))


def _free_starts(planted: Bools, rows: int) -> Ints:
    """Return where a stretch fits between planted rows, with a free row on either side."""
    taken = np.concatenate(([0], np.cumsum(planted)))
    starts = np.arange(1, len(planted) - rows)
    clear = taken[starts + rows + 1] == taken[starts - 1]
    return np.asarray(starts[clear], np.int64)


def _steps(rules: RuleSet) -> dict[str, float]:
    """Return, per level, how far a balance or a rate lets it step from row to row."""
    return {
        rule.relation.channels[0]: rule.tolerance
        for rule in rules.invariants
        if isinstance(rule.relation, Balance | Rate)
    }
