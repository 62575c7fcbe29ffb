"""Sampling (paper, table 8): how often a batch passes when only drawn rows are checked.

Batches are cut from an attack-free record at random places, and each is attacked separately. Rows
are judged with the integers of the proof's circuit. A batch passes a draw if at most as many drawn
rows violate as the budget allows. The probability follows exactly from the number of its violating
rows; the simulated draws must agree with it within their error.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from sluice.admission import PaperPolicy
from sluice.arrays import Bools, Ints
from sluice.attestation.systems.sampled import (
    SampledVerdicts,
    Sampling,
    measure_sampled,
    pass_probability,
    silent_budgets,
    statement_of,
)
from sluice.errors import RecordError, RefusedError
from sluice.invariants import RuleSet
from sluice.lab.attacks import DataAttack
from sluice.lab.audits.progress import Progress, ignore_progress
from sluice.seeding import stream
from sluice.telemetry import Label, Record

__all__ = ["DRAWS", "SamplingRow", "SamplingTable", "sampling"]

DRAWS = 400
"""Draws per batch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingRow:
    """One kind of batch; shares are over all draws from all its batches."""

    kind: str
    samples: int
    violations: int
    batches: int
    draws: int
    violating_share: float  # of the rows that can be drawn
    mean_violating: float  # drawn rows that violate, mean over draws
    passed: float  # share of draws within the budget of violating rows
    exact: float  # the same share by the hypergeometric formula
    error: float  # standard error of `passed`
    within_silence: float  # share of draws within the silence budget of every coupling


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingTable:
    """Honest telemetry and attacks, without the kinds that the circuit cannot represent."""

    rows: tuple[SamplingRow, ...]
    skipped: tuple[tuple[str, str], ...] = ()  # kind, reason

    def of(self, kind: str, draw: Sampling) -> SamplingRow:
        """Return the row of one kind and one sampling."""
        key = (kind, draw.samples, draw.violations)
        return next(row for row in self.rows if (row.kind, row.samples, row.violations) == key)


def sampling(  # noqa: PLR0913 - the protocol's parameters
    record: Record,
    rules: RuleSet,
    attacks: Sequence[tuple[str, DataAttack]],
    *,
    draws: Sequence[Sampling],
    batches: int = 20,
    size: int = 1_024,
    seed: int = 0,
    progress: Progress = ignore_progress,
) -> SamplingTable:
    """Draw rows of honest and attacked batches under each sampling; compare with the formula."""
    _refuse_unfit(record, size)
    statements = [statement_of(rules, PaperPolicy(), draw, rows_max=size) for draw in draws]
    rows, skipped = [], []
    kinds: list[tuple[str, DataAttack | None]] = [("honest", None), *attacks]
    for done, (kind, attack) in enumerate(kinds):
        try:
            measured = [
                measure_sampled(statements[0], batch)  # verdicts on rows do not depend on the draw
                for batch in _batches(record, attack, batches=batches, size=size, seed=seed)
            ]
            rows += [
                _drawn(kind, measured, draw, silent_budgets(statement), seed=seed)
                for draw, statement in zip(draws, statements, strict=True)
            ]
        except (RecordError, RefusedError) as error:
            skipped.append((kind, str(error)))
        progress((done + 1) / len(kinds))
    return SamplingTable(rows=tuple(rows), skipped=tuple(skipped))


def _batches(
    record: Record, attack: DataAttack | None, *, batches: int, size: int, seed: int
) -> Iterator[Record]:
    places = stream(seed, "sampling audit", "places")
    for nth in range(batches):
        start = int(places.integers(0, len(record) - size + 1))
        batch = record.rows(start, start + size)
        yield batch if attack is None else attack(batch, seed=seed + nth)


def _drawn(
    kind: str,
    measured: Sequence[SampledVerdicts],
    draw: Sampling,
    silent_max: tuple[int, ...],
    *,
    seed: int,
) -> SamplingRow:
    random = stream(seed, "sampling audit", "draws", kind, draw.samples)
    passed, exact, within, violating = [], [], [], []
    for batch in measured:
        at = _draw(random, len(batch.violating), draw.samples)
        counts = batch.violating[at].sum(axis=1)
        violating.append(counts)
        passed.append(counts <= draw.violations)
        within.append(_within(batch, at, silent_max))
        exact.append(
            pass_probability(
                len(batch.violating) + 1,
                draw.samples,
                draw.violations,
                violating=int(batch.violating.sum()),
            )
        )
    shares = np.array([batch.mean() for batch in passed])
    probabilities = np.array(exact)
    return SamplingRow(
        kind=kind,
        samples=draw.samples,
        violations=draw.violations,
        batches=len(measured),
        draws=DRAWS * len(measured),
        violating_share=float(np.mean([batch.violating.mean() for batch in measured])),
        mean_violating=float(np.mean(violating)),
        passed=float(shares.mean()),
        exact=float(probabilities.mean()),
        error=float(np.sqrt((probabilities * (1 - probabilities) / DRAWS).sum()) / len(measured)),
        within_silence=float(np.mean(within)),
    )


def _draw(random: np.random.Generator, rows: int, samples: int) -> Ints:
    """Return distinct row numbers, one line per draw."""
    return np.argpartition(random.random((DRAWS, rows)), samples - 1, axis=1)[:, :samples]


def _within(batch: SampledVerdicts, at: Ints, silent_max: tuple[int, ...]) -> Bools:
    silent = batch.silent[at].sum(axis=1)
    within: Bools = (silent <= np.array(silent_max, dtype=np.int64)).all(axis=1)
    return within


def _refuse_unfit(record: Record, size: int) -> None:
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
