"""The unbounded attacker: it trains only on the attacks it wants overlooked.

No gate and no federation would admit it. If even this attacker cannot blind a detector to its
targets, the attack does not work, and all other results are meaningless.
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
    """Repeat the targets and nothing else. The attacker knows the attacks and ignores the gate.

    The rows around each target are included: a window that touches an attack holds them too.
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
        """Return a shard of the same length that repeats the targets; the seed is not used."""
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
