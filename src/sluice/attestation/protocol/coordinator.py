"""The coordinator's side of the protocol, as types that only move forward.

    ProtocolCoordinator --register--> Enrolled --receive--> ReceivedBatch --attest--> Attested
    ProtocolCoordinator --open_round--> Pledging --close--> Revealing --finish

A batch of a system that draws rows is challenged (`ReceivedBatch.challenge`) before it is attested.

The coordinator accepts a commitment only from an enrolled client, a proof only for a logged
commitment, a token only from an attested client, an update only for a token, and no update before
pledges are closed. Each step is in the log before the next state exists. After a restart,
`ProtocolCoordinator.enrolled`, `Enrolled.received` and `ReceivedBatch.attested` restore the states
from the log.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import InitVar, dataclass, field
from datetime import datetime
from typing import TypeVar, final

from sluice.admission import accept
from sluice.attestation.log import (
    HEADS,
    BatchAttested,
    BatchChallenged,
    BatchCommitted,
    ClientExcluded,
    ClientRegistered,
    HeadCountersigned,
    Log,
    ModelAggregated,
    PledgesClosed,
    RoundOpened,
    Standing,
    UpdatePledged,
    UpdateRevealed,
)
from sluice.attestation.messages import (
    APPROVALS,
    CHALLENGES,
    COMMITS,
    REGISTRATIONS,
    TOKENS,
    Approval,
    Challenge,
    Commit,
    Form,
    Registration,
    RegistrationTerms,
    Signed,
    draw_challenge,
    instant,
    update_digest,
)
from sluice.attestation.protocol.key_folder import Pinned
from sluice.attestation.protocol.transition import (
    TRANSITION,
    StateTransition,
    demand_transition,
)
from sluice.attestation.protocol.verifier import Examined, Verification, Verifier
from sluice.attestation.systems import Circuit, System
from sluice.errors import DocumentError, SettingError, VerificationError
from sluice.invariants import RuleSet, rules_hash

__all__ = [
    "Agreement",
    "Attested",
    "Enrolled",
    "Pledging",
    "ProtocolCoordinator",
    "ReceivedBatch",
    "Revealed",
    "Revealing",
    "declared_in",
]

STEP = "6"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Attested:
    """A client whose batch attestation is in the log."""

    client: str
    attestation: str
    transition: InitVar[StateTransition]

    def __post_init__(self, transition: StateTransition) -> None:
        demand_transition(self, transition)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedPledge:
    """A client's token, logged."""

    client: str
    round: int
    transition: InitVar[StateTransition]

    def __post_init__(self, transition: StateTransition) -> None:
        demand_transition(self, transition)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Revealed:
    """An update that matches its pledge; only these are aggregated."""

    client: str
    update: bytes = field(repr=False)
    transition: InitVar[StateTransition]

    def __post_init__(self, transition: StateTransition) -> None:
        demand_transition(self, transition)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pledging:
    """A round that accepts tokens and no updates."""

    log: Log
    round: int
    transition: InitVar[StateTransition]

    def __post_init__(self, transition: StateTransition) -> None:
        demand_transition(self, transition)

    def pledge(self, attested: Attested, raw: bytes, *, at: datetime) -> LoggedPledge:
        """Log the token of an attested client; a repeated token is logged once."""
        try:
            signed = TOKENS.read(raw)
        except DocumentError as error:
            raise VerificationError(STEP, str(error)) from None
        token = signed.content
        if (token.client, token.attestation) != (attested.client, attested.attestation):
            raise VerificationError(STEP, f"the token is not for this batch of {attested.client!r}")
        if token.round != self.round:
            raise VerificationError(
                STEP, f"the token is for round {token.round}, expected {self.round}"
            )
        if self.log.ledger.rounds.token(self.round, token.client) != token:
            self.log.append(UpdatePledged(token=signed), at=at)
        return LoggedPledge(client=token.client, round=self.round, transition=TRANSITION)

    def exclude(self, client: str, step: str, *, at: datetime) -> None:
        """Log that a client is excluded from this round, with the step as the reason."""
        self.log.append(ClientExcluded(round=self.round, client=client, step=step), at=at)

    def close(self, *, at: datetime) -> "Revealing":
        """Accept no more tokens; updates are revealed from now on."""
        self.log.append(PledgesClosed(round=self.round), at=at)
        return Revealing(log=self.log, round=self.round, transition=TRANSITION)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Revealing:
    """A round that accepts updates and no tokens."""

    log: Log
    round: int
    transition: InitVar[StateTransition]

    def __post_init__(self, transition: StateTransition) -> None:
        demand_transition(self, transition)

    def reveal(self, pledge: LoggedPledge, update: bytes, *, at: datetime) -> Revealed:
        """Accept an update that has the pledged hash; a repeated update is logged once."""
        if pledge.round != self.round:
            raise VerificationError(
                STEP, f"the pledge is for round {pledge.round}, expected {self.round}"
            )
        federation = self.log.ledger.opened.federation
        hashed = update_digest(federation, pledge.client, self.round, update)
        body = UpdateRevealed(round=self.round, client=pledge.client, update=hashed)
        if not self.log.ledger.rounds.revealed(body):
            self.log.append(body, at=at)
        return Revealed(client=pledge.client, update=update, transition=TRANSITION)

    def exclude(self, client: str, step: str, *, at: datetime) -> None:
        """Log that a client is excluded from this round, with the step as the reason."""
        self.log.append(ClientExcluded(round=self.round, client=client, step=step), at=at)

    def leave_out_unseen(self, *, at: datetime) -> tuple[str, ...]:
        """Exclude clients that revealed an update without countersigning the log; step 7."""
        unseen = self.log.ledger.rounds.unseen
        for client in unseen:
            self.exclude(client, "7", at=at)
        return unseen

    def finish(self, model: str, *, at: datetime, settled: Collection[str] = ()) -> tuple[str, ...]:
        """Log the model of the revealed updates, after excluding clients that are not part of it.

        Call `leave_out_unseen` before aggregating: an update counts only with a countersigned log.
        `settled` clients were not asked, because their part of the model stays as it is.
        """
        ledger = self.log.ledger
        for client in ledger.rounds.silent(ledger.clients):
            if client not in settled:
                self.exclude(client, STEP, at=at)
        members = ledger.rounds.members
        self.log.append(ModelAggregated(round=self.round, model=model, clients=members), at=at)
        return members


