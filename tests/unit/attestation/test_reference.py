"""The second verifier: it accepts what the core accepts, and each of its checks refuses alone."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from typing import Any, NoReturn

import pytest

from benchmarks.verifiers.changes import written
from benchmarks.verifiers.compare import (
    ACCEPTED,
    Proven,
    changed_claim,
    compare,
    drawn_circuit,
    proven_vector,
    vectors,
)
from sluice import _attest
from sluice.attestation.systems.full.reference import fri as openings
from sluice.attestation.systems.full.reference import verify as verifying
from sluice.attestation.systems.full.reference.circuit import ReferenceCircuit
from sluice.attestation.systems.full.reference.encoding import (
    BatchOpening,
    FoldOpening,
    Fri,
    ProofParts,
    TreeOpening,
    read_proof,
)
from sluice.attestation.systems.full.reference.field import Ext
from sluice.attestation.systems.full.reference.gadgets.channels import Channels
from sluice.attestation.systems.full.reference.gadgets.counts import CountColumns
from sluice.attestation.systems.full.reference.gadgets.couplings import Couplings
from sluice.attestation.systems.full.reference.gadgets.digest import Digest
from sluice.attestation.systems.full.reference.gadgets.liveness import Levels
from sluice.attestation.systems.full.reference.gadgets.relations import Relations
from sluice.attestation.systems.full.reference.gadgets.spectra import Spectra
from sluice.attestation.systems.full.reference.gadgets.switches import SwitchBands
from sluice.attestation.systems.full.reference.gadgets.windows import WindowChecks
from sluice.attestation.systems.full.reference.parameters import LOG_FINAL, QUERIES, SALT
from sluice.attestation.systems.full.reference.public import Public, public_of
from sluice.attestation.systems.full.reference.rows import Frame
from sluice.attestation.systems.full.reference.statement import read_budgets
from sluice.attestation.systems.full.reference.transcript import Transcript
from sluice.attestation.systems.full.reference.verify import ReferenceClaim, verify_claim
from sluice.errors import VerificationError
from sluice.seeding import stream

EVERY_GADGET = "every gadget"
CHECKS: list[tuple[type, str]] = [
    (Channels, "first"),
    (Channels, "every"),
    (Couplings, "first"),
    (Couplings, "following"),
    (Couplings, "shared"),
    (Couplings, "every"),
    (Relations, "every"),
    (Relations, "following"),
    (WindowChecks, "first"),
    (WindowChecks, "following"),
    (WindowChecks, "every"),
    (WindowChecks, "in_turn"),
    (Levels, "first"),
    (Levels, "following"),
    (Levels, "every"),
    (CountColumns, "first"),
    (CountColumns, "every"),
    (Digest, "every"),
    (Spectra, "first"),
    (Spectra, "following"),
    (Spectra, "every"),
    (SwitchBands, "following"),
    (Frame, "member"),
]


@cache
def laid_out(statement: bytes) -> ReferenceCircuit:
    return ReferenceCircuit(statement)


def proven() -> Proven:
    return proven_vector(EVERY_GADGET)


def parts_of(claim: ReferenceClaim) -> ProofParts:
    return read_proof(claim.proof, largest=len(claim.proof))


def verify(claim: ReferenceClaim, statement: bytes | None = None) -> None:
    verify_claim(laid_out(statement or proven().statement), claim)


def refused(parts: ProofParts, why: str) -> None:
    """The core refuses a changed proof, and so does the second verifier, for this reason."""
    claim = replace(proven().claim, proof=written(parts))
    with pytest.raises(_attest.InvalidProofError):
        _attest.FullCircuit(proven().statement).verify(
            claim.budgets, claim.rows, claim.commitment, claim.context, claim.proof
        )
    with pytest.raises(VerificationError, match=why):
        verify(claim)


def without(monkeypatch: pytest.MonkeyPatch, *checks: str) -> None:
    """Take checks away, so that another one has to refuse."""
    nothing: Callable[..., None] = lambda *_, **__: None  # noqa: E731
    if "trees" in checks:
        monkeypatch.setattr(openings, "verify_openings", nothing)
    if "openings" in checks:
        monkeypatch.setattr(verifying, "verify_claims", nothing)
    if "constraints" in checks:
        monkeypatch.setattr(verifying, "_verify_constraints", nothing)


@pytest.mark.parametrize("name", [EVERY_GADGET, "odd windows and bounds that only flag"])
def test_it_accepts_the_proofs_that_the_core_accepts(name: str) -> None:
    found = proven_vector(name)
    answer = compare(name, found.statement, found.claim)
    assert (answer.core, answer.reference) == (ACCEPTED, ACCEPTED)


@pytest.mark.parametrize("name", vectors())
def test_it_computes_the_cores_identity(name: str) -> None:
    statement = proven_vector(name).statement
    assert laid_out(statement).identity == _attest.FullCircuit(statement).identity


def test_it_computes_the_cores_identity_of_random_circuits() -> None:
    found = [drawn_circuit(100, index) for index in range(12)]
    assert len({each.core for each in found}) == len(found)
    assert [each.reference for each in found] == [each.core for each in found]


def test_both_verifiers_agree_on_changed_proofs() -> None:
    found = [changed_claim(100, index) for index in range(18)]
    assert [each for each in found if not each.agree] == []
    assert sum(each.core != ACCEPTED for each in found) > 12


@pytest.mark.parametrize(("gadget", "method"), CHECKS, ids=str)
def test_no_gadget_can_lose_its_constraints(
    gadget: type, method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the constraints the identity is another one, and a valid proof does not hold."""
    found = proven()
    circuit = ReferenceCircuit(found.statement)
    monkeypatch.setattr(gadget, method, lambda *_, **__: None)
    assert circuit.identity != _attest.FullCircuit(found.statement).identity
    kept = verifying._seed
    monkeypatch.setattr(verifying, "_seed", lambda *_: kept(laid_out(found.statement), *_[1:]))
    without(monkeypatch, "openings")
    assert laid_out(found.statement).identity  # cached with every constraint
    with pytest.raises(VerificationError, match="the constraints do not hold"):
        verify_claim(circuit, found.claim)


