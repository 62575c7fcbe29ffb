"""The default system: real proofs of small batches, in a process of their own."""

from dataclasses import replace
from pathlib import Path

import pytest

from sluice.admission.gate import judge
from sluice.admission.policy import HardenedPolicy, PaperPolicy
from sluice.attestation.messages.signing import SigningKey
from sluice.attestation.protocol.plant import Registered
from sluice.attestation.systems.full import system as full_module
from sluice.attestation.systems.full import worker
from sluice.attestation.systems.full.system import Full
from sluice.attestation.systems.registry import find_system
from sluice.attestation.systems.system import Circuit, ProofClaim, System
from sluice.errors import ProverError, RefusedError, SettingError, VerificationError
from sluice.invariants.budgets import Margins
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.telemetry.record import Record

from .full_plant import Wiring, clean_batch, policy_of, rules_of, with_cell, with_jump

FULL = Full()
SALT, CONTEXT = b"s" * 32, b"c" * 32
ROWS = 80


def named(value: object) -> str | None:
    return str(next(iter(value))) if isinstance(value, dict) else None


@pytest.fixture(scope="module")
def small() -> Circuit:
    wiring = Wiring()
    return FULL.circuit(rules_of(wiring), policy_of(wiring), rows_max=500)


@pytest.fixture(scope="module")
def batch() -> Record:
    return clean_batch(ROWS, 3)


@pytest.fixture(scope="module")
def proof(small: Circuit, batch: Record) -> bytes:
    return FULL.prove(batch, small, salt=SALT, context=CONTEXT)


def test_it_is_the_system_called_full() -> None:
    system: System = find_system("full")
    assert system == FULL
    assert system.name == "full"


def test_a_circuit_says_what_it_is(small: Circuit) -> None:
    assert small.proven_bits >= 100
    assert small.columns > 100
    assert small.constraints > small.columns
    assert dict(small.parameters)["queries"] >= 53
    assert list(small.parameters) == sorted(small.parameters)
    assert len(bytes.fromhex(small.identity)) == 32


def test_a_circuits_identity_is_its_own(small: Circuit) -> None:
    wiring = Wiring()
    rules, policy = rules_of(wiring), policy_of(wiring)
    assert FULL.circuit(rules, policy, rows_max=500).identity == small.identity
    others = (
        FULL.circuit(rules, policy, rows_max=501),
        FULL.circuit(rules_of(Wiring(settle=3)), policy, rows_max=500),
        FULL.circuit(rules, policy_of(Wiring(severe_rows=2)), rows_max=500),
    )
    assert len({small.identity, *(other.identity for other in others)}) == 4


def test_a_proof_holds_for_its_own_commitment_rows_and_context(
    small: Circuit, batch: Record, proof: bytes
) -> None:
    commitment = FULL.commit(batch, small, salt=SALT)
    arguments = {"commitment": commitment, "rows": ROWS, "context": CONTEXT, "proof": proof}

    def verify(**changes: object) -> None:
        FULL.verify(small, **{**arguments, **changes})  # type: ignore[arg-type]

    verify()
    assert len(proof) < FULL.largest_proof(small)
    for step, changes in (
        ("5.8", {"context": b"d" * 32}),
        ("5.8", {"commitment": FULL.commit(batch, small, salt=b"t" * 32)}),
        ("5.8", {"rows": ROWS - 1}),
        ("5.7", {"rows": 300}),
        ("5.7", {"rows": 0}),
        ("5.7", {"rows": 501}),
        ("5.7", {"commitment": b"\xff" * 32}),
        ("5.7", {"commitment": commitment[1:]}),
        ("5.7", {"context": b""}),
        ("5.7", {"proof": proof + b"\0"}),
        ("5.7", {"proof": proof[:-1]}),
        ("5.7", {"proof": b""}),
    ):
        with pytest.raises(VerificationError) as refused:
            verify(**changes)
        assert refused.value.step == step, changes


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"rows": 1}, "does not take 1 rows"),
        ({"rows": 501}, "does not take 501 rows"),
        ({"commitment": bytes(31)}, "wrong length"),
        ({"commitment": bytes(33)}, "wrong length"),
        ({"context": bytes(31)}, "wrong length"),
        ({"context": bytes(33)}, "wrong length"),
        ({"proof": bytes((1 << 23) + 1)}, "wrong length"),
        ({"statistic": b""}, "the circuit takes no statistic"),
    ],
    ids=named,
)
def test_a_claim_of_another_size_is_refused_before_its_proof_is_read(
    small: Circuit, changes: dict[str, object], says: str
) -> None:
    claim = ProofClaim(commitment=bytes(32), rows=ROWS, context=CONTEXT, proof=b"")
    other: ProofClaim = replace(claim, **changes)  # type: ignore[arg-type]
    (refused,) = FULL.verify_many(small, [other])
    assert refused is not None
    assert (refused.step, says in refused.why) == ("5.7", True), refused


