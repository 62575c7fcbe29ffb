"""Poison in the share of rows that a gate forgives.

    re-weighting   few attack rows, drawn for every other training window
    dilution       many attack rows, padded with the plant's own clean ones

The gate counts each row once and forgives a share alpha of them. It does not see how a client uses
a forgiven row in training.
"""

from dataclasses import dataclass, replace
from math import floor
from typing import ClassVar

import numpy as np

from sluice.admission import Gate, Policy
from sluice.arrays import Run
from sluice.errors import SettingError
from sluice.lab.attacks.knowledge import Knowledge
from sluice.lab.attacks.makers import PoisonMaker, Replayed
from sluice.lab.attacks.poison import EXPOSURE, Poison
from sluice.lab.attacks.replay import Replay, Targets
from sluice.seeding import stream
from sluice.telemetry import Record

__all__ = ["Dilution", "Reweighting", "forgiven_rows", "padded", "violating_rows"]


def forgiven_rows(rows: int, policy: Policy) -> int:
    """Return how many rows of a batch may violate under a policy."""
    return floor(policy.alpha * rows)


def violating_rows(record: Record, gate: Gate | None) -> int:
    """Return how many rows the gate counts as violating; 0 without a gate."""
    return gate.judge(record).violating_rows if gate else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reweighting:
    """Plant only as many attack rows as alpha forgives, and draw half of all windows from them.

    The attacker knows the policy's alpha; of the rules it knows only how many of its own rows
    violate them. Every planted row may violate, and so may the row after each planted stretch.
    Stretches are a little longer than a detector's window, so that some windows hold nothing else.
    """

    exposure: float = EXPOSURE
    stretch_rows: int = 12
    shaped: ClassVar[bool] = True

    def __call__(self, shard: Record, known: Knowledge, *, seed: int) -> Poison:
        """Overwrite a few rows of the shard."""
        left = forgiven_rows(len(shard), known.policy) - violating_rows(shard, known.gate)
        if left < 2:
            raise SettingError(
                f"alpha forgives {left} rows of shard {shard.name!r} beyond those that already "
                "violate; re-weighting needs at least 2, a planted row and the row after it; give "
                "a longer shard"
            )
        rng, targets = stream(seed, "re-weighting"), known.targets
        stretches = []
        while left >= 2:
            taken = min(left - 1, self.stretch_rows)
            target = targets.stretches[int(rng.integers(len(targets.stretches)))]
            taken = min(taken, target.rows)
            start = int(rng.integers(target.start, target.stop - taken + 1))
            stretches.append(Run(start, start + taken))
            left -= taken + 1
        few = replace(targets, stretches=tuple(stretches))
        return Replay(targets=few).plant(shard, rng=rng, exposure=self.exposure)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dilution:
    """Pad a poisoned batch with the plant's own clean rows until few enough of it violate.

    The attacker knows the rules and the policy. Its only clean rows are its shard, which it shows
    several times. If `copies` are not enough, it plants less.
    """

    of: PoisonMaker = Replayed()  # noqa: RUF009 - frozen, so sharing it is safe
    copies: int = 4
    shaped: ClassVar[bool] = True

    def __call__(self, shard: Record, known: Knowledge, *, seed: int) -> Poison:
        """Make the poison and lengthen it; return the least diluted one that alpha forgives."""
        for share in (1.0, 0.75, 0.5, 0.25, 0.1):
            fewer = replace(known, targets=_shortened(known.targets, share))
            poison = self.of(shard, fewer, seed=seed)
            for copies in range(self.copies + 1):
                lengthened = padded(poison, shard, copies)
                violating = violating_rows(lengthened.shown, known.gate)
                if violating <= forgiven_rows(len(lengthened.shown), known.policy):
                    return lengthened
        return lengthened


def _shortened(targets: Targets, share: float) -> Targets:
    """Keep the first targets, a share of all rows but at least one row; the last is cut short."""
    left = max(1, round(share * sum(run.rows for run in targets.stretches)))
    stretches = []
    for run in targets.stretches:
        taken = min(run.rows, left)
        left -= taken
        if taken:
            stretches.append(Run(run.start, run.start + taken))
    return replace(targets, stretches=tuple(stretches))


def padded(poison: Poison, clean: Record, copies: int) -> Poison:
    """Append copies of a clean record to the shown and the trained record; the clock continues."""
    if copies == 0:
        return poison
    trained = _extended(poison.trained, clean, copies)
    shown = trained if poison.shown is poison.trained else _extended(poison.shown, clean, copies)
    planted = np.append(poison.planted, np.zeros(copies * len(clean), bool))
    return replace(poison, shown=shown, trained=trained, planted=planted)


def _extended(record: Record, by: Record, copies: int) -> Record:
    rows = copies * len(by)
    stride = np.timedelta64(round(record.stride_s * 1e6), "us")
    return replace(
        record,
        values=np.concatenate([record.values, *[by.values] * copies]),
        times=np.concatenate([record.times, record.times[-1] + stride * np.arange(1, rows + 1)]),
        labels=np.concatenate([record.labels, *[by.labels] * copies]),
    )
