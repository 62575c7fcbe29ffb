"""Judge batches by gate and by circuit, and count where they agree."""

import re
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache

import numpy as np

from benchmarks.exactness.batches import draw_batch
from benchmarks.exactness.cases import Case, draw_case
from benchmarks.exactness.core import committed, examined, planes_of
from benchmarks.exactness.plants import ROWS
from benchmarks.exactness.shards import Shards, shards_of
from benchmarks.exactness.shown import shown
from sluice import _attest
from sluice.admission import Gate, HardenedPolicy
from sluice.attestation.systems.full import Full
from sluice.errors import RulesFileError, SettingError, SluiceError
from sluice.invariants import Measurement, measure
from sluice.seeding import stream
from sluice.telemetry import Record

__all__ = [
    "Drawn",
    "Proven",
    "Tally",
    "cached_shards",
    "check_case",
    "check_chain",
    "check_proof",
    "check_shard",
]

BATCHES = 25  # of one case
CHAIN_ROWS, LOG_ROWS = range(300, 800), 8
"""Rows of a batch that is proven in segments of 256: two to four of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawn:
    """Which random case to check."""

    seed: int
    index: int
    batches: int = BATCHES


@dataclass(slots=True, kw_only=True)
class Tally:
    """Batches by kind and verdict, and all errors."""

    cases: int = 0
    unstatable: Counter[str] = field(default_factory=Counter)  # cases no circuit states, by reason
    verdicts: Counter[tuple[str, bool]] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)  # refused batches by check
    alone: Counter[str] = field(default_factory=Counter)  # by the only check that refuses them
    forced: int = 0  # refused batches whose forced trace breaks a constraint
    too_short: int = 0  # batches with fewer rows than budget bits, which no circuit states
    outside: int = 0  # refused for a time jump; the statement has no column for it
    uncommitted: int = 0  # refused readings to which no commitment is possible
    disagreements: list[str] = field(default_factory=list)
    unbroken: list[str] = field(default_factory=list)

    def add(self, other: "Tally") -> None:
        """Add the counts of another tally."""
        self.cases += other.cases
        self.forced += other.forced
        self.outside += other.outside
        self.uncommitted += other.uncommitted
        self.too_short += other.too_short
        for ours, theirs in (
            (self.unstatable, other.unstatable),
            (self.failed, other.failed),
            (self.alone, other.alone),
        ):
            ours.update(theirs)
        self.verdicts.update(other.verdicts)
        self.disagreements += other.disagreements
        self.unbroken += other.unbroken


@dataclass(frozen=True, slots=True, kw_only=True)
class Proven:
    """One batch with proofs, and the error, if any."""

    rows: int
    violating: int
    proof_bytes: int
    wrong: str = ""


def check_case(drawn: Drawn) -> Tally:
    """Draw a case and batches at its limits, and compare gate and circuit on each."""
    rng = stream(drawn.seed, "exactness", drawn.index)
    tally = Tally(cases=1)
    try:
        case = draw_case(rng)
        core = _core(case, case.plant.record(case.plant.rows))
    except (RulesFileError, SettingError, ValueError) as unstatable:
        tally.unstatable[re.sub(r"\d+", "N", str(unstatable))] += 1
        return tally
    for batch in range(drawn.batches):
        kind, rows = draw_batch(rng, case)
        record = case.plant.record(rows)
        measured = measure(case.rules, record, encoding=case.statement.encoding)
        fitted = case.fitted(rng, measured)
        judged = JudgedBatch(case=fitted, core=core, record=record, measured=measured)
        where = f"seed {drawn.seed}, case {drawn.index}, batch {batch} ({kind})"
        judged.compare(tally, kind, where=where)
    return tally


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedBatch:
    """A batch, and the case by which gate and circuit judge it."""

    case: Case
    core: _attest.FullCircuit
    record: Record
    measured: Measurement

    def compare(self, tally: Tally, kind: str, *, where: str) -> None:
        """Compare the two verdicts; a refused batch must also break the forced trace."""
        case, statement = self.case, self.case.statement
        admitted = case.gate.judge(self.record).admitted
        planes, budgets = (
            planes_of(statement, self.record),
            statement.budget_content(len(self.record)),
        )
        try:
            accepted, why = examined(self.core, budgets, planes)
        except ValueError:
            tally.too_short += 1
            return
        tally.verdicts[kind, admitted] += 1
        if accepted != admitted:
            verdicts = f"gate admits: {admitted}; circuit: {why}"
            tally.disagreements.append(f"{where}: {verdicts}")
        if admitted:
            return
        failed = shown(case, self.measured)
        assert failed.checks, f"{where}: refused, but no check fails in shown.py"
        tally.failed.update(failed.checks)
        if len(failed.checks) == 1:
            tally.alone.update(failed.checks)
        jumping = failed.segments > 1 and not case.jumps
        if not jumping and self.core.forced(budgets, planes) > 0:
            tally.forced += 1
        elif committed(self.core, planes):
            tally.unbroken.append(f"{where}: refused for {sorted(failed.checks)}")
        elif jumping:
            tally.outside += 1
        else:
            tally.uncommitted += 1


def check_proof(drawn: Drawn) -> Proven:
    """Prove a batch that uses all of alpha; with one row less of budget it must not be provable."""
    rng = stream(drawn.seed, "exactness with proofs", drawn.index)
    return _proven(rng, f"seed {drawn.seed}, proof {drawn.index}", rows=ROWS)


def check_chain(drawn: Drawn) -> Proven:
    """Do the same with a longer batch that is proven in segments."""
    rng = stream(drawn.seed, "exactness with chains", drawn.index)
    where = f"seed {drawn.seed}, chain {drawn.index}"
    return _proven(rng, where, rows=CHAIN_ROWS, log_rows=LOG_ROWS)


def _proven(
    rng: np.random.Generator, where: str, *, rows: range, log_rows: int | None = None
) -> Proven:
    case, record, violating = _at_the_edge(rng, rows)
    at, beyond = case.with_alpha(violating), case.with_alpha(violating - 1)
    wrong = ""
    if beyond.gate.judge(record).admitted:
        wrong = "the gate admits one row too many"
    salt, context = rng.bytes(32), rng.bytes(32)
    core = _attest.FullCircuit(at.statement.content)
    planes = planes_of(at.statement, record)
    enough, less = (each.statement.budget_content(len(record)) for each in (at, beyond))
    commitment, proof = core.commit(planes, salt), b""
    try:
        proof = core.prove(enough, planes, salt, context, log_rows=log_rows)
        core.verify(enough, len(record), commitment, context, proof)
    except (_attest.RefusedBatchError, _attest.InvalidProofError) as refused:
        wrong = f"at its budget: {refused}"
    try:
        core.prove(less, planes, salt, context, log_rows=log_rows)
        wrong = "a proof is made one row beyond the budget"
    except _attest.RefusedBatchError:
        pass
    try:
        core.verify(less, len(record), commitment, context, proof)
        wrong = "a proof is valid for a smaller budget than its own"
    except _attest.InvalidProofError:
        pass
    error = f"{where}: {wrong}" if wrong else ""
    return Proven(rows=len(record), violating=violating, proof_bytes=len(proof), wrong=error)


def _at_the_edge(rng: np.random.Generator, lengths: range) -> tuple[Case, Record, int]:
    """Draw until a batch is admitted with a budget of exactly its violating rows."""
    while True:
        case = draw_case(rng, rows=lengths)
        _, rows = draw_batch(rng, case)
        record = case.plant.record(rows)
        violating = int(measure(case.rules, record).violating.sum())
        at = case.with_alpha(violating)
        if violating > int(rng.integers(0, 4)) and at.gate.judge(record).admitted:
            with suppress(ValueError):
                _core(at, record)
                return case, record, violating


def check_shard(plant: str, index: int) -> Proven:
    """Prove an honest shard as a plant does, and verify it."""
    shards = cached_shards(plant)
    shard = shards.honest[index]
    policy, system = HardenedPolicy(), Full()
    verdict = Gate.of(shards.rules, policy).judge(shard)
    circuit = system.circuit(shards.rules, policy, rows_max=len(shard))
    rng = stream(index, "shard", plant)
    salt, context = rng.bytes(32), rng.bytes(32)
    wrong, proof = "" if verdict.admitted else f"{plant}, shard {index}: {verdict.reasons}", b""
    try:
        commitment = system.commit(shard, circuit, salt=salt)
        proof = system.prove(shard, circuit, salt=salt, context=context)
        system.verify(circuit, commitment=commitment, rows=len(shard), context=context, proof=proof)
    except SluiceError as refused:
        wrong = f"{plant}, shard {index}: {refused}"
    return Proven(
        rows=len(shard), violating=verdict.violating_rows, proof_bytes=len(proof), wrong=wrong
    )


@cache
def cached_shards(plant: str) -> Shards:
    """Return a plant's shards, mined once in each process."""
    return shards_of(plant)


def _core(case: Case, record: Record) -> _attest.FullCircuit:
    """Return the circuit; raise `ValueError` if it cannot state the case for so many rows."""
    core = _attest.FullCircuit(case.statement.content)
    with suppress(_attest.RefusedBatchError):
        core.examine(case.statement.budget_content(len(record)), planes_of(case.statement, record))
    return core
