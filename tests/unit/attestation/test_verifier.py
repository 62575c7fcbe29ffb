"""Every step of docs/protocol.md's step 5, failed on purpose; every replay, tried."""

from dataclasses import replace

import pytest

from sluice.admission.policy import HardenedPolicy
from sluice.attestation.log.ledger import Ledger
from sluice.attestation.messages.context import Interval
from sluice.attestation.messages.messages import COMMITS, PROOFS, Commit, Proof
from sluice.attestation.messages.signing import SigningKey, sign
from sluice.attestation.protocol.key_folder import Pinned
from sluice.attestation.protocol.verifier import STEPS, Verifier, steps_before
from sluice.attestation.systems.registry import circuit_for
from sluice.errors import RefusedError, VerificationError
from sluice.invariants.ruleset import RuleSet

from .conftest import NOW, SYSTEM, Told, tell


def refused(step: str, verifier: Verifier, proof: bytes, commit: bytes) -> str:
    with pytest.raises(VerificationError) as caught:
        verifier.verify(proof, commit)
    assert caught.value.step == step, caught.value
    assert isinstance(caught.value, RefusedError)
    return str(caught.value)


def resigned(
    told: Told, signer: SigningKey | None = None, /, **changes: object
) -> tuple[bytes, bytes]:
    """The proof of `told` with its commitment changed, both signed anew by whoever has the key."""
    key = signer or told.plant.key
    commit: Commit = replace(told.committed.message.content, **changes)  # type: ignore[arg-type]
    shared = {name: value for name, value in changes.items() if hasattr(Proof, name)}
    proof: Proof = replace(told.proven.message.content, **shared)  # type: ignore[arg-type]
    return PROOFS.write(sign(proof, key)), COMMITS.write(sign(commit, key))


def test_with_a_log_every_step_is_checked(told: Told) -> None:
    found = told.world.verifier(told.world.ledger).verify(told.proof, told.commit)
    assert found.steps_checked == STEPS == tuple(f"5.{step}" for step in range(1, 9))
    assert found.steps_unchecked == ()
    assert (found.client, found.rows) == ("north", 600)
    assert found.attestation == told.proven.attestation


def test_without_a_log_it_says_what_it_could_not_check(told: Told) -> None:
    found = told.world.verifier().verify(told.proof, told.commit)
    assert found.steps_unchecked == ("5.2", "5.3", "5.4")
    assert found.steps_checked == ("5.1", "5.5", "5.6", "5.7", "5.8")
    assert steps_before("5.5", found.steps_unchecked) == ("5.1",)
    assert steps_before("7", found.steps_unchecked) == ()


# -- 5.1 ------------------------------------------------------------------------------------------


def test_5_1_oversize(told: Told) -> None:
    verifier = told.world.verifier()
    assert "bytes" in refused("5.1", verifier, told.proof, b" " * 10_000)

    class Small(type(SYSTEM)):  # type: ignore[misc]
        @property
        def largest_proof(self) -> int:
            return 100

    small = replace(verifier, system=Small(reveal_rows=True))
    assert "is the most" in refused("5.1", small, told.proof, told.commit)


def test_5_1_not_well_formed_or_not_canonical(told: Told) -> None:
    verifier = told.world.verifier()
    refused("5.1", verifier, told.proof + b"\n", told.commit)
    refused("5.1", verifier, told.proof, told.commit + b"\n")
    refused("5.1", verifier, b"{}", told.commit)
    refused("5.1", verifier, told.commit, told.proof)


def test_5_1_another_version(told: Told) -> None:
    proof, commit = resigned_raw(told, b'"protocol":1', b'"protocol":2')
    refused("5.1", told.world.verifier(), proof, told.commit)
    refused("5.1", told.world.verifier(), told.proof, commit)


def resigned_raw(told: Told, old: bytes, new: bytes) -> tuple[bytes, bytes]:
    return told.proof.replace(old, new), told.commit.replace(old, new)


# -- 5.2 ------------------------------------------------------------------------------------------


def test_5_2_unknown_client(told: Told) -> None:
    assert "registered" in refused("5.2", told.world.verifier(Ledger()), told.proof, told.commit)


def test_5_2_wrong_key(told: Told) -> None:
    other = SigningKey.generate()
    proof = PROOFS.write(sign(told.proven.message.content, other))
    commit = COMMITS.write(sign(told.committed.message.content, other))
    for ledger in (None, told.world.ledger):
        refused("5.2", told.world.verifier(ledger), proof, told.commit)
        refused("5.2", told.world.verifier(ledger), told.proof, commit)
    stolen = resigned(told, other, key=other.public)
    assert "another key" in refused("5.2", told.world.verifier(told.world.ledger), *stolen)


