"""Honest shards of every plant can be proven, and lies made of them cannot."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from sluice import _attest
from sluice.admission.gate import Gate
from sluice.admission.policy import HardenedPolicy
from sluice.attestation.systems.full.statement import derive
from sluice.attestation.systems.full.system import Full
from sluice.attestation.systems.full.witness import Witness
from sluice.attestation.systems.system import Circuit
from sluice.errors import RefusedError, VerificationError
from sluice.invariants.mining.profiles import mine
from sluice.invariants.relations import Bound, Coupling
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.lab.attacks.data_attack import DataAttack
from sluice.lab.attacks.fabrications import (
    ConservationScaling,
    RegimePermutation,
    RegimeSplicing,
    RollLasting,
)
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.channel import Role
from sluice.telemetry.reading import read_record
from sluice.telemetry.record import Record

PlantData = Callable[..., Path]

SALT, CONTEXT = b"s" * 32, b"c" * 32
POLICY = HardenedPolicy()


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """A plant's rules, and shards that they were not mined from."""

    rules: RuleSet
    shards: tuple[Record, ...]

    @classmethod
    def of(cls, record: Record, *, fit: int, calibrated: int, rows: int) -> "Plant":
        rules = mine(record.rows(0, fit), record.rows(fit, calibrated), profile=Profile.HARDENED)
        starts = range(calibrated, len(record) - rows + 1, rows)
        return cls(rules=rules, shards=tuple(record.rows(at, at + rows) for at in starts))

    @property
    def circuit(self) -> Circuit:
        return Full().circuit(self.rules, POLICY, rows_max=len(self.shards[0]))

    def gate_admits(self, batch: Record) -> bool:
        return Gate.of(self.rules, POLICY).judge(batch).admitted

    def circuit_takes(self, batch: Record) -> bool:
        statement = derive(self.rules, POLICY)
        witness = Witness.of(statement, batch)
        planes = _attest.FullBatch(
            witness.rows, witness.registers, witness.codes, witness.starts, witness.flagged
        )
        core = _attest.FullCircuit(statement.content)
        budgets = statement.budget_content(witness.rows)
        try:
            core.examine(budgets, planes)
        except _attest.RefusedBatchError:
            assert core.forced(budgets, planes) > 0
            return False
        return True


@cache
def line() -> Plant:
    return Plant.of(simulate("line", seed=0, days=9), fit=4_320, calibrated=8_640, rows=400)


@cache
def treatment() -> Plant:
    record = simulate("treatment", seed=0, days=3).without_first(21_600).every(10)
    return Plant.of(record, fit=7_101, calibrated=14_202, rows=400)


@cache
def batadal(path: Path) -> Plant:
    return Plant.of(read_record(path), fit=2_628, calibrated=4_380, rows=300)


@cache
def wdt(path: Path) -> Plant:
    return Plant.of(read_record(path), fit=1_000, calibrated=2_000, rows=200)


@pytest.fixture(
    params=[
        "line",
        "treatment",
        pytest.param("BATADAL", marks=pytest.mark.data),
        pytest.param("WDT", marks=pytest.mark.data),
    ]
)
def plant(request: pytest.FixtureRequest, plant_data: PlantData) -> Plant:
    match request.param:
        case "BATADAL":
            return batadal(plant_data("batadal", "dataset03.csv"))
        case "WDT":
            return wdt(plant_data("wdt", "phy_norm.csv"))
        case "line":
            return line()
    return treatment()


def toggling(batch: Record, *, rules: RuleSet) -> Record:
    """The batch with a coupled actuator switched every row, to stay in transition."""
    coupling = next(
        rule.relation for rule in rules.invariants if isinstance(rule.relation, Coupling)
    )
    values = batch.values.copy()
    at = batch.index(coupling.actuator)
    values[::2, at], values[1::2, at] = coupling.off, coupling.states[0].code
    return batch.with_values(values)


def out_of_range(batch: Record, *, rules: RuleSet) -> Record:
    """The batch with one reading of a level beyond what its instrument can show."""
    bound = next(
        rule.relation
        for rule in rules.invariants
        if isinstance(rule.relation, Bound)
        and rules.channel(rule.relation.channel).role is Role.LEVEL
    )
    span = rules.channel(bound.channel).span
    assert span is not None
    values = batch.values.copy()
    values[len(batch) // 2, batch.index(bound.channel)] = 2 * span.high - span.low
    return batch.with_values(values)


def lies_about(batch: Record, *, rules: RuleSet, seed: int) -> Iterator[tuple[str, Record]]:
    """Fabrications of the paper, and what else the circuit must not take."""
    fabrications: tuple[DataAttack, ...] = (
        RollLasting(seconds=60),
        RegimePermutation(),
        ConservationScaling(),
        RegimeSplicing(),
    )
    for fabrication in fabrications:
        yield type(fabrication).__name__, fabrication(batch, seed=seed)
    yield "toggling", toggling(batch, rules=rules)
    yield "out of range", out_of_range(batch, rules=rules)


def test_the_circuit_takes_every_honest_shard(plant: Plant) -> None:
    for index, shard in enumerate(plant.shards):
        assert plant.gate_admits(shard), index
        assert plant.circuit_takes(shard), index


def test_the_circuit_takes_no_lie(plant: Plant) -> None:
    for seed, shard in enumerate(plant.shards[:2]):
        for name, lie in lies_about(shard, rules=plant.rules, seed=seed):
            assert not np.array_equal(lie.values, shard.values), name
            assert not plant.gate_admits(lie), name
            assert not plant.circuit_takes(lie), name


def test_a_shard_is_proven_and_a_lie_is_not(plant: Plant) -> None:
    system, circuit, shard = Full(), plant.circuit, plant.shards[-1]
    commitment = system.commit(shard, circuit, salt=SALT)
    proof = system.prove(shard, circuit, salt=SALT, context=CONTEXT)
    told = {"commitment": commitment, "context": CONTEXT, "proof": proof}
    system.verify(circuit, rows=len(shard), **told)
    lie = RegimeSplicing()(shard, seed=0)
    with pytest.raises(RefusedError, match="does not satisfy its circuit"):
        system.prove(lie, circuit, salt=SALT, context=CONTEXT)
    told["commitment"] = system.commit(lie, circuit, salt=SALT)
    with pytest.raises(VerificationError) as refused:
        system.verify(circuit, rows=len(lie), **told)
    assert refused.value.step == "5.8"
