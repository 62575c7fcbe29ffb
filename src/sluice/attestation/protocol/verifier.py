"""The verifier of batch attestations. Its blocks carry the numbers of docs/protocol.md, step 5.

Verifying returns if every step that can be checked holds, and raises otherwise.
"""

from collections.abc import Callable
from dataclasses import InitVar, dataclass

from sluice.admission import policy_hash
from sluice.attestation.log import Ledger
from sluice.attestation.messages import (
    CHALLENGES,
    COMMITS,
    PROOFS,
    Challenge,
    Commit,
    Proof,
    RegistrationTerms,
    Signed,
    attestation_id,
    context_of,
    largest_proof_document,
)
from sluice.attestation.protocol.key_folder import Pinned
from sluice.attestation.protocol.plant import statistic_hash
from sluice.attestation.protocol.transition import (
    TRANSITION,
    StateTransition,
    demand_transition,
)
from sluice.attestation.systems import Circuit, ProofClaim, System, SystemName, full
from sluice.errors import DocumentError, SettingError, VerificationError
from sluice.invariants import rules_hash

__all__ = ["NEED_A_LOG", "STEPS", "Examined", "Verification", "Verifier", "steps_before"]

STEPS = ("5.1", "5.2", "5.3", "5.4", "5.5", "5.6", "5.7", "5.8")
STATISTIC_STEP = "5.6.1"
BOUND_STEPS = (*STEPS[:6], STATISTIC_STEP, *STEPS[6:])
"""The steps of a circuit that binds a statistic."""
NEED_A_LOG = ("5.2", "5.3", "5.4")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """A batch attestation that passed every checked step."""

    client: str
    commitment: str
    attestation: str
    rows: int
    steps_checked: tuple[str, ...]
    steps_unchecked: tuple[str, ...]
    reference: bool  # whether the second verifier accepted the proof too
    bound: str | None  # the statistic that the proof ties to the rows
    transition: InitVar[StateTransition]

    def __post_init__(self, transition: StateTransition) -> None:
        demand_transition(self, transition)


