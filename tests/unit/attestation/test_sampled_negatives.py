"""Attacks on drawn rows, by name, and the step that refuses each."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sluice import _attest
from sluice.admission.policy import HardenedPolicy
from sluice.attestation.log.chain import Log, mend, read_log
from sluice.attestation.log.heads import refuse_fork
from sluice.attestation.messages.context import Interval
from sluice.attestation.messages.messages import CHALLENGES, COMMITS, PROOFS
from sluice.attestation.messages.signing import sign
from sluice.attestation.messages.tokens import TOKENS
from sluice.attestation.protocol.coordinator import ProtocolCoordinator
from sluice.attestation.protocol.key_folder import KeyFolder, Pinned
from sluice.attestation.systems.sampled.guarantee import pass_probability
from sluice.attestation.systems.sampled.system import Sampled, SampledClaim, Sampling, draw_rows
from sluice.errors import VerificationError
from sluice.seeding import stream

from .conftest import later
from .drawn_plant import CONTEXT, NOW, ROWS, SALT, SampledRun, batch, registered, run_plant

FIELD = 21888242871839275222246405745257275088548364400416034343698204186575808495617
CURVE = 21888242871839275222246405745257275088696311157297823662689037894645226208583
MODEL = "a" * 64


@pytest.fixture
def run(drawn_folder: KeyFolder, tmp_path: Path) -> SampledRun:
    return run_plant(drawn_folder, tmp_path / "log.jsonl")


@pytest.fixture(scope="module")
def system(drawn_folder: KeyFolder) -> Sampled:
    assert isinstance(drawn_folder.system, Sampled)
    return drawn_folder.system


@pytest.fixture(scope="module")
def proven(drawn_folder: KeyFolder, system: Sampled) -> tuple[bytes, bytes, SampledClaim]:
    """A commitment, a proof of it, and what it claims."""
    circuit = drawn_folder.circuit
    commitment = system.commit(batch(), circuit, salt=SALT)
    proof = system.prove(batch(), circuit, salt=SALT, context=CONTEXT)
    return commitment, proof, system.claim(circuit, commitment, ROWS, CONTEXT)


@contextmanager
def refused(step: str, words: str | None = None) -> Iterator[None]:
    with pytest.raises(VerificationError, match=words) as found:
        yield
    assert found.value.step == step


# -- what is refused whatever the proof system ----------------------------------------------------


def test_a_commitment_copied_by_another_client(run: SampledRun, drawn_folder: KeyFolder) -> None:
    thief = registered(drawn_folder, "south")
    enrolled = run.coordinator.enrol(thief)
    content = replace(run.committed.message.content, client="south", key=thief.key.public)
    with refused("2"):
        enrolled.receive(COMMITS.write(sign(content, thief.key)), at=NOW)
    with refused("2"):
        enrolled.receive(COMMITS.write(run.committed.message), at=NOW)


def test_a_commitment_attested_again(run: SampledRun) -> None:
    """Groth16 proofs can be randomised again; the log accepts the first."""
    run.received.attest(PROOFS.write(run.proven.message), at=NOW)
    again = run.committed.challenged(run.challenge).prove(batch())
    assert again.message.content.proof != run.proven.message.content.proof
    with refused("5.4", "already"):
        run.received.attest(PROOFS.write(again.message), at=NOW)


def test_an_overlapping_interval(run: SampledRun) -> None:
    with refused("2", "already committed to"):
        run.received.enrolled.receive(COMMITS.write(run.plant.commit(batch()).message), at=NOW)


def test_an_unlogged_commitment(run: SampledRun) -> None:
    fresh = run.plant.commit(batch(1))
    challenge = replace(run.challenge, commitment=fresh.message.content.commitment)
    proven = fresh.challenged(challenge).prove(batch(1))
    documents = (
        PROOFS.write(proven.message),
        COMMITS.write(fresh.message),
        CHALLENGES.write(challenge),
    )
    run.verifier().verify(*documents)
    with refused("5.3", "not in the log"):
        run.verifier(run.log.ledger).verify(*documents)


def test_other_rules_another_policy_and_other_parameters(run: SampledRun, system: Sampled) -> None:
    circuit = run.plant.circuit
    wider = tuple(replace(r, tolerance=2 * r.tolerance) for r in circuit.rules.invariants)
    rules = replace(circuit.rules, invariants=wider)
    for other in (
        replace(circuit, rules=rules),
        replace(circuit, policy=HardenedPolicy()),
    ):
        with refused("5.2", "other rules or another policy"):
            replace(run.verifier(), circuit=other).verify(*run.documents)
    looser = replace(system, sampling=Sampling(samples=2, violations=0))
    stricter = looser.circuit(circuit.rules, circuit.policy, rows_max=64)
    with refused("5.6", "do not derive the pinned circuit"):
        replace(run.verifier(), system=looser, circuit=stricter).verify(*run.documents)
    with refused("5.6", "names another circuit"):
        replace(run.verifier(), system=looser, circuit=stricter, pinned=Pinned.of(stricter)).verify(
            *run.documents
        )


def test_a_commitment_for_what_was_not_registered(run: SampledRun) -> None:
    content = run.plant.commit(batch(1)).message.content
    for other in (
        replace(content, rules="0" * 64),
        replace(content, policy="0" * 64),
        replace(content, circuit="0" * 64),
        replace(content, system="full"),
        replace(content, federation="power"),
    ):
        with refused("2"):
            run.received.enrolled.receive(COMMITS.write(sign(other, run.plant.key)), at=NOW)


def test_a_log_whose_nonce_was_changed(run: SampledRun, tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    nonce = run.challenge.nonce
    other = ("0" if nonce[0] != "0" else "1") + nonce[1:]
    run.received.attest(PROOFS.write(run.proven.message), at=NOW)
    path.write_text(path.read_text().replace(nonce, other))
    with refused("7"):
        read_log(path)


def test_two_logs_with_two_nonces(run: SampledRun, tmp_path: Path) -> None:
    """A coordinator that draws twice to favour a plant signs two heads, and cannot deny either."""
    *lines, _ = (tmp_path / "log.jsonl").read_bytes().splitlines(keepends=True)
    kinds = [json.loads(each)["body"]["kind"] for each in lines]
    assert kinds == ["opened", "registered", "committed", "challenged"]
    copy = tmp_path / "other.jsonl"
    copy.write_bytes(b"".join(lines[:-1]))
    mend(copy, run.coordinator.key)
    other = Log.open(copy, run.coordinator.key)
    protocol = ProtocolCoordinator(log=other)
    again = protocol.enrolled("north", run.received.enrolled.agreement)
    drawn = again.received(run.challenge.commitment).challenge(at=NOW)
    assert drawn.nonce != run.challenge.nonce
    with refused("7", "forked"):
        refuse_fork(run.log.signed_head().content, other.signed_head().content)
    with refused("5.3", "no such challenge"):
        run.verifier(other.ledger).verify(*run.documents)


def test_an_update_that_is_not_the_pledged_one(run: SampledRun) -> None:
    attested = run.received.attest(PROOFS.write(run.proven.message), at=NOW)
    pledging = ProtocolCoordinator(log=run.log).open_round(MODEL, later(60), at=NOW)
    token = run.proven.pledge(1, MODEL, b"an update").message
    pledge = pledging.pledge(attested, TOKENS.write(token), at=NOW)
    with refused("6", "it pledged"):
        pledging.close(at=NOW).reveal(pledge, b"another update", at=NOW)


def test_bits_of_a_proof(
    drawn_folder: KeyFolder, system: Sampled, proven: tuple[bytes, bytes, SampledClaim]
) -> None:
    commitment, proof, _ = proven
    for at in range(len(proof)):
        altered = bytearray(proof)
        altered[at] ^= 1 << at % 8
        with pytest.raises(VerificationError) as found:
            system.verify(
                drawn_folder.circuit,
                commitment=commitment,
                rows=ROWS,
                context=CONTEXT,
                proof=bytes(altered),
            )
        assert found.value.step in ("5.7", "5.8")


def test_oversized_and_malformed_messages(run: SampledRun) -> None:
    verifier = run.verifier(run.log.ledger)
    for which in range(3):
        document = run.documents[which]
        for wrong in (
            b"",
            b"{}",
            document[:-1],
            document + b" ",
            document.replace(b'"schema":1', b'"schema":2'),
            document + b" " * 100_000,
            b"[" * 100_000,
            b"\xff\xfe",
        ):
            told_so = [wrong if at == which else each for at, each in enumerate(run.documents)]
            with refused("5.1"):
                verifier.verify(*told_so)
    grown = replace(run.proven.message.content, proof=bytes(8_192))
    with refused("5.1"):
        verifier.verify(PROOFS.write(sign(grown, run.plant.key)), *run.documents[1:])


def test_rows_and_interval_out_of_range(run: SampledRun) -> None:
    short = Interval(start="2024-01-07T00:00:00.000000", end="2024-01-07T00:00:01.000000")
    commit = run.committed.message.content
    for content in (replace(commit, rows=65), replace(commit, interval=short)):
        documents = (run.documents[0], COMMITS.write(sign(content, run.plant.key)))
        with refused("5.5"):
            run.verifier().verify(*documents, run.documents[2])


# -- what only drawn rows have --------------------------------------------------------------------


def core_refuses(
    system: Sampled, folder: KeyFolder, commitment: bytes, claim: SampledClaim, proof: bytes
) -> str:
    """Return why the core refuses a claim that the verifier would never make itself."""
    statement = system.statement(folder.circuit.rules, folder.circuit.policy, rows_max=64)
    core = _attest.SampledVerifier(_attest.SampledCircuit(statement.content), system.verifying_key)
    with pytest.raises(_attest.InvalidProofError) as found:
        core.verify(commitment, claim.core, proof)
    return str(found.value.args[0])


def test_permuted_repeated_and_other_rows(
    drawn_folder: KeyFolder, system: Sampled, proven: tuple[bytes, bytes, SampledClaim]
) -> None:
    commitment, proof, claim = proven
    one, two = claim.drawn
    spare = next(row for row in range(1, ROWS) if row not in claim.drawn)
    for drawn, why in (
        ((two, one), "proof"),
        ((one, spare), "proof"),
        ((one, one), "shape"),
        ((0, two), "shape"),
        ((one, ROWS), "shape"),
        ((one,), "shape"),
        ((one, two, spare), "shape"),
    ):
        other = replace(claim, drawn=drawn)
        found = core_refuses(system, drawn_folder, commitment, other, proof)
        assert (found == "shape") == (why == "shape"), drawn


def test_larger_budgets(
    drawn_folder: KeyFolder, system: Sampled, proven: tuple[bytes, bytes, SampledClaim]
) -> None:
    commitment, proof, claim = proven
    for other, why in (
        (replace(claim, violations=2), "proof"),
        (replace(claim, silent=tuple(2 - most for most in claim.silent)), "proof"),
        (replace(claim, violations=3), "shape"),
        (replace(claim, silent=tuple(3 for _ in claim.silent)), "shape"),
        (replace(claim, silent=()), "shape"),
    ):
        found = core_refuses(system, drawn_folder, commitment, other, proof)
        assert (found == "shape") == (why == "shape"), other


def test_elements_that_are_not_canonical_and_points_that_are_none(
    drawn_folder: KeyFolder, system: Sampled, proven: tuple[bytes, bytes, SampledClaim]
) -> None:
    commitment, proof, _ = proven
    root = int.from_bytes(commitment, "big") + FIELD
    x = int.from_bytes(proof[:32], "big") + CURVE
    far = (1 << 256) - 1
    for told_root, shown in (
        (root.to_bytes(32, "big") if root <= far else b"\xff" * 32, proof),
        (FIELD.to_bytes(32, "big"), proof),
        (commitment, x.to_bytes(32, "big") + proof[32:]),
        (commitment, bytes(64) + proof[64:]),  # infinity, as arkworks spells it
        (commitment, proof[:64] + bytes(128) + proof[192:]),
        (commitment, proof[:192] + bytes(64)),
        (commitment, proof[:64] + (1).to_bytes(32, "big") * 4 + proof[192:]),  # not on the curve
        (commitment, (1).to_bytes(32, "big") * 2 + proof[64:]),
    ):
        with refused("5.7"):
            system.verify(
                drawn_folder.circuit,
                commitment=told_root,
                rows=ROWS,
                context=CONTEXT,
                proof=shown,
            )


def test_a_grinding_prover_gains_nothing() -> None:
    """Of 64 commitments it sends the one whose rows were kindest under nonces of its own.

    The rows that count follow from a nonce drawn later, and find what rows drawn at random find.
    """
    rows, samples, violations, bad = 200, 16, 1, 30
    random = stream(0, "grinding")
    violating = np.zeros(rows, bool)
    violating[1 + random.permutation(rows - 1)[:bad]] = True

    def passes(commitment: bytes, context: bytes) -> bool:
        drawn = draw_rows(commitment, context, rows=rows, samples=samples)
        return int(violating[list(drawn)].sum()) <= violations

    tries = [random.bytes(32) for _ in range(64)]
    guessed = [random.bytes(32) for _ in range(8)]
    kindest = max(tries, key=lambda each: sum(passes(each, nonce) for nonce in guessed))
    draws = 4_000
    found = sum(passes(kindest, random.bytes(32)) for _ in range(draws)) / draws
    exact = pass_probability(rows, samples, violations, violating=bad)
    assert abs(found - exact) < 4 * np.sqrt(exact * (1 - exact) / draws)
