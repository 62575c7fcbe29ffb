"""Evaluation: how a frozen gate judges honest and fabricated batches.

1. Honest batches: how many are refused, and for which kinds of reason.
2. Fabrications: only batches whose readings changed count. A splice that is admitted while every
   row rule holds at its joins is *state-matched*: its pieces join where the plant was in one
   state, so that no row rule can detect them.

Fabrications start from batches that the gate admits unchanged, so that a refusal is due to the
fabrication. For records spliced as a whole, the batches are not selected this way.
"""

import hashlib
import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np
from scipy.stats import binomtest

from sluice.admission import Gate, ReasonKind, Verdict
from sluice.arrays import Ints
from sluice.errors import SettingError
from sluice.invariants import evaluate
from sluice.lab.attacks import (
    ChannelRoll,
    ConservationScaling,
    DataAttack,
    RegimePermutation,
    RegimeSplicing,
)
from sluice.telemetry import Channel, Record, Role

__all__ = [
    "CAUSES",
    "FABRICATED",
    "Fabricated",
    "Fabrication",
    "Honest",
    "Pool",
    "Proportion",
    "Reach",
    "Refusal",
    "admissible",
    "fabricated",
    "honest_batches",
]

CONFIDENCE = 0.95
MOST_SPLICES = (
    1_000  # many: of two-piece splices half keep their order, and one batch holds the join
)
MOST_PERMUTATIONS = 12  # few: where regimes have one state each, most change nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Proportion:
    """A count of a total, with Wilson's interval (95 %); it is 0 to 1 for a total of 0."""

    count: int
    of: int
    low: float
    high: float

    @classmethod
    def counted(cls, count: int, of: int) -> "Proportion":
        """Return the proportion with its interval."""
        if of == 0:
            return cls(count=0, of=0, low=0.0, high=1.0)
        interval = binomtest(count, of).proportion_ci(CONFIDENCE, method="wilson")
        return cls(count=count, of=of, low=float(interval.low), high=float(interval.high))

    @property
    def share(self) -> float:
        """The count over the total; 0 for a total of 0."""
        return self.count / self.of if self.of else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pool:
    """A clean record and where batches of it begin."""

    record: Record
    size: int
    starts: tuple[int, ...]

    @classmethod
    def disjoint(cls, record: Record, size: int) -> "Pool":
        """Cut the record into consecutive batches; the remaining rows are left out."""
        starts = tuple(range(0, len(record) - size + 1, size))
        return cls(record=record, size=size, starts=starts)

    @classmethod
    def spread(cls, record: Record, size: int, batches: int) -> "Pool":
        """Place `batches` batches evenly; they overlap where the record is short."""
        places = np.linspace(0, len(record) - size, batches).astype(int)
        return cls(record=record, size=size, starts=tuple(int(place) for place in places))

    def batch(self, start: int) -> Record:
        """Return the batch that begins at a row."""
        return self.record.rows(start, start + self.size)


# -- honest batches -------------------------------------------------------------------------------


