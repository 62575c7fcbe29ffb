"""The attacker without bounds: it trains on nothing but the attacks it wants overlooked.

No gate admits it and no federation would; if even it cannot blind a detector to its targets, the
attack is broken and no other figure means anything.
"""

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from sluice.arrays import Ints, Run
from sluice.lab.attacks.knowledge import Knowledge
from sluice.lab.attacks.poison import Poison
from sluice.telemetry import WINDOW_ROWS, Record

__all__ = ["Unbounded"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Unbounded:
    """Targets alone, over and over. The attacker knows the attacks and minds nothing else.

    The rows before and after each come along: a window that touches an attack holds them too.
    """

    window_rows: int = WINDOW_ROWS
    shaped: ClassVar[bool] = True

    def __call__(
        self,
        shard: Record,
        known: Knowledge,
        *,
        seed: int,  # noqa: ARG002 - as every maker
    ) -> Poison:
        """Return a shard of the same length in which target follows target; nothing is drawn."""
        labelled = known.targets.labelled.select(shard.names)
        stretches = known.targets.stretches
        rows = np.concatenate([self._around(run, len(labelled)) for run in stretches])
        values = labelled.values[np.resize(rows, len(shard))]
        poisoned = replace(shard, values=values)
        planted = np.ones(len(shard), bool)
        return Poison(shown=poisoned, trained=poisoned, planted=planted, exposure=1.0)

    def _around(self, run: Run, rows: int) -> Ints:
        reach = self.window_rows - 1
        return np.arange(max(0, run.start - reach), min(rows, run.stop + reach))
