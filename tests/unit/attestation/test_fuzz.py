"""Whatever bytes come, verifying returns or raises a `VerificationError`, and nothing else."""

import json
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sluice.attestation.log.chain import read_log
from sluice.attestation.messages.context import Interval
from sluice.attestation.messages.messages import COMMITS, PROOFS, Commit, Proof
from sluice.attestation.messages.signing import sign
from sluice.attestation.protocol.verifier import STEPS
from sluice.attestation.systems.system import Circuit
from sluice.errors import DocumentError, VerificationError
from sluice.telemetry.record import Record

from .conftest import SYSTEM, PlantRun, World, run_plant

MANY = settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


@pytest.fixture(scope="module")
def run(line: Record, circuit: Circuit, tmp_path_factory: pytest.TempPathFactory) -> PlantRun:
    return run_plant(World(line, circuit, tmp_path_factory.mktemp("fuzz") / "log.jsonl"))


@dataclass(frozen=True)
class Mutation:
    """Bytes put in the place of others."""

    at: float
    length: int
    put: bytes

    def __call__(self, raw: bytes) -> bytes:
        start = int(self.at * len(raw))
        return raw[:start] + self.put + raw[start + self.length :]


mutations = st.builds(
    Mutation,
    at=st.floats(0, 1),
    length=st.integers(0, 200),
    put=st.one_of(
        st.binary(max_size=8),
        st.sampled_from(
            [b'"', b"{", b"}", b"[", b"null", b"-1", b"1e999", b"NaN", b"\\u0000", b"\n", b","]
        ),
    ),
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=70),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=5,
)


def verified(run: PlantRun, proof: bytes, commit: bytes) -> bool:
    """Verify with and without the log; each returns, or raises the one error."""
    steps = []
    for ledger in (None, run.world.ledger):
        step = ""
        try:
            run.world.verifier(ledger).verify(proof, commit)
        except VerificationError as error:
            step = error.step
        steps.append(step)
    assert set(steps) <= {"", *STEPS}
    assert steps[0] == "" or steps[1]  # the log never lets through what fails without it
    return steps[0] == ""


@MANY
@given(mutations)
def test_mutated_bytes(run: PlantRun, mutation: Mutation) -> None:
    proof, commit = mutation(run.proof), mutation(run.commit)
    assert verified(run, proof, run.commit) == (proof == run.proof)
    assert verified(run, run.proof, commit) == (commit == run.commit)


@MANY
@given(st.binary(max_size=300), st.binary(max_size=300))
def test_any_bytes(run: PlantRun, proof: bytes, commit: bytes) -> None:
    assert not verified(run, proof, commit)


@MANY
@given(st.data())
def test_mutated_fields(run: PlantRun, data: st.DataObject) -> None:
    """Any JSON in the place of any field."""
    raw = data.draw(st.sampled_from([run.proof, run.commit]))
    document: dict[str, Any] = json.loads(raw)
    where = data.draw(st.sampled_from(["", *document["content"]]))
    value = data.draw(json_values)
    if where:
        document["content"][where] = value
    else:
        document["signature"] = value
    changed = json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
    same = changed == raw
    one, other = (changed, run.commit) if raw is run.proof else (run.proof, changed)
    assert verified(run, one, other) == same


names = st.sampled_from(["north", "south", "water", "full", "unsafe", "coordinator"])
digests = st.binary(min_size=32, max_size=32).map(bytes.hex)
OTHERS: dict[str, st.SearchStrategy[object]] = {
    "federation": names,
    "client": names,
    "system": names,
    "key": digests,
    "circuit": digests,
    "rules": digests,
    "policy": digests,
    "commitment": digests,
    "rows": st.integers(0, (1 << 53) - 1),
    "interval": st.integers(1, 9_998).map(
        lambda year: Interval(
            start=f"{year:04}-01-01T00:00:00.000000", end=f"{year + 1:04}-01-01T00:00:00.000000"
        )
    ),
    "proof": st.binary(max_size=200),
}


@MANY
@given(st.data())
def test_well_formed_forgeries_signed_by_the_plant(run: PlantRun, data: st.DataObject) -> None:
    """The plant itself signs whatever it likes; only what it proved holds."""
    kind: type[Commit | Proof] = data.draw(st.sampled_from([Commit, Proof]))
    known = [item.name for item in fields(kind) if item.name in OTHERS]
    name = data.draw(st.sampled_from(known))
    value = data.draw(OTHERS[name])
    commit, proof = run.committed.message.content, run.proven.message.content
    changes: dict[str, Any] = {name: value}
    same = getattr(commit if kind is Commit else proof, name) == value
    if kind is Commit:
        commit = replace(commit, **changes)
    else:
        proof = replace(proof, **changes)
    key = run.plant.key
    documents = PROOFS.write(sign(proof, key)), COMMITS.write(sign(commit, key))
    assert verified(run, *documents) == same


@MANY
@given(mutations)
def test_a_revealed_batch_in_any_bytes(run: PlantRun, mutation: Mutation) -> None:
    proof = run.proven.message.content.proof
    with pytest.raises(VerificationError):
        SYSTEM.verify(
            run.plant.circuit,
            commitment=b"x" * 32,
            rows=600,
            context=proof[32:64],
            proof=mutation(proof),
        )


@MANY
@given(mutations)
def test_mutated_logs(run: PlantRun, mutation: Mutation) -> None:
    raw = run.world.path.read_bytes()
    changed = mutation(raw)
    path: Path = run.world.path.with_name("mutated.jsonl")
    path.write_bytes(changed)
    if changed == raw:
        assert read_log(path).head("x") == run.world.ledger.head("x")
        return
    with pytest.raises(VerificationError):
        read_log(path)


@MANY
@given(st.binary(max_size=400))
def test_documents_are_read_or_refused(raw: bytes) -> None:
    for form in (COMMITS, PROOFS):
        with pytest.raises(DocumentError):
            form.read(raw)