@pytest.mark.parametrize(
    "changes", [{"rows": 2}, {"rows": 500}, {"proof": bytes(1 << 23)}], ids=named
)
def test_a_claim_at_the_edge_of_a_size_is_refused_for_its_proof_alone(
    small: Circuit, changes: dict[str, object]
) -> None:
    claim = ProofClaim(commitment=bytes(32), rows=ROWS, context=CONTEXT, proof=b"")
    other: ProofClaim = replace(claim, **changes)  # type: ignore[arg-type]
    (refused,) = FULL.verify_many(small, [other])
    assert refused is not None
    assert "does not take" not in refused.why
    assert "wrong length" not in refused.why


def test_a_batch_of_another_size_is_not_sent_to_the_prover(batch: Record) -> None:
    wiring = Wiring()
    circuit = FULL.circuit(rules_of(wiring), policy_of(wiring), rows_max=ROWS - 1)

    def request(rows: int) -> bytes:
        return FULL.request(batch.rows(0, rows), circuit, salt=SALT, context=CONTEXT)

    assert len(request(2)) < len(request(ROWS - 1))
    for rows in (1, ROWS):
        with pytest.raises(RefusedError, match=f"has {rows} rows; its circuit takes 2 to 79"):
            request(rows)


def test_many_proofs_are_verified_each_for_itself(
    small: Circuit, batch: Record, proof: bytes
) -> None:
    commitment = FULL.commit(batch, small, salt=SALT)
    good = ProofClaim(commitment=commitment, rows=ROWS, context=CONTEXT, proof=proof)
    bent = bytes([*proof[:900], proof[900] ^ 1, *proof[901:]])
    claims = (
        good,
        replace(good, proof=bent),
        replace(good, rows=501),
        replace(good, context=b"d" * 32),
        replace(good, proof=b""),
        replace(good, rows=ROWS - 1),
        replace(good, commitment=commitment[1:]),
        good,
    )
    answers = FULL.verify_many(small, claims)
    steps = [refused.step if refused else None for refused in answers]
    assert steps == [None, "5.8", "5.7", "5.8", "5.7", "5.8", "5.7", None]
    assert FULL.verify_many(small, ()) == ()


def test_a_commitment_hides_and_binds(small: Circuit, batch: Record) -> None:
    one = FULL.commit(batch, small, salt=SALT)
    assert len(one) == 32
    assert one == FULL.commit(batch, small, salt=SALT)
    assert one != FULL.commit(batch, small, salt=b"t" * 32)
    assert one != FULL.commit(with_cell(batch, 7, "U", 2.0), small, salt=SALT)
    assert one != FULL.commit(batch.rows(0, ROWS - 1), small, salt=SALT)


@pytest.mark.parametrize("reading", [0.0, 99.9])
def test_impossible_readings_are_not_committed_to(
    small: Circuit, batch: Record, reading: float
) -> None:
    lying = with_cell(batch, 40, "Q", reading)  # its bound is 5 to 95, and no row may break it
    assert not judge(lying, small.rules, small.policy).admitted
    with pytest.raises(RefusedError, match="committed to: register 3 is out of bounds on row 40"):
        FULL.commit(lying, small, salt=SALT)
    with pytest.raises(RefusedError, match="does not satisfy its circuit: register 3"):
        FULL.prove(lying, small, salt=SALT, context=CONTEXT)


def test_a_time_jump_is_committed_to_where_the_policy_allows_one(
    small: Circuit, batch: Record
) -> None:
    jumping = with_jump(batch, 33)
    with pytest.raises(RefusedError, match="committed to: the policy lets a batch hold no time"):
        FULL.commit(jumping, small, salt=SALT)
    wiring = Wiring(jumps=True)
    lenient = FULL.circuit(rules_of(wiring), policy_of(wiring), rows_max=500)
    with_it = FULL.commit(jumping, lenient, salt=SALT)
    assert with_it != FULL.commit(batch, lenient, salt=SALT)


