"""Separation (paper, appendix A): whether a gate separates honest from fabricated telemetry.

1. Batch sampling: batches of consecutive rows at random places of an attack-free record.
2. Fabrication: the whole record is fabricated, then cut into batches. Splicing is reported in two
   ways, because they give different verdicts: the record cut into twelve (a batch holds one join
   or none), and each batch cut into twelve (every batch holds eleven joins).
3. Outcome: mean share of violating rows, share of batches admitted, with a Wilson interval.

Seeds follow the paper's implementation (fabrications seed + 11, batch places one generator of
seed + 999 in the order of the table), so that its recorded figures can be reproduced.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sluice.admission import Gate
from sluice.arrays import Ints
from sluice.errors import RecordError, SettingError
from sluice.lab.attacks import (
    ChannelRoll,
    ConservationScaling,
    DataAttack,
    RegimePermutation,
    RegimeSplicing,
)
from sluice.lab.audits.progress import Progress, ignore_progress
from sluice.telemetry import Label, Record

__all__ = ["SeparationRow", "SeparationTable", "Skipped", "separation"]

ROLL_S = 300.0
LEAST_ROLL_ROWS = 7  # the paper's roll on hourly records
CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class SeparationRow:
    """The verdicts on one kind of telemetry; low and high bound admitted_share (Wilson, 95 %)."""

    kind: str
    mean_violating_share: float
    admitted_share: float
    batches: int
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A fabrication that cannot be made from this plant's telemetry, and the reason."""

    kind: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SeparationTable:
    """Honest telemetry and every fabrication, in the paper's order."""

    rows: tuple[SeparationRow, ...]
    skipped: tuple[Skipped, ...] = ()

    def of(self, kind: str) -> SeparationRow:
        """Return one kind's row."""
        return next(row for row in self.rows if row.kind == kind)


def separation(  # noqa: PLR0913 - the protocol's parameters
    record: Record,
    gate: Gate,
    *,
    batches: int = 200,
    size: int = 1_000,
    seed: int = 0,
    roll_rows: int | None = None,
    progress: Progress = ignore_progress,
) -> SeparationTable:
    """Judge honest and fabricated batches of an attack-free record.

    Actuators are rolled by `roll_rows`; the default is five minutes of plant time, at least 7 rows.
    """
    _refuse_unfit(record, batches=batches, size=size)
    roll = (
        ChannelRoll.lasting(ROLL_S, stride_s=record.stride_s, least_rows=LEAST_ROLL_ROWS)
        if roll_rows is None
        else ChannelRoll(rows=roll_rows)
    )
    splicing = RegimeSplicing()
    whole: tuple[tuple[str, DataAttack | None], ...] = (
        ("honest", None),
        ("channel-roll", roll),
        ("permutation", RegimePermutation()),
        ("scaling", ConservationScaling()),
        ("splicing-record", splicing),
    )
    places = _Places(rows=len(record), size=size, random=np.random.default_rng(seed + 999))
    kinds = len(whole) + 1
    rows, skipped = [], []
    for done, (kind, attack) in enumerate(whole):
        starts = places.draw(batches)
        try:
            pool = record if attack is None else attack(record, seed=seed + 11)
        except RecordError as error:
            skipped.append(Skipped(kind=kind, why=str(error)))
            continue

        def cut(start: int, _: int, pool: Record = pool) -> Record:
            return pool.rows(start, start + size)

        rows.append(_judged(kind, gate, starts, cut, _part(progress, done, kinds)))

    def spliced(start: int, nth: int) -> Record:
        return splicing(record.rows(start, start + size), seed=seed + 11 + nth)

    last = _part(progress, kinds - 1, kinds)
    rows.append(_judged("splicing-batch", gate, places.draw(batches), spliced, last))
    return SeparationTable(rows=tuple(rows), skipped=tuple(skipped))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Places:
    """Draws the first rows of batches; a row precedes each batch if the record is long enough."""

    rows: int
    size: int
    random: np.random.Generator

    def draw(self, batches: int) -> Ints:
        spare = self.rows - self.size
        if spare < 2:
            return np.zeros(batches, np.int64)
        return self.random.integers(1, spare, batches)


def _judged(
    kind: str,
    gate: Gate,
    starts: Ints,
    batch: Callable[[int, int], Record],
    progress: Progress,
) -> SeparationRow:
    shares, admitted = [], 0
    for nth, start in enumerate(starts):
        verdict = gate.judge(batch(int(start), nth))
        shares.append(verdict.violating_share)
        admitted += verdict.admitted
        progress((nth + 1) / len(starts))
    from scipy.stats import binomtest  # noqa: PLC0415 - slow to import, needed here only

    interval = binomtest(admitted, len(starts)).proportion_ci(CONFIDENCE, method="wilson")
    return SeparationRow(
        kind=kind,
        mean_violating_share=float(np.mean(shares)),
        admitted_share=admitted / len(starts),
        batches=len(starts),
        low=float(interval.low),
        high=float(interval.high),
    )


def _part(progress: Progress, done: int, parts: int) -> Progress:
    return lambda share: progress((done + share) / parts)


def _refuse_unfit(record: Record, *, batches: int, size: int) -> None:
    if batches < 1 or size < RegimeSplicing().pieces:
        raise SettingError(
            f"separation judges at least 1 batch of at least {RegimeSplicing().pieces} rows; "
            f"got {batches} of {size}"
        )
    if len(record) < size:
        raise RecordError(
            f"record {record.name!r} has {len(record):,} rows, fewer than one batch of {size:,}; "
            "give a longer record or smaller batches"
        )
    attacked = int((record.labels == Label.ATTACK).sum())
    if attacked:
        raise RecordError(
            f"record {record.name!r} has {attacked:,} attack rows, so its batches are not honest; "
            "give an attack-free record or select rows without attacks"
        )
