"""A statistic that a proof binds to the committed rows: what is summed, and every lie about it."""

import json
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from benchmarks.exactness.sums import random_batch, try_batch
from benchmarks.verifiers.compare import ACCEPTED, changed_bound, compare, proven_bound
from sluice import _attest
from sluice.arrays import Ints
from sluice.attestation.messages.context import Context, Interval
from sluice.attestation.messages.messages import COMMITS, PROOFS
from sluice.attestation.messages.signing import sign
from sluice.attestation.protocol.alone import commit, prove, verify, write_proof
from sluice.attestation.protocol.key_folder import KeyFolder
from sluice.attestation.protocol.plant import Committed, Proven, statistic_beside
from sluice.attestation.systems.full import (
    Full,
    SealedStatistic,
    Statement,
    StatisticName,
    batch_statistic,
    derive,
    settings_of,
    statistic_settings,
    verify_again,
)
from sluice.attestation.systems.full.bound import demand_sums
from sluice.attestation.systems.full.reference.circuit import ReferenceCircuit
from sluice.attestation.systems.full.reference.field import ORDER
from sluice.attestation.systems.full.reference.gadgets.moments import (
    MomentColumns,
    draw_form,
    form_totals,
    read_sums,
)
from sluice.attestation.systems.full.reference.statement import read_statement
from sluice.attestation.systems.full.reference.verify import ReferenceClaim, verify_claim
from sluice.attestation.systems.registry import find_system
from sluice.attestation.systems.sampled import Sampled, Sampling
from sluice.attestation.systems.system import Circuit, ProofClaim
from sluice.detector.moments.settings import MomentSettings
from sluice.detector.moments.statistic import (
    MomentStatistic,
    moment_statistic,
    sum_windows,
    trapezoid,
)
from sluice.errors import DocumentError, RefusedError, SettingError, VerificationError
from sluice.invariants.encoding import Register
from sluice.seeding import stream
from sluice.telemetry.record import Record

from .bound_vectors import CONTEXT, SALT, VECTORS, document
from .full_plant import Wiring, clean_batch, policy_of, rules_of, with_cell, with_jump

BOUND = Full(binds=StatisticName.MOMENTS)
HEADER = 16 + 32 + 24


@cache
def bound_circuit(wiring: Wiring = Wiring()) -> Circuit:  # noqa: B008 - frozen
    return BOUND.circuit(rules_of(wiring), policy_of(wiring), rows_max=500)


@cache
def batch() -> Record:
    return clean_batch(80, 3)


@cache
def statistic() -> bytes:
    found = batch_statistic(batch(), bound_circuit())
    assert found is not None
    return found


@cache
def proof() -> bytes:
    return BOUND.prove(batch(), bound_circuit(), salt=SALT, context=CONTEXT, statistic=statistic())


def claim(**changes: object) -> ProofClaim:
    commitment = BOUND.commit(batch(), bound_circuit(), salt=SALT)
    held = ProofClaim(
        commitment=commitment, rows=80, context=CONTEXT, proof=proof(), statistic=statistic()
    )
    return replace(held, **changes)  # type: ignore[arg-type]


def with_word(content: bytes, at: int, more: int) -> bytes:
    place = HEADER + 8 * at
    word = int.from_bytes(content[place : place + 8], "little") + more
    return content[:place] + (word % 2**64).to_bytes(8, "little") + content[place + 8 :]


def test_rules_choose_the_channels() -> None:
    settings = statistic_settings(bound_circuit())
    assert settings is not None
    # Not Q, an analyser; not U and R, which no rule ties; not X, which is not committed to.
    assert settings.channels == ("F", "G", "L", "P", "S")
    constant = statistic_settings(bound_circuit(Wiring(idle=True)))
    assert constant is not None
    assert constant.channels == ("F", "L", "P", "S")  # the rules say that G is constant
    encoding = derive(rules_of(Wiring()), policy_of(Wiring())).encoding
    known = {register.channel: register for register in encoding.registers}
    assert [register for register in settings.registers if register.channel in known] == [
        known["F"], known["G"], known["L"],
    ]  # fmt: skip


