"""Where to plant: the same attack rows, laid where a gate sees least of them.

aligned   each attack stands where its levels meet the shard's own and where the fewest rows
          and anchors of window rules count against it (anchors are public rows)
jumps     a time jump is declared before each join, since no rule looks across one
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from sluice.admission import Gate, HardenedPolicy
from sluice.arrays import Bools, Floats, Ints, Run, runs
from sluice.invariants import Balance, Rate, RuleSet, budgets_for
from sluice.lab.attacks.knowledge import Knowledge
from sluice.lab.attacks.makers import PoisonMaker, Replayed
from sluice.lab.attacks.poison import EXPOSURE, Poison
from sluice.lab.attacks.replay import Targets
from sluice.telemetry import Record

__all__ = ["Aligned", "Jumps", "joins"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Aligned:
    """Only such attack rows as pass unchanged, each stretch where it joins most smoothly.

    The attacker knows the rules, the policy and the attacks. A stretch that passes nowhere is
    halved and tried again, down to what fills a detector's window. Where nothing passes at all, the
    shortest piece is planted where it shows least.
    """

    places: int = 8  # judged by the gate, of all that were looked at
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
        """Return the shard with every piece in its place; nothing is drawn."""
        targets = known.targets
        field = _Field(shard, targets, known.gate_to("align attacks with them"))
        pieces = list(targets.stretches)
        while pieces:
            piece = pieces.pop(0)
            if not field.planted_unseen(piece, self.places) and piece.rows >= 2 * self.least_rows:
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
    """Another maker's poison, shown with a time jump before each row that would be found wrong.

    The attacker knows the rules and the policy. Where jumps have a budget, the joins of planted
    stretches get them first. Its own training reads the clock as it was, or jumps would cost it
    windows.
    """

    of: PoisonMaker = Replayed()  # noqa: RUF009 - frozen, so sharing it is safe
    strides: int = 10  # how long a jump is
    looks: int = 3  # a jump moves what is judged, so that it is worth looking again
    shaped: ClassVar[bool] = True

    def __call__(self, shard: Record, known: Knowledge, *, seed: int) -> Poison:
        """Make the poison and cut the clock it is shown with."""
        gate = known.gate_to("hide rows from them")
        made = self.of(shard, known, seed=seed)
        left = _jumps_left(made.shown, gate)
        shown, wanted = made.shown, joins(made.planted)
        for _ in range(self.looks):
            verdict = gate.judge(shown)
            if verdict.admitted or not left:
                break
            wrong = np.flatnonzero(verdict.violating)
            wrong = wrong[~np.isin(wrong, shown.segment_starts)]
            taken = np.concatenate([np.intersect1d(wrong, wanted), np.setdiff1d(wrong, wanted)])
            shown = _with_jumps(shown, taken[:left], self.strides)
            left -= len(taken[:left])
        return replace(made, shown=shown)


def _jumps_left(record: Record, gate: Gate) -> int:
    """Return how many more jumps the gate believes; the paper's asks for no reason."""
    if not isinstance(gate.policy, HardenedPolicy) or gate.rules.clean is None:
        return len(record)
    margins = gate.policy.margins
    most = budgets_for(gate.rules, gate.rules.clean, margins, rows=len(record)).segments
    return max(0, most - len(record.segment_starts))


class _Field:
    """A shard in which attacks are planted one after the other."""

    def __init__(self, shard: Record, targets: Targets, gate: Gate) -> None:
        self.values = shard.values.copy()
        self.planted: Bools = np.zeros(len(shard), bool)
        self._shard = shard
        self._attacks = targets.labelled.select(shard.names).values
        self._gate = gate

    def planted_unseen(self, piece: Run, places: int) -> bool:
        """Plant a piece in the smoothest place that the gate admits; say whether there is one."""
        for start in self._smoothest(piece)[:places]:
            written = self._written(piece, int(start))
            if self._gate.judge(self._shard.with_values(written)).admitted:
                self._keep(piece, int(start), written)
                return True
        return False

    def plant_anyway(self, piece: Run, places: int) -> None:
        """Plant a piece where the gate suspects the fewest rows."""
        found = [int(start) for start in self._smoothest(piece)[:places]]

        def suspected(start: int) -> int:
            written = self._shard.with_values(self._written(piece, start))
            return int(self._gate.judge(written).suspect.sum())

        start = min(found, key=suspected)
        self._keep(piece, start, self._written(piece, start))

    def _keep(self, piece: Run, start: int, written: Floats) -> None:
        self.values = written
        self.planted[start : start + piece.rows] = True

    def _written(self, piece: Run, start: int) -> Floats:
        written = self.values.copy()
        written[start : start + piece.rows] = self._attacks[piece.slice]
        return written

    def _smoothest(self, piece: Run) -> Ints:
        """Return where the piece fits, the places first at which levels leap least at its ends."""
        starts = _free_starts(self.planted, piece.rows)
        block = self._attacks[piece.slice]
        leaps: Floats = np.zeros(len(starts))
        for level, step in _steps(self._gate.rules).items():
            column = self._shard.index(level)
            into = np.abs(self.values[starts - 1, column] - block[0, column])
            out = np.abs(self.values[starts + piece.rows, column] - block[-1, column])
            leaps += (into + out) / step
        return starts[np.argsort(np.nan_to_num(leaps, nan=np.inf), kind="stable")]


def joins(planted: Bools) -> Ints:
    """Return the rows that follow another plant's row: where planted stretches begin and end."""
    return np.array(
        [at for run in runs(planted) for at in run if 0 < at < len(planted)], dtype=np.int64
    )


def _with_jumps(record: Record, at: Ints, strides: int) -> Record:
    later = np.zeros(len(record), np.int64)
    later[at] = strides
    stride = np.timedelta64(round(record.stride_s * 1e6), "us")
    return replace(record, times=record.times + stride * np.cumsum(later))


def _free_starts(planted: Bools, rows: int) -> Ints:
    """Return where a stretch fits between what is planted already, a row apart on either side."""
    taken = np.concatenate(([0], np.cumsum(planted)))
    starts = np.arange(1, len(planted) - rows)
    clear = taken[starts + rows + 1] == taken[starts - 1]
    return np.asarray(starts[clear], np.int64)


def _steps(rules: RuleSet) -> dict[str, float]:
    """Return per level how far a balance or a rate lets it step from row to row."""
    return {
        rule.relation.channels[0]: rule.tolerance
        for rule in rules.invariants
        if isinstance(rule.relation, Balance | Rate)
    }
