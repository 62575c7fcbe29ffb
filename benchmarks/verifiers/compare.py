"""Ask both verifiers about one claim."""

import json
import time
from dataclasses import dataclass, field, replace
from functools import cache, lru_cache
from pathlib import Path

import numpy as np

from benchmarks.exactness.cases import draw_case
from benchmarks.exactness.core import planes_of
from benchmarks.verifiers.changes import changed_bytes, changed_part
from sluice import _attest
from sluice.attestation.systems.full.reference import (
    ReferenceCircuit,
    ReferenceClaim,
    read_proof,
    verify_claim,
)
from sluice.errors import RulesFileError, SettingError, VerificationError
from sluice.seeding import stream

__all__ = [
    "Answer",
    "Proven",
    "changed_bound",
    "changed_claim",
    "changed_hidden",
    "compare",
    "drawn_circuit",
    "drawn_proof",
    "vectors",
]

VECTORS = Path(__file__).parents[2] / "tests" / "vectors" / "full.json"
ACCEPTED = "accepted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proven:
    """A valid proof of a statement, and a second one of the same batch."""

    name: str
    statement: bytes = field(repr=False)
    claim: ReferenceClaim
    other: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What both verifiers say: accepted, or the step, or that there is no such circuit."""

    kind: str
    core: str
    reference: str
    core_s: float = 0.0
    reference_s: float = 0.0

    @property
    def agree(self) -> bool:
        """Whether both accept or both refuse."""
        return (self.core == ACCEPTED) == (self.reference == ACCEPTED)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Kind:
    """Where the vectors of a kind of statistic are, and how their proofs begin."""

    file: str
    field: str
    totals: int  # bytes of the totals in front of a proof


OPEN = _Kind(file="moments.json", field="statistic", totals=0)
SEALED = _Kind(file="hidden.json", field="sealed", totals=24)


def vectors() -> list[str]:
    """Return the names of the admitted batches in the shared vectors."""
    return [each["name"] for each in _document()["vectors"] if each["admitted"]]


@cache
def _document() -> dict[str, list[dict[str, str]]]:
    found: dict[str, list[dict[str, str]]] = json.loads(VECTORS.read_text(encoding="utf-8"))
    return found


@cache
def proven_vector(name: str) -> Proven:
    """Prove a batch of the shared vectors, twice."""
    vector = next(each for each in _document()["vectors"] if each["name"] == name)
    statements: dict[str, str] = _document()["statements"]  # type: ignore[assignment]
    statement, budgets = statements[vector["statement"]].encode(), vector["budgets"].encode()
    rows, salt = int(vector["rows"]), bytes.fromhex(vector["salt"])
    planes = _attest.FullBatch(
        rows, *(bytes.fromhex(vector[part]) for part in ("registers", "codes", "starts", "flagged"))
    )
    core, context = _attest.FullCircuit(statement), bytes(range(32))
    proof, other = (core.prove(budgets, planes, salt, context) for _ in range(2))
    claim = ReferenceClaim(
        budgets=budgets,
        rows=rows,
        commitment=bytes.fromhex(vector["commitment"]),
        context=context,
        proof=proof,
    )
    return Proven(name=name, statement=statement, claim=claim, other=other)


def drawn_circuit(seed: int, index: int) -> Answer:
    """Compare the identities of a random circuit; skip rules that no circuit can state."""
    rng = stream(seed, "two verifiers: circuits", index)
    while True:
        try:
            content = draw_case(rng).statement.content
        except (RulesFileError, SettingError):
            continue
        core, reference = (
            _attest.FullCircuit(content).identity,
            ReferenceCircuit(content).identity,
        )
        return Answer(kind="identity", core=core.hex(), reference=reference.hex())


def drawn_proof(seed: int, index: int) -> Answer:
    """Prove a batch of a random plant under random rules; both verifiers must accept."""
    rng = stream(seed, "two verifiers: proofs", index)
    while True:
        try:
            case = draw_case(rng)
            record = case.plant.record(case.plant.rows)
            planes, content = planes_of(case.statement, record), case.statement.content
            budgets = case.statement.budget_content(len(record))
            core, salt, context = _attest.FullCircuit(content), rng.bytes(32), rng.bytes(32)
            proof = core.prove(budgets, planes, salt, context)
            commitment = core.commit(planes, salt)
        except (RulesFileError, SettingError, ValueError, _attest.RefusedBatchError):
            continue
        claim = ReferenceClaim(
            budgets=budgets, rows=len(record), commitment=commitment, context=context, proof=proof
        )
        return compare("valid", content, claim)


def changed_claim(seed: int, index: int) -> Answer:
    """Change a valid proof, or what it is to show, and ask both verifiers."""
    rng = stream(seed, "two verifiers: changes", index)
    names = vectors()
    proven = proven_vector(names[index % len(names)])
    claim, statement = proven.claim, proven.statement
    match ("bytes", "bytes", "parts", "parts", "parts", "claim")[index % 6]:
        case "bytes":
            what, proof = changed_bytes(rng, claim.proof, proven.other)
            return compare(f"bytes: {what}", statement, replace(claim, proof=proof))
        case "parts":
            parts = read_proof(claim.proof, largest=len(claim.proof))
            what, proof = changed_part(rng, parts)
            return compare(f"part: {what}", statement, replace(claim, proof=proof))
        case _:
            return _changed_terms(rng, statement, claim)


def changed_bound(seed: int, index: int) -> Answer:
    """Change a valid proof with a statistic, or what it is to show, and ask both verifiers."""
    return _changed_with_statistic(seed, index, "bound", OPEN)


def changed_hidden(seed: int, index: int) -> Answer:
    """Change a valid proof of hidden sums, its totals, or what it is to show; ask both."""
    return _changed_with_statistic(seed, index, "hidden", SEALED)


def _changed_with_statistic(seed: int, index: int, named: str, kind: "_Kind") -> Answer:
    rng = stream(seed, f"two verifiers: {named}", index)
    vectors = _bound_vectors(kind)
    vector = vectors[index % len(vectors)]
    proven = proven_bound(vector["name"], kind)
    claim, statement = proven.claim, proven.statement
    assert claim.statistic is not None
    totals, rest = claim.proof[: kind.totals], claim.proof[kind.totals :]
    ways = ("statistic", "other", "bytes", "parts", "claim", *(("totals",) if totals else ()))
    match ways[index % len(ways)]:
        case "totals":
            what, changed = "totals: bit", replace(claim, proof=_flipped(rng, totals) + rest)
        case "statistic":
            flipped = _flipped(rng, claim.statistic)
            what, changed = "statistic: bit", replace(claim, statistic=flipped)
        case "other":
            other = vectors[int(rng.integers(len(vectors)))]
            if other[kind.field] == vector[kind.field]:  # also of one batch, under other rules
                return compare("valid", statement, claim)
            what = "statistic: of another batch"
            changed = replace(claim, statistic=bytes.fromhex(other[kind.field]))
        case "bytes":
            done, proof = changed_bytes(rng, claim.proof, proven.other)
            what, changed = f"bytes: {done}", replace(claim, proof=proof)
        case "parts":
            part, proof = changed_part(rng, read_proof(rest, largest=len(rest)))
            what, changed = f"part: {part}", replace(claim, proof=totals + proof)
        case _:
            return _changed_terms(rng, statement, claim)
    return compare(what, statement, changed)


@cache
def _bound_vectors(kind: "_Kind") -> list[dict[str, str]]:
    path = VECTORS.with_name(kind.file)
    found: list[dict[str, str]] = json.loads(path.read_text(encoding="utf-8"))["vectors"]
    return found


@cache
def proven_bound(name: str, kind: "_Kind" = OPEN) -> Proven:
    """Prove a batch of the vectors with a statistic, twice."""
    vector = next(each for each in _bound_vectors(kind) if each["name"] == name)
    statement, budgets = vector["statement"].encode(), vector["budgets"].encode()
    rows, salt, context, statistic, commitment = (
        int(vector["rows"]),
        *(bytes.fromhex(vector[part]) for part in ("salt", "context", kind.field, "commitment")),
    )
    planes = _attest.FullBatch(
        rows, *(bytes.fromhex(vector[part]) for part in ("registers", "codes", "starts", "flagged"))
    )
    core = _attest.FullCircuit(statement)
    proof, other = (core.prove(budgets, planes, salt, context, statistic) for _ in range(2))
    claim = ReferenceClaim(
        budgets=budgets,
        rows=rows,
        commitment=commitment,
        context=context,
        proof=proof,
        statistic=statistic,
    )
    return Proven(name=name, statement=statement, claim=claim, other=other)


def _changed_terms(rng: np.random.Generator, statement: bytes, claim: ReferenceClaim) -> Answer:
    match ("rows", "budgets", "commitment", "context", "statement")[rng.integers(5)]:
        case "rows":
            rows = claim.rows + [-1, 1, -64, 64, 300][rng.integers(5)]
            return compare("claim: rows", statement, replace(claim, rows=rows))
        case "budgets":
            budgets = _one_off(rng, claim.budgets)
            return compare("claim: budgets", statement, replace(claim, budgets=budgets))
        case "commitment":
            commitment = _flipped(rng, claim.commitment)
            return compare("claim: commitment", statement, replace(claim, commitment=commitment))
        case "context":
            context = _flipped(rng, claim.context)
            return compare("claim: context", statement, replace(claim, context=context))
        case _:
            return compare("claim: statement", _one_off(rng, statement), claim)


def _flipped(rng: np.random.Generator, data: bytes) -> bytes:
    at = int(rng.integers(len(data)))
    return data[:at] + bytes([data[at] ^ 1 << int(rng.integers(8))]) + data[at + 1 :]


def _one_off(rng: np.random.Generator, content: bytes) -> bytes:
    """Return a document with one number that is one more or less."""
    document = json.loads(content)
    places: list[tuple[object, object]] = []

    def walk(node: object) -> None:
        if isinstance(node, dict | list):
            for key, child in node.items() if isinstance(node, dict) else enumerate(node):
                if isinstance(child, int) and not isinstance(child, bool):
                    places.append((node, key))
                walk(child)

    walk(document)
    node, key = places[rng.integers(len(places))]
    node[key] += [-1, 1][rng.integers(2)]  # type: ignore[index]  # a list or a dictionary
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()


def compare(kind: str, statement: bytes, claim: ReferenceClaim) -> Answer:
    """Ask both verifiers."""
    started = time.perf_counter()
    core = _core(statement, claim)
    between = time.perf_counter()
    reference = _reference(statement, claim)
    return Answer(
        kind=kind,
        core=core,
        reference=reference,
        core_s=between - started,
        reference_s=time.perf_counter() - between,
    )


def _core(statement: bytes, claim: ReferenceClaim) -> str:
    try:
        _core_circuit(statement).verify(
            claim.budgets,
            claim.rows,
            claim.commitment,
            claim.context,
            claim.proof,
            claim.statistic,
        )
    except _attest.InvalidProofError as refused:
        return "5.7" if refused.args[0] == "shape" else "5.8"
    except (ValueError, OverflowError):
        return "no circuit"
    return ACCEPTED


def _reference(statement: bytes, claim: ReferenceClaim) -> str:
    try:
        verify_claim(_reference_circuit(statement), claim)
    except VerificationError as refused:
        return refused.step
    except SettingError:
        return "no circuit"
    return ACCEPTED


@lru_cache(maxsize=16)
def _core_circuit(statement: bytes) -> _attest.FullCircuit:
    return _attest.FullCircuit(statement)


@lru_cache(maxsize=16)
def _reference_circuit(statement: bytes) -> ReferenceCircuit:
    return ReferenceCircuit(statement)