def test_rules_that_tie_nothing_or_too_much_have_no_statistic(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rules, statement = rules_of(Wiring()), derive_bound()
    loose = replace(
        rules, invariants=tuple(rule for rule in rules.invariants if not rule.kind.ties)
    )
    with pytest.raises(SettingError, match="tie 0 channels"):
        settings_of(loose, statement.encoding, statement.actuators)
    limit = "sluice.attestation.systems.full.bound.MOST_CHANNELS"
    monkeypatch.setattr(limit, 5)
    assert len(settings_of(rules, statement.encoding, statement.actuators).channels) == 5
    flow = replace(statement.encoding, registers=(statement.encoding.register("F"),))
    assert settings_of(rules, flow, ()).channels == ("F",)
    monkeypatch.setattr(limit, 4)
    with pytest.raises(SettingError, match="tie 5 channels"):
        settings_of(rules, statement.encoding, statement.actuators)


def test_a_statement_without_a_statistic_is_the_same_as_ever() -> None:
    wiring = Wiring()
    plain, bound = Full(), bound_circuit()
    circuit = plain.circuit(rules_of(wiring), policy_of(wiring), rows_max=500)
    assert circuit.statistic is None
    assert circuit.statistic_bits == 0
    assert batch_statistic(batch(), circuit) is None
    assert b"statistic" not in derive(rules_of(wiring), policy_of(wiring)).content
    assert circuit.identity != bound.identity
    assert (circuit.columns + 30, circuit.constraints + 63) == (bound.columns, bound.constraints)
    assert bound.statistic_bits == 187
    assert bound.proven_bits >= 100
    # One batch, one commitment: the statement says what else is shown of it.
    commitments = {plain.commit(batch(), each, salt=SALT) for each in (circuit, bound)}
    assert len(commitments) == 1


def test_a_context_without_a_statistic_is_the_same_as_ever() -> None:
    start = "2024-03-01T00:00:00.000000"
    context = Context(
        system="full", federation="f", client_key=b"k", rules=b"r", policy=b"p", circuit=b"c",
        parameters=(), rows_max=1, commitment=b"x", rows=1,
        interval=Interval(start=start, end=start),
    )  # fmt: skip
    digests = {replace(context, statistic=each).digest() for each in (b"", b"a" * 32, b"b" * 32)}
    assert len(digests) == 3
    assert context.digest() in digests


def test_the_vectors_are_current() -> None:
    assert VECTORS.read_text(encoding="utf-8") == document()


@pytest.mark.parametrize("at", range(7))
def test_the_second_verifier_lays_out_the_vectors_alike(at: int) -> None:
    vector = json.loads(VECTORS.read_text(encoding="utf-8"))["vectors"][at]
    reference = ReferenceCircuit(vector["statement"].encode())
    assert reference.identity.hex() == vector["identity"]


def test_both_verifiers_accept_a_proof_with_its_statistic() -> None:
    held = claim()
    BOUND.verify(
        bound_circuit(),
        commitment=held.commitment,
        rows=80,
        context=CONTEXT,
        proof=held.proof,
        statistic=held.statistic,
    )
    verify_again(bound_circuit(), held)
    assert BOUND.verify_many(bound_circuit(), [held]) == (None,)


def lies() -> Iterator[tuple[str, str, dict[str, object]]]:
    other = batch_statistic(clean_batch(80, 5), bound_circuit())
    yield "a sum", "5.8", {"statistic": with_word(statistic(), 0, 1)}
    yield "a square", "5.8", {"statistic": with_word(statistic(), 5, -1)}
    yield "the last lag", "5.8", {"statistic": with_word(statistic(), 5 + 10 * 25 - 1, 1)}
    yield "another batch", "5.8", {"statistic": other}
    yield "not symmetric", "5.7", {"statistic": with_word(statistic(), 6, 1)}
    yield "an overflow", "5.7", {"statistic": with_word(statistic(), 30, 1 << 62)}
    yield "the order of the field more", "5.7", {
        "statistic": with_word(statistic(), 23, (1 << 64) - (1 << 32) + 1)
    }  # fmt: skip
    yield "a byte more", "5.7", {"statistic": statistic() + b"\0"}
    yield "nothing", "5.7", {"statistic": b""}
    yield "none", "5.7", {"statistic": None}
    yield "another context", "5.8", {"context": b"d" * 32}


@pytest.mark.parametrize("at", range(11))
def test_no_verifier_accepts_a_lie(at: int) -> None:
    what, step, changes = list(lies())[at]
    lied = claim(**changes)
    (refused,) = BOUND.verify_many(bound_circuit(), [lied])
    assert refused is not None, what
    assert refused.step == step, what
    with pytest.raises(VerificationError) as second:
        verify_again(bound_circuit(), lied)
    assert second.value.step == step, what


def test_a_claim_without_the_statistic_is_refused_before_its_proof_is_read() -> None:
    (refused,) = BOUND.verify_many(bound_circuit(), [claim(statistic=None, proof=b"")])
    assert refused is not None
    assert (refused.step, refused.why) == ("5.7", "the circuit needs a statistic")


def test_a_prover_refuses_a_false_statistic() -> None:
    with pytest.raises(RefusedError, match="not that of this batch"):
        BOUND.prove(
            batch(), bound_circuit(), salt=SALT, context=CONTEXT,
            statistic=with_word(statistic(), 0, 1),
        )  # fmt: skip
    with pytest.raises(SettingError, match="if the circuit binds one"):
        BOUND.prove(batch(), bound_circuit(), salt=SALT, context=CONTEXT)


def test_systems_that_bind_nothing_refuse_a_statistic() -> None:
    for name, binds in (("unsafe", "moments"), ("full", "averages"), ("sampled", "moments")):
        with pytest.raises(SettingError, match="binds no statistic"):
            find_system(name, reveal_rows=True, statistic=binds)
    assert find_system("full", statistic="moments") == BOUND
    unsafe = find_system("unsafe", reveal_rows=True)
    wiring = Wiring()
    circuit = unsafe.circuit(rules_of(wiring), policy_of(wiring), rows_max=500)
    raw = unsafe.prove(batch(), circuit, salt=SALT, context=CONTEXT)
    commitment = unsafe.commit(batch(), circuit, salt=SALT)
    with pytest.raises(VerificationError, match="takes no statistic"):
        unsafe.verify(
            circuit, commitment=commitment, rows=80, context=CONTEXT, proof=raw, statistic=b""
        )
    sampled = Sampled(
        sampling=Sampling(samples=8, violations=2), verifying_key=b"", proving_key=Path("none")
    )
    for system in (unsafe, sampled):
        with pytest.raises(VerificationError, match="takes no statistic"):
            system.prove(batch(), circuit, salt=SALT, context=CONTEXT, statistic=b"")
        with pytest.raises(VerificationError, match="takes no statistic"):
            system.verify(
                circuit, commitment=commitment, rows=80, context=CONTEXT, proof=raw, statistic=b""
            )


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        (with_jump(clean_batch(80, 3), 40), "one segment"),
        (with_cell(clean_batch(80, 3), 20, "S", 7.0), "the rules do not name"),
        (clean_batch(9, 3), "at least 10 rows"),
    ],
)
def test_batches_without_a_statistic_are_refused(changed: Record, says: str) -> None:
    circuit = bound_circuit(Wiring(jumps=True))
    with pytest.raises(RefusedError, match=says):
        batch_statistic(changed, circuit)


