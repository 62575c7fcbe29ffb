"""Every step of docs/protocol.md's step 5, failed on purpose; every replay, tried."""

from dataclasses import replace
from typing import ClassVar

import pytest

from sluice.attestation.log.ledger import Ledger
from sluice.attestation.messages.context import Interval
from sluice.attestation.messages.messages import COMMITS, PROOFS, Commit, Proof
from sluice.attestation.messages.signing import SigningKey, sign
from sluice.attestation.protocol.key_folder import Pinned
from sluice.attestation.protocol.verifier import STEPS, Verifier, steps_before
from sluice.attestation.systems import full
from sluice.attestation.systems.registry import circuit_for
from sluice.errors import RefusedError, SettingError, VerificationError
from sluice.invariants.ruleset import RuleSet

from .conftest import NOW, POLICY, SYSTEM, PlantRun, run_plant


def refused(step: str, verifier: Verifier, proof: bytes, commit: bytes) -> str:
    with pytest.raises(VerificationError) as caught:
        verifier.verify(proof, commit)
    assert caught.value.step == step, caught.value
    assert isinstance(caught.value, RefusedError)
    return str(caught.value)


def resigned(
    run: PlantRun, signer: SigningKey | None = None, /, **changes: object
) -> tuple[bytes, bytes]:
    """The proof and the changed commitment of `run`, both signed again with the key."""
    key = signer or run.plant.key
    commit: Commit = replace(run.committed.message.content, **changes)  # type: ignore[arg-type]
    shared = {name: value for name, value in changes.items() if hasattr(Proof, name)}
    proof: Proof = replace(run.proven.message.content, **shared)  # type: ignore[arg-type]
    return PROOFS.write(sign(proof, key)), COMMITS.write(sign(commit, key))


def test_with_a_log_every_step_is_checked(run: PlantRun) -> None:
    found = run.world.verifier(run.world.ledger).verify(run.proof, run.commit)
    assert found.steps_checked == STEPS == tuple(f"5.{step}" for step in range(1, 9))
    assert found.steps_unchecked == ()
    assert (found.client, found.rows) == ("north", 600)
    assert found.attestation == run.proven.attestation


def test_without_a_log_it_says_what_it_could_not_check(run: PlantRun) -> None:
    found = run.world.verifier().verify(run.proof, run.commit)
    assert found.steps_unchecked == ("5.2", "5.3", "5.4")
    assert found.steps_checked == ("5.1", "5.5", "5.6", "5.7", "5.8")
    assert steps_before("5.5", found.steps_unchecked) == ("5.1",)
    assert steps_before("7", found.steps_unchecked) == ()


# -- 5.1 ------------------------------------------------------------------------------------------


def test_5_1_oversize(run: PlantRun) -> None:
    verifier = run.world.verifier()
    assert "bytes" in refused("5.1", verifier, run.proof, b" " * 10_000)

    class Small(type(SYSTEM)):  # type: ignore[misc]
        def largest_proof(self, _circuit: object) -> int:
            return 100

    small = replace(verifier, system=Small(reveal_rows=True))
    assert "the limit is" in refused("5.1", small, run.proof, run.commit)


def test_5_1_not_well_formed_or_not_canonical(run: PlantRun) -> None:
    verifier = run.world.verifier()
    refused("5.1", verifier, run.proof + b"\n", run.commit)
    refused("5.1", verifier, run.proof, run.commit + b"\n")
    refused("5.1", verifier, b"{}", run.commit)
    refused("5.1", verifier, run.commit, run.proof)


def test_5_1_another_version(run: PlantRun) -> None:
    proof, commit = resigned_raw(run, b'"protocol":1', b'"protocol":2')
    refused("5.1", run.world.verifier(), proof, run.commit)
    refused("5.1", run.world.verifier(), run.proof, commit)


def resigned_raw(run: PlantRun, old: bytes, new: bytes) -> tuple[bytes, bytes]:
    return run.proof.replace(old, new), run.commit.replace(old, new)


# -- 5.2 ------------------------------------------------------------------------------------------


def test_5_2_unknown_client(run: PlantRun) -> None:
    assert "registered" in refused("5.2", run.world.verifier(Ledger()), run.proof, run.commit)