def test_5_2_changed_after_signing(told: Told) -> None:
    commit = told.commit.replace(b'"rows":600', b'"rows":601')
    refused("5.2", told.world.verifier(), told.proof, commit)
    proof = told.proof.replace(b'"client":"north"', b'"client":"south"')
    refused("5.2", told.world.verifier(), proof, told.commit)


def test_5_2_other_rules_and_another_policy(told: Told, rules: RuleSet) -> None:
    looser = replace(rules, invariants=rules.invariants[:-1])
    softer = HardenedPolicy(rows_min=100)
    for circuit in (
        circuit_for(SYSTEM, looser, HardenedPolicy(), rows_max=4_096),
        circuit_for(SYSTEM, rules, softer, rows_max=4_096),
    ):
        other = Verifier(
            system=SYSTEM, circuit=circuit, pinned=Pinned.of(circuit), ledger=told.world.ledger
        )
        assert "other rules" in refused("5.2", other, told.proof, told.commit)
        # The plant makes all of it anew for rules of its own choice; the coordinator even has them.
        plant = replace(told.plant, circuit=circuit)
        committed = plant.commit(told.world.batch(1))
        proven = committed.prove(told.world.batch(1))
        documents = PROOFS.write(proven.message), COMMITS.write(committed.message)
        assert "accepted" in refused("5.2", other, *documents)


# -- 5.3 and 5.4 ----------------------------------------------------------------------------------


def test_5_3_not_in_the_log(told: Told) -> None:
    committed = told.plant.commit(told.world.batch(1))
    proven = committed.prove(told.world.batch(1))
    documents = PROOFS.write(proven.message), COMMITS.write(committed.message)
    told.world.verifier().verify(*documents)
    assert "not in the log" in refused("5.3", told.world.verifier(told.world.ledger), *documents)


def test_5_3_the_proof_of_another_batch(told: Told) -> None:
    other = told.plant.commit(told.world.batch(1))
    told.enrolled.receive(COMMITS.write(other.message), at=NOW)
    commit = COMMITS.write(other.message)
    for ledger in (None, told.world.ledger):
        refused("5.3", told.world.verifier(ledger), told.proof, commit)


def test_5_3_the_log_says_otherwise(told: Told) -> None:
    later = Interval(start="2024-02-07T00:00:00.000000", end="2024-02-07T16:39:00.000000")
    changed = resigned(told, interval=later)
    assert "says otherwise" in refused("5.3", told.world.verifier(told.world.ledger), *changed)


def test_5_4_second_attestation_of_one_commitment(told: Told) -> None:
    first = told.received.attest(told.proof, at=NOW)
    assert told.received.attest(told.proof, at=NOW) == first  # the same message twice is one
    size = told.world.ledger.size
    other = sign(
        replace(told.proven.message.content, proof=told.proven.message.content.proof + b"\0"),
        told.plant.key,
    )
    with pytest.raises(VerificationError, match="already") as caught:
        told.received.attest(PROOFS.write(other), at=NOW)
    assert caught.value.step == "5.4"
    assert told.world.ledger.size == size
    told.world.verifier(told.world.ledger).verify(told.proof, told.commit)  # an auditor, later


# -- 5.5 to 5.8 -----------------------------------------------------------------------------------


def test_5_5_rows_and_interval_out_of_range(told: Told) -> None:
    verifier = told.world.verifier()
    assert "199 rows" in refused("5.5", verifier, *resigned(told, rows=199))
    assert "rows" in refused("5.5", verifier, *resigned(told, rows=4_097))
    short = Interval(start="2024-01-07T00:00:00.000000", end="2024-01-07T00:00:01.000000")
    assert "do not fit" in refused("5.5", verifier, *resigned(told, interval=short))


def test_5_6_another_circuit(told: Told) -> None:
    verifier = told.world.verifier()
    refused("5.6", replace(verifier, pinned=replace(verifier.pinned, circuit="0" * 64)),
            told.proof, told.commit)  # fmt: skip
    refused("5.6", replace(verifier, pinned=replace(verifier.pinned, rows_max=1)),
            told.proof, told.commit)  # fmt: skip
    told_otherwise = replace(verifier.pinned, proven_bits=1, columns=1)  # said, and decides nothing
    replace(verifier, pinned=told_otherwise).verify(told.proof, told.commit)
    refused("5.6", verifier, *resigned(told, circuit="0" * 64))
    refused("5.6", verifier, *resigned(told, system="full"))