@dataclass(frozen=True, slots=True, kw_only=True)
class Examined:
    """A batch attestation that passed steps 5.1 to 5.6; the proof itself is not yet verified."""

    verifier: "Verifier"
    commit: Commit
    attestation: str
    claim: ProofClaim

    def proven(self, transition: StateTransition, *, reference: bool = False) -> Verification:
        """Return the result; only this package can call it, after the proof is verified."""
        unchecked = self.verifier.steps_unchecked
        return Verification(
            client=self.commit.client,
            commitment=self.commit.commitment,
            attestation=self.attestation,
            rows=self.commit.rows,
            steps_checked=tuple(step for step in self.verifier.steps if step not in unchecked),
            steps_unchecked=unchecked,
            reference=reference,
            bound=self.verifier.circuit.statistic,
            transition=transition,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Verifier:
    """Verifies proofs of one circuit, both pinned and derived, with the log if there is one."""

    system: System
    circuit: Circuit
    pinned: Pinned
    ledger: Ledger | None = None

    @property
    def steps(self) -> tuple[str, ...]:
        """The steps of docs/protocol.md that this circuit has."""
        return STEPS if self.circuit.statistic is None else BOUND_STEPS

    @property
    def steps_unchecked(self) -> tuple[str, ...]:
        """The steps that cannot be checked without a log: the client and its earlier messages."""
        return NEED_A_LOG if self.ledger is None else ()

    def examine(
        self,
        proof_document: bytes,
        commit_document: bytes,
        challenge_document: bytes | None = None,
        *,
        statistic: bytes | None = None,
    ) -> Examined:
        """Check every step before the proof itself, or raise as `verify` does."""
        # 5.1 Size limits, well formed, known version, canonical encodings only.
        signed_proof, signed_commit = self._read(proof_document, commit_document)
        proof, commit = signed_proof.content, signed_commit.content
        challenge = self._read_challenge(challenge_document)

        # 5.2 Known client, valid signatures, accepted rules.
        self._refuse_unknown(commit)
        signed_commit.verify(commit.key, step="5.2")
        signed_proof.verify(commit.key, step="5.2")

        # 5.3 The commitment is the one in the log, and was there before its challenge.
        self._refuse_unlogged(proof, signed_commit)
        self._refuse_other_challenge(challenge, commit)

        # 5.4 The first attestation of this commitment, and not expired.
        attestation = attestation_id(commit, proof.proof)
        self._refuse_other_attestation(commit, attestation)

        # 5.5 Context recomputed, never read from the proof; public inputs in range.
        context = context_of(commit, self.circuit, challenge).digest()
        objection = RegistrationTerms.of(self.circuit).objection(commit.rows, commit.interval)
        if objection:
            raise VerificationError("5.5", f"the batch is out of range: {objection}")

        # 5.6 The circuit is the pinned one.
        self._refuse_other_circuit(proof, commit)

        # 5.6.1 The statistic is the one that the commitment names, of N rows and this circuit.
        self._refuse_other_statistic(commit, statistic)

        claim = ProofClaim(
            commitment=bytes.fromhex(commit.commitment),
            rows=commit.rows,
            context=context,
            proof=proof.proof,
            statistic=statistic,
        )
        return Examined(verifier=self, commit=commit, attestation=attestation, claim=claim)

    def verify(
        self,
        proof_document: bytes,
        commit_document: bytes,
        challenge_document: bytes | None = None,
        *,
        statistic: bytes | None = None,
    ) -> Verification:
        """Verify a proof of a commitment, or raise a `VerificationError` that names the step.

        Systems that draw rows need the challenge too, and circuits that bind a statistic need it.
        """
        examined = self.examine(
            proof_document, commit_document, challenge_document, statistic=statistic
        )

        # 5.7 The proof has the shape the circuit demands. 5.8 The proof itself.
        self._verify_claim(examined.claim)
        return examined.proven(TRANSITION)

    def verify_twice(
        self,
        proof_document: bytes,
        commit_document: bytes,
        challenge_document: bytes | None = None,
        *,
        statistic: bytes | None = None,
    ) -> Verification:
        """Verify with the system's verifier and with the second one; both must accept.

        Only the system `full` has a second verifier. If one accepts and the other refuses, the
        error says so: one of them is wrong, and the proof must not be used.
        """
        if self.system.name != SystemName.FULL:
            raise SettingError(
                f"system {self.system.name!r} has no second verifier; only 'full' has one"
            )
        examined = self.examine(
            proof_document, commit_document, challenge_document, statistic=statistic
        )
        first = _refusal(lambda: self._verify_claim(examined.claim))
        second = _refusal(lambda: full.verify_again(self.circuit, examined.claim))
        if first is None and second is None:
            return examined.proven(TRANSITION, reference=True)
        if first is not None and second is not None:
            raise VerificationError(
                first.step, f"{first.why}; the second verifier refuses it too: {second}"
            )
        if first is None:
            assert second is not None
            raise VerificationError(second.step, _disagreement("the second verifier", second))
        raise VerificationError(first.step, _disagreement("the first verifier", first))

    def _verify_claim(self, claim: ProofClaim) -> None:
        self.system.verify(
            self.circuit,
            commitment=claim.commitment,
            rows=claim.rows,
            context=claim.context,
            proof=claim.proof,
            statistic=claim.statistic,
        )

    def _read(self, proof: bytes, commit: bytes) -> tuple[Signed[Proof], Signed[Commit]]:
        limit = largest_proof_document(self.system.largest_proof(self.circuit))
        try:
            return PROOFS.read(proof, largest=limit), COMMITS.read(commit)
        except DocumentError as error:
            raise VerificationError("5.1", str(error)) from None

    def _read_challenge(self, document: bytes | None) -> Challenge | None:
        if (document is None) == self.system.challenged:
            needs = "needs a" if self.system.challenged else "takes no"
            raise VerificationError("5.1", f"system {self.system.name!r} {needs} challenge")
        try:
            return None if document is None else CHALLENGES.read(document)
        except DocumentError as error:
            raise VerificationError("5.1", str(error)) from None

    def _refuse_unknown(self, commit: Commit) -> None:
        ours = (rules_hash(self.circuit.rules), policy_hash(self.circuit.policy))
        if (commit.rules, commit.policy) != ours:
            raise VerificationError("5.2", "the commitment is for other rules or another policy")
        if self.ledger is None:
            return
        registration = self.ledger.registration_for(commit, step="5.2")
        if (commit.key, commit.federation) != (registration.key, registration.federation):
            raise VerificationError(
                "5.2", f"{commit.client!r} is registered with another key or federation"
            )
        if (commit.rules, commit.policy) != (registration.rules, registration.policy):
            raise VerificationError(
                "5.2", f"these are not the rules and policy accepted for {commit.client!r}"
            )

    def _refuse_unlogged(self, proof: Proof, signed_commit: Signed[Commit]) -> None:
        commit = signed_commit.content
        answers = (proof.federation, proof.client, proof.commitment)
        if answers != (commit.federation, commit.client, commit.commitment):
            raise VerificationError("5.3", "the proof answers another commitment")
        if self.ledger is None:
            return
        logged = self.ledger.committed(commit.commitment, step="5.3")
        if logged.commit != signed_commit:
            raise VerificationError(
                "5.3", f"entry {logged.index} of the log has another message for this commitment"
            )

    def _refuse_other_challenge(self, challenge: Challenge | None, commit: Commit) -> None:
        if challenge is None:
            return
        if not challenge.answers(commit):
            raise VerificationError("5.3", "the challenge is for another commitment")
        # The ledger accepts a challenge only after its commitment, so the order is right.
        if self.ledger and self.ledger.challenge(commit.commitment) != challenge:
            raise VerificationError("5.3", "the log has no such challenge for this commitment")

    def _refuse_other_attestation(self, commit: Commit, attestation: str) -> None:
        if self.ledger is None:
            return
        logged = self.ledger.attestation(commit.commitment)
        if logged is not None and logged != attestation:
            raise VerificationError(
                "5.4", f"the commitment already has attestation {logged[:12]}..."
            )
        until = self.ledger.attested_until(commit.commitment)
        if until is not None and self.ledger.time > until:
            raise VerificationError("5.4", f"the attestation expired on {until}")

    def _refuse_other_circuit(self, proof: Proof, commit: Commit) -> None:
        if not self.pinned.names(self.circuit):
            raise VerificationError("5.6", "rules and policy do not derive the pinned circuit")
        pinned = (self.pinned.system, self.pinned.circuit)
        if pinned != (commit.system, commit.circuit) or pinned != (proof.system, proof.circuit):
            raise VerificationError("5.6", "commitment or proof names another circuit or system")

    def _refuse_other_statistic(self, commit: Commit, statistic: bytes | None) -> None:
        step = STATISTIC_STEP
        if self.circuit.statistic is None:
            if commit.statistic is not None or statistic is not None:
                raise VerificationError(step, "the circuit binds no statistic, but one is given")
            return
        if commit.statistic is None or statistic is None:
            raise VerificationError(
                step, "the circuit binds a statistic, and the commitment or the file is without one"
            )
        if len(statistic) > full.LARGEST_STATISTIC:
            raise VerificationError(step, f"the statistic has {len(statistic):,} bytes")
        if statistic_hash(statistic) != commit.statistic:
            raise VerificationError(step, "it is not the statistic that the commitment names")
        try:
            full.demand_statistic(self.circuit, statistic, rows=commit.rows)
        except SettingError as error:
            raise VerificationError(step, str(error)) from None


def _refusal(check: Callable[[], None]) -> VerificationError | None:
    try:
        check()
    except VerificationError as refused:
        return refused
    return None


def _disagreement(who: str, refused: VerificationError) -> str:
    return (
        f"the two verifiers disagree: only {who} refuses ({refused}); one of them is wrong, "
        "so do not use the proof and report it (SECURITY.md)"
    )


def steps_before(step: str, unchecked: tuple[str, ...], *, bound: bool = False) -> tuple[str, ...]:
    """Return the steps that passed before `step` failed; none if it is not part of step 5."""
    steps = BOUND_STEPS if bound or step == STATISTIC_STEP else STEPS
    passed = steps[: steps.index(step)] if step in steps else ()
    return tuple(each for each in passed if each not in unchecked)
