"""Poison in the share of rows that a gate forgives.

    re-weighting   few attack rows, drawn for every other training window
    dilution       many attack rows, padded with the plant's own clean ones

The gate weighs each row once and forgives a share alpha of them; what a client does with a forgiven
row in training it does not see.
"""

from dataclasses import dataclass, replace
from math import floor
from typing import ClassVar

import numpy as np

from sluice.admission import Gate, PaperPolicy, Policy
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
    alpha = policy.alpha if isinstance(policy, PaperPolicy) else policy.margins.alpha
    return floor(alpha * rows)


def violating_rows(record: Record, gate: Gate | None) -> int:
    """Return how many rows the gate would count against a batch; none where there is no gate."""
    return gate.judge(record).violating_rows if gate else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Reweighting:
    """Plant only as many attack rows as alpha forgives, and draw half of all windows from them.

    The attacker knows the policy's alpha, and of the rules only how many rows of its own they find
    wanting; every planted row may violate, and so may the row after each planted stretch. Stretches
    are a little longer than a detector's window, so that some windows hold nothing else.
    """

    exposure: float = EXPOSURE
    stretch_rows: int = 12
    shaped: ClassVar[bool] = True

    def __call__(self, shard: Record, known: Knowledge, *, seed: int) -> Poison:
        """Overwrite a few rows of the shard."""
        left = forgiven_rows(len(shard), known.policy) - violating_rows(shard, known.gate)
        if left < 2:
            raise SettingError(
                f"alpha forgives {left} rows of shard {shard.name!r} beyond its own; re-weighting "
                "plants at least 1 and the row after it: give a longer shard"
            )
        rng, targets = stream(seed, "re-weighting"), known.targets
        stretches = []
        while left >= 2:
            taken = min(left - 1, self.stretch_rows)
            of = targets.stretches[int(rng.integers(len(targets.stretches)))]
            taken = min(taken, of.rows)
            start = int(rng.integers(of.start, of.stop - taken + 1))
            stretches.append(Run(start, start + taken))
            left -= taken + 1
        few = replace(targets, stretches=tuple(stretches))
        return Replay(targets=few).plant(shard, rng=rng, exposure=self.exposure)


@dataclass(frozen=True, slots=True, kw_only=True)
class Dilution:
    """Pad a poisoned batch with the plant's own clean rows until few enough of it violate.

    The attacker knows the rules and the policy. It has no more clean rows than its shard, and shows
    them several times over; where so many copies do not do, it plants less.
    """

    of: PoisonMaker = Replayed()  # noqa: RUF009 - frozen, so sharing it is safe
    copies: int = 4
    shaped: ClassVar[bool] = True

    def __call__(self, shard: Record, known: Knowledge, *, seed: int) -> Poison:
        """Make the poison and lengthen it; the least diluted that alpha forgives is taken."""
        for share in (1.0, 0.75, 0.5, 0.25, 0.1):
            fewer = replace(known, targets=_shortened(known.targets, share))
            made = self.of(shard, fewer, seed=seed)
            for copies in range(self.copies + 1):
                lengthened = padded(made, shard, copies)
                found = violating_rows(lengthened.shown, known.gate)
                if found <= forgiven_rows(len(lengthened.shown), known.policy):
                    return lengthened
        return lengthened


def _shortened(targets: Targets, share: float) -> Targets:
    """Keep the first targets, so many of all rows and at least one; the last is cut short."""
    left = max(1, round(share * sum(run.rows for run in targets.stretches)))
    kept = []
    for run in targets.stretches:
        taken = min(run.rows, left)
        left -= taken
        if taken:
            kept.append(Run(run.start, run.start + taken))
    return replace(targets, stretches=tuple(kept))


def padded(poison: Poison, clean: Record, copies: int) -> Poison:
    """Append a record to what is shown and trained, so many times; the clock runs on."""
    if copies == 0:
        return poison
    trained = _followed(poison.trained, clean, copies)
    shown = trained if poison.shown is poison.trained else _followed(poison.shown, clean, copies)
    planted = np.append(poison.planted, np.zeros(copies * len(clean), bool))
    return replace(poison, shown=shown, trained=trained, planted=planted)


def _followed(record: Record, by: Record, copies: int) -> Record:
    rows = copies * len(by)
    stride = np.timedelta64(round(record.stride_s * 1e6), "us")
    return replace(
        record,
        values=np.concatenate([record.values, *[by.values] * copies]),
        times=np.concatenate([record.times, record.times[-1] + stride * np.arange(1, rows + 1)]),
        labels=np.concatenate([record.labels, *[by.labels] * copies]),
    )