def test_5_7_another_shape(told: Told) -> None:
    verifier = told.world.verifier()
    for wrong in (b"", b"x", told.proven.message.content.proof[:-1]):
        proof = sign(replace(told.proven.message.content, proof=wrong), told.plant.key)
        refused("5.7", verifier, PROOFS.write(proof), told.commit)


def test_5_8_other_rows(told: Told) -> None:
    raw = bytearray(told.proven.message.content.proof)
    raw[100] ^= 1
    proof = sign(replace(told.proven.message.content, proof=bytes(raw)), told.plant.key)
    assert "not the committed" in refused(
        "5.8", told.world.verifier(), PROOFS.write(proof), told.commit
    )


def test_5_8_rows_that_break_the_rules(told: Told, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plant that has taken its own checks out commits to a forged batch and proves it."""
    forged = told.world.forged()
    committed = told.plant.commit(forged)
    with monkeypatch.context() as taken_out:
        taken_out.setattr(
            "sluice.attestation.protocol.plant.refuse_unless_admitted", lambda *_, **__: None
        )
        taken_out.setattr("sluice.attestation.systems.unsafe._broken", lambda *_: iter(()))
        proven = committed.prove(forged)
    documents = PROOFS.write(proven.message), COMMITS.write(committed.message)
    assert "do not satisfy" in refused("5.8", told.world.verifier(), *documents)


# -- replays: everything signed anew, only the proof is another's ---------------------------------


def replayed(told: Told, signer: SigningKey, /, **changes: object) -> None:
    proof, commit = resigned(told, signer, **changes)
    assert "another context" in refused("5.8", told.world.verifier(), proof, commit)


def test_replay_by_another_client(told: Told) -> None:
    thief = SigningKey.generate()
    replayed(told, thief, client="south", key=thief.public)


def test_replay_by_a_registered_client_over_the_log(told: Told) -> None:
    thief = tell(told.world, "south", batch=1)
    key = thief.plant.key
    commit = replace(told.committed.message.content, client="south", key=key.public)
    with pytest.raises(VerificationError, match="as 'north' made it") as caught:
        thief.enrolled.receive(COMMITS.write(sign(commit, key)), at=NOW)
    assert caught.value.step == "2"
    mine = thief.committed.message.content
    proof = replace(told.proven.message.content, client="south", commitment=mine.commitment)
    with pytest.raises(VerificationError) as caught:
        thief.received.attest(PROOFS.write(sign(proof, key)), at=NOW)
    assert caught.value.step == "5.8"


def test_replay_in_another_federation(told: Told) -> None:
    replayed(told, told.plant.key, federation="power")


def test_replay_over_another_interval(told: Told) -> None:
    later = Interval(start="2024-02-07T00:00:00.000000", end="2024-02-07T16:39:00.000000")
    replayed(told, told.plant.key, interval=later)


def test_replay_for_another_number_of_rows(told: Told) -> None:
    proof, commit = resigned(told, rows=599)
    refused("5.7", told.world.verifier(), proof, commit)


def test_replay_under_other_rules_policy_or_largest_batch(told: Told, rules: RuleSet) -> None:
    for circuit in (
        circuit_for(SYSTEM, replace(rules, plant="other"), HardenedPolicy(), rows_max=4_096),
        circuit_for(SYSTEM, rules, HardenedPolicy(rows_min=100), rows_max=4_096),
        circuit_for(SYSTEM, rules, HardenedPolicy(), rows_max=2_048),
    ):
        pinned = Pinned.of(circuit)
        other = Verifier(system=SYSTEM, circuit=circuit, pinned=pinned)
        proof, commit = resigned(
            told, circuit=pinned.circuit, rules=pinned.rules, policy=pinned.policy
        )
        assert "another context" in refused("5.8", other, proof, commit)


def test_replay_of_the_proof_of_another_batch(told: Told) -> None:
    other = told.plant.commit(told.world.batch(1))
    content = replace(told.proven.message.content, commitment=other.message.content.commitment)
    proof = PROOFS.write(sign(content, told.plant.key))
    refused("5.8", told.world.verifier(), proof, COMMITS.write(other.message))
