"""Batches that are proven as a chain of segments."""

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from sluice import _attest
from sluice.attestation.systems.full import (
    Full,
    StatisticName,
    batch_statistic,
    verify_again,
)
from sluice.attestation.systems.full import system as full_system
from sluice.attestation.systems.full.chaining import MOST_SEGMENTS, Cut, cut_of
from sluice.attestation.systems.full.reference import circuit as laying_out
from sluice.attestation.systems.full.reference.chain import chain_log_rows, chain_plan
from sluice.attestation.systems.full.reference.circuit import ReferenceCircuit
from sluice.attestation.systems.full.reference.verify import ReferenceClaim, verify_claim
from sluice.attestation.systems.full.system import LARGEST_PROOF
from sluice.attestation.systems.registry import find_system
from sluice.attestation.systems.system import Circuit, ProofClaim
from sluice.cli.attest.proofs import within_memory
from sluice.errors import SettingError, VerificationError
from sluice.telemetry.record import Record

from .full_plant import Wiring, clean_batch, policy_of, rules_of

VECTORS = Path(__file__).parents[2] / "vectors"
SALT, CONTEXT = b"s" * 32, b"c" * 32
ROWS, LOG_ROWS, SEED = 300, 8, 1
HEADER, SEAM, SEGMENTS = 24, 24, 2
REPEATS = 6


@cache
def circuit_of(*, binds: bool = False) -> Circuit:
    system = Full(binds=StatisticName.MOMENTS if binds else None)
    return system.circuit(rules_of(Wiring()), policy_of(Wiring()), rows_max=ROWS)


@cache
def batch() -> Record:
    return clean_batch(ROWS, SEED)


def proven(circuit: Circuit, statistic: bytes | None = None) -> bytes:
    """Prove the batch in segments, although it is short enough for one proof."""
    with pytest.MonkeyPatch.context() as patch:
        cut = Cut(log_rows=LOG_ROWS)
        patch.setattr(full_system, "cut_of", lambda *_, **__: cut)
        return Full().prove(batch(), circuit, salt=SALT, context=CONTEXT, statistic=statistic)


@cache
def chain(*, binds: bool = False) -> ProofClaim:
    circuit = circuit_of(binds=binds)
    statistic = batch_statistic(batch(), circuit)
    proof = proven(circuit, statistic)
    return ProofClaim(
        commitment=Full().commit(batch(), circuit, salt=SALT),
        rows=ROWS,
        context=CONTEXT,
        proof=proof,
        statistic=statistic,
    )


def verified(circuit: Circuit, claim: ProofClaim) -> None:
    Full().verify(
        circuit,
        commitment=claim.commitment,
        rows=claim.rows,
        context=claim.context,
        proof=claim.proof,
        statistic=claim.statistic,
    )


def refused(claim: ProofClaim, circuit: Circuit) -> None:
    """Both verifiers refuse it."""
    with pytest.raises(VerificationError):
        verified(circuit, claim)
    with pytest.raises(VerificationError):
        verify_again(circuit, claim)


def segments_of(proof: bytes) -> tuple[bytes, list[bytes]]:
    at = HEADER + (SEGMENTS - 1) * SEAM
    head = proof[:at]
    lengths = [
        int.from_bytes(proof[place : place + 8], "little")
        for place in range(at, at + 8 * SEGMENTS, 8)
    ]
    at += 8 * SEGMENTS
    parts = []
    for length in lengths:
        parts.append(proof[at : at + length])
        at += length
    return head, parts


def joined(head: bytes, parts: list[bytes]) -> bytes:
    return head + b"".join(len(part).to_bytes(8, "little") for part in parts) + b"".join(parts)


@pytest.mark.parametrize("binds", [False, True])
def test_both_verifiers_accept_a_chain(*, binds: bool) -> None:
    circuit, claim = circuit_of(binds=binds), chain(binds=binds)
    assert chain_log_rows(claim.proof) == LOG_ROWS
    assert len(chain_plan(ROWS, LOG_ROWS)) == SEGMENTS
    verified(circuit, claim)
    verify_again(circuit, claim)
    accepted, other = Full().verify_many(circuit, [claim, replace(claim, rows=ROWS - 1)])
    assert accepted is None
    assert other is not None


