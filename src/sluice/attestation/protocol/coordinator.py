"""The coordinator's side of the protocol, as types that only move forward.

    ProtocolCoordinator --register--> Enrolled --receive--> ReceivedBatch --attest--> Attested
    ProtocolCoordinator --open_round--> Pledging --close--> Revealing --finish

A batch of a system that draws rows is challenged (`ReceivedBatch.challenge`) before it is attested.


A commitment is taken from an enrolled client only, a proof for a logged commitment only, a token
from an attested client only, an update for a token only, and none before pledges are closed. Each
step is in the log before the next state exists. After a restart, `ProtocolCoordinator.enrolled`,
`Enrolled.received` and `ReceivedBatch.attested` find the states again from the log.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
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
]

STEP = "6"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Attested:
    """A client whose batch attestation is in the log."""

    client: str
    attestation: str
    transition: StateTransition = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        demand_transition(self, self.transition)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedPledge:
    """A client's token, logged."""

    client: str
    round: int
    transition: StateTransition = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        demand_transition(self, self.transition)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Revealed:
    """An update that is the pledged one; only these are aggregated."""

    client: str
    update: bytes = field(repr=False)
    transition: StateTransition = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        demand_transition(self, self.transition)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pledging:
    """A round that takes tokens. No update can be handed to it."""

    log: Log
    round: int
    transition: StateTransition = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        demand_transition(self, self.transition)

    def pledge(self, attested: Attested, raw: bytes, *, at: datetime) -> LoggedPledge:
        """Log the token of an attested client; the same one twice is one entry."""
        try:
            signed = TOKENS.read(raw)
        except DocumentError as error:
            raise VerificationError(STEP, str(error)) from None
        token = signed.content
        if (token.client, token.attestation) != (attested.client, attested.attestation):
            raise VerificationError(STEP, f"the token is not for this batch of {attested.client!r}")
        if token.round != self.round:
            raise VerificationError(STEP, f"a token for round {token.round} in {self.round}")
        if self.log.ledger.rounds.token(self.round, token.client) != token:
            self.log.append(UpdatePledged(token=signed), at=at)
        return LoggedPledge(client=token.client, round=self.round, transition=TRANSITION)

    def exclude(self, client: str, step: str, *, at: datetime) -> None:
        """Log that a client has no part in this round, with the step as the reason."""
        self.log.append(ClientExcluded(round=self.round, client=client, step=step), at=at)

    def close(self, *, at: datetime) -> "Revealing":
        """Take no more tokens; from now on updates are revealed."""
        self.log.append(PledgesClosed(round=self.round), at=at)
        return Revealing(log=self.log, round=self.round, transition=TRANSITION)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Revealing:
    """A round that takes updates. No token can be handed to it."""

    log: Log
    round: int
    transition: StateTransition = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        demand_transition(self, self.transition)

    def reveal(self, pledge: LoggedPledge, update: bytes, *, at: datetime) -> Revealed:
        """Take an update whose hash is the pledged one; the same one twice is one entry."""
        if pledge.round != self.round:
            raise VerificationError(STEP, f"a pledge of round {pledge.round} in {self.round}")
        federation = self.log.ledger.opened.federation
        hashed = update_digest(federation, pledge.client, self.round, update)
        body = UpdateRevealed(round=self.round, client=pledge.client, update=hashed)
        if not self.log.ledger.rounds.revealed(body):
            self.log.append(body, at=at)
        return Revealed(client=pledge.client, update=update, transition=TRANSITION)

    def exclude(self, client: str, step: str, *, at: datetime) -> None:
        """Log that a client has no part in this round, with the step as the reason."""
        self.log.append(ClientExcluded(round=self.round, client=client, step=step), at=at)

    def finish(self, model: str, *, at: datetime) -> tuple[str, ...]:
        """Log the model that the revealed updates gave; who was silent is excluded."""
        ledger = self.log.ledger
        for client in ledger.rounds.silent(ledger.clients):
            self.exclude(client, STEP, at=at)
        members = ledger.rounds.members
        self.log.append(ModelAggregated(round=self.round, model=model, clients=members), at=at)
        return members


