"""The ledger: the state that a log's entries give, and the checks on the next entry.

The coordinator runs the checks before it writes an entry. A reader of the log runs the same checks
again. Therefore a log that verifies contains no entry that had to be refused.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from sluice.attestation.log.entries import (
    BatchAttested,
    BatchChallenged,
    BatchCommitted,
    BatchExcused,
    ClientExcluded,
    ClientRegistered,
    ClientRemoved,
    Entry,
    GateSet,
    HeadCountersigned,
    LogOpened,
    RoundBody,
    UpdatePledged,
    WaiverGranted,
)
from sluice.attestation.log.exemptions import Exemptions
from sluice.attestation.log.heads import COORDINATOR, EMPTY_LOG, Head
from sluice.attestation.log.rounds import Rounds
from sluice.attestation.messages import (
    Challenge,
    Commit,
    Registration,
    Signed,
    Token,
    content_digest,
)
from sluice.errors import VerificationError

__all__ = ["Ledger", "Logged", "check_challenged", "check_registered", "needs_challenge", "under"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """A commitment in the log: its index, and the registration in force at that entry."""

    index: int
    registration: Registration
    commit: Signed[Commit]


def under(commit: Commit, registration: Registration) -> bool:
    """Whether a commitment matches its client's registration."""
    return (
        commit.client == registration.client
        and commit.federation == registration.federation
        and commit.system == registration.system
        and commit.circuit == registration.circuit
        and commit.rules == registration.rules
        and commit.policy == registration.policy
    )


CHALLENGING = "3"
CHALLENGED = ("sampled",)
"""Names of the systems whose commitments are challenged before they are attested."""


def needs_challenge(commit: Commit) -> bool:
    """Whether rows of this commitment are drawn."""
    return commit.system in CHALLENGED


def check_challenged(challenge: Challenge, commit: Commit, *, again: bool) -> None:
    """Raise a `VerificationError` unless the nonce may follow this logged commitment.

    A commitment has one nonce: a plant cannot request another draw.
    """
    if not challenge.answers(commit) or not needs_challenge(commit):
        raise VerificationError(
            CHALLENGING,
            f"the challenge is not for this commitment of {commit.client!r}, or its system "
            "takes none",
        )
    if again:
        raise VerificationError(CHALLENGING, "the commitment already has a challenge")


REGISTERING = "1"


def check_registered(
    body: ClientRegistered, opened: LogOpened, clients: Iterable[Registration]
) -> None:
    """Raise a `VerificationError` unless the client may register with these rules."""
    registration = body.registration.content
    body.registration.verify(registration.key, step=REGISTERING)
    if registration.federation != opened.federation or registration.client == COORDINATOR:
        raise VerificationError(
            REGISTERING,
            f"{registration.client!r} cannot register with {registration.federation!r} in the log "
            f"of {opened.federation!r}",
        )
    for other in clients:
        if (other.client == registration.client) != (other.key == registration.key):
            raise VerificationError(
                REGISTERING,
                f"client {other.client!r} is registered; a name has one key and a key has one name",
            )
    known, needed = len(_approvers(body, opened)), 2 if body.looser else 1
    if known < needed:
        raise VerificationError(
            REGISTERING,
            f"the rules of {registration.client!r} have {known} approvals; "
            f"{'looser rules need' if body.looser else 'they need'} {needed}",
        )


def _approvers(body: ClientRegistered, opened: LogOpened) -> set[str]:
    """Return the known approvers that signed this registration with this `looser` flag."""
    approvers = set()
    for signed in body.approvals:
        approval = signed.content
        signed.verify(approval.approver, step=REGISTERING)
        approved = (approval.registration, approval.looser)
        if approved == (content_digest(body.registration.content), body.looser):
            approvers.add(approval.approver)
    return approvers & set(opened.approvers)


