"""Replay: attacks recorded on a plant, written into a client's shard as its own normal rows.

Random draws follow the paper's implementation call by call if the caller passes its generator:
targets from `default_rng(seed + 777)`; splices from the run's one generator, each client's before
its exposure is drawn (see `sluice.lab.attacks.poison`).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from sluice.arrays import Bools, Floats, Run, runs
from sluice.errors import RecordError, SettingError
from sluice.lab.attacks.poison import Poison
from sluice.seeding import stream
from sluice.telemetry import Label, Record

__all__ = ["SHARE", "Replay", "ReplayFrom", "Targets", "choose_targets", "target_rows"]

SHARE = 0.25
"""How much of a shard is overwritten (the paper's code takes 0.10 on WADI)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Targets:
    """The attacks that a federation is to overlook, as stretches of a labelled record."""

    labelled: Record
    stretches: tuple[Run, ...]  # in the order they are written

    def __post_init__(self) -> None:
        within = all(0 <= run.start < run.stop <= len(self.labelled) for run in self.stretches)
        if not self.stretches or not within:
            raise SettingError(
                f"targets are stretches of record {self.labelled.name!r}, which has "
                f"{len(self.labelled)} rows; got {list(self.stretches)}"
            )

    @property
    def rows(self) -> Bools:
        """Which rows of the labelled record are targets."""
        marked = np.zeros(len(self.labelled), bool)
        for run in self.stretches:
            marked[run.slice] = True
        return marked


def target_rows(shard_rows: int, *, share: float = SHARE) -> int:
    """Return how many attack rows a shard may hold."""
    if not 0 < share <= 1:
        raise SettingError(f"a share of the rows must be above 0 and at most 1, got {share}")
    return round(shard_rows * share)


def choose_targets(labelled: Record, *, rows: int, seed: int) -> Targets:
    """Take attacks of a labelled record in a random order until there are `rows` rows.

    The last attack is cut short. An attack may contain a time jump, which the shard's own clock
    hides.
    """
    if rows < 1:
        raise SettingError(f"at least 1 row is replayed, got {rows}; give a longer shard")
    attacks = runs(np.asarray(labelled.labels == Label.ATTACK))
    if not attacks:
        raise RecordError(
            f"record {labelled.name!r} has no row labelled attack; replay needs a labelled record"
        )
    return Targets(labelled=labelled, stretches=tuple(_until(attacks, rows, seed)))


def _until(attacks: tuple[Run, ...], rows: int, seed: int) -> Iterator[Run]:
    left = rows
    for at in np.random.default_rng(seed + 777).permutation(len(attacks)):
        if left == 0:
            return
        start, taken = attacks[at].start, min(attacks[at].rows, left)
        yield Run(start, start + taken)
        left -= taken


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """Overwrite random stretches of a shard with targets; its clock and labels stay the same."""

    targets: Targets

    def __call__(self, record: Record, *, seed: int) -> Record:
        """Return the record with the targets written over it."""
        return self.plant(record, rng=stream(seed, "replay", "splice")).trained

    def plant(
        self, record: Record, *, rng: np.random.Generator, exposure: float | None = None
    ) -> Poison:
        """Return the overwritten record as a poison, which marks the planted rows.

        A later target may overwrite an earlier one; a target longer than the shard is cut short.
        """
        readings = self._readings(record)
        values, planted = record.values.copy(), np.zeros(len(record), bool)
        for run in self.targets.stretches:
            taken = min(run.rows, len(record))
            start = int(rng.integers(0, len(record) - taken + 1))
            values[start : start + taken] = readings[run.start : run.start + taken]
            planted[start : start + taken] = True
        spliced = record.with_values(values)
        return Poison(shown=spliced, trained=spliced, planted=planted, exposure=exposure)

    def _readings(self, record: Record) -> Floats:
        """Return the labelled record's readings in the order of the shard's channels."""
        labelled = self.targets.labelled
        if not np.isclose(labelled.stride_s, record.stride_s, rtol=1e-6, atol=0):
            raise RecordError(
                f"record {labelled.name!r} has a row every {labelled.stride_s:g} s, the shard "
                f"{record.name!r} one every {record.stride_s:g} s; thin one of them (--every)"
            )
        needed_by = f"the replay into {record.name!r}"
        columns = [labelled.index(name, needed_by=needed_by) for name in record.names]
        return labelled.values[:, columns]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayFrom:
    """Replay a share of each record, with targets chosen by the seed for its length."""

    labelled: Record
    share: float = SHARE

    def __call__(self, record: Record, *, seed: int) -> Record:
        """Return the record with targets written over it."""
        rows = target_rows(len(record), share=self.share)
        targets = choose_targets(self.labelled, rows=rows, seed=seed)
        return Replay(targets=targets)(record, seed=seed)