def test_impossible_readings_are_reported_with_channel_names(small: Circuit, batch: Record) -> None:
    plant = Registered(
        federation="river",
        client="north",
        key=SigningKey.generate(),
        system=FULL,
        circuit=small,
    )
    with pytest.raises(RefusedError, match="Only you see these reasons") as refused:
        plant.commit(with_cell(batch, 40, "Q", 99.9))
    assert "outside 5 to 95 on 1 of 80 rows" in str(refused.value)
    assert "register" not in str(refused.value)


def test_a_commitment_outlives_a_change_of_policy(small: Circuit, batch: Record) -> None:
    policy = HardenedPolicy(rows_min=2, margins=Margins(severe_share=0.0))  # as in `small`
    stricter = FULL.circuit(rules_of(Wiring()), policy, rows_max=500)
    assert stricter.identity != small.identity
    assert FULL.commit(batch, stricter, salt=SALT) == FULL.commit(batch, small, salt=SALT)


def test_what_does_not_hold_is_not_proven(small: Circuit, batch: Record) -> None:
    lying = with_cell(batch, 40, "L", 9.0)
    assert not judge(lying, small.rules, small.policy).admitted
    with pytest.raises(RefusedError, match="'small' does not satisfy its circuit: no flag"):
        FULL.prove(lying, small, salt=SALT, context=CONTEXT)
    with pytest.raises(RefusedError, match="has 600 rows; its circuit takes 2 to 500"):
        FULL.prove(clean_batch(600, 1), small, salt=SALT, context=CONTEXT)


def test_a_prover_that_hangs_is_ended(small: Circuit, batch: Record) -> None:
    hurried = Full(patience_s=0.001 - ROWS / full_module.ROWS_PER_SECOND)
    with pytest.raises(ProverError, match="no proof within 0 s, twice"):
        hurried.prove(batch, small, salt=SALT, context=CONTEXT)


def test_a_prover_that_dies_is_reported(
    small: Circuit, batch: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "worker.py"
    script.write_text("import sys; sys.exit('out of memory')")
    monkeypatch.setattr(worker, "__file__", str(script))
    with pytest.raises(ProverError, match="ended with code 1 \\(out of memory\\)"):
        FULL.prove(batch, small, salt=SALT, context=CONTEXT)


def test_proving_leaves_nothing_behind(
    small: Circuit, batch: Record, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    FULL.prove(batch, small, salt=SALT, context=CONTEXT)
    assert list(tmp_path.rglob("*")) == []


def test_it_states_the_hardened_policy_of_hardened_rules_only() -> None:
    rules = rules_of(Wiring())
    with pytest.raises(SettingError, match="states the hardened policy only"):
        FULL.circuit(rules, PaperPolicy(), rows_max=500)
    papers = replace(rules, profile=Profile.PAPER_WIDE, clean=None)
    with pytest.raises(SettingError, match="'paper-wide', which has no facts about clean batches"):
        FULL.circuit(papers, HardenedPolicy(), rows_max=500)
    for rows in (2, 524_288):
        assert FULL.circuit(rules, HardenedPolicy(), rows_max=rows).rows_max == rows
    for rows in (1, 524_289):
        with pytest.raises(SettingError, match=f"proves 2 to 524,288 rows, not {rows:,}"):
            FULL.circuit(rules, HardenedPolicy(), rows_max=rows)
    with pytest.raises(SettingError, match="severe_multiple is 0.5"):
        FULL.circuit(rules, policy_of(Wiring(severe_multiple=0.5)), rows_max=500)


def test_mined_rules_are_proven(rules: RuleSet, line: Record) -> None:
    circuit = FULL.circuit(rules, HardenedPolicy(), rows_max=1_000)
    assert circuit.proven_bits >= 100
    clean = line.rows(8_640, 9_240)
    commitment = FULL.commit(clean, circuit, salt=SALT)
    proof = FULL.prove(clean, circuit, salt=SALT, context=CONTEXT)
    FULL.verify(circuit, commitment=commitment, rows=600, context=CONTEXT, proof=proof)