def test_5_2_wrong_key(run: PlantRun) -> None:
    other = SigningKey.generate()
    proof = PROOFS.write(sign(run.proven.message.content, other))
    commit = COMMITS.write(sign(run.committed.message.content, other))
    for ledger in (None, run.world.ledger):
        refused("5.2", run.world.verifier(ledger), proof, run.commit)
        refused("5.2", run.world.verifier(ledger), run.proof, commit)
    stolen = resigned(run, other, key=other.public)
    assert "another key" in refused("5.2", run.world.verifier(run.world.ledger), *stolen)


def test_5_2_the_key_of_a_registration_in_another_federation(run: PlantRun) -> None:
    """The plant's own key signs a commitment that names a federation it never joined."""
    documents = resigned(run, federation="power")
    assert "another key or federation" in refused(
        "5.2", run.world.verifier(run.world.ledger), *documents
    )


def test_5_2_changed_after_signing(run: PlantRun) -> None:
    commit = run.commit.replace(b'"rows":600', b'"rows":601')
    refused("5.2", run.world.verifier(), run.proof, commit)
    proof = run.proof.replace(b'"client":"north"', b'"client":"south"')
    refused("5.2", run.world.verifier(), proof, run.commit)


def test_5_2_other_rules_and_another_policy(run: PlantRun, rules: RuleSet) -> None:
    looser = replace(rules, invariants=rules.invariants[:-1])
    softer = replace(POLICY, rows_min=100)
    for circuit in (
        circuit_for(SYSTEM, looser, POLICY, rows_max=4_096),
        circuit_for(SYSTEM, rules, softer, rows_max=4_096),
    ):
        other = Verifier(
            system=SYSTEM, circuit=circuit, pinned=Pinned.of(circuit), ledger=run.world.ledger
        )
        assert "other rules" in refused("5.2", other, run.proof, run.commit)
        # The plant signs all documents again for rules that it chose; the coordinator has them.
        plant = replace(run.plant, circuit=circuit)
        committed = plant.commit(run.world.batch(1))
        proven = committed.prove(run.world.batch(1))
        documents = PROOFS.write(proven.message), COMMITS.write(committed.message)
        assert "accepted" in refused("5.2", other, *documents)


# -- 5.3 and 5.4 ----------------------------------------------------------------------------------


def test_5_3_not_in_the_log(run: PlantRun) -> None:
    committed = run.plant.commit(run.world.batch(1))
    proven = committed.prove(run.world.batch(1))
    documents = PROOFS.write(proven.message), COMMITS.write(committed.message)
    run.world.verifier().verify(*documents)
    assert "not in the log" in refused("5.3", run.world.verifier(run.world.ledger), *documents)


def test_5_3_the_proof_of_another_batch(run: PlantRun) -> None:
    other = run.plant.commit(run.world.batch(1))
    run.enrolled.receive(COMMITS.write(other.message), at=NOW)
    commit = COMMITS.write(other.message)
    for ledger in (None, run.world.ledger):
        refused("5.3", run.world.verifier(ledger), run.proof, commit)


@pytest.mark.parametrize("changes", [{"federation": "power"}, {"client": "south"}])
def test_5_3_the_proof_names_another_client_or_federation(
    run: PlantRun, changes: dict[str, str]
) -> None:
    proof: Proof = replace(run.proven.message.content, **changes)  # type: ignore[arg-type]
    document = PROOFS.write(sign(proof, run.plant.key))
    for ledger in (None, run.world.ledger):
        assert "another commitment" in refused(
            "5.3", run.world.verifier(ledger), document, run.commit
        )


def test_5_3_the_log_says_otherwise(run: PlantRun) -> None:
    later = Interval(start="2024-02-07T00:00:00.000000", end="2024-02-07T16:39:00.000000")
    changed = resigned(run, interval=later)
    assert "another message" in refused("5.3", run.world.verifier(run.world.ledger), *changed)


def test_5_4_second_attestation_of_one_commitment(run: PlantRun) -> None:
    first = run.received.attest(run.proof, at=NOW)
    assert run.received.attest(run.proof, at=NOW) == first  # the same message twice is one
    size = run.world.ledger.size
    other = sign(
        replace(run.proven.message.content, proof=run.proven.message.content.proof + b"\0"),
        run.plant.key,
    )
    with pytest.raises(VerificationError, match="already") as caught:
        run.received.attest(PROOFS.write(other), at=NOW)
    assert caught.value.step == "5.4"
    assert run.world.ledger.size == size
    run.world.verifier(run.world.ledger).verify(run.proof, run.commit)  # an auditor, later


# -- 5.5 to 5.8 -----------------------------------------------------------------------------------


