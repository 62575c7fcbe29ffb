"""The `sampled` system in the protocol: an honest client, and attacks."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sluice.admission.policy import HardenedPolicy, PaperPolicy
from sluice.attestation.log.entries import BatchChallenged
from sluice.attestation.messages.messages import (
    CHALLENGES,
    COMMITS,
    PROOFS,
    context_of,
    draw_challenge,
)
from sluice.attestation.messages.signing import SigningKey, sign
from sluice.attestation.protocol.key_folder import KeyFolder, Pinned
from sluice.attestation.protocol.verifier import Verifier
from sluice.attestation.systems.sampled import worker
from sluice.attestation.systems.sampled.keys import make_sampled, open_sampled
from sluice.attestation.systems.sampled.snarkjs import export
from sluice.attestation.systems.sampled.system import Sampled, Sampling, statement_of
from sluice.attestation.systems.system import Circuit, ProofClaim
from sluice.errors import DocumentError, ProverError, RefusedError, SettingError, VerificationError
from sluice.invariants.ruleset import RuleSet
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.record import Record

from . import drawn_plant
from .drawn_plant import CONTEXT, NOW, ROWS, SALT, SampledRun


@pytest.fixture(scope="module")
def folder(drawn_folder: KeyFolder) -> KeyFolder:
    return drawn_folder


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    return drawn_plant.paper_rules()


@pytest.fixture(scope="module")
def system(folder: KeyFolder) -> Sampled:
    assert isinstance(folder.system, Sampled)
    return folder.system


@pytest.fixture(scope="module")
def circuit(folder: KeyFolder) -> Circuit:
    return folder.circuit


@pytest.fixture(scope="module")
def batch() -> Record:
    return drawn_plant.batch()


@pytest.fixture(scope="module")
def run(folder: KeyFolder, tmp_path_factory: pytest.TempPathFactory) -> SampledRun:
    return drawn_plant.run_plant(folder, tmp_path_factory.mktemp("log") / "log.jsonl")


def test_a_batch_is_attested_once_its_rows_were_drawn(run: SampledRun) -> None:
    found = run.verify()
    assert found.steps_unchecked == ()
    assert run.verify(log=False).steps_unchecked == ("5.2", "5.3", "5.4")
    attested = run.received.attest(PROOFS.write(run.proven.message), at=NOW)
    assert attested.attestation == run.proven.attestation
    assert len(run.proven.message.content.proof) == 256


def test_proving_before_the_challenge_cannot_be_done(run: SampledRun, batch: Record) -> None:
    with pytest.raises(SettingError, match="take its challenge first"):
        run.committed.prove(batch)


def test_another_nonce_is_refused_with_and_without_a_log(run: SampledRun) -> None:
    other = draw_challenge(run.committed.message.content)
    with pytest.raises(VerificationError, match="no such challenge") as refused:
        run.verify(other)
    assert refused.value.step == "5.3"
    with pytest.raises(VerificationError) as refused:
        run.verify(other, log=False)
    assert refused.value.step == "5.8"


def test_a_challenge_of_another_commitment_is_refused(run: SampledRun) -> None:
    other = replace(run.challenge, commitment="0" * 64)
    with pytest.raises(VerificationError, match="another commitment") as refused:
        run.verify(other)
    assert refused.value.step == "5.3"
    with pytest.raises(SettingError, match="not for this commitment"):
        run.committed.challenged(other)


def test_a_commitment_is_challenged_after_it_is_logged_and_once(run: SampledRun) -> None:
    assert run.received.challenge(at=NOW) == run.challenge
    again = draw_challenge(run.committed.message.content)
    with pytest.raises(VerificationError, match="already has a challenge") as refused:
        run.log.append(BatchChallenged(challenge=again), at=NOW)
    assert refused.value.step == "3"
    unlogged = replace(run.challenge, commitment="1" * 64)
    with pytest.raises(VerificationError, match="not in the log") as refused:
        run.log.append(BatchChallenged(challenge=unlogged), at=NOW)
    assert refused.value.step == "3"


def test_grinding_takes_a_commitment_that_the_log_refuses(run: SampledRun, batch: Record) -> None:
    """Fresh salts give fresh rows, but the plant's interval is taken by its first commitment."""
    again = run.plant.commit(batch)
    with pytest.raises(VerificationError, match="already committed to") as refused:
        run.received.enrolled.receive(COMMITS.write(again.message), at=NOW)
    assert refused.value.step == "2"


