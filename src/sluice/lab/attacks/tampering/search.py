"""The strongest variant of a tampering that a gate admits.

A tampering is made of parts: one level, one pair of channels, one idle meter. Each part can be
applied in variants, from the strongest to the weakest that is still worth it. The attacker first
tries all parts at full strength. If the gate refuses, it adds part after part, each in the
strongest variant that is still admitted. A tampering of which nothing is admitted is submitted in
its weakest form, so that the gate has something to refuse.
"""

from collections.abc import Sequence
from typing import Protocol

from sluice.admission import Gate
from sluice.arrays import Floats
from sluice.telemetry import Record

__all__ = ["TamperedPart", "strongest"]


class TamperedPart(Protocol):
    """One thing to tamper with; a variant changes the readings, in place."""

    @property
    def variants(self) -> int:
        """How many variants there are; number 0 is the strongest."""
        ...

    def apply(self, values: Floats, variant: int) -> None:
        """Change the readings of all rows."""
        ...


def strongest(record: Record, parts: Sequence[TamperedPart], gate: Gate | None) -> Record:
    """Apply every part as strongly as the gate admits; without a gate, at full strength.

    If the gate refuses the untouched record, no variant can be admitted, and the attacker does
    what it would do without a gate.
    """
    whole = _with(record, [(part, 0) for part in parts])
    if gate is None or gate.judge(whole).admitted or not gate.judge(record).admitted:
        return whole
    taken: list[tuple[TamperedPart, int]] = []
    for part in parts:
        for variant in range(part.variants):
            if gate.judge(_with(record, [*taken, (part, variant)])).admitted:
                taken.append((part, variant))
                break
    weakest = [(parts[-1], parts[-1].variants - 1)]
    return _with(record, taken or weakest)


def _with(record: Record, taken: Sequence[tuple[TamperedPart, int]]) -> Record:
    values = record.values.copy()
    for part, variant in taken:
        part.apply(values, variant)
    return record.with_values(values)