def test_5_5_rows_and_interval_out_of_range(run: PlantRun) -> None:
    verifier = run.world.verifier()
    assert "199 rows" in refused("5.5", verifier, *resigned(run, rows=199))
    assert "rows" in refused("5.5", verifier, *resigned(run, rows=4_097))
    short = Interval(start="2024-01-07T00:00:00.000000", end="2024-01-07T00:00:01.000000")
    assert "do not fit" in refused("5.5", verifier, *resigned(run, interval=short))


def test_5_6_another_circuit(run: PlantRun) -> None:
    verifier = run.world.verifier()
    refused("5.6", replace(verifier, pinned=replace(verifier.pinned, circuit="0" * 64)),
            run.proof, run.commit)  # fmt: skip
    refused("5.6", replace(verifier, pinned=replace(verifier.pinned, rows_max=1)),
            run.proof, run.commit)  # fmt: skip
    told_otherwise = replace(verifier.pinned, proven_bits=1, columns=1)  # said, and decides nothing
    replace(verifier, pinned=told_otherwise).verify(run.proof, run.commit)
    refused("5.6", verifier, *resigned(run, circuit="0" * 64))
    refused("5.6", verifier, *resigned(run, system="full"))


@pytest.mark.parametrize(
    "changes",
    [
        {"system": "full"},
        {"circuit": "0" * 64},
        {"parameters": {"register_bits": 15}},
        {"rows_max": 4_095},
        {"rules": "0" * 64},
        {"policy": "0" * 64},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_5_6_the_pinned_circuit_differs_in_one_thing(
    run: PlantRun, changes: dict[str, object]
) -> None:
    verifier = run.world.verifier()
    pinned: Pinned = replace(verifier.pinned, **changes)  # type: ignore[arg-type]
    assert "do not derive the pinned circuit" in refused(
        "5.6", replace(verifier, pinned=pinned), run.proof, run.commit
    )


@pytest.mark.parametrize("changes", [{"system": "full"}, {"circuit": "0" * 64}])
def test_5_6_proof_and_commitment_name_different_circuits(
    run: PlantRun, changes: dict[str, str]
) -> None:
    verifier = run.world.verifier()
    proof: Proof = replace(run.proven.message.content, **changes)  # type: ignore[arg-type]
    commit: Commit = replace(run.committed.message.content, **changes)  # type: ignore[arg-type]
    for documents in (
        (PROOFS.write(sign(proof, run.plant.key)), run.commit),
        (run.proof, COMMITS.write(sign(commit, run.plant.key))),
    ):
        assert "names another circuit or system" in refused("5.6", verifier, *documents)


def test_5_6_1_a_circuit_that_binds_no_statistic_takes_none(run: PlantRun) -> None:
    named = resigned(run, statistic="0" * 64)
    for documents, statistic in ((named, None), ((run.proof, run.commit), b"sums")):
        with pytest.raises(VerificationError, match="binds no statistic, but one") as caught:
            run.world.verifier().verify(*documents, statistic=statistic)
        assert caught.value.step == "5.6.1"


def test_5_7_another_shape(run: PlantRun) -> None:
    verifier = run.world.verifier()
    for wrong in (b"", b"x", run.proven.message.content.proof[:-1]):
        proof = sign(replace(run.proven.message.content, proof=wrong), run.plant.key)
        refused("5.7", verifier, PROOFS.write(proof), run.commit)


def test_5_8_other_rows(run: PlantRun) -> None:
    raw = bytearray(run.proven.message.content.proof)
    raw[100] ^= 1
    proof = sign(replace(run.proven.message.content, proof=bytes(raw)), run.plant.key)
    assert "not the committed" in refused(
        "5.8", run.world.verifier(), PROOFS.write(proof), run.commit
    )


def test_5_8_rows_that_break_the_rules(run: PlantRun, monkeypatch: pytest.MonkeyPatch) -> None:
    """A plant that has taken its own checks out commits to a forged batch and proves it."""
    forged = run.world.forged()
    committed = run.plant.commit(forged)
    with monkeypatch.context() as taken_out:
        taken_out.setattr(
            "sluice.attestation.protocol.plant.refuse_unless_admitted", lambda *_, **__: None
        )
        taken_out.setattr("sluice.attestation.systems.unsafe._broken", lambda *_: iter(()))
        proven = committed.prove(forged)
    documents = PROOFS.write(proven.message), COMMITS.write(committed.message)
    assert "do not satisfy" in refused("5.8", run.world.verifier(), *documents)


# -- replays: everything is signed again, only the proof is from another batch -------------------


def replayed(run: PlantRun, signer: SigningKey, /, **changes: object) -> None:
    proof, commit = resigned(run, signer, **changes)
    assert "another context" in refused("5.8", run.world.verifier(), proof, commit)


def test_replay_by_another_client(run: PlantRun) -> None:
    thief = SigningKey.generate()
    replayed(run, thief, client="south", key=thief.public)


def test_replay_by_a_registered_client_over_the_log(run: PlantRun) -> None:
    thief = run_plant(run.world, "south", batch=1)
    key = thief.plant.key
    commit = replace(run.committed.message.content, client="south", key=key.public)
    with pytest.raises(VerificationError, match="from client 'north'") as caught:
        thief.enrolled.receive(COMMITS.write(sign(commit, key)), at=NOW)
    assert caught.value.step == "2"
    mine = thief.committed.message.content
    proof = replace(run.proven.message.content, client="south", commitment=mine.commitment)
    with pytest.raises(VerificationError) as caught:
        thief.received.attest(PROOFS.write(sign(proof, key)), at=NOW)
    assert caught.value.step == "5.8"


def test_replay_in_another_federation(run: PlantRun) -> None:
    replayed(run, run.plant.key, federation="power")


def test_replay_over_another_interval(run: PlantRun) -> None:
    later = Interval(start="2024-02-07T00:00:00.000000", end="2024-02-07T16:39:00.000000")
    replayed(run, run.plant.key, interval=later)


def test_replay_for_another_number_of_rows(run: PlantRun) -> None:
    proof, commit = resigned(run, rows=599)
    refused("5.7", run.world.verifier(), proof, commit)


def test_replay_under_other_rules_policy_or_largest_batch(run: PlantRun, rules: RuleSet) -> None:
    for circuit in (
        circuit_for(SYSTEM, replace(rules, plant="other"), POLICY, rows_max=4_096),
        circuit_for(SYSTEM, rules, replace(POLICY, rows_min=100), rows_max=4_096),
        circuit_for(SYSTEM, rules, POLICY, rows_max=2_048),
    ):
        pinned = Pinned.of(circuit)
        other = Verifier(system=SYSTEM, circuit=circuit, pinned=pinned)
        proof, commit = resigned(
            run, circuit=pinned.circuit, rules=pinned.rules, policy=pinned.policy
        )
        assert "another context" in refused("5.8", other, proof, commit)


def test_replay_of_the_proof_of_another_batch(run: PlantRun) -> None:
    other = run.plant.commit(run.world.batch(1))
    content = replace(run.proven.message.content, commitment=other.message.content.commitment)
    proof = PROOFS.write(sign(content, run.plant.key))
    refused("5.8", run.world.verifier(), proof, COMMITS.write(other.message))


# -- the second verifier --------------------------------------------------------------------------


class Accepting(type(SYSTEM)):  # type: ignore[misc]
    """A system that calls itself full, and whose own verifier answers as it is told."""

    first: ClassVar[VerificationError | None] = None

    @property
    def name(self) -> str:
        return "full"

    def verify(self, *_: object, **__: object) -> None:
        if self.first:
            raise self.first


INVALID = VerificationError("5.8", "it does not hold")


@pytest.mark.parametrize(
    ("first", "second", "why"),
    [
        (None, INVALID, "the two verifiers disagree: only the second verifier refuses"),
        (INVALID, None, "the two verifiers disagree: only the first verifier refuses"),
        (INVALID, INVALID, "it does not hold; the second verifier refuses it too"),
        (None, None, ""),
    ],
)
def test_both_verifiers_must_accept(
    first: VerificationError | None,
    second: VerificationError | None,
    why: str,
    run: PlantRun,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def again(*_: object) -> None:
        if second:
            raise second

    monkeypatch.setattr(Accepting, "first", first)
    monkeypatch.setattr(full, "verify_again", again, raising=False)
    verifier = replace(run.world.verifier(), system=Accepting(reveal_rows=True))
    if not why:
        assert verifier.verify_twice(run.proof, run.commit).reference
        assert not verifier.verify(run.proof, run.commit).reference
        return
    with pytest.raises(VerificationError, match=why) as caught:
        verifier.verify_twice(run.proof, run.commit)
    assert caught.value.step == "5.8"


def test_a_system_without_a_second_verifier_says_so(run: PlantRun) -> None:
    with pytest.raises(SettingError, match="has no second verifier; only 'full' has one"):
        run.world.verifier().verify_twice(run.proof, run.commit)
