"""Verify a proof of the `full` system, step by step.

It is a second verifier, with its specification in docs/reference/full-proof.md. It shares no code
with the Rust core and is slow.
"""

from dataclasses import dataclass, field, replace

from sluice.attestation.systems.full.reference.chain import (
    chain_base,
    chain_log_rows,
    chain_plan,
    read_chain,
    seam_weights,
    segment_root,
    segment_seed,
)
from sluice.attestation.systems.full.reference.circuit import ReferenceCircuit
from sluice.attestation.systems.full.reference.encoding import ProofParts, read_proof
from sluice.attestation.systems.full.reference.field import (
    DEGREE,
    GENERATOR,
    ORDER,
    Ext,
    root_of_unity,
)
from sluice.attestation.systems.full.reference.fri import Claims, Matrix, verify_claims
from sluice.attestation.systems.full.reference.gadgets import (
    FormWeights,
    demand_sealed,
    draw_form,
    form_totals,
    read_sums,
    split_totals,
)
from sluice.attestation.systems.full.reference.hashes import blake3
from sluice.attestation.systems.full.reference.parameters import (
    CODEWORDS,
    LOG_BLOWUP,
    MOST_HEIGHT,
    QUOTIENTS,
    largest_proof,
)
from sluice.attestation.systems.full.reference.public import (
    Public,
    columns_at,
    digest_of,
    public_of,
)
from sluice.attestation.systems.full.reference.rows import Frame
from sluice.attestation.systems.full.reference.seams import SEAM_REPETITIONS, Seam
from sluice.attestation.systems.full.reference.statement import read_budgets
from sluice.attestation.systems.full.reference.transcript import (
    SCALARS,
    Step,
    Transcript,
    elements,
    marker,
    message,
)
from sluice.errors import VerificationError

