"""Attestations taken together come out as they would one at a time."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice.attestation.log.chain import Log
from sluice.attestation.messages.messages import PROOFS
from sluice.attestation.messages.signing import sign
from sluice.attestation.protocol.coordinator import Attested, ReceivedBatch
from sluice.attestation.protocol.together import Brought, attest_together, verify_together
from sluice.attestation.systems.full.system import Full
from sluice.attestation.systems.system import Circuit, ProofClaim
from sluice.errors import VerificationError
from sluice.telemetry.record import Record

from .conftest import NOW, PlantRun, World, again, copied, run_plant

Outcome = tuple[str, str]
Sent = Sequence[tuple[PlantRun, bytes]]


def bent(run: PlantRun, proof: bytes) -> bytes:
    return PROOFS.write(sign(replace(run.proven.message.content, proof=proof), run.plant.key))


def flipped(run: PlantRun, at: int) -> bytes:
    raw = bytearray(run.proven.message.content.proof)
    raw[at] ^= 1
    return bent(run, bytes(raw))


def variants(run: PlantRun, other: PlantRun) -> list[bytes]:
    """What a plant may send for its commitment: only the first is a proof of it."""
    elsewhere = replace(run.proven.message.content, circuit="0" * 64)
    return [
        run.proof,
        flipped(run, 900),
        bent(run, b""),
        other.proof,
        run.proof[:-1],
        PROOFS.write(sign(elsewhere, run.plant.key)),
    ]


def said(outcome: Attested | VerificationError) -> Outcome:
    if isinstance(outcome, VerificationError):
        return outcome.step, str(outcome)
    return outcome.client, outcome.attestation


def alone(received: ReceivedBatch, proof: bytes) -> Attested | VerificationError:
    try:
        return received.attest(proof, at=NOW)
    except VerificationError as refused:
        return refused


def both_ways(sent: Sent, folder: Path) -> tuple[list[Outcome], list[Outcome]]:
    """The outcome of each plant alone, and together; the logs must be the same."""
    world = sent[0][0].world
    logs = [copied(world, folder / f"{name}.jsonl") for name in ("alone", "together")]
    one_by_one = [said(alone(again(run, logs[0]).received, proof)) for run, proof in sent]
    brought = [Brought(received=again(run, logs[1]).received, proof=raw) for run, raw in sent]
    together = [said(outcome) for outcome in attest_together(brought, at=NOW)]
    assert attested(logs[0], sent) == attested(logs[1], sent)
    return one_by_one, together


def attested(log: Log, sent: Sent) -> list[str | None]:
    return [log.ledger.attestation(run.committed.message.content.commitment) for run, _ in sent]


@pytest.fixture(scope="module")
def plants(
    line: Record, circuit: Circuit, tmp_path_factory: pytest.TempPathFactory
) -> tuple[PlantRun, ...]:
    world = World(line, circuit, tmp_path_factory.mktemp("together") / "log.jsonl")
    return tuple(
        run_plant(world, name, batch=at) for at, name in enumerate(("east", "north", "west"))
    )


@settings(
    max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_each_outcome_is_the_same_as_alone(
    plants: tuple[PlantRun, ...], tmp_path: Path, data: st.DataObject
) -> None:
    kinds = st.tuples(st.integers(0, len(plants) - 1), st.integers(0, 5))
    drawn = data.draw(st.lists(kinds, min_size=2, max_size=6))
    sent = [(plants[who], variants(plants[who], plants[who - 1])[what]) for who, what in drawn]
    one_by_one, together = both_ways(sent, tmp_path)
    assert together == one_by_one


def test_no_proofs() -> None:
    assert attest_together((), at=NOW) == ()
    assert verify_together(()) == ()


def test_a_bad_proof_among_good_ones_is_the_only_one_refused(
    proven_in_full: tuple[PlantRun, PlantRun], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    north, south = proven_in_full
    calls: list[int] = []
    verify_many = Full.verify_many

    def counted(
        self: Full, circuit: Circuit, claims: Sequence[ProofClaim]
    ) -> tuple[VerificationError | None, ...]:
        calls.append(len(claims))
        return verify_many(self, circuit, claims)

    monkeypatch.setattr(Full, "verify_many", counted)
    log = copied(north.world, tmp_path / "log.jsonl")
    brought = [
        Brought(received=again(run, log).received, proof=raw)
        for run, raw in ((north, flipped(north, 5_000)), (south, south.proof))
    ]
    refused, admitted = attest_together(brought, at=NOW)
    assert isinstance(refused, VerificationError)
    assert refused.step == "5.8"
    assert isinstance(admitted, Attested)
    assert (admitted.client, admitted.attestation) == ("south", south.proven.attestation)
    assert calls == [2]  # one call for both


def test_proofs_of_the_default_system_together_and_alone(
    proven_in_full: tuple[PlantRun, PlantRun], tmp_path: Path
) -> None:
    north, south = proven_in_full
    sent = [
        *((north, raw) for raw in variants(north, south)[1:]),
        (south, south.proof),
        (north, north.proof),
        (north, flipped(north, 1_000)),
        (north, north.proof),
    ]
    one_by_one, together = both_ways(sent, tmp_path)
    assert together == one_by_one
    steps = [first for first, _ in together]
    assert steps == [
        *("5.8", "5.7", "5.2", "5.1", "5.6"), "south", "north", "5.4", "north",
    ]  # fmt: skip
