"""What must be refused of the default system, each by its name, with the step that refuses it."""

from dataclasses import replace
from pathlib import Path

import pytest

from sluice.attestation.log.chain import mend, read_log
from sluice.attestation.log.entries import RoundOpened
from sluice.attestation.log.heads import refuse_fork
from sluice.attestation.log.ledger import Ledger
from sluice.attestation.messages.messages import COMMITS, PROOFS
from sluice.attestation.messages.signing import SigningKey, sign
from sluice.attestation.messages.tokens import TOKENS
from sluice.attestation.protocol.coordinator import ProtocolCoordinator
from sluice.attestation.protocol.key_folder import Pinned
from sluice.attestation.protocol.verifier import STEPS, Verifier
from sluice.attestation.systems.full.system import Full
from sluice.attestation.systems.registry import circuit_for
from sluice.attestation.systems.system import Circuit, ProofClaim
from sluice.errors import VerificationError
from sluice.invariants.ruleset import RuleSet

from .conftest import NOW, POLICY, PlantRun, World, copied, later

MODEL = "a" * 64
FLIPS = 96

Pair = tuple[PlantRun, PlantRun]


def refused(step: str, words: str = "") -> "pytest.RaisesExc[VerificationError]":
    return pytest.raises(VerificationError, match=rf"step {step}: .*{words}")


def verifier(run: PlantRun, circuit: Circuit | None = None) -> Verifier:
    """The coordinator's verifier, with its log."""
    used = circuit or run.plant.circuit
    ledger = run.enrolled.log.ledger
    return Verifier(system=Full(), circuit=used, pinned=Pinned.of(used), ledger=ledger)


def proof_of(run: PlantRun, signer: SigningKey | None = None, /, **changes: object) -> bytes:
    """The plant's proof with changed fields, signed again."""
    content = replace(run.proven.message.content, **changes)  # type: ignore[arg-type]
    return PROOFS.write(sign(content, signer or run.plant.key))


def commit_of(run: PlantRun, signer: SigningKey | None = None, /, **changes: object) -> bytes:
    """The plant's commitment with changed fields, signed again."""
    content = replace(run.committed.message.content, **changes)  # type: ignore[arg-type]
    return COMMITS.write(sign(content, signer or run.plant.key))


def test_nothing_is_wrong_with_what_is_bent_below(pair_in_full: Pair) -> None:
    for run in pair_in_full:
        found = verifier(run).verify(run.proof, run.commit)
        assert found.steps_checked == STEPS


# -- whose batch it is ----------------------------------------------------------------------------


def test_copied_by_another_client(pair_in_full: Pair) -> None:
    north, thief = pair_in_full
    key = thief.plant.key
    with refused("2", "is from 'north', expected 'south'"):
        thief.enrolled.receive(north.commit, at=NOW)
    mine = {"client": "south", "key": key.public}
    with refused("2", "from client 'north'"):
        thief.enrolled.receive(commit_of(north, key, **mine), at=NOW)
    with refused("5.3", "another commitment"):
        thief.received.attest(proof_of(north, key, client="south"), at=NOW)
    own = thief.committed.message.content.commitment
    with refused("5.8"):
        thief.received.attest(proof_of(north, key, client="south", commitment=own), at=NOW)
    alone = replace(verifier(north), ledger=None)  # not even a verifier without a log is deceived
    with refused("5.8"):
        alone.verify(proof_of(north, key, client="south"), commit_of(north, key, **mine))


def test_re_attested_commitment(pair_in_full: Pair) -> None:
    north, _ = pair_in_full
    first = north.received.attest(north.proof, at=NOW)
    assert north.received.attest(north.proof, at=NOW) == first
    another = north.committed.prove(north.world.batch())  # every proof has masks of its own
    assert another.attestation != first.attestation
    with refused("5.4", "already"):
        north.received.attest(PROOFS.write(another.message), at=NOW)


def test_overlapping_interval(pair_in_full: Pair) -> None:
    north, _ = pair_in_full
    overlapping = north.plant.commit(north.world.line.rows(8_640 + 599, 8_640 + 1_199))
    with refused("2", "already committed to"):
        north.enrolled.receive(COMMITS.write(overlapping.message), at=NOW)


def test_unlogged_commitment(pair_in_full: Pair, tmp_path: Path) -> None:
    _, south = pair_in_full
    *entries, _ = south.world.path.read_bytes().splitlines(keepends=True)
    path = tmp_path / "before.jsonl"
    path.write_bytes(b"".join(entries[:-1]))  # the last is the commitment of the south
    mend(path, south.world.coordinator)
    before: Ledger = read_log(path)
    with refused("5.3", "not in the log"):
        replace(verifier(south), ledger=before).verify(south.proof, south.commit)


# -- another circuit ------------------------------------------------------------------------------


def as_for(run: PlantRun, circuit: Circuit) -> tuple[bytes, bytes]:
    """Proof and commitment of a plant that says it meant another circuit all along."""
    pinned = Pinned.of(circuit)
    said = {"circuit": pinned.circuit, "rules": pinned.rules, "policy": pinned.policy}
    return proof_of(run, circuit=pinned.circuit), commit_of(run, **said)


def test_other_rules(pair_in_full: Pair, rules: RuleSet) -> None:
    north, _ = pair_in_full
    looser = replace(rules, invariants=rules.invariants[:-1])
    other = circuit_for(Full(), looser, POLICY, rows_max=1_024)
    with refused("5.2", "other rules"):
        verifier(north, other).verify(north.proof, north.commit)
    with refused("5.2", "not the rules and policy accepted"):
        verifier(north, other).verify(*as_for(north, other))
    with refused("5.[78]"):  # fewer rules are fewer columns: it has not even the shape
        replace(verifier(north, other), ledger=None).verify(*as_for(north, other))