def test_the_fewest_rows_with_a_statistic_are_one_window() -> None:
    found = batch_statistic(clean_batch(10, 3), bound_circuit())
    assert found is not None
    demand_sums(derive_bound(), found, rows=10)
    for rows in (9, 11):
        with pytest.raises(SettingError, match=f"the statistic is not that of {rows} rows"):
            demand_sums(derive_bound(), found, rows=rows)


def test_a_statistic_of_other_windows_is_not_that_of_the_rows() -> None:
    statement = derive_bound()
    assert statement.statistic is not None
    held = MomentStatistic.from_canonical(statistic(), statement.statistic)
    demand_sums(statement, statistic(), rows=80)
    nothing = replace(held, count=0, weight=0, sums=held.sums * 0, lagged=held.lagged * 0)
    for lie, rows in (
        (replace(held, count=held.count - 1), 80),
        (replace(held, weight=held.weight + 1), 80),
        (nothing, 9),
    ):
        with pytest.raises(SettingError, match=f"the statistic is not that of {rows} rows"):
            demand_sums(statement, lie.canonical(), rows=rows)


def test_an_unknown_code_of_a_channel_that_is_not_summed_is_no_obstacle() -> None:
    unknown = with_cell(batch(), 20, "U", 7.0)
    assert batch_statistic(unknown, bound_circuit()) == statistic()