def test_both_verifiers_accept_a_chain_with_every_gadget() -> None:
    """Seams fall into windows, blocks and countdowns."""
    document = json.loads((VECTORS / "full.json").read_text())
    vector = next(each for each in document["vectors"] if each["name"] == "every gadget")
    parts = (vector[part] * REPEATS for part in ("registers", "codes", "starts", "flagged"))
    rows = vector["rows"] * REPEATS
    planes = _attest.FullBatch(rows, *(bytes.fromhex(part) for part in parts))
    many = {
        name: [40 + REPEATS * count for count in found] if isinstance(found, list) else 150
        for name, found in json.loads(vector["budgets"]).items()
    }
    budgets = json.dumps(many).encode()
    content = document["statements"][vector["statement"]].encode()
    core = _attest.FullCircuit(content)
    claim = ReferenceClaim(
        budgets=budgets,
        rows=rows,
        commitment=core.commit(planes, SALT),
        context=CONTEXT,
        proof=core.prove(budgets, planes, SALT, CONTEXT, None, LOG_ROWS),
    )
    core.verify(budgets, rows, claim.commitment, CONTEXT, claim.proof)
    reference = ReferenceCircuit(content)
    verify_claim(reference, claim)
    for other in (replace(claim, context=SALT), replace(claim, commitment=bytes(32))):
        with pytest.raises(VerificationError):
            verify_claim(reference, other)


def test_a_false_statistic_does_not_pass() -> None:
    claim, circuit = chain(binds=True), circuit_of(binds=True)
    assert claim.statistic is not None
    changed = bytearray(claim.statistic)
    changed[16 + 32 + 24] ^= 1
    refused(replace(claim, statistic=bytes(changed)), circuit)


def test_a_chain_is_bound_to_what_is_claimed() -> None:
    claim, circuit = chain(), circuit_of()
    refused(replace(claim, rows=ROWS - 1), circuit)
    refused(replace(claim, context=b"d" * 32), circuit)
    refused(replace(claim, commitment=bytes(32)), circuit)


def test_segments_are_not_dropped_repeated_reordered_or_swapped() -> None:
    claim, circuit = chain(), circuit_of()
    head, parts = segments_of(claim.proof)
    assert joined(head, parts) == claim.proof
    _, others = segments_of(proven(circuit))
    orders = [[0], [1], [0, 0], [1, 1], [1, 0], [0, 1, 1]]
    for order in orders:
        refused(replace(claim, proof=joined(head, [parts[at] for at in order])), circuit)
    for at in range(SEGMENTS):
        swapped = [*parts[:at], others[at], *parts[at + 1 :]]
        refused(replace(claim, proof=joined(head, swapped)), circuit)


def test_the_values_of_a_seam_are_not_free() -> None:
    claim, circuit = chain(), circuit_of()
    for at in (16, HEADER, HEADER + SEAM - 1, HEADER + SEAM):
        changed = bytearray(claim.proof)
        changed[at] ^= 1
        refused(replace(claim, proof=bytes(changed)), circuit)
    refused(replace(claim, proof=claim.proof + b"\0"), circuit)
    refused(replace(claim, proof=claim.proof[:-1]), circuit)
    largest = bytearray(claim.proof)
    largest[HEADER : HEADER + 8] = b"\xff" * 8
    refused(replace(claim, proof=bytes(largest)), circuit)


@pytest.mark.parametrize("first", [0, 2])
def test_a_segment_begins_with_one_root(first: int) -> None:
    claim, circuit = chain(), circuit_of()
    head, parts = segments_of(claim.proof)
    for changed in (bytes([first]) + parts[1][1:], parts[1][:20]):
        refused(replace(claim, proof=joined(head, [parts[0], changed])), circuit)


def test_one_trace_has_not_more_rows_than_its_height() -> None:
    system = Full()
    circuit = system.circuit(rules_of(Wiring()), policy_of(Wiring()), rows_max=524_288)
    claim = replace(chain(), rows=131_073, proof=b"\1" * 40)
    for verify in (verified, verify_again):
        with pytest.raises(VerificationError, match="too many for one trace"):
            verify(circuit, claim)
        with pytest.raises(VerificationError) as other:  # the proof is none
            verify(circuit, replace(claim, rows=131_072))
        assert "too many" not in str(other.value)