def test_other_policy(pair_in_full: Pair, rules: RuleSet) -> None:
    north, _ = pair_in_full
    other = circuit_for(Full(), rules, replace(POLICY, rows_min=100), rows_max=1_024)
    with refused("5.2", "another policy"):
        verifier(north, other).verify(north.proof, north.commit)
    with refused("5.2", "not the rules and policy accepted"):
        verifier(north, other).verify(*as_for(north, other))
    with refused("5.8"):
        replace(verifier(north, other), ledger=None).verify(*as_for(north, other))


def test_other_parameters(pair_in_full: Pair, rules: RuleSet) -> None:
    north, _ = pair_in_full
    ours = north.plant.circuit
    parameters = dict(ours.parameters)
    fewer = {**parameters, "queries": parameters["queries"] - 1}
    weaker = replace(Pinned.of(ours), parameters=fewer)
    with refused("5.6", "do not derive the pinned circuit"):
        replace(verifier(north), pinned=weaker).verify(north.proof, north.commit)
    larger = circuit_for(Full(), rules, POLICY, rows_max=2_048)
    with refused("5.6", "another circuit"):
        verifier(north, larger).verify(north.proof, north.commit)
    with refused("5.8"):
        replace(verifier(north, larger), ledger=None).verify(*as_for(north, larger))


# -- the log and its rounds -----------------------------------------------------------------------


def test_tampered_log(pair_in_full: Pair, tmp_path: Path) -> None:
    north, _ = pair_in_full
    north.received.attest(north.proof, at=NOW)
    path = tmp_path / "log.jsonl"
    content = path.read_bytes()
    commitment = north.committed.message.content.commitment.encode()
    for step, old, new in (
        ("7", b"12:00:00", b"12:00:01"),  # the entry after it does not follow any more
        ("1", b'"client":"north"', b'"client":"south"'),  # nor does anybody's signature
        ("2", commitment, b"0" * 64),
    ):
        assert old in content
        path.write_bytes(content.replace(old, new, 1))
        with refused(step):
            read_log(path)
    path.write_bytes(content)
    assert read_log(path).size == north.enrolled.log.ledger.size


def test_two_log_heads(pair_in_full: Pair, tmp_path: Path) -> None:
    world: World = pair_in_full[0].world
    logs = [copied(world, tmp_path / f"for-{name}.jsonl") for name in ("north", "south")]
    deadline = "2026-05-01T13:00:00.000000Z"
    for log, model in zip(logs, ("1" * 64, "2" * 64), strict=True):
        log.append(RoundOpened(round=1, model=model, deadline=deadline), at=NOW)
    shown = [log.signed_head() for log in logs]
    for head in shown:
        head.verify(world.coordinator.public, step="7")
    with refused("7", "forked"):
        refuse_fork(shown[0].content, shown[1].content)


def test_update_that_does_not_match_its_token(pair_in_full: Pair) -> None:
    north, _ = pair_in_full
    attested = north.received.attest(north.proof, at=NOW)
    pledging = ProtocolCoordinator(log=north.enrolled.log).open_round(MODEL, later(60), at=NOW)
    pledged = north.proven.pledge(1, MODEL, b"an update")
    pledge = pledging.pledge(attested, TOKENS.write(pledged.message), at=NOW)
    revealing = pledging.close(at=NOW)
    with refused("6", "it pledged"):
        revealing.reveal(pledge, b"shaped after seeing the others", at=NOW)
    assert revealing.reveal(pledge, b"an update", at=NOW).client == "north"


# -- bytes ----------------------------------------------------------------------------------------


def test_bit_flips_throughout_a_proof(pair_in_full: Pair) -> None:
    """A bit in every so many bytes; `make fuzz` takes every byte of a smaller proof."""
    north, _ = pair_in_full
    claim = verifier(north).examine(north.proof, north.commit).claim
    step = len(claim.proof) // FLIPS

    def flipped(at: int) -> ProofClaim:
        bent = bytearray(claim.proof)
        bent[at] ^= 1 << (at % 8)
        return replace(claim, proof=bytes(bent))

    places = [*range(0, len(claim.proof), step), len(claim.proof) - 1]
    answers = Full().verify_many(north.plant.circuit, [flipped(at) for at in places])
    steps = [answer.step if answer else "accepted" for answer in answers]
    assert set(steps) <= {"5.7", "5.8"}
    assert steps.count("5.8") > FLIPS / 2


def test_oversized_messages(pair_in_full: Pair) -> None:
    north, _ = pair_in_full
    asked = verifier(north)
    most = Full().largest_proof(asked.circuit)
    with refused("5.1", "the limit is"):
        asked.verify(proof_of(north, proof=bytes(2 * most)), north.commit)
    with refused("5.1", "the limit is"):
        asked.verify(north.proof, north.commit + b" " * 10_000)
    with refused("5.7", "has the wrong length"):
        asked.verify(proof_of(north, proof=bytes(most + 1)), north.commit)
    with refused("5.7", "none of this circuit has more than"):
        asked.verify(proof_of(north, proof=bytes(most)), north.commit)


def test_malformed_messages(pair_in_full: Pair) -> None:
    north, _ = pair_in_full
    asked = verifier(north)
    for proof in (b"", b"{}", b"[" * 5_000, north.proof[:-1], north.proof + b"\n", north.commit):
        with refused("5.1"):
            asked.verify(proof, north.commit)
    for commit in (b"", b"null", north.commit.replace(b"{", b"{ ", 1), north.proof):
        with refused("5.1"):
            asked.verify(north.proof, commit)
    for proof in (b"", b"\xff" * 64, north.proven.message.content.proof[:-1]):
        with refused("5.7"):
            asked.verify(proof_of(north, proof=proof), north.commit)