def test_the_second_verifier_takes_the_largest_sums_and_no_larger_ones() -> None:
    settings, content = hand_made(1, 2)
    stated = read_statement(content).statistic
    assert stated is not None
    weights = np.array([0, *trapezoid(19)])
    largest = sum_windows(np.full((20, 1), 65_535), weights, settings).canonical()
    weight = int(weights.sum())
    found = read_sums(stated, largest, 20)
    assert (found.sums, found.lagged) == ([65_535 * weight], [[[65_535**2 * weight]]] * 2)
    for at in range(3):  # a sum, a square and a product with the row before
        with pytest.raises(VerificationError, match="an integer that no rows give"):
            read_sums(stated, with_word(largest, at, 1), 20)


def test_one_sum_that_no_rows_give_is_enough_to_refuse() -> None:
    settings, content = hand_made(2, 2)
    stated = read_statement(content).statistic
    assert stated is not None
    weights = np.array([0, *trapezoid(19)])
    readings = np.array([[0, 65_535]] * 20)
    largest = sum_windows(readings, weights, settings).canonical()
    read_sums(stated, largest, 20)
    with pytest.raises(VerificationError, match="an integer that no rows give"):
        read_sums(stated, with_word(largest, 1, 1), 20)


def test_the_core_commits_to_one_segment_only() -> None:
    circuit = bound_circuit(Wiring(jumps=True))
    with pytest.raises(RefusedError, match="one segment"):
        BOUND.commit(with_jump(clean_batch(80, 3), 40), circuit, salt=SALT)


def hand_made(channels: int, lags: int) -> tuple[MomentSettings, bytes]:
    """A statement without rules, whose registers may be anything, and its settings."""
    settings = MomentSettings(
        registers=tuple(Register(channel=f"C{at}", low=0.0, step=1.0) for at in range(channels)),
        lags=lags,
    )
    kinds = "actuators bounds rates couplings balances windows liveness idle ties switches spectra"
    statement = {
        "version": 2,
        "encoding": "0" * 64,
        "registers": [{"low": 0, "high": 65_535}] * channels,
        "lanes": [[{"source": {"register": at}, "weight": 1}] for at in range(channels)],
        "jumps": False,
        "severe": False,
        "statistic": {
            "settings": settings.digest,
            "lags": lags,
            "channels": [{"register": at} for at in range(channels)],
        },
        **{kind: [] for kind in kinds.split()},
    }
    return settings, json.dumps(statement).encode()


def budgets_of(rows: int) -> bytes:
    """Every row may be flagged."""
    lists: dict[str, list[int]] = {"unsteady": [], "windows": [], "switches": [], "blocks": []}
    return json.dumps({"violating": rows, "severe": 0, "segments": 1, **lists}).encode()


def python_sums(registers: Ints, weights: Ints, lags: int) -> tuple[list[int], list[int]]:
    """The sums in Python's own integers, term by term."""
    rows, channels = registers.shape
    held = [[int(value) for value in row] for row in registers]
    counted = range(lags - 1, rows)
    sums = [sum(int(weights[t]) * held[t][i] for t in counted) for i in range(channels)]
    lagged = [
        sum(int(weights[t]) * held[t][i] * held[t - k][j] for t in counted)
        for k in range(lags)
        for i in range(channels)
        for j in range(channels)
    ]
    return sums, lagged