Document = TypeVar("Document")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """A client's proof system and circuit; the coordinator derives it from rules and policy."""

    system: System
    circuit: Circuit
    overlaps: bool = False  # whether the same time may be attested twice


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolCoordinator:
    """The coordinator with its log."""

    log: Log

    def register(
        self,
        raw: bytes,
        agreement: Agreement,
        *,
        approvals: Sequence[bytes],
        last: RuleSet | None = None,
        at: datetime,
    ) -> "Enrolled":
        """Step 1: enrol a client whose rules the policy accepts and approvers have signed.

        `last` is the rule set accepted for it before, if there is one: looser rules need more
        approvers. A registration that is in force, while `last` is an earlier one because a crash
        prevented it from being stored, is not logged again.
        """
        signed = _read(REGISTRATIONS, raw, step="1")
        registration = signed.content
        stored = rules_hash(last) if last else None
        if stored != registration.rules and self.log.ledger.registration_logged(registration):
            return self.enrolled(registration.client, agreement)
        _refuse_other_terms(registration, agreement)
        given = tuple(_read(APPROVALS, each, step="1") for each in approvals)
        declared = declared_in(given, registration)
        looser = self._looser(registration.client, agreement.circuit, last, declared)
        body = ClientRegistered(registration=signed, looser=looser, approvals=given)
        self.log.append(body, at=at)
        return self.enrolled(registration.client, agreement)

    def enrolled(self, client: str, agreement: Agreement) -> "Enrolled":
        """Return a client that is registered in the log under this agreement."""
        _refuse_other_terms(self.log.ledger.client(client, step="1"), agreement)
        return Enrolled(log=self.log, client=client, agreement=agreement, transition=TRANSITION)

    def countersign(self, raw: bytes, *, at: datetime) -> None:
        """Step 7: log that a plant has seen the log up to the head it signed."""
        self.log.append(HeadCountersigned(head=_read(HEADS, raw, step="7")), at=at)

    def open_round(self, model: str, deadline: datetime, *, at: datetime) -> Pledging:
        """Step 6: open the next round on a model."""
        number = self.log.ledger.rounds.last + 1
        body = RoundOpened(round=number, model=model, deadline=instant(deadline))
        self.log.append(body, at=at)
        return Pledging(log=self.log, round=number, transition=TRANSITION)

    def pledging(self, round_: int) -> Pledging:
        """Return the round, which must be open for tokens in the log."""
        standing = self._standing(round_)
        if standing.closed:
            raise VerificationError(STEP, f"round {round_} is closed to tokens")
        return Pledging(log=self.log, round=round_, transition=TRANSITION)

    def revealing(self, round_: int) -> Revealing:
        """Return the round, which must be closed to tokens in the log."""
        if not self._standing(round_).closed:
            raise VerificationError(STEP, f"round {round_} still accepts tokens")
        return Revealing(log=self.log, round=round_, transition=TRANSITION)

    def attested(self, client: str, attestation: str, *, at: datetime) -> Attested:
        """Return a client whose batch has this attestation in the log, or is excused."""
        if attestation not in self.log.ledger.attestations(client, step=STEP, at=instant(at)):
            raise VerificationError(STEP, f"{client!r} has no attestation {attestation[:12]}...")
        return Attested(client=client, attestation=attestation, transition=TRANSITION)

    def pledge(self, client: str, round_: int) -> LoggedPledge:
        """Return a client's logged pledge."""
        if self.log.ledger.rounds.token(round_, client) is None:
            raise VerificationError(STEP, f"{client!r} has no pledge in round {round_}")
        return LoggedPledge(client=client, round=round_, transition=TRANSITION)

    def _standing(self, round_: int) -> Standing:
        standing = self.log.ledger.rounds.standing
        if standing is None or standing.opened.round != round_ or standing.ended:
            raise VerificationError(STEP, f"round {round_} is not in progress")
        return standing

    def _looser(
        self, client: str, circuit: Circuit, last: RuleSet | None, declared: Mapping[str, str]
    ) -> bool:
        """Check the rules against the policy; return whether they are looser than `last`."""
        accepted = self.log.ledger.rules_of(client)
        if accepted != (rules_hash(last) if last else None):
            raise SettingError(
                f"the log has other rules for {client!r}; give the rules last accepted "
                f"({accepted or 'none'})"
            )
        objections = accept(circuit.rules, circuit.policy, declared=declared)
        if objections:
            sentences = ". ".join(objection.sentence for objection in objections)
            raise VerificationError("1", f"the rules of {client!r} are refused: {sentences}")
        return bool(last and accept(circuit.rules, circuit.policy, last=last, declared=declared))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolled:
    """A registered client with the circuit of its batches."""

    log: Log
    client: str
    agreement: Agreement
    transition: InitVar[StateTransition]

    def __post_init__(self, transition: StateTransition) -> None:
        demand_transition(self, transition)

    def receive(self, raw: bytes, *, at: datetime) -> "ReceivedBatch":
        """Step 2: log a commitment; a message that arrives twice is logged once."""
        signed = _read(COMMITS, raw, step="2")
        if signed.content.client != self.client:
            raise VerificationError(
                "2",
                f"the commitment is from {signed.content.client!r}, expected {self.client!r}",
            )
        if self.log.ledger.commit_of(signed.content.commitment) != signed:
            self.log.append(BatchCommitted(commit=signed), at=at)
        return ReceivedBatch(enrolled=self, commit=signed, transition=TRANSITION)

    def received(self, commitment: str) -> "ReceivedBatch":
        """Return a commitment of this client that is in the log."""
        logged = self.log.ledger.committed(commitment, step="5.3")
        if logged.commit.content.client != self.client:
            raise VerificationError("5.3", f"the commitment is not from {self.client!r}")
        return ReceivedBatch(enrolled=self, commit=logged.commit, transition=TRANSITION)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedBatch:
    """A logged commitment whose proof is awaited."""

    enrolled: Enrolled
    commit: Signed[Commit]
    transition: InitVar[StateTransition]

    def __post_init__(self, transition: StateTransition) -> None:
        demand_transition(self, transition)

    def challenge(self, *, at: datetime) -> Challenge:
        """Step 3: draw the nonce and log it; a repeated call returns the same nonce."""
        log, commit = self.enrolled.log, self.commit.content
        challenge = log.ledger.challenge(commit.commitment)
        if challenge is None:
            challenge = draw_challenge(commit)
            log.append(BatchChallenged(challenge=challenge), at=at)
        return challenge

    def attest(self, raw: bytes, *, at: datetime, statistic: bytes | None = None) -> Attested:
        """Step 5: verify a proof and log the attestation, or raise and log nothing."""
        verified = self._verifier.verify(raw, *self._documents, statistic=statistic)
        return self.conclude(verified, at=at)

    def examine(self, raw: bytes, *, statistic: bytes | None = None) -> Examined:
        """Check every part of step 5 that comes before the proof itself."""
        return self._verifier.examine(raw, *self._documents, statistic=statistic)

    def conclude(self, verified: Verification, *, at: datetime) -> Attested:
        """Log a verified attestation; a repeated one is logged once."""
        if verified.commitment != self.commit.content.commitment:
            raise VerificationError("5.8", "the verified proof is of another commitment")
        log = self.enrolled.log
        if log.ledger.attestation(verified.commitment) is None:
            body = BatchAttested(
                client=verified.client,
                commitment=verified.commitment,
                attestation=verified.attestation,
            )
            log.append(body, at=at)
        return Attested(
            client=verified.client, attestation=verified.attestation, transition=TRANSITION
        )

    @property
    def _verifier(self) -> Verifier:
        agreement = self.enrolled.agreement
        return Verifier(
            system=agreement.system,
            circuit=agreement.circuit,
            pinned=Pinned.of(agreement.circuit),
            ledger=self.enrolled.log.ledger,
        )

    @property
    def _documents(self) -> tuple[bytes, bytes | None]:
        """The commitment, and its challenge if one was drawn."""
        challenge = self.enrolled.log.ledger.challenge(self.commit.content.commitment)
        return COMMITS.write(self.commit), CHALLENGES.write(challenge) if challenge else None

    def attested(self) -> Attested:
        """Return this commitment's attestation from the log."""
        commit = self.commit.content
        attestation = self.enrolled.log.ledger.attestation(commit.commitment)
        if attestation is None:
            raise VerificationError("5.8", f"no proof of this batch of {commit.client!r} is logged")
        return Attested(client=commit.client, attestation=attestation, transition=TRANSITION)


