"""The verdict of the `sampled` circuit on every row of a batch, as if each were drawn."""

from dataclasses import dataclass

import numpy as np

from sluice.arrays import Bools
from sluice.attestation.systems.sampled.rows import SampledRows
from sluice.attestation.systems.sampled.statement import SampledStatement
from sluice.attestation.systems.sampled.system import core_of, planes_of
from sluice.telemetry import Record

__all__ = ["SampledVerdicts", "measure_sampled"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledVerdicts:
    """Rows 1 to the last of a batch; row 0 is never drawn."""

    violating: Bools
    silent: Bools  # rows x couplings: where a coupling does not apply


def measure_sampled(statement: SampledStatement, batch: Record) -> SampledVerdicts:
    """Judge every row that could be drawn."""
    planes, core = planes_of(SampledRows.of(statement, batch)), core_of(statement.content)
    measured = [core.measure(planes, [row]) for row in range(1, len(batch))]
    silent = np.array([counts for _, counts in measured], dtype=bool)
    return SampledVerdicts(
        violating=np.array([flags[0] for flags, _ in measured]),
        silent=silent.reshape(len(measured), len(statement.couplings)),
    )