def test_a_changed_value_breaks_the_constraints(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "openings")
    parts = parts_of(proven().claim)
    width = len(parts.opened.here)
    for column in range(0, width, 29):
        here = list(parts.opened.here)
        here[column] = here[column] + 1
        changed = replace(parts, opened=replace(parts.opened, here=tuple(here)))
        refused(changed, "the constraints do not hold")
    quotients = (parts.opened.quotients[1], *parts.opened.quotients[1:])
    refused(
        replace(parts, opened=replace(parts.opened, quotients=quotients)),
        "the constraints do not hold",
    )


@pytest.mark.parametrize("name", json.loads(proven_vector(EVERY_GADGET).claim.budgets))
def test_a_count_must_end_at_its_budget(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Even if the transcript did not contain the budgets, the constraints would."""
    claim = proven().claim
    seed = verifying._seed(laid_out(proven().statement), *public_and_claim())
    monkeypatch.setattr(verifying, "_seed", lambda *_: seed)
    without(monkeypatch, "openings")
    verify(claim)
    document = json.loads(claim.budgets)
    listed = isinstance(document[name], list)
    value = document[name][0] if listed else document[name]
    value += 1 if value < 1 else -1
    document[name] = [value, *document[name][1:]] if listed else value
    with pytest.raises(VerificationError, match="the constraints do not hold"):
        verify(replace(claim, budgets=json.dumps(document).encode()))


def public_and_claim() -> tuple[Public, ReferenceClaim]:
    claim, circuit = proven().claim, laid_out(proven().statement)
    return public_of(circuit, claim.rows, read_budgets(claim.budgets)), claim


@pytest.mark.parametrize("changed", ["budgets", "rows", "commitment", "context"])
def test_the_transcript_contains_what_is_claimed(
    changed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    claim = proven().claim
    document = json.loads(claim.budgets)
    document["violating"] += 1
    others = {
        "budgets": replace(claim, budgets=json.dumps(document).encode()),
        "rows": replace(claim, rows=claim.rows - 1),
        "commitment": replace(claim, commitment=bytes([claim.commitment[0] ^ 1])
                              + claim.commitment[1:]),
        "context": replace(claim, context=bytes(32)),
    }  # fmt: skip
    seeds: list[bytes] = []

    def noting(seed: bytes) -> NoReturn:
        seeds.append(seed)
        raise VerificationError("5.8", "noted")

    monkeypatch.setattr(verifying, "Transcript", noting)
    for each in (claim, others[changed]):
        with pytest.raises(VerificationError, match="noted"):
            verify(each)
    assert seeds[0] != seeds[1]


def test_a_salt_is_part_of_its_leaf() -> None:
    parts = parts_of(proven().claim)
    first, *rest = parts.fri.inputs
    changed = replace(first, tree=salted(first.tree))
    refused(
        replace(parts, fri=replace(parts.fri, inputs=(changed, *rest))),
        "an opening does not lead to the committed root",
    )


def test_a_salt_is_part_of_a_folded_leaf() -> None:
    parts = parts_of(proven().claim)
    first, *rest = parts.fri.folds
    changed = replace(first, tree=salted(first.tree))
    refused(
        replace(parts, fri=replace(parts.fri, folds=(changed, *rest))),
        "does not lead to the committed root",
    )


def salted(tree: TreeOpening) -> TreeOpening:
    """Change a salt of every query, so that queries of one place still agree."""
    return replace(tree, salts=tuple(((row[0][0] ^ 1, row[0][1]), *row[1:]) for row in tree.salts))


def test_an_opening_has_as_many_nodes_as_its_tree_needs() -> None:
    parts = parts_of(proven().claim)
    first, *rest = parts.fri.inputs
    nodes = first.tree.siblings
    for siblings, why in (
        ((*nodes, nodes[0]), "more nodes than its tree needs"),
        (nodes[:-1], "too few nodes"),
    ):
        changed = replace(first, tree=replace(first.tree, siblings=siblings))
        refused(replace(parts, fri=replace(parts.fri, inputs=(changed, *rest))), why)


def test_the_work_before_the_queries_must_be_done() -> None:
    parts = parts_of(proven().claim)
    refused(
        replace(parts, fri=replace(parts.fri, query_work=parts.fri.query_work ^ 1)),
        "the work before the queries was not done",
    )


def test_a_folded_value_must_be_on_the_last_polynomial(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "trees")
    parts = parts_of(proven().claim)
    for at in range(len(parts.fri.folds)):
        folds = list(parts.fri.folds)
        values = folds[at].siblings
        values = ((values[0][0] + 1, *values[0][1:]), *values[1:])
        folds[at] = replace(folds[at], siblings=values)
        refused(
            replace(parts, fri=replace(parts.fri, folds=tuple(folds))),
            "a folded value is not on the last polynomial",
        )


def test_an_opened_row_must_be_what_is_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    without(monkeypatch, "trees")
    parts = parts_of(proven().claim)
    for at in range(2):
        inputs = list(parts.fri.inputs)
        rows = inputs[at].rows
        row = (rows[0][0][0] ^ 1, *rows[0][0][1:])
        inputs[at] = replace(inputs[at], rows=((row, *rows[0][1:]), *rows[1:]))
        refused(
            replace(parts, fri=replace(parts.fri, inputs=tuple(inputs))),
            "a folded value is not on the last polynomial",
        )


def test_a_claimed_value_must_be_that_of_the_committed_polynomial(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Even if the transcript did not contain the claimed values."""
    parts = parts_of(proven().claim)
    random = parts.opened.random
    assert random is not None
    kept, honest = openings._observe_claims, list(verifying._claims(parts, Ext(0), 8))

    def observe(transcript: Transcript, batches: Sequence[openings.Claims]) -> Ext:
        zeta = batches[0].matrices[0].points[0][0]
        honest[:] = verifying._claims(parts, zeta, 8)
        return kept(transcript, honest)

    monkeypatch.setattr(openings, "_observe_claims", observe)
    verify(proven().claim)
    without(monkeypatch, "trees")
    changed = replace(parts.opened, random=(random[0] + 1, *random[1:]))
    refused(replace(parts, opened=changed), "a folded value is not on the last polynomial")
    (first, *others), *rest = parts.masks
    masks = ((((first[0][0] + 1, *first[0][1:]), *first[1:]), *others), *rest)
    refused(replace(parts, masks=masks), "a folded value is not on the last polynomial")


def shapes() -> list[tuple[str, ProofParts]]:
    parts = parts_of(proven().claim)
    opened, fri = parts.opened, parts.fri
    assert opened.next is not None
    assert opened.random is not None
    first = fri.inputs[0]
    ((mask, *masks),), *_ = parts.masks
    short_mask = mask[:-1]
    return [
        ("no mask", replace(parts, random=None)),
        ("a mask under a tree of its own", replace(parts, random=parts.trace)),
        ("no value of a mask", replace(parts, opened=replace(opened, random=None))),
        ("a wide mask", replace(parts, opened=replace(opened, random=(*opened.random, Ext(0))))),
        ("no next row", replace(parts, opened=replace(opened, next=None))),
        ("a short row", replace(parts, opened=replace(opened, here=opened.here[:-1]))),
        ("a short next row", replace(parts, opened=replace(opened, next=opened.next[:-1]))),
        ("a fixed column", replace(parts, opened=replace(opened, preprocessed=(Ext(1),)))),
        ("a quotient less", replace(parts, opened=replace(opened, quotients=opened.quotients[1:]))),
        ("masks of a batch less", replace(parts, masks=parts.masks[1:])),
        ("a mask less", replace(parts, masks=(((parts.masks[0][0][0][:-1],),), *parts.masks[1:]))),
        ("a short mask", replace(parts, masks=(((short_mask, *masks),), *parts.masks[1:]))),
        ("work for the point", replace(parts, point_work=1)),
        ("work for the batch", replace(parts, fri=replace(fri, batch_work=1))),
        ("work for a folding", replace(parts, fri=replace(fri, fold_work=(1, *fri.fold_work[1:])))),
        ("a folding less", replace(parts, fri=replace(fri, folds=fri.folds[1:]))),
        ("a root less", replace(parts, fri=replace(fri, roots=fri.roots[1:]))),
        ("a long last polynomial", replace(parts, fri=replace(fri, last=(*fri.last, Ext(0))))),
        ("a batch less", replace(parts, fri=replace(fri, inputs=fri.inputs[:-1]))),
        (
            "a query less",
            replace(
                parts,
                fri=replace(fri, inputs=(replace(first, rows=first.rows[1:]), *fri.inputs[1:])),
            ),
        ),
        ("a narrow row", with_input(parts, rows=((first.rows[0][0][1:],), *first.rows[1:]))),
        ("a query of a folding less", with_fold(parts, siblings=fri.folds[0].siblings[1:])),
        (
            "a short group",
            with_fold(parts, siblings=(fri.folds[0].siblings[0][1:], *fri.folds[0].siblings[1:])),
        ),
        ("a salt of a folding less", with_fold(parts, tree=unsalted(fri.folds[0].tree))),
        ("a short salt", with_input(parts, tree=short_salt(first.tree))),
        (
            "a salt less",
            replace(
                parts,
                fri=replace(
                    fri,
                    inputs=(
                        replace(first, tree=replace(first.tree, salts=first.tree.salts[1:])),
                        *fri.inputs[1:],
                    ),
                ),
            ),
        ),
    ]


def with_input(parts: ProofParts, **changes: Any) -> ProofParts:
    first, *rest = parts.fri.inputs
    return replace(parts, fri=replace(parts.fri, inputs=(replace(first, **changes), *rest)))


def with_fold(parts: ProofParts, **changes: Any) -> ProofParts:
    first, *rest = parts.fri.folds
    return replace(parts, fri=replace(parts.fri, folds=(replace(first, **changes), *rest)))


def unsalted(tree: TreeOpening) -> TreeOpening:
    return replace(tree, salts=tree.salts[1:])


def short_salt(tree: TreeOpening) -> TreeOpening:
    return replace(tree, salts=((tree.salts[0][0][1:],), *tree.salts[1:]))


@pytest.mark.parametrize("at", range(26))
def test_a_proof_of_another_shape_is_refused(at: int, monkeypatch: pytest.MonkeyPatch) -> None:
    every = shapes()
    assert len(every) == 26
    without(monkeypatch, "constraints")  # they would refuse some of them too
    changed = every[at][1]
    what = "proof does" if changed.fri == parts_of(proven().claim).fri else "openings do"
    refused(changed, f"the {what} not have the shape of this circuit")


def test_no_folding_claims_work() -> None:
    """No check reads this work, so it must be zero; larger proofs have two foldings."""
    salts = (((0,) * SALT,),) * QUERIES
    fold = FoldOpening(
        siblings=((Ext(0),) * 7,) * QUERIES, tree=TreeOpening(salts=salts, siblings=())
    )
    last = (Ext(0),) * (1 << LOG_FINAL)
    without_work = Fri(
        batch_work=0, roots=(bytes(32),) * 2, fold_work=(0, 0), inputs=(), folds=(fold,) * 2,
        last=last, query_work=0,
    )  # fmt: skip
    openings._demand_shape([], without_work, 17)
    for spent in ((1, 0), (0, 1), (1, 1)):
        with pytest.raises(VerificationError, match="shape of this circuit"):
            openings._demand_shape([], replace(without_work, fold_work=spent), 17)


def test_the_height_follows_from_the_rows() -> None:
    parts = parts_of(proven().claim)
    refused(replace(parts, log_height=parts.log_height + 1), "the proof is of 2\\^10 rows")


def test_a_point_on_the_trace_is_refused() -> None:
    found = proven()
    public, claim = public_and_claim()
    instance = verifying._Instance(circuit=laid_out(found.statement), public=public, digest=[0] * 4)
    with pytest.raises(VerificationError, match="the drawn point is on the trace"):
        verifying._verify_constraints(instance, parts_of(claim), Ext(2), Ext(1))


def test_a_query_on_the_opened_point_is_refused() -> None:
    matrix = openings.Matrix(points=((Ext(7), (Ext(1),)),))
    claims = [openings.Claims(root=bytes(32), matrices=(matrix,))]
    tree = TreeOpening(salts=(), siblings=())
    opening = BatchOpening(rows=(((1,),),), tree=tree)
    with pytest.raises(VerificationError, match="a query falls on the opened point"):
        openings._combined(claims, [opening], Ext(3), [0], 4)


def test_constraints_have_at_most_the_degree_that_the_quotient_allows() -> None:
    """The quotient has 8 parts. Along a line, the ninth difference of a constraint is zero."""
    circuit, rng = laid_out(proven().statement), stream(100, "degree")
    count = 2 * circuit.columns.width + len(circuit.columns.schedules)
    lines = [[int(value) for value in rng.integers(1 << 62, size=2)] for _ in range(count)]

    def stated(at: int) -> list[Ext]:
        cells = [Ext(start + step * at) for start, step in lines]
        width = circuit.columns.width
        frame = Frame(
            here=cells[:width],
            next=cells[width : 2 * width],
            public=cells[2 * width :],
            first=Ext(5),
            transition=Ext(6),
            last=Ext(7),
            violating=circuit.channels.violating,
        )
        circuit.state(frame, [0] * len(circuit.counts.shared), [0] * 4)
        return frame.stated

    values = [stated(at) for at in range(10)]
    differences = []
    while len(values) > 1:
        values = [
            [after - before for before, after in zip(*pair, strict=True)]
            for pair in pairwise(values)
        ]
        differences.append(any(each != Ext(0) for each in values[0]))
    assert differences == [True] * 8 + [False]


def test_it_runs_without_the_core() -> None:
    script = (
        "import sys; sys.modules['sluice._attest'] = None\n"
        "from sluice.attestation.systems.full.reference import ReferenceCircuit\n"
        "from pathlib import Path; import json\n"
        "found = json.loads(Path('tests/vectors/full.json').read_text())\n"
        "statement = next(iter(found['statements'].values())).encode()\n"
        "print(ReferenceCircuit(statement).identity.hex())\n"
    )
    ran = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    statement = proven_vector("clean").statement
    assert ran.stdout.strip() == _attest.FullCircuit(statement).identity.hex()