def test_a_proof_cannot_be_copied_to_another_client(run: SampledRun) -> None:
    key = SigningKey.generate()
    commit = replace(run.committed.message.content, client="south", key=key.public)
    proof = replace(run.proven.message.content, client="south")
    challenge = replace(run.challenge, client="south")
    verifier = Verifier(
        system=run.plant.system,
        circuit=run.plant.circuit,
        pinned=Pinned.of(run.plant.circuit),
    )
    documents = (
        PROOFS.write(sign(proof, key)),
        COMMITS.write(sign(commit, key)),
        CHALLENGES.write(challenge),
    )
    with pytest.raises(VerificationError) as refused:
        verifier.verify(*documents)
    assert refused.value.step == "5.8"


def test_a_proof_without_its_challenge_is_no_message(run: SampledRun) -> None:
    verifier = Verifier(
        system=run.plant.system, circuit=run.plant.circuit, pinned=Pinned.of(run.plant.circuit)
    )
    documents = (PROOFS.write(run.proven.message), COMMITS.write(run.committed.message))
    for challenge in (None, b"", b"{}", b"\xff" * 3_000):
        with pytest.raises(VerificationError) as refused:
            verifier.verify(*documents, challenge)
        assert refused.value.step == "5.1"


def test_a_proof_holds_for_its_own_public_inputs_only(
    system: Sampled, circuit: Circuit, batch: Record
) -> None:
    commitment = system.commit(batch, circuit, salt=SALT)
    proof = system.prove(batch, circuit, salt=SALT, context=CONTEXT)
    system.verify(circuit, commitment=commitment, rows=ROWS, context=CONTEXT, proof=proof)
    wrong = bytes([proof[0] ^ 1]) + proof[1:]
    for root, rows, context, shown in (
        (commitment, ROWS, b"d" * 32, proof),
        (commitment, ROWS - 1, CONTEXT, proof),
        (commitment, 2, CONTEXT, proof),
        (commitment, 1 << 40, CONTEXT, proof),
        (commitment[:-1] + bytes([commitment[-1] ^ 1]), ROWS, CONTEXT, proof),
        (b"\xff" * 32, ROWS, CONTEXT, proof),
        (commitment[:-1], ROWS, CONTEXT, proof),
        (commitment, ROWS, b"", proof),
        (commitment, ROWS, CONTEXT, wrong),
        (commitment, ROWS, CONTEXT, b""),
        (commitment, ROWS, CONTEXT, bytes(256)),
    ):
        with pytest.raises(VerificationError) as refused:
            system.verify(circuit, commitment=root, rows=rows, context=context, proof=shown)
        assert refused.value.step in ("5.7", "5.8")


def test_a_batch_that_breaks_its_rules_on_every_row_is_refused(
    system: Sampled, circuit: Circuit, batch: Record
) -> None:
    values = batch.values.copy()
    level = circuit.rules.invariants[-1].relation.channels[0]
    values[:, batch.index(level)] += 1_000.0 * (np.arange(ROWS) % 2)
    forged = batch.with_values(values)
    with pytest.raises(RefusedError, match="2 of 2 sampled rows violate"):
        system.prove(forged, circuit, salt=SALT, context=CONTEXT)


def test_a_commitment_hides_and_binds(system: Sampled, circuit: Circuit, batch: Record) -> None:
    commitment = system.commit(batch, circuit, salt=SALT)
    assert len(commitment) == 32
    assert system.commit(batch, circuit, salt=SALT) == commitment
    assert system.commit(batch, circuit, salt=b"s" * 32) != commitment
    assert system.commit(batch.rows(0, ROWS - 1), circuit, salt=SALT) != commitment


def test_only_the_papers_policy_is_stated(system: Sampled, rules: RuleSet) -> None:
    with pytest.raises(SettingError, match="paper policy only"):
        system.circuit(rules, HardenedPolicy(), rows_max=64)


def test_batches_beyond_the_tree_are_not_stated(rules: RuleSet) -> None:
    sampling = Sampling(samples=2, violations=1)
    for rows in (3, 131_072):
        stated = statement_of(rules, PaperPolicy(), sampling, rows_max=rows)
        assert 2**stated.depth >= rows
    for rows in (2, 131_073):
        with pytest.raises(SettingError, match=f"of 3 to 131,072 rows, not {rows:,}"):
            statement_of(rules, PaperPolicy(), sampling, rows_max=rows)