CAUSES = {
    ReasonKind.TIME_JUMPS: "time jumps",
    ReasonKind.BROKEN_ROWS: "violating rows",
    ReasonKind.VIOLATING_ROWS: "violating rows",
    ReasonKind.WINDOWS: "windows that do not balance",
    ReasonKind.SWITCHES: "switches out of band",
    ReasonKind.BLOCKS: "noise out of its limits",
    ReasonKind.MEANS: "means out of their limits",
    ReasonKind.TRANSITION: "rows in transition",
    ReasonKind.SEVERE_ROWS: "severe rows",
    ReasonKind.STILL_LEVEL: "a level that stands still",
    ReasonKind.REPEATED_READINGS: "readings that repeat",
}
"""The name of each kind of exceeded budget on the pages."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """One honest batch that was refused, with the row rule that was furthest beyond tolerance."""

    where: str
    causes: tuple[str, ...]  # values of `CAUSES`
    reasons: tuple[str, ...]
    furthest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Honest:
    """The verdicts of a gate on honest batches."""

    refused: Proportion
    refusals: tuple[Refusal, ...]


def honest_batches(gate: Gate, batches: Iterable[tuple[str, Record]]) -> Honest:
    """Judge honest batches, each given with a name."""
    refusals, judged = [], 0
    for where, batch in batches:
        verdict = gate.judge(batch)
        judged += 1
        if not verdict.admitted:
            refusals.append(_refusal(where, verdict))
    return Honest(refused=Proportion.counted(len(refusals), judged), refusals=tuple(refusals))


def _refusal(where: str, verdict: Verdict) -> Refusal:
    beyond = [
        (abs(row.residual) / row.tolerance, finding.name)
        for finding in verdict.findings
        if not finding.kind.own_budget
        for row in finding.worst
        if row.tolerance > 0
    ]
    excess, name = max(beyond, default=(0.0, ""))
    return Refusal(
        where=where,
        causes=tuple(dict.fromkeys(CAUSES[reason.kind] for reason in verdict.reasons)),
        reasons=verdict.sentences,
        furthest=f"{name} at {excess:.2f} tolerances" if name else "",
    )


def admissible(gate: Gate, pool: Pool) -> Pool:
    """Keep the batches that the gate admits unchanged."""
    starts = tuple(start for start in pool.starts if gate.judge(pool.batch(start)).admitted)
    return replace(pool, starts=starts)


# -- fabrications ---------------------------------------------------------------------------------


class Reach(StrEnum):
    """Whether a record is fabricated and then cut into batches, or each batch separately."""

    RECORD = "record"
    BATCH = "batch"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabrication:
    """A data attack and whether it changes whole records or single batches."""

    name: str
    attack: DataAttack
    reach: Reach


FABRICATED = (
    *(
        Fabrication(name=f"roll by {rows:+d}", attack=ChannelRoll(rows=rows), reach=Reach.RECORD)
        for rows in (-7, -2, -1, 1, 2, 7)
    ),
    *(
        Fabrication(
            name=f"flows x {factor:g}",
            attack=ConservationScaling(factor=factor),
            reach=Reach.RECORD,
        )
        for factor in (1.05, 1.1, 1.3)
    ),
    *(
        Fabrication(name=f"splice of {pieces}", attack=RegimeSplicing(pieces=pieces), reach=reach)
        for reach in (Reach.RECORD, Reach.BATCH)
        for pieces in (2, 4, 12)
    ),
    *(
        Fabrication(name="permutation in regimes", attack=RegimePermutation(), reach=reach)
        for reach in (Reach.RECORD, Reach.BATCH)
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fabricated:
    """The verdicts on one fabrication; `unmatched` are admitted batches not state-matched."""

    name: str
    reach: Reach
    admitted: Proportion
    state_matched: int
    unmatched: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Forged:
    where: str
    batch: Record
    joins: Ints  # rows whose previous row is not the original one
    changed: str = ""  # the changed channels and their row counts; empty for a splice


def fabricated(
    gate: Gate, pools: tuple[Pool, ...], fabrication: Fabrication, *, wanted: int, seed: int
) -> Fabricated:
    """Judge fabricated batches; random attacks are drawn repeatedly until there are `wanted`."""
    judged = admitted = matched = 0
    unmatched = []
    for forged in _forged(fabrication, pools, wanted=wanted, seed=seed):
        judged += 1
        if not gate.judge(forged.batch).admitted:
            continue
        admitted += 1
        broken = _broken_at_joins(gate, forged)
        if forged.joins.size and not broken:
            matched += 1
        else:
            unmatched.append(f"{forged.where}: {', '.join(broken) or forged.changed}")
    return Fabricated(
        name=fabrication.name,
        reach=fabrication.reach,
        admitted=Proportion.counted(admitted, judged),
        state_matched=matched,
        unmatched=tuple(unmatched),
    )


def _forged(
    fabrication: Fabrication, pools: tuple[Pool, ...], *, wanted: int, seed: int
) -> Iterator[_Forged]:
    """Yield batches that differ from their originals and from each other.

    A random attack is drawn repeatedly, with a different seed for each pool and draw, until there
    are `wanted` batches.
    """
    attack = fabrication.attack
    if isinstance(attack, RegimeSplicing):
        rounds = MOST_SPLICES
    else:
        rounds = MOST_PERMUTATIONS if isinstance(attack, RegimePermutation) else 1
    candidates = (
        forged
        for nth, (_, pool) in enumerate(itertools.product(range(rounds), pools))
        for forged in _of_pool(attack, pool, fabrication.reach, seed=seed + nth)
    )
    digests: set[bytes] = set()
    for forged in candidates:
        digest = hashlib.sha256(forged.batch.values.tobytes()).digest()
        if digest not in digests:
            digests.add(digest)
            yield forged
        if rounds > 1 and len(digests) == wanted:
            return


def _of_pool(attack: DataAttack, pool: Pool, reach: Reach, *, seed: int) -> Iterator[_Forged]:
    if isinstance(attack, RegimeSplicing):
        yield from _spliced(attack, pool, reach, seed=seed)
        return
    whole = attack(pool.record, seed=seed) if reach is Reach.RECORD else None
    for start in pool.starts:
        honest = pool.batch(start)
        if whole is None:
            batch = attack(honest, seed=seed * len(pool.record) + start)
        else:
            batch = whole.rows(start, start + pool.size)
        changed = _changed(honest, batch)
        if changed:
            yield _Forged(
                where=f"draw {seed}, row {start}",
                batch=batch,
                joins=np.empty(0, np.int64),
                changed=changed,
            )


def _changed(honest: Record, forged: Record) -> str:
    """Return the channels that differ and on how many rows; empty where none does."""
    same = (honest.values == forged.values) | (honest.missing & forged.missing)
    rows = (~same).sum(axis=0)
    return ", ".join(
        f"{name} on {count} rows" for name, count in zip(honest.names, rows, strict=True) if count
    )


def _spliced(attack: RegimeSplicing, pool: Pool, reach: Reach, *, seed: int) -> Iterator[_Forged]:
    """Yield the batches that contain a join."""
    if reach is Reach.BATCH:
        for start in pool.starts:
            honest = pool.batch(start)
            order = _order(attack, honest, seed=seed * len(pool.record) + start)
            joins = np.flatnonzero(np.diff(order) != 1) + 1
            if joins.size:
                batch = honest.with_values(honest.values[order])
                yield _Forged(where=f"draw {seed}, row {start}", batch=batch, joins=joins)
        return
    order = _order(attack, pool.record, seed=seed)
    joins = np.flatnonzero(np.diff(order) != 1) + 1
    for start in Pool.disjoint(pool.record, pool.size).starts:
        inside = joins[(joins > start) & (joins < start + pool.size)] - start
        if inside.size:
            values = pool.record.values[order[start : start + pool.size]]
            batch = pool.batch(start).with_values(values)
            yield _Forged(where=f"draw {seed}, row {start}", batch=batch, joins=inside)


def _order(attack: RegimeSplicing, record: Record, *, seed: int) -> Ints:
    """Return the row order of a splice, by splicing the row numbers."""
    numbered = replace(
        record,
        channels=(Channel(name="row", role=Role.OTHER),),
        values=np.arange(len(record), dtype=np.float64)[:, None],
    )
    return attack(numbered, seed=seed).values[:, 0].astype(np.int64)


def _broken_at_joins(gate: Gate, forged: _Forged) -> tuple[str, ...]:
    """Return the row rules that are broken at a join, with their excess in tolerances."""
    if gate.encoding is None:
        raise SettingError(
            "state-matched splices need the integer evaluator, which the gate's policy does not "
            "use; use a hardened policy"
        )
    return tuple(
        f"{found.rule.name} at {found.excess[forged.joins].max():.2f} tolerances"
        for found in evaluate(gate.encoding, forged.batch)
        if not found.own_budget and found.violating[forged.joins].any()
    )
