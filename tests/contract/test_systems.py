"""What every proof system keeps, whatever it is made of."""

from dataclasses import replace

import pytest

from sluice.admission.policy import HardenedPolicy
from sluice.attestation.systems.registry import SystemName, circuit_for, find_system
from sluice.attestation.systems.system import Circuit, ProofClaim, System, each_alone
from sluice.errors import EmptyRulesError, RefusedError, VerificationError
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.record import Record

SALT, CONTEXT = bytes(range(32)), b"c" * 32
ROWS = 400


@pytest.fixture(scope="module")
def line() -> Record:
    return simulate("line", seed=0, days=8)


@pytest.fixture(scope="module")
def rules(line: Record) -> RuleSet:
    return mine(line.rows(0, 4_320), line.rows(4_320, 8_640), profile=Profile.HARDENED)


# `sampled` has keys of one circuit and states the paper policy: unit/attestation/test_sampled.
KEYLESS = [name for name in SystemName if name is not SystemName.SAMPLED]


@pytest.fixture(scope="module", params=KEYLESS)
def system(request: pytest.FixtureRequest) -> System:
    return find_system(request.param, reveal_rows=request.param is SystemName.UNSAFE)


@pytest.fixture(scope="module")
def circuit(system: System, rules: RuleSet) -> Circuit:
    return circuit_for(system, rules, HardenedPolicy(), rows_max=1_024)


@pytest.fixture(scope="module")
def batch(line: Record) -> Record:
    return line.rows(8_640, 8_640 + ROWS)


@pytest.fixture(scope="module")
def commitment(system: System, circuit: Circuit, batch: Record) -> bytes:
    return system.commit(batch, circuit, salt=SALT)


@pytest.fixture(scope="module")
def proof(system: System, circuit: Circuit, batch: Record) -> bytes:
    return system.prove(batch, circuit, salt=SALT, context=CONTEXT)


def test_a_circuit_is_named_by_all_it_rests_on(
    system: System, circuit: Circuit, rules: RuleSet
) -> None:
    wider = tuple(replace(r, tolerance=r.tolerance * 1.5) for r in rules.invariants)
    margins = replace(HardenedPolicy().margins, liveness_share=0.25)
    others = (
        circuit_for(system, rules, HardenedPolicy(), rows_max=512),
        circuit_for(system, replace(rules, invariants=wider), HardenedPolicy(), rows_max=1_024),
        circuit_for(system, rules, HardenedPolicy(margins=margins), rows_max=1_024),
    )
    assert len({circuit.identity, *(other.identity for other in others)}) == 4
    assert circuit_for(system, rules, HardenedPolicy(), rows_max=1_024) == circuit
    assert circuit.system == system.name
    assert bytes.fromhex(circuit.identity).hex() == circuit.identity
    assert len(circuit.identity) == 64
    assert list(circuit.parameters) == sorted(circuit.parameters)
    assert circuit.proven_bits >= 100 or system.name == "unsafe"


def test_empty_rules_are_not_stated(system: System, rules: RuleSet) -> None:
    with pytest.raises(EmptyRulesError):
        circuit_for(system, replace(rules, invariants=()), HardenedPolicy(), rows_max=1_024)


def test_a_commitment_hides_and_binds(
    system: System, circuit: Circuit, batch: Record, commitment: bytes, line: Record
) -> None:
    assert 32 <= len(commitment) <= 64
    assert system.commit(batch, circuit, salt=SALT) == commitment
    assert system.commit(batch, circuit, salt=b"s" * 32) != commitment
    assert system.commit(line.rows(8_641, 8_641 + ROWS), circuit, salt=SALT) != commitment
    assert system.commit(batch.rows(0, ROWS - 1), circuit, salt=SALT) != commitment


def test_a_proof_verifies(
    system: System, circuit: Circuit, commitment: bytes, proof: bytes
) -> None:
    assert len(proof) <= system.largest_proof(circuit)
    system.verify(circuit, commitment=commitment, rows=ROWS, context=CONTEXT, proof=proof)


def test_a_proof_holds_for_its_own_public_inputs_only(
    system: System, circuit: Circuit, commitment: bytes, proof: bytes
) -> None:
    for claimed, rows, context in (
        (commitment, ROWS, b"d" * 32),
        (commitment, ROWS - 1, CONTEXT),
        (commitment, ROWS + 1, CONTEXT),
        (commitment, 0, CONTEXT),
        (commitment, 1 << 40, CONTEXT),
        (bytes([commitment[0] ^ 1]) + commitment[1:], ROWS, CONTEXT),
        (commitment[:-1], ROWS, CONTEXT),
        (commitment, ROWS, b""),
    ):
        with pytest.raises(VerificationError) as refused:
            system.verify(circuit, commitment=claimed, rows=rows, context=context, proof=proof)
        assert refused.value.step in ("5.7", "5.8")


def test_a_proof_holds_for_its_own_circuit_only(
    system: System, rules: RuleSet, commitment: bytes, proof: bytes
) -> None:
    margins = replace(HardenedPolicy().margins, alpha=0.02)
    wider = tuple(replace(r, tolerance=r.tolerance * 1.5) for r in rules.invariants)
    for other in (
        circuit_for(system, rules, HardenedPolicy(margins=margins), rows_max=1_024),
        circuit_for(system, replace(rules, invariants=wider), HardenedPolicy(), rows_max=1_024),
    ):
        with pytest.raises(VerificationError):
            system.verify(other, commitment=commitment, rows=ROWS, context=CONTEXT, proof=proof)


def test_damaged_proofs_are_refused(
    system: System, circuit: Circuit, commitment: bytes, proof: bytes
) -> None:
    changed = [b"", b"x", proof[:-1], proof + b"\0", proof[1:], bytes(len(proof))]
    for at in range(0, len(proof), len(proof) // 40):
        changed.append(proof[:at] + bytes([proof[at] ^ 0x41]) + proof[at + 1 :])
    for wrong in changed:
        with pytest.raises(VerificationError) as refused:
            system.verify(circuit, commitment=commitment, rows=ROWS, context=CONTEXT, proof=wrong)
        assert refused.value.step in ("5.7", "5.8")


def test_a_batch_that_breaks_the_rules_is_not_proven(
    system: System, circuit: Circuit, batch: Record
) -> None:
    values = batch.values.copy()
    pump = batch.index("S_PU1")
    values[100:300, pump] = 1 - values[100:300, pump]
    with pytest.raises(RefusedError):
        system.prove(batch.with_values(values), circuit, salt=SALT, context=CONTEXT)


def test_many_proofs_are_answered_as_each_would_be_alone(
    system: System, circuit: Circuit, commitment: bytes, proof: bytes
) -> None:
    good = ProofClaim(commitment=commitment, rows=ROWS, context=CONTEXT, proof=proof)
    bent = bytes([*proof[:900], proof[900] ^ 1, *proof[901:]])
    claims = (
        good,
        replace(good, proof=bent),
        replace(good, proof=proof[:-1]),
        replace(good, context=b"d" * 32),
        good,
        replace(good, rows=ROWS - 1),
        replace(good, commitment=bytes(32)),
        replace(good, rows=0),
    )
    together = system.verify_many(circuit, claims)
    alone = each_alone(system, circuit, claims)
    assert [(each and (each.step, str(each))) for each in together] == [
        each and (each.step, str(each)) for each in alone
    ]
    assert [each is None for each in together] == [True, False, False, False, True] + 3 * [False]
    assert system.verify_many(circuit, ()) == ()