@pytest.mark.parametrize("seed", range(3))
def test_the_circuits_sums_are_numpys_and_pythons(seed: int) -> None:
    """Random registers and flags; lengths at and around powers of two."""
    rng = stream(seed, "exact sums")
    lengths = [255, 256, 257, 511, 512, 513, *rng.integers(12, 300, 6)]
    for rows in map(int, lengths):
        channels, lags = int(rng.integers(1, 5)), int(rng.integers(1, 13))
        settings, content = hand_made(channels, lags)
        registers = rng.integers(0, 65_536, (rows, channels), dtype=np.int64)
        if rng.random() < 0.3:
            registers[:] = 65_535  # the largest sums
        weights = np.zeros(rows, np.int64)
        weights[lags - 1 :] = trapezoid(rows - lags + 1)
        found = sum_windows(registers, weights, settings)
        assert python_sums(registers, weights, lags) == (
            found.sums.tolist(), found.lagged.ravel().tolist(),
        )  # fmt: skip
        flags = (rng.random(rows) < 0.1).astype(np.uint8)
        starts = bytes([1]) + bytes(rows - 1)
        planes = _attest.FullBatch(
            rows, registers.astype("<u2").tobytes(), b"", starts, flags.tobytes()
        )
        budgets = budgets_of(rows)
        core = _attest.FullCircuit(content)
        core.examine(budgets, planes, found.canonical())
        wrong = with_word(found.canonical(), int(rng.integers(channels)), 1)
        if registers.min() == 65_535:  # the largest sums have no larger ones
            with pytest.raises(ValueError, match="no rows give"):
                core.forced(budgets, planes, wrong)
        else:
            assert core.forced(budgets, planes, wrong) > 0


def test_a_plants_statistic_is_the_detectors() -> None:
    settings = statistic_settings(bound_circuit())
    assert settings is not None
    assert statistic() == moment_statistic(batch(), settings).canonical()


# From keys to verification.


@pytest.fixture
def keys(tmp_path: Path) -> KeyFolder:
    wiring = Wiring()
    return KeyFolder.create(
        tmp_path / "keys", BOUND, rules_of(wiring), policy_of(wiring), rows_max=500
    )


@pytest.fixture
def committed(keys: KeyFolder, tmp_path: Path) -> Committed:
    made = commit(batch(), keys)
    made.save(tmp_path / "commit.json")
    return made


@pytest.fixture
def proven(committed: Committed) -> Proven:
    return prove(batch(), committed)


def test_keys_pin_the_statistic(keys: KeyFolder) -> None:
    assert keys.pinned.statistic == "moments"
    again = KeyFolder.open(keys.path)
    assert again.circuit.identity == keys.circuit.identity
    assert again.circuit.statistic == "moments"
    circuit = keys.path / "circuit.json"
    circuit.write_bytes(circuit.read_bytes().replace(b',"statistic":"moments"', b""))
    with pytest.raises(DocumentError, match="pins circuit"):
        KeyFolder.open(keys.path).demand_same_circuit()


def test_keys_that_pin_another_circuit_commit_to_nothing(keys: KeyFolder) -> None:
    other = replace(keys, pinned=replace(keys.pinned, circuit="0" * 64))
    with pytest.raises(DocumentError, match="pins circuit 000000000000"):
        commit(batch(), other)
    assert not (keys.path / "private").exists()


def test_commitment_and_statistic_are_saved_and_loaded(
    keys: KeyFolder, committed: Committed, tmp_path: Path
) -> None:
    path = tmp_path / "commit.json"
    beside = statistic_beside(path)
    assert beside.name == "statistic.bin"
    assert beside.read_bytes() == committed.statistic == statistic()
    assert COMMITS.read(path.read_bytes()).content.statistic is not None
    loaded = Committed.load(path, keys.client_key(), keys.system, keys.circuit)
    assert loaded.statistic == statistic()
    with pytest.raises(SettingError, match="statistic.bin exists"):
        commit(batch(), keys).save(tmp_path / "other.json")
    beside.write_bytes(with_word(statistic(), 0, 1))
    with pytest.raises(SettingError, match="is not the statistic"):
        Committed.load(path, keys.client_key(), keys.system, keys.circuit)


