"""A replay over most of a shard, shaped until the gate admits it."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from sluice.admission import Gate, ReasonKind
from sluice.arrays import Floats, Run
from sluice.errors import RecordError, SettingError
from sluice.lab.attacks.poison import Poison
from sluice.lab.attacks.replay import Targets, choose_targets
from sluice.lab.attacks.shaping import shape
from sluice.seeding import stream
from sluice.telemetry import Record

__all__ = ["SHARES", "ShapedReplay", "attack_rows", "most_admitted", "require_shares"]

SHARES = (0.9, 0.5, 0.25, 0.1)  # of the shard, as much as is admitted
COARSE_JITTER = 0.02  # of a level's spread: it hides repeats from a search with tolerance

Plant = Callable[[Run], Floats]
"""Returns the readings to plant on these rows, one column per channel of the shard."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapedReplay:
    """Write attacks over up to nine tenths of a record and shape them until they are admitted.

    The attacker knows the rules and the policy. Attacks are repeated until they fill the stretch;
    the repeats differ by a jitter, as small as the gate demands.
    """

    labelled: Record
    gate: Gate
    targets: Targets | None = None  # None: all attacks, in an order drawn by the seed
    shares: tuple[float, ...] = SHARES

    def __post_init__(self) -> None:
        require_shares(self.shares)

    def __call__(self, record: Record, *, seed: int) -> Record:
        """Return the record with the largest share of attack rows that is admitted."""
        return self.poison(record, seed=seed).shown

    def poison(self, record: Record, *, seed: int) -> Poison:
        """Return the same as a poison, which marks the planted rows."""
        attack = attack_rows(record, self.labelled, self.targets, seed=seed)

        def replayed(rows: Run) -> Floats:
            return np.resize(attack, (rows.rows, attack.shape[1]))

        return most_admitted(record, replayed, self.gate, shares=self.shares, seed=seed)


def attack_rows(record: Record, labelled: Record, targets: Targets | None, *, seed: int) -> Floats:
    """Return the readings of the targets, in the order of the record's channels."""
    if not np.isclose(labelled.stride_s, record.stride_s, rtol=1e-6, atol=0):
        raise RecordError(
            f"record {labelled.name!r} has a row every {labelled.stride_s:g} s, the shard "
            f"{record.name!r} one every {record.stride_s:g} s; thin one of them (--every)"
        )
    chosen = targets or choose_targets(labelled, rows=len(record), seed=seed)
    needed_by = f"the replay into {record.name!r}"
    columns = [labelled.index(name, needed_by=needed_by) for name in record.names]
    rows = np.concatenate([np.arange(run.start, run.stop) for run in chosen.stretches])
    return np.asarray(labelled.values[rows][:, columns])


def most_admitted(
    record: Record, plant: Plant, gate: Gate, *, shares: tuple[float, ...], seed: int
) -> Poison:
    """Plant the largest share that the gate admits after shaping; if none is, the smallest."""
    for share in shares:
        rows = max(1, round(share * len(record)))
        start = int(stream(seed, "shaped", rows).integers(len(record) - rows + 1))
        stretch = Run(start, start + rows)
        values, planted = record.values.copy(), np.zeros(len(record), bool)
        values[stretch.slice] = plant(stretch)
        planted[stretch.slice] = True
        spliced = record.with_values(values)
        poison = Poison(shown=spliced, trained=spliced, planted=planted)
        shaped = shape(poison, record, gate, seed=seed)
        kinds = {reason.kind for reason in gate.judge(shaped.poison.shown).reasons}
        if ReasonKind.REPEATED_READINGS in kinds:
            shaped = shape(poison, record, gate, seed=seed, jitter=COARSE_JITTER)
        if shaped.admitted:
            break
    return shaped.poison


def require_shares(shares: tuple[float, ...]) -> None:
    """Refuse shares that are no shares of rows, or that do not fall."""
    falling = all(one > other for one, other in pairwise(shares))
    if not shares or not all(0 < share <= 1 for share in shares) or not falling:
        raise SettingError(
            f"shares of rows are above 0, at most 1 and each below the one before it, got {shares}"
        )
