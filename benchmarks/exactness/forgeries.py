"""Lies made of honest shards: the paper's fabrications, and what else no plant can show."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.exactness.check import shards_held
from benchmarks.exactness.core import committed, examined, planes_of
from sluice import _attest
from sluice.admission import Gate, HardenedPolicy
from sluice.attestation.systems.full import derive
from sluice.invariants import Bound, Coupling, RuleSet
from sluice.lab.attacks import (
    ConservationScaling,
    DataAttack,
    RegimePermutation,
    RegimeSplicing,
    RollLasting,
)
from sluice.telemetry import Record

__all__ = ["Lied", "check_lies"]

FABRICATED: tuple[tuple[str, DataAttack], ...] = (
    ("rolled", RollLasting(seconds=60)),
    ("permuted", RegimePermutation()),
    ("scaled", ConservationScaling()),
    ("spliced", RegimeSplicing()),
)


@dataclass(slots=True, kw_only=True)
class Lied:
    """Lies about one shard by kind, those that no trace satisfies, and what must not be."""

    told: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def check_lies(plant: str, index: int) -> Lied:
    """Ask gate and circuit about every lie; have the trace of a refused one forced."""
    held, found = shards_held(plant), Lied()
    policy, shard = HardenedPolicy(), held.honest[index]
    gate, statement = Gate.of(held.rules, policy), derive(held.rules, policy)
    core = _attest.FullCircuit(statement.content)
    budgets = statement.budget_content(len(shard))
    for kind, lie in _lies(shard, held.rules, seed=index):
        found.told[kind] += 1
        planes = planes_of(statement, lie)
        taken, why = examined(core, budgets, planes)
        if taken != gate.judge(lie).admitted:
            found.wrong.append(f"{plant}, shard {index}, {kind}: of the circuit {why}")
        if taken:
            continue
        found.refused[kind] += 1
        if core.forced(budgets, planes) == 0 and committed(core, planes):
            found.wrong.append(f"{plant}, shard {index}, {kind}: a forced trace breaks nothing")
    return found


def _lies(shard: Record, rules: RuleSet, *, seed: int) -> Iterator[tuple[str, Record]]:
    for kind, fabricate in FABRICATED:
        yield kind, fabricate(shard, seed=seed)
    yield "toggling", _toggling(shard, rules)
    yield "out of range", _out_of_range(shard, rules, seed % len(shard))


def _toggling(shard: Record, rules: RuleSet) -> Record:
    """Switch a coupled actuator every row, to stay in transition."""
    relations = (rule.relation for rule in rules.invariants)
    coupling = next(found for found in relations if isinstance(found, Coupling))
    values = shard.values.copy()
    at = shard.index(coupling.actuator)
    values[::2, at], values[1::2, at] = coupling.off, coupling.states[0].code
    return shard.with_values(values)


def _out_of_range(shard: Record, rules: RuleSet, row: int) -> Record:
    """Let one reading lie beyond what its instrument can show."""
    relations = (rule.relation for rule in rules.invariants)
    bound = next(found for found in relations if isinstance(found, Bound))
    span = rules.channel(bound.channel).span
    assert span is not None
    values = shard.values.copy()
    values[row, shard.index(bound.channel)] = 2 * span.high - span.low
    return shard.with_values(values)