def test_no_more_of_a_key_file_is_read_than_a_key_can_hold(tmp_path: Path) -> None:
    (tmp_path / "verifying.key").write_bytes(bytes(1 << 20))
    opened = open_sampled(tmp_path, {"samples": 2, "violating_max": 1})
    assert len(opened.verifying_key) == 1 << 20
    (tmp_path / "verifying.key").write_bytes(bytes((1 << 20) + 1))
    with pytest.raises(DocumentError, match="expected at most 1,048,576 bytes"):
        open_sampled(tmp_path, {"samples": 2, "violating_max": 1})


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rows": 2}, "does not take 2 rows"),
        ({"rows": 65}, "does not take 65 rows"),
        ({"commitment": bytes(31)}, "wrong length"),
        ({"commitment": bytes(33)}, "wrong length"),
        ({"context": bytes(31)}, "wrong length"),
        ({"context": bytes(33)}, "wrong length"),
    ],
)
def test_a_claim_of_another_size_is_refused_before_its_proof_is_read(
    system: Sampled, circuit: Circuit, changes: dict[str, object], says: str
) -> None:
    assert (circuit.rows_max, dict(circuit.parameters)["samples"]) == (64, 2)
    claim = ProofClaim(commitment=bytes(32), rows=3, context=CONTEXT, proof=bytes(256))
    other: ProofClaim = replace(claim, **changes)  # type: ignore[arg-type]
    (refused,) = system.verify_many(circuit, [other])
    assert refused is not None
    assert (refused.step, says in refused.why) == ("5.7", True), refused


@pytest.mark.parametrize("rows", [3, 64])
def test_a_claim_at_the_edge_of_a_size_is_refused_for_its_proof_alone(
    system: Sampled, circuit: Circuit, rows: int
) -> None:
    claim = ProofClaim(commitment=bytes(32), rows=rows, context=CONTEXT, proof=bytes(256))
    (refused,) = system.verify_many(circuit, [claim])
    assert refused is not None
    assert "does not take" not in refused.why


def test_keys_are_pinned_and_say_that_one_party_made_them(
    folder: KeyFolder, rules: RuleSet, tmp_path: Path
) -> None:
    assert dict(folder.circuit.parameters)["parties"] == 1
    assert "made by one party" in (folder.path / "SET-UP.txt").read_text(encoding="utf-8")
    opened = KeyFolder.open(folder.path)
    opened.demand_same_circuit()
    sampling = Sampling(samples=2, violations=1)
    with pytest.raises(SettingError, match="holds keys already"):
        make_sampled(folder.path, rules, PaperPolicy(), sampling, rows_max=64)
    other = make_sampled(tmp_path, rules, PaperPolicy(), sampling, rows_max=64)
    swapped = other.circuit(rules, PaperPolicy(), rows_max=64)
    assert swapped.identity != folder.circuit.identity
    assert not folder.pinned.names(swapped)


def test_a_key_of_another_circuit_is_refused(
    system: Sampled, rules: RuleSet, tmp_path: Path
) -> None:
    wider = tuple(replace(r, tolerance=r.tolerance * 1.5) for r in rules.invariants)
    with pytest.raises(SettingError, match="no verifying key of this circuit"):
        system.circuit(replace(rules, invariants=wider), PaperPolicy(), rows_max=64)
    looser = replace(system, sampling=Sampling(samples=2, violations=0))
    other = looser.circuit(rules, PaperPolicy(), rows_max=64)
    assert other.identity != system.circuit(rules, PaperPolicy(), rows_max=64).identity
    gone = replace(system, proving_key=tmp_path / "none")
    with pytest.raises(SettingError, match="cannot be read"):
        gone.prove(
            simulate("line", seed=0, days=1).rows(0, ROWS), other, salt=SALT, context=CONTEXT
        )


def test_the_export_holds_the_same_numbers(
    run: SampledRun, system: Sampled, circuit: Circuit
) -> None:
    commit = run.committed.message.content
    context = context_of(commit, circuit, run.challenge).digest()
    claim = system.claim(circuit, bytes.fromhex(commit.commitment), commit.rows, context)
    found = export(run.proven.message.content.proof, claim, system.verifying_key)
    assert found.public[0] == str(int(commit.commitment, 16))
    assert [int(each) for each in found.public[1:3]] == list(claim.drawn)
    assert found.verification_key["nPublic"] == len(found.public)
    with pytest.raises(DocumentError):
        export(b"short", claim, system.verifying_key)


@pytest.mark.parametrize(
    ("script", "code"),
    [("import os; os.abort()", -6), ("print('half'); raise SystemExit(3)", 3), ("", 0)],
    ids=["it dies", "it fails after some output", "it says nothing"],
)
def test_a_process_that_makes_no_keys_leaves_none(
    script: str, code: int, rules: RuleSet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    makes_none = tmp_path / "none.py"
    makes_none.write_text(script)
    monkeypatch.setattr(worker, "__file__", str(makes_none))
    sampling = Sampling(samples=2, violations=1)
    with pytest.raises(ProverError, match=f"the process that makes keys ended with code {code} "):
        make_sampled(tmp_path / "keys", rules, PaperPolicy(), sampling, rows_max=64)
    assert not (tmp_path / "keys").exists()