def test_the_second_verifier_states_the_seams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without them its constraints are others, so a true chain does not pass."""
    claim, circuit = chain(), circuit_of()
    monkeypatch.setattr(laying_out, "state_seam", lambda *_, **__: None)
    with pytest.raises(VerificationError, match="drawn point"):
        verify_again(circuit, claim)


def test_up_to_4096_rows_are_one_proof() -> None:
    assert cut_of(2, 800) == Cut()
    assert cut_of(4_096, 800) == Cut()
    assert cut_of(4_097, 800) == Cut(log_rows=12)
    assert cut_of(4_734, 800).segments(4_734) == 2


def test_just_above_a_power_of_two_there_are_two_segments() -> None:
    for rows in (300, 512, 769, 1_000, 1_024, 1_537, 2_048, 3_073):
        assert cut_of(rows, 800) == Cut()
    for rows, log_rows in ((513, 9), (766, 9), (1_025, 10), (1_534, 10), (2_049, 11), (3_070, 11)):
        cut = cut_of(rows, 800)
        assert cut == Cut(log_rows=log_rows)
        assert cut.segments(rows) == 2
        assert cut.height(rows) == sum(map(len, chain_plan(rows, log_rows)))
        assert 4 * cut.height(rows) <= 3 * Cut().height(rows)


def test_no_height_is_far_from_the_rows() -> None:
    assert all(cut_of(rows, 800).height(rows) < 1.5 * rows for rows in range(700, 9_000))
    assert all(cut_of(rows, 800).height(rows) < 1.1 * rows for rows in range(40_000, 50_000, 7))


def test_segments_are_of_usual_length_however_many_there_are() -> None:
    for rows in (10_000, 50_000, 100_000, 131_072, 524_288):
        cut = cut_of(rows, 800)
        assert cut == Cut(log_rows=12)
        assert cut.segments(rows) == len(chain_plan(rows, 12))
        assert cut.rows_in(0, rows) == 0
        assert cut.rows_in(1, rows) == 4_096
        assert cut.rows_in(cut.segments(rows) - 1, rows) < rows
        assert cut.rows_in(cut.segments(rows), rows) == rows
    assert Cut().rows_in(1, 300) == 300


def test_half_a_million_rows_fit_into_a_gigabyte() -> None:
    cut = cut_of(524_288, 900, memory=10**9)
    assert cut == Cut(log_rows=12)
    assert cut.memory(524_288, 900) <= 600_000_000


def test_no_segment_is_shorter_than_usual_if_there_are_many() -> None:
    assert cut_of(45_000, 800, memory=350_000_000).segments(45_000) <= MOST_SEGMENTS
    with pytest.raises(SettingError, match="need about"):
        cut_of(524_288, 900, memory=500_000_000)


def test_the_largest_proof_grows_with_the_largest_batch() -> None:
    rules, policy = rules_of(Wiring()), policy_of(Wiring())
    sizes = [
        Full().largest_proof(Full().circuit(rules, policy, rows_max=rows))
        for rows in (ROWS, 8_192, 524_288)
    ]
    assert sizes[0] == sizes[1] == LARGEST_PROOF
    assert 32 * LARGEST_PROOF > sizes[2] > 4 * LARGEST_PROOF


def test_memory_decides_how_a_batch_is_cut() -> None:
    rows, columns = 4_734, 850
    needs = [cut_of(rows, columns, memory=limit).memory(rows, columns) for limit in
             (2_000_000_000, 250_000_000, 200_000_000, 150_000_000, 125_000_000)]  # fmt: skip
    assert needs[0] > needs[-1]
    assert needs[-1] <= 125_000_000
    assert cut_of(rows, columns, memory=250_000_000) == Cut(log_rows=12)  # the second one is short
    assert cut_of(9_000, columns, memory=350_000_000) == Cut(log_rows=12)
    assert cut_of(9_000, columns, memory=300_000_000) == Cut(log_rows=11)
    assert cut_of(rows, columns, memory=200_000_000) == Cut(log_rows=11)
    assert cut_of(300, columns, memory=10**9) == Cut()
    assert cut_of(300, columns, memory=10**8) == Cut()
    with pytest.raises(SettingError, match="need about"):
        cut_of(rows, columns, memory=60_000_000)


@pytest.mark.parametrize(
    ("text", "limit"), [("512MB", 512_000_000), ("2GB", 2 * 10**9), ("64 mb", 64_000_000)]
)
def test_the_memory_of_a_prover_is_read(text: str, limit: int) -> None:
    assert within_memory(Full(), text) == Full(memory=limit)


def test_memory_is_optional() -> None:
    assert within_memory(Full(), None) == Full()
    assert within_memory(find_system("unsafe", reveal_rows=True), None) == find_system(
        "unsafe", reveal_rows=True
    )


@pytest.mark.parametrize("text", ["", "512", "MB", "-1MB", "1.5GB", "512KB"])
def test_other_words_for_memory_are_refused(text: str) -> None:
    with pytest.raises(SettingError, match="number of MB or GB"):
        within_memory(Full(), text)


def test_only_full_is_given_a_limit() -> None:
    with pytest.raises(SettingError, match="for the system 'full', not for 'unsafe'"):
        within_memory(find_system("unsafe", reveal_rows=True), "512MB")