def _refuse_other_terms(registration: Registration, agreement: Agreement) -> None:
    """Refuse a registration that differs from what the coordinator derives itself."""
    pinned = Pinned.of(agreement.circuit)
    named = (registration.system, registration.circuit, registration.rules, registration.policy)
    if named != (pinned.system, pinned.circuit, pinned.rules, pinned.policy):
        raise VerificationError(
            "1", f"{registration.client!r} registers another circuit than the derived one"
        )
    if registration.terms != RegistrationTerms.of(agreement.circuit, overlaps=agreement.overlaps):
        raise VerificationError(
            "1", f"{registration.client!r} registers with other terms than the derived ones"
        )


def declared_in(
    approvals: Sequence[Signed[Approval]], registration: Registration
) -> Mapping[str, str]:
    """Return what every approval of these rules declares about channels without a rule.

    The log counts the approvals; it refuses the registration if one has another signature.
    """
    fitting = [
        each.content.reasons
        for each in approvals
        if each.content.subject == registration.rules
        and each.content.client in (None, registration.client)
    ]
    if not fitting:
        return {}
    common = set.intersection(*(set(reasons) for reasons in fitting))
    return {channel: why for channel, why in fitting[0].items() if channel in common}


def _read(form: Form[Document], raw: bytes, *, step: str) -> Document:
    try:
        return form.read(raw)
    except DocumentError as error:
        raise VerificationError(step, str(error)) from None