class Ledger:
    """Clients, commitments, attestations and rounds, according to the entries so far."""

    def __init__(self) -> None:
        self._digests: list[str] = []
        self._opened: LogOpened | None = None
        self._clients: dict[str, Registration] = {}
        self._commits: dict[str, Logged] = {}
        self._challenges: dict[str, Challenge] = {}  # by commitment
        self._attestations: dict[str, str] = {}  # commitment -> attestation
        self.exemptions = Exemptions()
        self.rounds = Rounds()

    # -- queries ------------------------------------------------------------------------------

    @property
    def opened(self) -> LogOpened:
        """The first entry: federation, coordinator and approvers."""
        if self._opened is None:
            raise VerificationError(
                "7", "the log is empty; its first entry must name its coordinator"
            )
        return self._opened

    @property
    def size(self) -> int:
        """The number of entries."""
        return len(self._digests)

    def head(self, signer: str, *, size: int | None = None) -> Head:
        """Return the head, now or when the log had `size` entries, for `signer` to sign."""
        size = self.size if size is None else size
        if size > self.size:
            raise VerificationError("7", f"the log has {self.size} entries, not {size}")
        last = self._digests[size - 1] if size else EMPTY_LOG
        return Head(federation=self.opened.federation, signer=signer, size=size, last=last)

    def client(self, name: str, *, step: str) -> Registration:
        """Return a client's registration in force; an unknown client fails the given step."""
        if name not in self._clients:
            raise VerificationError(step, f"no client {name!r} is registered")
        return self._clients[name]

    def registration_for(self, commit: Commit, *, step: str) -> Registration:
        """Return the registration under which a commitment was logged, or would be now."""
        logged = self._commits.get(commit.commitment)
        if logged and logged.commit.content == commit:
            return logged.registration
        return self.client(commit.client, step=step)

    @property
    def clients(self) -> tuple[str, ...]:
        """Every registered client."""
        return tuple(self._clients)

    def rules_of(self, client: str) -> str | None:
        """Return the hash of the rules last accepted for a client, if there are any."""
        return self._clients[client].rules if client in self._clients else None

    def commit_of(self, commitment: str) -> Signed[Commit] | None:
        """Return the signed message of a commitment, if it is in the log."""
        return self._commits[commitment].commit if commitment in self._commits else None

    def committed(self, commitment: str, *, step: str) -> Logged:
        """Return a commitment's entry; one that is not in the log fails the given step."""
        if commitment not in self._commits:
            raise VerificationError(step, f"commitment {commitment[:12]}... is not in the log")
        return self._commits[commitment]

    def challenge(self, commitment: str) -> Challenge | None:
        """Return the challenge of a commitment, if there is one."""
        return self._challenges.get(commitment)

    def attestation(self, commitment: str) -> str | None:
        """Return the attestation of a commitment, if there is one."""
        return self._attestations.get(commitment)

    def attestations(self, client: str, *, step: str, at: str) -> tuple[str, ...]:
        """Return the attestations of a client under the rules that are in force for it.

        They include batches that are excused from proving at this time.
        """
        registration, exempt = self.client(client, step=step), self.exemptions
        attested = dict(self._attestations)
        attested |= {e.commitment: e.attestation for e in exempt.excused if exempt.holds(e, at=at)}
        return tuple(
            attestation
            for commitment, attestation in attested.items()
            if under(self._commits[commitment].commit.content, registration)
        )

    def attested_commit(self, client: str, attestation: str, *, step: str) -> Commit:
        """Return the commitment that a client's attestation is of; it may be an excused one."""
        known = {found: commitment for commitment, found in self._attestations.items()}
        known |= {each.attestation: each.commitment for each in self.exemptions.excused}
        if attestation in known:
            commit = self._commits[known[attestation]].commit.content
            if commit.client == client:
                return commit
        raise VerificationError(step, f"{client!r} has no attestation {attestation[:12]}...")

    # -- checks -------------------------------------------------------------------------------

    def check(self, entry: Entry) -> None:
        """Raise a `VerificationError` if the entry may not follow the entries so far."""
        if entry.index != self.size or entry.previous != (self._digests or [EMPTY_LOG])[-1]:
            raise VerificationError(
                "7", f"entry {entry.index} does not follow entry {self.size - 1} of the log"
            )
        if (self.size == 0) != isinstance(entry.body, LogOpened):
            raise VerificationError("7", "the first entry of a log, and no other, must open it")
        match entry.body:
            case LogOpened():
                pass
            case ClientRegistered() as body:
                check_registered(body, self.opened, self._clients.values())
                self._refuse_removed(body.registration.content.client, step="1")
            case BatchCommitted(commit=commit):
                self.check_committed(commit)
            case BatchChallenged(challenge=challenge):
                logged = self.committed(challenge.commitment, step="3")
                again = challenge.commitment in self._challenges
                check_challenged(challenge, logged.commit.content, again=again)
            case BatchAttested() as body:
                self._check_attested(body)
            case HeadCountersigned() as body:
                self._check_countersigned(body)
            case GateSet() | WaiverGranted() | BatchExcused() | ClientRemoved() as body:
                self._check_act(body, at=entry.time)
            case body:
                self._check_round(body, at=entry.time)

    def note(self, entry: Entry, digest: str) -> None:
        """Record an entry that was checked and written."""
        match entry.body:
            case LogOpened() as body:
                self._opened = body
            case ClientRegistered(registration=registration):
                self._clients[registration.content.client] = registration.content
            case BatchCommitted(commit=commit):
                self._commits[commit.content.commitment] = Logged(
                    index=entry.index,
                    registration=self._clients[commit.content.client],
                    commit=commit,
                )
            case BatchChallenged(challenge=challenge):
                self._challenges[challenge.commitment] = challenge
            case BatchAttested(commitment=commitment, attestation=attestation):
                self._attestations[commitment] = attestation
            case HeadCountersigned():
                pass
            case GateSet() | WaiverGranted() | BatchExcused() as body:
                self.exemptions.note(body)
            case ClientRemoved() as body:
                self.rounds.note_removed(body)
            case body:
                self.rounds.note(body)
        self._digests.append(digest)

    def check_committed(self, signed: Signed[Commit]) -> None:
        """Step 2: check that a commitment is new, of a known client, with allowed rows and time."""
        commit = signed.content
        registration = self.client(commit.client, step="2")
        signed.verify(registration.key, step="2")
        self._refuse_removed(commit.client, step="2")
        if commit.key != registration.key or not under(commit, registration):
            raise VerificationError(
                "2",
                f"the commitment of {commit.client!r} is for other rules, another policy, circuit, "
                "key or federation than it is registered with",
            )
        logged = self._commits.get(commit.commitment)
        if logged:
            owner = logged.commit.content.client
            raise VerificationError(
                "2", f"this commitment is already in the log, from client {owner!r}"
            )
        objection = registration.terms.objection(commit.rows, commit.interval)
        if objection:
            raise VerificationError("2", f"the batch of {commit.client!r} is refused: {objection}")
        if not registration.terms.overlaps:
            self._refuse_overlap(commit)

    def _refuse_removed(self, client: str, *, step: str) -> None:
        if self.rounds.removed(client):
            raise VerificationError(step, f"{client!r} was removed from the federation")

    def _refuse_overlap(self, commit: Commit) -> None:
        for logged in self._commits.values():
            earlier = logged.commit.content
            if earlier.client == commit.client and earlier.interval.overlaps(commit.interval):
                raise VerificationError(
                    "2",
                    f"{commit.client!r} already committed to {earlier.interval.start} to "
                    f"{earlier.interval.end} (entry {logged.index}), which overlaps "
                    f"{commit.interval.start} to {commit.interval.end}",
                )

    def _check_attested(self, body: BatchAttested) -> None:
        logged = self.committed(body.commitment, step="5.3")
        if logged.commit.content.client != body.client:
            raise VerificationError("5.3", f"the commitment is not from {body.client!r}")
        challenged = body.commitment in self._challenges
        if needs_challenge(logged.commit.content) and not challenged:
            raise VerificationError("5.3", "the commitment has no challenge")
        if body.commitment in self._attestations:
            raise VerificationError("5.4", "the commitment is already attested")

    def _check_act(
        self, body: GateSet | WaiverGranted | BatchExcused | ClientRemoved, *, at: str
    ) -> None:
        match body:
            case GateSet():
                self.exemptions.check_gate(body, between=self.rounds.between)
            case WaiverGranted(waiver=signed):
                self.client(signed.content.client, step="4")
                self.exemptions.check_waiver(body, self.opened, at=at)
            case BatchExcused(client=client, commitment=commitment):
                logged = self.committed(commitment, step="5.3").commit.content
                if logged.client != client or commitment in self._attestations:
                    raise VerificationError("5.3", "the batch is of another client, or has a proof")
                self.exemptions.check_excused(body, logged, at=at)
            case ClientRemoved(client=client):
                self.client(client, step="6")
                self.rounds.check_removed(body)

    def _check_round(self, body: RoundBody, *, at: str) -> None:
        self.rounds.check(body, at=at)
        match body:
            case UpdatePledged(token=token):
                self._check_pledged(token, at=at)
            case ClientExcluded(client=client):
                self.client(client, step="6")
            case _:
                pass

    def _check_pledged(self, signed: Signed[Token], *, at: str) -> None:
        token = signed.content
        signed.verify(self.client(token.client, step="6").key, step="6")
        if token.federation != self.opened.federation:
            raise VerificationError("6", f"the token is for federation {token.federation!r}")
        if token.attestation not in self.attestations(token.client, step="6", at=at):
            raise VerificationError(
                "6",
                f"{token.client!r} has no attestation {token.attestation[:12]}... under the rules "
                "that are in force for it",
            )

    def _check_countersigned(self, body: HeadCountersigned) -> None:
        head = body.head.content
        body.head.verify(self.client(head.signer, step="7").key, step="7")
        if head != self.head(head.signer, size=head.size):
            raise VerificationError("7", f"{head.signer!r} has signed the head of another log")
