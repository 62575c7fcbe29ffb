"""Admission checks: which clients take part."""

from dataclasses import replace

import pytest

from sluice.admission.gate import Gate
from sluice.admission.policy import HardenedPolicy, PaperPolicy
from sluice.attestation.systems.registry import circuit_for, find_system
from sluice.detector.autoencoder import Descent
from sluice.errors import SettingError
from sluice.federation.admission_check import AdmitAll, PhysicsGate
from sluice.federation.messages import Attestation, Reply, Shown
from sluice.federation.proofs import Attestor, ProofGate
from sluice.federation.rounds import admit
from sluice.federation.transport import InProcess
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile
from sluice.lab.attacks.fabrications import ChannelRoll
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.record import Record

PLANT = simulate("line", seed=0, days=10)
BATCH = PLANT.rows(8_640, 9_640)
ROLLED = ChannelRoll(rows=20)(BATCH, seed=0)


def gate() -> PhysicsGate:
    rules = mine(PLANT.rows(0, 4_320), PLANT.rows(4_320, 8_640), profile=Profile.PAPER_WIDE)
    return PhysicsGate(gates=dict.fromkeys("ab", Gate.of(rules, PaperPolicy())))


def by_proof() -> tuple[Attestor, ProofGate]:
    rules = mine(PLANT.rows(0, 4_320), PLANT.rows(4_320, 8_640), profile=Profile.HARDENED)
    system = find_system("unsafe", reveal_rows=True)
    circuit = circuit_for(system, rules, HardenedPolicy(), rows_max=1_000)
    return (
        Attestor(federation="lakes", system=system, circuit=circuit),
        ProofGate(federation="lakes", system=system, circuit=circuit),
    )


def test_the_gate_in_the_clear_admits_and_refuses_with_reasons() -> None:
    admission = gate()
    assert admission.decide("a", Shown(batch=BATCH)).rows == len(BATCH)
    refused = admission.decide("a", Shown(batch=ROLLED))
    assert (refused.admitted, refused.rows) == (False, 0)
    assert "break a rule" in refused.reasons[0]
    assert admission.decide("a", None).reasons == ("it showed no batch",)
    with pytest.raises(SettingError, match="'c' has no accepted rules"):
        admission.decide("c", Shown(batch=BATCH))


def test_without_a_gate_a_client_is_admitted_by_showing_a_batch() -> None:
    assert AdmitAll().decide("a", Shown(batch=ROLLED)).rows == len(ROLLED)
    assert AdmitAll().decide("a", None).reasons == ("it showed no batch",)


def test_a_client_that_cannot_prove_does_not_reply_and_is_refused() -> None:
    attest, admission = by_proof()
    transport = InProcess(
        batches={"a": BATCH, "b": ROLLED},
        windows={},
        descent=Descent(),
        seed=0,
        attest=attest,
    )
    decisions = admit(("a", "b"), transport, admission)
    assert decisions["a"].admitted
    assert decisions["b"].reasons == ("it sent no proof",)


@pytest.fixture(scope="module")
def proven() -> tuple[Attestor, ProofGate, Attestation]:
    attest, admission = by_proof()
    found = attest("a", BATCH)
    assert found is not None
    return attest, admission, found


def test_a_batch_in_the_clear_does_not_pass_a_gate_by_proof(
    proven: tuple[Attestor, ProofGate, Attestation],
) -> None:
    _, admission, _ = proven
    assert admission.decide("a", Shown(batch=BATCH)).reasons == ("it sent no proof",)


def test_a_proof_copied_to_another_client_or_federation_fails(
    proven: tuple[Attestor, ProofGate, Attestation],
) -> None:
    _, admission, found = proven
    assert admission.decide("a", found).rows == len(BATCH)
    assert admission.decide("b", found).reasons == ("its proof fails step 5.2",)
    elsewhere = replace(admission, federation="rivers")
    assert elsewhere.decide("a", found).reasons == ("its proof fails step 5.2",)


def test_a_proof_under_another_commitment_fails(
    proven: tuple[Attestor, ProofGate, Attestation],
) -> None:
    attest, admission, found = proven
    other: Record = PLANT.rows(9_640, 10_640)
    another = attest("a", other)
    assert another is not None
    mixed = replace(found, commit=another.commit)
    assert admission.decide("a", mixed).reasons == ("its proof fails step 5.3",)
    torn = replace(found, proof=found.proof[:-1])
    assert admission.decide("a", torn).reasons == ("its proof fails step 5.1",)


def test_clients_are_decided_on_together_as_each_would_be_alone(
    proven: tuple[Attestor, ProofGate, Attestation],
) -> None:
    attest, admission, found = proven
    another = attest("b", PLANT.rows(9_640, 10_640))
    assert another is not None
    shown: dict[str, Reply | None] = {
        "a": found,
        "c": replace(found, commit=another.commit),
        "d": None,
        "b": another,
        "e": found,
        "f": replace(found, proof=found.proof[:-1]),
        "g": Shown(batch=BATCH),
    }
    together = admission.decide_all(shown)
    assert list(together) == list(shown)
    assert together == {client: admission.decide(client, reply) for client, reply in shown.items()}
    assert [client for client, decision in together.items() if decision.admitted] == ["a", "b"]
    in_the_clear = gate()
    batches: dict[str, Reply | None] = {"a": Shown(batch=BATCH), "b": Shown(batch=ROLLED)}
    decided = in_the_clear.decide_all(batches)
    assert {client: decision.admitted for client, decision in decided.items()} == {
        "a": True,
        "b": False,
    }
