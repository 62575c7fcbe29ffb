"""Forgeries of honest shards: the paper's fabrications, and readings that no plant can produce."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from benchmarks.exactness.check import cached_shards
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

__all__ = ["ForgeryCounts", "check_forgeries"]

FABRICATED: tuple[tuple[str, DataAttack], ...] = (
    ("rolled", RollLasting(seconds=60)),
    ("permuted", RegimePermutation()),
    ("scaled", ConservationScaling()),
    ("spliced", RegimeSplicing()),
)


@dataclass(slots=True, kw_only=True)
class ForgeryCounts:
    """Forgeries of one shard by kind, those that the circuit refuses, and all errors."""

    tried: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


def check_forgeries(plant: str, index: int) -> ForgeryCounts:
    """Compare gate and circuit on every forgery; a refused one must break the forced trace."""
    shards, counts = cached_shards(plant), ForgeryCounts()
    policy, shard = HardenedPolicy(), shards.honest[index]
    gate, statement = Gate.of(shards.rules, policy), derive(shards.rules, policy)
    core = _attest.FullCircuit(statement.content)
    budgets = statement.budget_content(len(shard))
    for kind, forgery in _forgeries(shard, shards.rules, seed=index):
        counts.tried[kind] += 1
        planes = planes_of(statement, forgery)
        accepted, why = examined(core, budgets, planes)
        if accepted != gate.judge(forgery).admitted:
            counts.wrong.append(f"{plant}, shard {index}, {kind}: gate and circuit differ: {why}")
        if accepted:
            continue
        counts.refused[kind] += 1
        if core.forced(budgets, planes) == 0 and committed(core, planes):
            counts.wrong.append(f"{plant}, shard {index}, {kind}: the forced trace breaks nothing")
    return counts


def _forgeries(shard: Record, rules: RuleSet, *, seed: int) -> Iterator[tuple[str, Record]]:
    for kind, fabricate in FABRICATED:
        yield kind, fabricate(shard, seed=seed)
    yield "toggling", _toggling(shard, rules)
    yield "out of range", _out_of_range(shard, rules, seed % len(shard))


def _toggling(shard: Record, rules: RuleSet) -> Record:
    """Switch a coupled actuator every row, to stay in transition."""
    relations = (rule.relation for rule in rules.invariants)
    coupling = next(each for each in relations if isinstance(each, Coupling))
    values = shard.values.copy()
    at = shard.index(coupling.actuator)
    values[::2, at], values[1::2, at] = coupling.off, coupling.states[0].code
    return shard.with_values(values)


def _out_of_range(shard: Record, rules: RuleSet, row: int) -> Record:
    """Set one reading beyond its instrument's span."""
    relations = (rule.relation for rule in rules.invariants)
    bound = next(each for each in relations if isinstance(each, Bound))
    span = rules.channel(bound.channel).span
    assert span is not None
    values = shard.values.copy()
    values[row, shard.index(bound.channel)] = 2 * span.high - span.low
    return shard.with_values(values)
