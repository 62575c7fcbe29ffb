"""Whatever bytes come as proof, key, challenge or opening: they are read, or refused one way."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from sluice import _attest
from sluice.attestation.messages.messages import CHALLENGES
from sluice.attestation.protocol.key_folder import KeyFolder
from sluice.attestation.protocol.plant import load_opening, save_opening
from sluice.attestation.systems.sampled.rows import SampledRows
from sluice.attestation.systems.sampled.system import Sampled, SampledClaim, planes_of
from sluice.errors import InputError, VerificationError

from .drawn_plant import CONTEXT, ROWS, SALT, SampledRun, batch, run_plant
from .test_fuzz import Mutation, mutations

MANY = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
FEW = settings(MANY, max_examples=15)
BYTES = st.binary(max_size=300)


def step_of(verify: Callable[[], object]) -> str:
    """Return the step that refuses, or nothing."""
    try:
        verify()
    except VerificationError as refused:
        return refused.step
    return ""


@dataclass(frozen=True)
class Core:
    """The native side: a circuit, its keys, and a proof that holds."""

    system: Sampled
    circuit: _attest.SampledCircuit
    planes: _attest.SampledBatch
    commitment: bytes
    claim: SampledClaim
    proof: bytes


@pytest.fixture(scope="module")
def core(drawn_folder: KeyFolder) -> Core:
    system, circuit = drawn_folder.system, drawn_folder.circuit
    assert isinstance(system, Sampled)
    statement = system.statement(circuit.rules, circuit.policy, rows_max=64)
    commitment = system.commit(batch(), circuit, salt=SALT)
    return Core(
        system=system,
        circuit=_attest.SampledCircuit(statement.content),
        planes=planes_of(SampledRows.of(statement, batch())),
        commitment=commitment,
        claim=system.claim(circuit, commitment, ROWS, CONTEXT),
        proof=system.prove(batch(), circuit, salt=SALT, context=CONTEXT),
    )


@pytest.fixture(scope="module")
def run(drawn_folder: KeyFolder, tmp_path_factory: pytest.TempPathFactory) -> SampledRun:
    return run_plant(drawn_folder, tmp_path_factory.mktemp("fuzz") / "log.jsonl")


@MANY
@given(mutations, BYTES)
def test_proofs(drawn_folder: KeyFolder, core: Core, mutation: Mutation, raw: bytes) -> None:
    verify = partial(
        core.system.verify,
        drawn_folder.circuit,
        commitment=core.commitment,
        rows=ROWS,
        context=CONTEXT,
    )
    for wrong in (mutation(core.proof), raw):
        step = step_of(partial(verify, proof=wrong))
        assert step in ("5.7", "5.8") or (step, wrong) == ("", core.proof)


@MANY
@given(mutations, BYTES)
def test_verifying_keys(core: Core, mutation: Mutation, raw: bytes) -> None:
    key = core.system.verifying_key
    for wrong in (mutation(key), raw):
        try:
            read = _attest.SampledVerifier(core.circuit, wrong)
        except ValueError:
            continue
        # A key that is read holds points of the curve; another one verifies no proof of this one.
        if wrong[88:] != key[88:]:
            with pytest.raises(_attest.InvalidProofError):
                read.verify(core.commitment, core.claim.core, core.proof)


@FEW
@given(mutations, BYTES)
def test_proving_keys(core: Core, mutation: Mutation, raw: bytes) -> None:
    key = core.system.proving_key.read_bytes()
    verifier = _attest.SampledVerifier(core.circuit, core.system.verifying_key)
    for wrong in (mutation(key), raw):
        if wrong == key:
            continue
        path = core.system.proving_key.with_suffix(".wrong")
        path.write_bytes(wrong)
        with pytest.raises(ValueError, match="not the one that the verifying key names"):
            verifier.prove(path, core.planes, SALT, core.claim.core)


@MANY
@given(BYTES, st.lists(st.integers(0, 1 << 40), max_size=4), st.integers(0, 1 << 60))
@example(b"", [], 0)
def test_claims_and_batches(core: Core, raw: bytes, rows: list[int], count: int) -> None:
    claim = _attest.SampledClaim(count, rows, 1, [0], CONTEXT)
    verifier = _attest.SampledVerifier(core.circuit, core.system.verifying_key)
    with pytest.raises(_attest.InvalidProofError):
        verifier.verify(core.commitment, claim, core.proof)
    planes = _attest.SampledBatch(count, raw, raw)
    with pytest.raises(ValueError, match="rows|code"):
        core.circuit.commit(planes, SALT)
    with pytest.raises(ValueError, match="rows|code"):
        core.circuit.measure(planes, rows)


@MANY
@given(BYTES)
@example(b"{}")
def test_statements(raw: bytes) -> None:
    with pytest.raises(ValueError, match="not a statement"):
        _attest.SampledCircuit(raw)


@MANY
@given(mutations)
def test_challenges(run: SampledRun, mutation: Mutation) -> None:
    proof, commit, challenge = run.documents
    wrong = mutation(challenge)
    for ledger in (None, run.log.ledger):
        step = step_of(partial(run.verifier(ledger).verify, proof, commit, wrong))
        assert step in ("", "5.1", "5.3", "5.8")
        assert step or CHALLENGES.read(wrong) == run.challenge


@MANY
@given(mutations)
def test_openings(run: SampledRun, tmp_path: Path, mutation: Mutation) -> None:
    path = tmp_path / "commit.opening"
    save_opening(run.committed.opening, path)
    wrong = mutation(path.read_bytes())
    path.write_bytes(wrong)
    try:
        read = load_opening(path)
    except InputError:
        return
    assert len(bytes.fromhex(read.salt)) == 32