__all__ = ["ReferenceClaim", "verify_claim"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReferenceClaim:
    """A proof and what it is to show."""

    budgets: bytes  # as the circuit reads them
    rows: int
    commitment: bytes
    context: bytes
    proof: bytes = field(repr=False)
    statistic: bytes | None = field(default=None, repr=False)  # if the statement has one


@dataclass(frozen=True, slots=True, kw_only=True)
class _Instance:
    """What the verifier knows before it reads the proof."""

    circuit: ReferenceCircuit
    public: Public
    digest: list[int]  # and after it what the form of a statistic must come to
    form: list[FormWeights] = field(default_factory=list)
    seam: Seam | None = None  # of a segment; its values stand after the digest

    @property
    def width(self) -> int:
        """How many columns the trace has."""
        return self.circuit.columns.width + (SEAM_REPETITIONS if self.seam else 0)


def verify_claim(circuit: ReferenceCircuit, claim: ReferenceClaim) -> None:
    """Return if the proof shows that the committed batch satisfies the statement; else raise."""
    # 1. What is public follows from rows and budgets; the digest, from the commitment.
    public = public_of(circuit, claim.rows, read_budgets(claim.budgets))
    digest = digest_of(circuit, claim.commitment, claim.rows)
    form, totals, encoded = _bound(circuit, claim)
    instance = _Instance(circuit=circuit, public=public, digest=digest + totals, form=form)

    seed = _seed(circuit, public, claim)
    log_rows = chain_log_rows(encoded)
    if log_rows is None:
        if claim.rows > MOST_HEIGHT:
            raise VerificationError("5.7", f"{claim.rows:,} rows are too many for one trace")
        _verify_trace(instance, encoded, seed)
    else:
        _verify_chain(instance, encoded, seed, log_rows)


def _verify_chain(instance: _Instance, content: bytes, seed: bytes, log_rows: int) -> None:
    """Verify every segment of a chain, with the seams between them."""
    circuit = instance.circuit
    base = chain_base(circuit.chain_identity, seed, log_rows)
    plan = chain_plan(instance.public.rows, log_rows)
    chain = read_chain(content, len(plan))
    roots = [segment_root(part) for part in chain.parts]
    cells = len(circuit.carried)
    after: list[list[int]] | None = None
    for at, (span, part) in enumerate(zip(plan, chain.parts, strict=True)):
        last = at + 1 == len(plan)
        before, after = after, None if last else seam_weights(cells, base, at, roots)
        seam = Seam(carried=circuit.carried, enters=before, leaves=after)
        none = [0] * SEAM_REPETITIONS
        entered = chain.values[at - 1] if at else none
        left = none if last else chain.values[at]
        segment = replace(
            instance,
            public=replace(instance.public, start=span.start, height=len(span)),
            digest=instance.digest + entered + left,
            seam=seam,
        )
        _verify_trace(segment, part, segment_seed(base, at, roots))


def _verify_trace(instance: _Instance, content: bytes, seed: bytes) -> None:
    """Verify one proof: of a whole batch, or of a segment."""
    public, width = instance.public, instance.width

    # 2. The proof has the one encoding and the shape of this circuit.
    largest = largest_proof(width, public.height)
    proof = read_proof(content, largest=largest)
    _demand_shape(proof, width, public.log_height)

    # 3. The transcript begins with everything that is claimed.
    transcript = Transcript(seed)
    alpha, zeta = _observe(transcript, instance, proof)

    # 4. The constraints, folded, are the quotient times what vanishes on the trace.
    _verify_constraints(instance, proof, alpha, zeta)

    # 5. The opened values are those of the committed polynomials.
    batches = _claims(proof, zeta, public.log_height)
    verify_claims(
        transcript,
        batches,
        proof.fri,
        log_size=public.log_height + 1 + LOG_BLOWUP,
    )


def _bound(
    circuit: ReferenceCircuit, claim: ReferenceClaim
) -> tuple[list[FormWeights], list[int], bytes]:
    """Draw the weights of the form from everything that is fixed.

    Return them, its totals, and the proof. A proof of hidden sums begins with the totals.
    """
    statistic = circuit.statement.statistic
    if statistic is None or claim.statistic is None:
        if (statistic is None) != (claim.statistic is None):
            needs = "takes no" if statistic is None else "needs a"
            raise VerificationError("5.7", f"the circuit {needs} statistic")
        return [], [], claim.proof
    hashed = circuit.identity + claim.commitment + claim.context + blake3(claim.statistic)
    form = draw_form(statistic, hashed, context="sluice full moments 1")
    if statistic.masked:
        demand_sealed(statistic, claim.statistic, claim.rows)
        return form, *split_totals(claim.proof)
    sums = read_sums(statistic, claim.statistic, claim.rows)
    return form, form_totals(form, sums), claim.proof


def _seed(circuit: ReferenceCircuit, public: Public, claim: ReferenceClaim) -> bytes:
    words = [public.rows, *public.totals]
    hashed = circuit.identity + claim.commitment + claim.context
    hashed += b"".join(word.to_bytes(8, "little") for word in words)
    if claim.statistic is not None:
        hashed += blake3(claim.statistic)
    return blake3(hashed, context="sluice full proof 1")


def _demand_shape(proof: ProofParts, width: int, log_height: int) -> None:
    if proof.log_height != log_height + 1:  # masks double the height
        raise VerificationError(
            "5.7", f"the proof is of 2^{proof.log_height} rows, not of 2^{log_height + 1}"
        )
    opened = proof.opened
    points = [2], [1]  # of the matrix under each commitment
    holds = (
        proof.random == proof.quotient  # one tree for all that is beside the trace
        and opened.preprocessed is None
        and opened.next is not None
        and opened.random is not None
        and (len(opened.here), len(opened.next), len(opened.random)) == (width, width, DEGREE)
        and [len(each) for each in opened.quotients] == [DEGREE] * QUOTIENTS
        and [[len(matrix) for matrix in batch] for batch in proof.masks] == list(points)
        and all(len(p) == CODEWORDS for batch in proof.masks for matrix in batch for p in matrix)
        and proof.point_work == 0  # no work is demanded there
    )
    if not holds:
        raise VerificationError("5.8", "the proof does not have the shape of this circuit")


def _observe(transcript: Transcript, instance: _Instance, proof: ProofParts) -> tuple[Ext, Ext]:
    """Observe the commitments; draw the challenge for the constraints, then the point."""
    publics = Step(
        kind="Public", label="public_values", length=f"Fixed({len(instance.digest)})", type=SCALARS
    )
    steps = [message("trace_commitment"), publics, elements("Challenge", "alpha")]
    steps += [message("quotient_commitment"), message("random_commitment")]
    steps += [elements("Challenge", "zeta"), *marker("opening_argument")]
    height, columns = instance.public.log_height, instance.circuit.columns
    sizes = [height + 1, height, instance.width, 0, len(columns.schedules), QUOTIENTS, 1, 0]
    transcript.begin("p3-uni-stark", steps, sizes)
    transcript.observe(proof.trace)
    transcript.observe_elements(instance.digest)
    alpha = transcript.challenge()
    transcript.observe(proof.quotient)
    assert proof.random is not None
    transcript.observe(proof.random)
    return alpha, transcript.challenge()


def _verify_constraints(instance: _Instance, proof: ProofParts, alpha: Ext, zeta: Ext) -> None:
    circuit, public = instance.circuit, instance.public
    vanishing = zeta**public.height - 1
    if vanishing == Ext(0):
        raise VerificationError("5.8", "the drawn point is on the trace")
    last = pow(root_of_unity(public.log_height), -1, ORDER)
    assert proof.opened.next is not None
    frame = Frame(
        here=proof.opened.here,
        next=proof.opened.next,
        public=columns_at(circuit, public, zeta),
        first=vanishing * (zeta - 1).inverse(),
        transition=zeta - last,
        last=vanishing * (zeta - last).inverse(),
        violating=circuit.channels.violating,
    )
    circuit.state(frame, public.totals, instance.digest, instance.form, instance.seam)
    if frame.folded(alpha) != vanishing * _quotient(proof, zeta, public.log_height):
        raise VerificationError("5.8", "the constraints do not hold at the drawn point")


def _quotient(proof: ProofParts, zeta: Ext, log_height: int) -> Ext:
    """Put the quotient together from its parts, each on a coset of its own.

    The i-th part is multiplied by what is one on its coset and zero on the others.
    """
    turn = root_of_unity(log_height + QUOTIENTS.bit_length() - 1)
    shifts = [GENERATOR * pow(turn, at, ORDER) % ORDER for at in range(QUOTIENTS)]
    height = 1 << log_height

    quotient = Ext(0)
    for shift, values in zip(shifts, proof.opened.quotients, strict=True):
        part = values[0] + values[1] * Ext(0, 1) + values[2] * Ext(0, 0, 1)
        for other in shifts:
            if other != shift:
                inverse = pow(other, -1, ORDER)
                there = pow(shift * inverse, height, ORDER) - 1
                part = part * ((zeta * inverse) ** height - 1) * pow(there, -1, ORDER)
        quotient = quotient + part
    return quotient


def _claims(proof: ProofParts, zeta: Ext, log_height: int) -> list[Claims]:
    """Return what is claimed: values of the committed polynomials and of the masks beside them."""
    opened, following = proof.opened, zeta * root_of_unity(log_height)
    assert opened.next is not None
    assert opened.random is not None
    (of_trace,), (of_beside,) = proof.masks
    trace = Matrix(
        points=(
            (zeta, opened.here + of_trace[0]),
            (following, opened.next + of_trace[1]),
        )
    )
    parts = tuple(value for part in opened.quotients for value in part)
    beside = Matrix(points=((zeta, parts + opened.random + of_beside[0]),))
    return [
        Claims(root=proof.trace, matrices=(trace,)),
        Claims(root=proof.quotient, matrices=(beside,)),
    ]