Document = TypeVar("Document")


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """What the coordinator holds a client to: a circuit it derived itself from rules and policy."""

    system: System
    circuit: Circuit
    overlaps: bool = False  # whether one stretch of time may be attested twice


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ProtocolCoordinator:
    """The coordinator at its log."""

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

        `last` are the rules accepted for it before, if there are any: looser ones need two
        approvers.
        """
        signed = _read(REGISTRATIONS, raw, step="1")
        _refuse_other_terms(signed.content, agreement)
        looser = self._looser(signed.content.client, agreement.circuit, last)
        body = ClientRegistered(
            registration=signed,
            looser=looser,
            approvals=tuple(_read(APPROVALS, each, step="1") for each in approvals),
        )
        self.log.append(body, at=at)
        return self.enrolled(signed.content.client, agreement)

    def enrolled(self, client: str, agreement: Agreement) -> "Enrolled":
        """Return a client that is in the log under this very agreement."""
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
        """Return a round that is open for tokens, as the log has it."""
        standing = self._standing(round_)
        if standing.closed:
            raise VerificationError(STEP, f"round {round_} is closed to tokens")
        return Pledging(log=self.log, round=round_, transition=TRANSITION)

    def revealing(self, round_: int) -> Revealing:
        """Return a round that takes updates, as the log has it."""
        if not self._standing(round_).closed:
            raise VerificationError(STEP, f"round {round_} still takes tokens")
        return Revealing(log=self.log, round=round_, transition=TRANSITION)

    def attested(self, client: str, attestation: str, *, at: datetime) -> Attested:
        """Return a client whose batch has this attestation in the log, or is excused from one."""
        if attestation not in self.log.ledger.attestations(client, step=STEP, at=instant(at)):
            raise VerificationError(STEP, f"{client!r} has no attestation {attestation[:12]}...")
        return Attested(client=client, attestation=attestation, transition=TRANSITION)

    def pledge(self, client: str, round_: int) -> LoggedPledge:
        """Return a client's pledge that is in the log."""
        if self.log.ledger.rounds.token(round_, client) is None:
            raise VerificationError(STEP, f"{client!r} has pledged nothing in round {round_}")
        return LoggedPledge(client=client, round=round_, transition=TRANSITION)

    def _standing(self, round_: int) -> Standing:
        standing = self.log.ledger.rounds.standing
        if standing is None or standing.opened.round != round_ or standing.aggregated:
            raise VerificationError(STEP, f"round {round_} is not going on")
        return standing

    def _looser(self, client: str, circuit: Circuit, last: RuleSet | None) -> bool:
        """Hold the rules against the policy, then against those accepted before."""
        held = self.log.ledger.rules_of(client)
        if held != (rules_hash(last) if last else None):
            raise SettingError(
                f"give the rules last accepted for {client!r} ({held or 'there are none'})"
            )
        objections = accept(circuit.rules, circuit.policy)
        if objections:
            raise VerificationError(
                "1", f"the rules of {client!r} are refused: {objections[0].sentence}"
            )
        return bool(last and accept(circuit.rules, circuit.policy, last=last))


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolled:
    """A registered client with the circuit its batches are held to."""

    log: Log
    client: str
    agreement: Agreement
    transition: StateTransition = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        demand_transition(self, self.transition)

    def receive(self, raw: bytes, *, at: datetime) -> "ReceivedBatch":
        """Step 2: log a commitment; the same message twice (networks do that) is one entry."""
        signed = _read(COMMITS, raw, step="2")
        if signed.content.client != self.client:
            raise VerificationError("2", f"a commitment of {signed.content.client!r} came instead")
        if self.log.ledger.commit_of(signed.content.commitment) != signed:
            self.log.append(BatchCommitted(commit=signed), at=at)
        return ReceivedBatch(enrolled=self, commit=signed, transition=TRANSITION)

    def received(self, commitment: str) -> "ReceivedBatch":
        """Return a commitment of this client that is in the log."""
        logged = self.log.ledger.committed(commitment, step="5.3")
        if logged.commit.content.client != self.client:
            raise VerificationError("5.3", f"the commitment is not one of {self.client!r}")
        return ReceivedBatch(enrolled=self, commit=logged.commit, transition=TRANSITION)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class ReceivedBatch:
    """A logged commitment whose proof is awaited."""

    enrolled: Enrolled
    commit: Signed[Commit]
    transition: StateTransition = field(repr=False, compare=False)

    def __post_init__(self) -> None:
        demand_transition(self, self.transition)

    def challenge(self, *, at: datetime) -> Challenge:
        """Step 3: draw the nonce and log it; who asks again is told the same one."""
        log, commit = self.enrolled.log, self.commit.content
        held = log.ledger.challenge(commit.commitment)
        if held is None:
            held = draw_challenge(commit)
            log.append(BatchChallenged(challenge=held), at=at)
        return held

    def attest(self, raw: bytes, *, at: datetime) -> Attested:
        """Step 5: verify a proof and log the attestation, or raise and log nothing."""
        return self.conclude(self._verifier.verify(raw, *self._said), at=at)

    def examine(self, raw: bytes) -> Examined:
        """Check every part of step 5 that comes before the proof itself."""
        return self._verifier.examine(raw, *self._said)

    def conclude(self, found: Verification, *, at: datetime) -> Attested:
        """Log an attestation that holds; the same one twice is one entry."""
        log = self.enrolled.log
        if log.ledger.attestation(found.commitment) is None:
            body = BatchAttested(
                client=found.client, commitment=found.commitment, attestation=found.attestation
            )
            log.append(body, at=at)
        return Attested(client=found.client, attestation=found.attestation, transition=TRANSITION)

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
    def _said(self) -> tuple[bytes, bytes | None]:
        """The commitment, and its challenge if one was drawn."""
        held = self.enrolled.log.ledger.challenge(self.commit.content.commitment)
        return COMMITS.write(self.commit), CHALLENGES.write(held) if held else None

    def attested(self) -> Attested:
        """Return the attestation that the log has of this commitment."""
        commit = self.commit.content
        held = self.enrolled.log.ledger.attestation(commit.commitment)
        if held is None:
            raise VerificationError("5.8", f"no proof of this batch of {commit.client!r} is logged")
        return Attested(client=commit.client, attestation=held, transition=TRANSITION)


def _refuse_other_terms(registration: Registration, agreement: Agreement) -> None:
    """The registration names what the coordinator derives itself, and nothing else."""
    pinned = Pinned.of(agreement.circuit)
    told = (registration.system, registration.circuit, registration.rules, registration.policy)
    if told != (pinned.system, pinned.circuit, pinned.rules, pinned.policy):
        raise VerificationError(
            "1", f"{registration.client!r} registers another circuit than its rules give"
        )
    if registration.terms != RegistrationTerms.of(agreement.circuit, overlaps=agreement.overlaps):
        raise VerificationError("1", f"{registration.client!r} registers with other terms")


def _read(form: Form[Document], raw: bytes, *, step: str) -> Document:
    try:
        return form.read(raw)
    except DocumentError as error:
        raise VerificationError(step, str(error)) from None