def test_a_verified_proof_says_what_is_bound(
    keys: KeyFolder, committed: Committed, proven: Proven, tmp_path: Path
) -> None:
    seen = verify(proven, committed, keys)
    assert seen.bound == "moments"
    assert seen.steps_checked == ("5.1", "5.5", "5.6", "5.6.1", "5.7", "5.8")
    assert verify(proven, committed, keys, reference=True).reference
    write_proof(proven, tmp_path / "proof.json")
    raw, document = (tmp_path / "proof.json").read_bytes(), COMMITS.write(committed.message)
    longer = statistic() + b"\0"
    for given in (None, with_word(statistic(), 0, 1), b"", longer, statistic()[:-1]):
        with pytest.raises(VerificationError) as refused:
            verify(raw, document, keys, statistic=given)
        assert refused.value.step == "5.6.1"
    with pytest.raises(VerificationError, match="the statistic has 67,108,865 bytes"):
        verify(raw, document, keys, statistic=bytes((1 << 26) + 1))
    unnamed = replace(committed.message.content, statistic=None)
    other = COMMITS.write(sign(unnamed, keys.client_key()))
    with pytest.raises(VerificationError, match="without one"):
        verify(raw, other, keys, statistic=statistic())


@pytest.mark.parametrize("less", [0, 1])
def test_a_statistic_may_be_as_long_as_the_limit(
    keys: KeyFolder,
    committed: Committed,
    proven: Proven,
    monkeypatch: pytest.MonkeyPatch,
    less: int,
) -> None:
    limit = "sluice.attestation.protocol.verifier.full.LARGEST_STATISTIC"
    monkeypatch.setattr(limit, len(statistic()) - less)
    if less:
        with pytest.raises(VerificationError, match="the statistic has"):
            verify(proven, committed, keys)
    else:
        assert verify(proven, committed, keys).bound == "moments"


def test_a_statistic_of_another_number_of_rows_is_refused_before_the_proof(
    keys: KeyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    longer = batch_statistic(clean_batch(81, 3), keys.circuit)
    monkeypatch.setattr("sluice.attestation.protocol.plant.batch_statistic", lambda *_: longer)
    made = commit(batch(), keys)
    monkeypatch.undo()
    honest = prove(batch(), commit(batch(), keys)).message.content
    forged = replace(honest, commitment=made.message.content.commitment)
    document = PROOFS.write(sign(forged, made.plant.key))
    with pytest.raises(VerificationError, match="not that of 80 rows") as refused:
        verify(document, made, keys)
    assert refused.value.step == "5.6.1"


def test_keys_without_a_statistic_take_none(tmp_path: Path) -> None:
    wiring = Wiring()
    keys = KeyFolder.create(
        tmp_path / "keys", Full(), rules_of(wiring), policy_of(wiring), rows_max=500
    )
    assert keys.pinned.statistic is None
    assert b"statistic" not in (keys.path / "circuit.json").read_bytes()
    made = commit(batch(), keys)
    assert b"statistic" not in COMMITS.write(made.message)
    shown = prove(batch(), made)
    assert verify(shown, made, keys).bound is None
    with pytest.raises(VerificationError) as refused:
        verify(shown, made, keys, statistic=statistic())
    assert refused.value.step == "5.6.1"


# Why no flag may decide which rows count.


def masked_form(values: Ints, flags: Ints, prime: int) -> int:
    """What a form would come to if rows with a flag did not count."""
    return int(sum(int(v) for v, flag in zip(values, flags, strict=True) if not flag) % prime)


def forging_flags(values: Ints, wanted: int, prime: int, allowed: int) -> tuple[int, ...] | None:
    """Find rows to leave out so that the form comes to any total: two lists that meet."""
    total = int(sum(map(int, values)) % prime)
    missing = (total - wanted) % prime  # what the rows that are left out must add up to
    half = len(values) // 2
    most = allowed // 2

    def sums(rows: range) -> Iterator[tuple[int, tuple[int, ...]]]:
        for count in range(most + 1):
            for chosen in combinations(rows, count):
                yield sum(int(values[row]) for row in chosen) % prime, chosen

    known = dict(sums(range(half)))
    for found, chosen in sums(range(half, len(values))):
        if (missing - found) % prime in known:
            return known[(missing - found) % prime] + chosen
    return None


def test_rows_that_flags_leave_out_forge_any_total() -> None:
    """With flags that are chosen after the weights are known, every false total can be reached.

    The field is small, so that the attack takes a second. Over Goldilocks it takes longer lists;
    the argument is the same.
    """
    rng, prime = stream(7, "k-list"), (1 << 31) - 1
    rows = 40  # that the budget lets a prover flag, each so far from the others that none share
    values = rng.integers(0, prime, rows)
    for _ in range(5):
        wanted = int(rng.integers(0, prime))
        chosen = forging_flags(values, wanted, prime, allowed=14)
        assert chosen is not None
        flags = np.isin(np.arange(rows), chosen).astype(np.int64)
        assert masked_form(values, flags, prime) == wanted


def test_the_attack_cannot_be_stated_on_the_circuit() -> None:
    """Whatever rows are flagged, the core takes one statistic and no other."""
    settings, content = hand_made(2, 4)
    rng = stream(8, "flags")
    registers = rng.integers(0, 65_536, (60, 2), dtype=np.int64)
    weights = np.zeros(60, np.int64)
    weights[3:] = trapezoid(57)
    honest = sum_windows(registers, weights, settings).canonical()
    core = _attest.FullCircuit(content)
    budgets = budgets_of(60)
    for share in (0.0, 0.2, 1.0):
        flags = (rng.random(60) < share).astype(np.uint8)
        kept = np.where(flags == 1, 0, weights)
        planes = _attest.FullBatch(
            60, registers.astype("<u2").tobytes(), b"", bytes([1]) + bytes(59), flags.tobytes()
        )
        core.examine(budgets, planes, honest)
        if share:
            dropped = sum_windows(registers, kept, settings)
            header, body = honest[:HEADER], dropped.canonical()[HEADER:]
            assert core.forced(budgets, planes, header + body) > 0


def test_the_second_verifier_needs_the_statistic_where_there_is_one() -> None:
    statement = derive(rules_of(Wiring()), policy_of(Wiring()))
    held = claim()
    with pytest.raises(VerificationError, match="takes no statistic"):
        verify_claim(
            ReferenceCircuit(statement.content),
            ReferenceClaim(
                budgets=statement.budget_content(80),
                rows=80,
                commitment=held.commitment,
                context=CONTEXT,
                proof=held.proof,
                statistic=statistic(),
            ),
        )


@pytest.mark.parametrize(
    ("rows", "why"),
    [(80, "the proof cannot be read"), (81, "the statistic is not that of 80 rows")],
)
def test_the_second_verifier_takes_sealed_sums_of_these_rows_only(rows: int, why: str) -> None:
    statement = derive(rules_of(Wiring()), policy_of(Wiring()), statistic=settings_of, masked=True)
    assert statement.statistic is not None
    sealed = SealedStatistic(
        settings=statement.statistic, rows=rows, coordinator=bytes(32), helper=bytes(32)
    )
    lied = ReferenceClaim(
        budgets=statement.budget_content(80),
        rows=80,
        commitment=bytes(32),
        context=CONTEXT,
        proof=bytes(24),  # the totals of the form, and nothing after them
        statistic=sealed.canonical(),
    )
    with pytest.raises(VerificationError, match=why):
        verify_claim(ReferenceCircuit(statement.content), lied)


@pytest.mark.parametrize("method", ["first", "every", "following"])
def test_every_constraint_of_the_second_verifier_counts(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = json.loads(VECTORS.read_text(encoding="utf-8"))["vectors"]
    vector = next(each for each in found if each["name"] == "jumps are allowed")
    monkeypatch.setattr(MomentColumns, method, lambda *_, **__: None)
    assert ReferenceCircuit(vector["statement"].encode()).identity.hex() != vector["identity"]


def test_the_second_verifier_refuses_what_the_circuit_cannot_state() -> None:
    statement = json.loads(derive_bound().content)
    for channels in (
        [{"register": 0}, {"register": 0}],
        [{"register": 9}],
        [{"actuator": {"actuator": 2, "codes": [0, 1]}}],
        [{"actuator": {"actuator": 1, "codes": [0]}}],
        [],
    ):
        changed = {**statement, "statistic": {**statement["statistic"], "channels": channels}}
        content = json.dumps(changed).encode()
        with pytest.raises(SettingError):
            ReferenceCircuit(content)
        with pytest.raises(ValueError):  # noqa: PT011 - the core words it otherwise
            _attest.FullCircuit(content)


def derive_bound() -> Statement:
    return derive(rules_of(Wiring()), policy_of(Wiring()), statistic=settings_of)


def test_random_batches_agree_and_a_lie_is_told_apart() -> None:
    rng = stream(5, "sums")
    drawn = [random_batch(rng) for _ in range(25)]
    found = [try_batch(each, rng, prove=at == 0) for at, each in enumerate(drawn)]
    assert set(found) <= {"agree", "agree, proven", "jump refused"}
    assert "jump refused" in found
    assert "agree" in found
    whole = next(each for each in drawn if each.segments == 1)
    sums = whole.statistic.sums.copy()
    sums[0] -= 1
    lied = replace(whole, statistic=replace(whole.statistic, sums=sums))
    assert "refused" in try_batch(lied, rng, prove=False)


@pytest.mark.parametrize("name", ["jumps are allowed", "every kind of rule", "256 rows"])
def test_both_verifiers_accept_the_vectors(name: str) -> None:
    found = proven_bound(name)
    answer = compare("valid", found.statement, found.claim)
    assert (answer.core, answer.reference) == (ACCEPTED, ACCEPTED)


def test_both_verifiers_agree_on_changed_proofs() -> None:
    found = [changed_bound(100, index) for index in range(20)]
    assert [each for each in found if not each.agree] == []
    assert {each.core for each in found} >= {"5.7", "5.8"}


def small_relation(one: int, other: int) -> tuple[int, int]:
    """Return c and d, both about the square root of the order, with c one + d other = 0."""
    ratio = -one * pow(other, -1, ORDER) % ORDER
    before, now = (ORDER, 0), (ratio, 1)
    while now[0] > 1 << 32:
        quotient = before[0] // now[0]
        rest = (before[0] - quotient * now[0], before[1] - quotient * now[1])
        before, now = now, rest
    return now[1], now[0]


def test_weights_that_are_known_before_the_statistic_prove_a_false_one() -> None:
    """Why the weights follow from the statistic: known ones have other sums with the same total.

    Two entries are changed within the range of what rows can give. The total of one repetition
    stays as it was. At the weights that follow from the changed statistic it does not.
    """
    stated = read_statement(derive_bound().content).statistic
    assert stated is not None
    honest = read_sums(stated, statistic(), 80)
    known, *_ = draw_form(stated, b"drawn too early", context="test")
    c, d = small_relation(
        known.left[0] * known.right[2] % ORDER, known.left[2] * known.right[0] % ORDER
    )
    lagged = [[list(row) for row in block] for block in honest.lagged]
    lagged[1][0][2] += c
    lagged[1][2][0] += d
    lied = replace(honest, lagged=lagged)
    body = b"".join(
        word.to_bytes(8, "little")
        for word in (*lied.sums, *(word for block in lagged for row in block for word in row))
    )
    content = statistic()[:HEADER] + body
    assert read_sums(stated, content, 80) == lied != honest  # its reader has no objection
    assert form_totals([known], lied) == form_totals([known], honest)
    drawn = draw_form(stated, content, context="test")
    assert all(
        one != other
        for one, other in zip(form_totals(drawn, lied), form_totals(drawn, honest), strict=True)
    )
    lied_claim = claim(statistic=content)
    (refused,) = BOUND.verify_many(bound_circuit(), [lied_claim])
    assert refused is not None
