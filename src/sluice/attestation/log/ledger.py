"""The ledger: the state that a log's entries give, and the checks on the next entry.

The coordinator runs the checks before it writes an entry. Plants and readers of the log run the
same checks again. Therefore a log that verifies contains no entry that had to be refused.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from sluice.attestation.log.entries import (
    Act,
    BatchAttested,
    BatchChallenged,
    BatchCommitted,
    BatchExcused,
    ClientExcluded,
    ClientRegistered,
    ClientRemoved,
    Entry,
    EpochDrawn,
    FederationRecovered,
    GateSet,
    GroupBody,
    GroupGivenUp,
    GroupSummed,
    HeadCountersigned,
    KeyRotated,
    LogOpened,
    LogTerms,
    ModelAggregated,
    PledgesClosed,
    RoundAbandoned,
    RoundBody,
    RoundOpened,
    StatisticTerms,
    UpdatePledged,
    UpdateRevealed,
    WaiverGranted,
)
from sluice.attestation.log.exemptions import Exemptions, ExemptionsState
from sluice.attestation.log.groups import Groups, GroupsState
from sluice.attestation.log.heads import COORDINATOR, EMPTY_LOG, Head
from sluice.attestation.log.rounds import Rounds, RoundsState
from sluice.attestation.messages import (
    Approval,
    Challenge,
    Commit,
    GroupReleased,
    Registration,
    RotationSigned,
    Signed,
    Token,
    content_digest,
    update_digest,
)
from sluice.errors import VerificationError

__all__ = ["CHALLENGED", "Ledger", "LedgerState", "Logged", "needs_challenge", "under"]

BINDING = "full"
"""The name of the system whose proofs can bind a statistic."""
CHALLENGED = ("sampled",)
"""Names of the systems whose commitments are challenged before they are attested."""
OTHER_STATISTIC = "6.9"
"""The step of a pledge of another statistic than the attested one."""
AHEAD = 14
"""Hours that a plant's clock, which has no time zone, can be ahead of UTC."""
BEHIND = 12
"""Hours that a plant's clock can be behind UTC."""
RECENT = 16_384
"""A head can be countersigned while it is at most this many entries old."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Logged:
    """A commitment in the log: its index, its time, and the registration in force at that entry."""

    index: int
    time: str
    registration: Registration
    commit: Signed[Commit]


@dataclass(frozen=True, slots=True, kw_only=True)
class Enrolment:
    """A client's registration in force, and its index."""

    index: int
    registration: Registration


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnNonce:
    """The challenge of a commitment, and when it was logged."""

    challenge: Challenge
    time: str
    registered: int  # the index of the registration in force at that entry


@dataclass(slots=True, kw_only=True)
class LedgerState:
    """Everything that the ledger knows; a snapshot holds exactly this."""

    opened: LogOpened | None = None
    coordinator: str = ""  # its key in force
    rotations: list[RotationSigned] = field(default_factory=list)  # of the coordinator's key
    approvers: list[str] = field(default_factory=list)  # their keys in force
    size: int = 0
    time: str = ""  # of the last entry
    recent: list[str] = field(default_factory=list)  # digests of the last entries
    clients: dict[str, Enrolment] = field(default_factory=dict)
    approvals: dict[str, list[str]] = field(default_factory=dict)  # by client: digests of used ones
    commits: dict[str, Logged] = field(default_factory=dict)  # by commitment
    batches: dict[str, list[str]] = field(default_factory=dict)  # commitments by client, in order
    challenges: dict[str, DrawnNonce] = field(default_factory=dict)  # by commitment
    attestations: dict[str, str] = field(default_factory=dict)  # by commitment
    heads: dict[str, Signed[Head]] = field(default_factory=dict)  # by client: the last it signed
    exemptions: ExemptionsState = field(default_factory=ExemptionsState)
    rounds: RoundsState = field(default_factory=RoundsState)
    groups: GroupsState = field(default_factory=GroupsState)


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


def needs_challenge(commit: Commit) -> bool:
    """Whether rows of this commitment are drawn."""
    return commit.system in CHALLENGED


class Ledger:
    """Clients, commitments, attestations and rounds, according to the entries so far."""

    def __init__(self, state: LedgerState | None = None) -> None:
        self.state = state or LedgerState()
        self.exemptions = Exemptions(self.state.exemptions)
        self.rounds = Rounds(self.state.rounds)
        self.groups = Groups(self.state.groups, self.rounds)

    # -- queries ------------------------------------------------------------------------------

    @property
    def opened(self) -> LogOpened:
        """The first entry: federation, coordinator, approvers and terms."""
        if self.state.opened is None:
            raise VerificationError(
                "7", "the log is empty; its first entry must name its coordinator"
            )
        return self.state.opened

    @property
    def terms(self) -> LogTerms:
        """What the log demands of time and of approvals."""
        return self.opened.terms

    @property
    def bound(self) -> StatisticTerms | None:
        """The terms of the statistic, if proofs bind it to the rows; None otherwise."""
        statistic = self.opened.statistic
        return statistic if statistic is not None and statistic.bound else None

    @property
    def grouped(self) -> StatisticTerms | None:
        """The terms of the statistic, if plants share it in groups; None otherwise."""
        statistic = self.opened.statistic
        return statistic if statistic is not None and statistic.helper is not None else None

    @property
    def coordinator(self) -> str:
        """The coordinator's key in force."""
        return self.state.coordinator

    @property
    def rotations(self) -> tuple[RotationSigned, ...]:
        """The rotations of the coordinator's key, in order."""
        return tuple(self.state.rotations)

    @property
    def size(self) -> int:
        """The number of entries."""
        return self.state.size

    @property
    def time(self) -> str:
        """The time of the last entry."""
        return self.state.time

    def head(self, signer: str, *, size: int | None = None) -> Head:
        """Return the head, now or when the log had `size` entries, for `signer` to sign."""
        size = self.size if size is None else size
        if size > self.size:
            raise VerificationError("7", f"the log has {self.size} entries, not {size}")
        recent = self.state.recent
        if size and self.size - size >= RECENT:
            raise VerificationError(
                "7", f"the head of {size} entries is too old: the log has {self.size}"
            )
        last = recent[size - 1 - self.size] if size else EMPTY_LOG
        return Head(federation=self.opened.federation, signer=signer, size=size, last=last)

    def client(self, name: str, *, step: str) -> Registration:
        """Return a client's registration in force; an unknown client fails the given step."""
        if name not in self.state.clients:
            raise VerificationError(step, f"no client {name!r} is registered")
        return self.state.clients[name].registration

    def registration_logged(self, registration: Registration) -> bool:
        """Whether exactly this registration is in force."""
        enrolled = self.state.clients.get(registration.client)
        return enrolled is not None and enrolled.registration == registration

    def registration_for(self, commit: Commit, *, step: str) -> Registration:
        """Return the registration under which a commitment was logged, or would be now."""
        logged = self.state.commits.get(commit.commitment)
        if logged and logged.commit.content == commit:
            return logged.registration
        return self.client(commit.client, step=step)

    @property
    def clients(self) -> tuple[str, ...]:
        """Every registered client."""
        return tuple(self.state.clients)

    def keys_of(self, signer: str) -> tuple[str, ...]:
        """Return the keys of a signer of heads: the coordinator's, or a client's in force."""
        if signer == COORDINATOR:
            earlier = (signed.rotation.old for signed in self.rotations)
            return (self.coordinator, *earlier)
        enrolled = self.state.clients.get(signer)
        return (enrolled.registration.key,) if enrolled else ()

    def rules_of(self, client: str) -> str | None:
        """Return the hash of the rules last accepted for a client, if there are any."""
        enrolled = self.state.clients.get(client)
        return enrolled.registration.rules if enrolled else None

    def commit_of(self, commitment: str) -> Signed[Commit] | None:
        """Return the signed message of a commitment, if it is in the log."""
        logged = self.state.commits.get(commitment)
        return logged.commit if logged else None

    def committed(self, commitment: str, *, step: str) -> Logged:
        """Return a commitment's entry; one that is not in the log fails the given step."""
        if commitment not in self.state.commits:
            raise VerificationError(step, f"commitment {commitment[:12]}... is not in the log")
        return self.state.commits[commitment]

    def challenge(self, commitment: str) -> Challenge | None:
        """Return the challenge of a commitment, if there is one."""
        drawn = self.state.challenges.get(commitment)
        return drawn.challenge if drawn else None

    def attestation(self, commitment: str) -> str | None:
        """Return the attestation of a commitment, if there is one."""
        return self.state.attestations.get(commitment)

    def attested_until(self, commitment: str) -> str | None:
        """Return the log time until which a commitment's attestation holds, if it has one.

        It counts from the commitment, so that a proof that comes later does not hold for longer.
        """
        return self._holds_until(commitment) if commitment in self.state.attestations else None

    def _holds_until(self, commitment: str) -> str:
        return _after(self.state.commits[commitment].time, days=self.terms.attestation_days)

    def attestations(self, client: str, *, step: str, at: str) -> tuple[str, ...]:
        """Return the attestations of a client that hold now, under its rules in force.

        They include batches that are excused from proving at this time, and exclude those that
        have expired.
        """
        return tuple(self.commits_in_force(client, step=step, at=at))

    def commits_in_force(self, client: str, *, step: str, at: str) -> dict[str, Commit]:
        """Return the commitments whose attestations hold now, by attestation."""
        registration, exempt = self.client(client, step=step), self.exemptions
        in_force: dict[str, Commit] = {}
        for commitment in self.state.batches.get(client, ()):
            commit = self.state.commits[commitment].commit.content
            if not under(commit, registration):
                continue
            until, attestation = self.attested_until(commitment), self.attestation(commitment)
            if attestation is not None and until is not None and at <= until:
                in_force[attestation] = commit
            excused = exempt.excuse_of(commitment)
            if excused and exempt.holds(excused, at=at):
                in_force[excused.attestation] = commit
        return in_force

    def commitments(self, client: str) -> tuple[str, ...]:
        """Return a client's commitments, in order."""
        return tuple(self.state.batches.get(client, ()))

    def seen(self, client: str) -> Signed[Head] | None:
        """Return the last head that a client has countersigned, if there is one."""
        return self.state.heads.get(client)

    def unanswered(self, client: str) -> tuple[DrawnNonce, ...]:
        """Return a client's challenges without an attestation, in the order of its commitments."""
        return tuple(
            drawn
            for commitment in self.state.batches.get(client, ())
            if (drawn := self.state.challenges.get(commitment)) is not None
            and commitment not in self.state.attestations
        )

    def attested_commit(self, client: str, attestation: str, *, step: str) -> Commit:
        """Return the commitment that a client's attestation is of; it may be an excused one."""
        for commitment in self.commitments(client):
            excused = self.exemptions.excuse_of(commitment)
            known = (self.attestation(commitment), excused and excused.attestation)
            if attestation in known:
                return self.state.commits[commitment].commit.content
        raise VerificationError(step, f"{client!r} has no attestation {attestation[:12]}...")

    # -- checks -------------------------------------------------------------------------------

    def check(self, entry: Entry) -> None:  # noqa: C901 - one case for each kind of entry
        """Raise a `VerificationError` if the entry may not follow the entries so far."""
        last = self.state.recent[-1] if self.size else EMPTY_LOG
        if entry.index != self.size or entry.previous != last:
            raise VerificationError(
                "7", f"entry {entry.index} does not follow entry {self.size - 1} of the log"
            )
        if (self.size == 0) != isinstance(entry.body, LogOpened):
            raise VerificationError("7", "the first entry of a log, and no other, must open it")
        if entry.time < self.time:
            raise VerificationError(
                "7", f"entry {entry.index} is of {entry.time}, before the entry before it"
            )
        match entry.body:
            case LogOpened() as body:
                _check_opened(body)
            case ClientRegistered() as body:
                self._check_registered(body)
            case BatchCommitted(commit=commit):
                self.check_committed(commit, at=entry.time)
            case BatchChallenged(challenge=challenge):
                self._check_challenged(challenge, at=entry.time)
            case BatchAttested() as body:
                self._check_attested(body, at=entry.time)
            case HeadCountersigned() as body:
                self._check_countersigned(body)
            case EpochDrawn() | GroupSummed() | GroupGivenUp() as body:
                self._check_group(body, at=entry.time)
            case (
                GateSet()
                | WaiverGranted()
                | BatchExcused()
                | ClientRemoved()
                | KeyRotated()
                | FederationRecovered() as body
            ):
                self._check_act(body, at=entry.time)
            case body:
                self._check_round(body, at=entry.time)

    def note(self, entry: Entry, digest: str) -> None:  # noqa: C901, PLR0912 - one case each kind
        """Record an entry that was checked and written."""
        state = self.state
        match entry.body:
            case LogOpened() as body:
                state.opened, state.coordinator = body, body.coordinator
                state.approvers = list(body.approvers)
            case ClientRegistered(registration=signed, approvals=approvals):
                registration = signed.content
                state.clients[registration.client] = Enrolment(
                    index=entry.index, registration=registration
                )
                used = state.approvals.setdefault(registration.client, [])
                used.extend(content_digest(each.content) for each in approvals)
            case BatchCommitted(commit=signed):
                commit = signed.content
                enrolled = state.clients[commit.client]
                state.commits[commit.commitment] = Logged(
                    index=entry.index,
                    time=entry.time,
                    registration=enrolled.registration,
                    commit=signed,
                )
                state.batches.setdefault(commit.client, []).append(commit.commitment)
            case BatchChallenged(challenge=challenge):
                drawn = DrawnNonce(
                    challenge=challenge,
                    time=entry.time,
                    registered=state.clients[challenge.client].index,
                )
                state.challenges[challenge.commitment] = drawn
            case BatchAttested(commitment=commitment, attestation=attestation):
                state.attestations[commitment] = attestation
            case HeadCountersigned(head=head):
                state.heads[head.content.signer] = head
                self.rounds.note_countersigned(head.content.signer, head.content.size)
            case GateSet() | WaiverGranted() | BatchExcused() as body:
                self.exemptions.note(body)
            case ClientRemoved() as body:
                self.rounds.note_removed(body)
            case FederationRecovered() as body:
                self.rounds.note_recovered(body)
                self.groups.note_discarded(body.recovery.model_of)
            case KeyRotated(signed=rotated):
                self._note_rotated(rotated)
            case EpochDrawn() | GroupSummed() | GroupGivenUp() as body:
                self.groups.note(body)
            case body:
                self.rounds.note(body, size=state.size + 1)
                if self.grouped:
                    self._note_grouped_round(body, self.grouped)
        state.size, state.time = state.size + 1, entry.time
        state.recent.append(digest)
        if len(state.recent) > 2 * RECENT:
            del state.recent[:-RECENT]

    # -- step 1 -------------------------------------------------------------------------------

    def _check_registered(self, body: ClientRegistered) -> None:
        """Step 1: a client may register with these rules."""
        registration, opened = body.registration.content, self.opened
        body.registration.verify(registration.key, step="1")
        if registration.federation != opened.federation or registration.client == COORDINATOR:
            raise VerificationError(
                "1",
                f"{registration.client!r} cannot register with {registration.federation!r} in the "
                f"log of {opened.federation!r}",
            )
        if self.bound and registration.system != BINDING:
            raise VerificationError(
                "1",
                f"{registration.client!r} registers with system {registration.system!r}; only "
                f"proofs of {BINDING!r} bind a statistic",
            )
        for enrolled in self.state.clients.values():
            other = enrolled.registration
            if (other.client == registration.client) != (other.key == registration.key):
                raise VerificationError(
                    "1",
                    f"client {other.client!r} is registered; a name has one key and a key has one "
                    "name",
                )
        if registration.key in {self.coordinator, *self.state.approvers}:
            raise VerificationError(
                "1",
                f"the key of {registration.client!r} is the key of an approver or of the "
                "coordinator; no party approves its own rules",
            )
        needed = self.terms.approvals_looser if body.looser else self.terms.approvals
        what = f"the {'looser ' if body.looser else ''}rules of {registration.client!r}"
        used = self.state.approvals.get(registration.client, ())
        fitting = (
            each
            for each in body.approvals
            if each.content.client in (None, registration.client)
            and each.content.looser == body.looser
            and content_digest(each.content) not in used
        )
        self._demand_approved(fitting, registration.rules, what, needed=needed, step="1")
        self._refuse_removed(registration.client, step="1")

    def _demand_approved(
        self,
        approvals: Iterable[Signed[Approval]],
        subject: str,
        what: str,
        *,
        needed: int,
        step: str,
    ) -> None:
        """Raise unless enough different approvers have signed this subject."""
        approvers = set()
        for signed in approvals:
            signed.verify(signed.content.approver, step=step)
            if signed.content.subject == subject:
                approvers.add(signed.content.approver)
        known = len(approvers & set(self.state.approvers))
        if known < needed:
            raise VerificationError(
                step,
                f"{what}: {known} approvals of approvers of this federation that were not used "
                f"before, {needed} are needed; 'sluice rules approve' signs one",
            )

    # -- steps 2 to 5 -------------------------------------------------------------------------

    def check_committed(self, signed: Signed[Commit], *, at: str) -> None:
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
        logged = self.state.commits.get(commit.commitment)
        if logged:
            owner = logged.commit.content.client
            raise VerificationError(
                "2", f"this commitment is already in the log, from client {owner!r}"
            )
        objection = registration.terms.objection(commit.rows, commit.interval)
        if objection:
            raise VerificationError("2", f"the batch of {commit.client!r} is refused: {objection}")
        self._refuse_unbound(commit)
        if not registration.terms.overlaps:
            self._refuse_earlier(commit)
        self._refuse_wrong_time(commit, at=at)

    def _refuse_unbound(self, commit: Commit) -> None:
        """A shared statistic covers enough rows; a bound one is named and was signed off."""
        terms = self.opened.statistic
        if terms is None:
            return
        objection = terms.limits.objection(commit.rows, commit.interval) if terms.limits else ""
        if terms.bound and commit.statistic is None:
            objection = "the federation shares bound statistics, and its commitment names none"
        elif terms.bound and commit.signed_off is None:
            objection = "no operator of the plant has signed off its statistic"
        if objection:
            raise VerificationError("2", f"the batch of {commit.client!r} is refused: {objection}")

    def _refuse_removed(self, client: str, *, step: str) -> None:
        if self.rounds.removed(client):
            raise VerificationError(step, f"{client!r} was removed from the federation")

    def _refuse_earlier(self, commit: Commit) -> None:
        """The intervals of a client follow each other, so that no time is committed to twice."""
        batches = self.state.batches.get(commit.client)
        if not batches:
            return
        logged = self.state.commits[batches[-1]]
        earlier = logged.commit.content.interval
        if commit.interval.start <= earlier.end:
            raise VerificationError(
                "2",
                f"{commit.client!r} already committed to {earlier.start} to {earlier.end} (entry "
                f"{logged.index}); the next batch starts after that, not at "
                f"{commit.interval.start}",
            )

    def _refuse_wrong_time(self, commit: Commit, *, at: str) -> None:
        """A batch ends before the log's clock, and recently unless the log holds history."""
        end, now = commit.interval.end, at.removesuffix("Z")
        if end > _after(now, hours=AHEAD):
            raise VerificationError(
                "2", f"the batch of {commit.client!r} ends at {end}, which is after {at}"
            )
        days = self.terms.batch_days
        if not self.terms.history and end < _after(now, days=-days, hours=-BEHIND):
            raise VerificationError(
                "2",
                f"the batch of {commit.client!r} ends at {end}, more than {days} days before {at}; "
                "attest later rows (a federation for old records is founded with --history)",
            )

    def _check_challenged(self, challenge: Challenge, *, at: str) -> None:
        """Step 3: the nonce may follow this logged commitment.

        A commitment has one nonce: a plant cannot request another draw. A client has one open
        challenge, and under one registration only so many that it did not answer.
        """
        commit = self.committed(challenge.commitment, step="3").commit.content
        if not challenge.answers(commit) or not needs_challenge(commit):
            raise VerificationError(
                "3",
                f"the challenge is not for this commitment of {commit.client!r}, or its system "
                "takes none",
            )
        if challenge.commitment in self.state.challenges:
            raise VerificationError("3", "the commitment already has a challenge")
        unanswered = self.unanswered(commit.client)
        for drawn in unanswered:
            if at <= (until := self._answer_until(drawn)):
                raise VerificationError(
                    "3", f"{commit.client!r} has a challenge that it must answer by {until}"
                )
        registered = self.state.clients[commit.client].index
        left = sum(drawn.registered == registered for drawn in unanswered)
        if left >= self.terms.unanswered_max:
            raise VerificationError(
                "3",
                f"{commit.client!r} left {left} challenges unanswered, "
                f"{self.terms.unanswered_max} are allowed; approvers must approve its rules again",
            )

    def _answer_until(self, drawn: DrawnNonce) -> str:
        return _after(drawn.time, hours=self.terms.challenge_hours)

    def _check_attested(self, body: BatchAttested, *, at: str) -> None:
        commit = self.committed(body.commitment, step="5.3").commit.content
        if commit.client != body.client:
            raise VerificationError("5.3", f"the commitment is not from {body.client!r}")
        if needs_challenge(commit):
            drawn = self.state.challenges.get(body.commitment)
            if drawn is None:
                raise VerificationError("5.3", "the commitment has no challenge")
            if at > (until := self._answer_until(drawn)):
                raise VerificationError("5.3", f"the challenge had to be answered by {until}")
        if body.commitment in self.state.attestations:
            raise VerificationError("5.4", "the commitment is already attested")
        if at > (until := self._holds_until(body.commitment)):
            since = self.state.commits[body.commitment].time
            raise VerificationError(
                "5.4",
                f"the batch of {body.client!r} was committed to on {since}; its proof would hold "
                f"until {until}; it must attest later rows",
            )

    # -- acts ---------------------------------------------------------------------------------

    def _check_act(self, body: Act, *, at: str) -> None:
        federation = self.opened.federation
        self._refuse_exemption(body)
        match body:
            case GateSet(order=order):
                self.exemptions.check_gate(body, federation, at=at, between=self.rounds.between)
                if order is not None:
                    self._demand_order_approved(body.approvals, content_digest(order), "the order")
            case WaiverGranted(waiver=waiver):
                self.client(waiver.client, step="4")
                self.exemptions.check_waiver(body, federation, at=at)
                self._demand_order_approved(body.approvals, content_digest(waiver), "the waiver")
            case BatchExcused(client=client, commitment=commitment):
                logged = self.committed(commitment, step="5.3").commit.content
                if logged.client != client or commitment in self.state.attestations:
                    raise VerificationError("5.3", "the batch is of another client, or has a proof")
                self.exemptions.check_excused(body, logged, at=at)
            case ClientRemoved(client=client):
                self.client(client, step="6")
                statistics = self.opened.statistic is not None
                self.rounds.check_removed(body, statistics=statistics)
            case KeyRotated():
                self._check_rotated(body)
            case FederationRecovered():
                self._check_recovered(body)

    def _refuse_exemption(self, body: Act) -> None:
        """A bound statistic has a proof, so no batch is exempt from proving."""
        shadow = isinstance(body, GateSet) and not body.enforced
        if self.bound and (shadow or isinstance(body, WaiverGranted | BatchExcused)):
            raise VerificationError(
                "4",
                "statistics of this federation are bound by proofs, so no batch is accepted "
                "without one: no waiver, no shadow mode",
            )

    def _demand_order_approved(
        self, approvals: Iterable[Signed[Approval]], subject: str, what: str
    ) -> None:
        needed = self.terms.approvals
        self._demand_approved(approvals, subject, what, needed=needed, step="4")

    def _check_rotated(self, body: KeyRotated) -> None:
        """Both keys sign; the old one is in force, and the new one belongs to no other party."""
        rotation = body.signed.rotation
        body.signed.verify(step="1")
        if rotation.federation != self.opened.federation:
            raise VerificationError("1", f"the new key is for {rotation.federation!r}")
        clients = [enrolled.registration.key for enrolled in self.state.clients.values()]
        known = {self.coordinator, *self.state.approvers, *clients}
        if rotation.old not in known or rotation.new in known:
            raise VerificationError(
                "1",
                f"key {rotation.old[:12]}... is not in force, or {rotation.new[:12]}... belongs to "
                "another party",
            )

    def _note_rotated(self, signed: RotationSigned) -> None:
        state, old, new = self.state, signed.rotation.old, signed.rotation.new
        if state.coordinator == old:
            state.coordinator = new
            state.rotations.append(signed)
        state.approvers = [new if key == old else key for key in state.approvers]
        for client, enrolled in state.clients.items():
            if enrolled.registration.key == old:
                registration = replace(enrolled.registration, key=new)
                state.clients[client] = replace(enrolled, registration=registration)

    def _check_recovered(self, body: FederationRecovered) -> None:
        """A recovery follows exactly this log, and most plants have consented to it."""
        recovery = body.recovery
        head = self.head(COORDINATOR)
        if (recovery.federation, recovery.size, recovery.last) != (
            head.federation,
            head.size,
            head.last,
        ):
            raise VerificationError("7", "the recovery does not follow this log")
        self.rounds.check_recovered(body)
        consenting = set()
        for signed in body.consents:
            consent = signed.content
            signed.verify(self.client(consent.client, step="7").key, step="7")
            if (consent.federation, consent.recovery) == (
                recovery.federation,
                content_digest(recovery),
            ):
                consenting.add(consent.client)
        plants = {client for client in self.clients if not self.rounds.removed(client)}
        if 2 * len(consenting & plants) <= len(plants):
            raise VerificationError(
                "7",
                f"{len(consenting & plants)} of {len(plants)} plants consent to the recovery; more "
                "than half are needed",
            )

    # -- steps 6 and 7 ------------------------------------------------------------------------

    def _check_round(self, body: RoundBody, *, at: str) -> None:
        self.rounds.check(body, at=at)
        if self.grouped:
            self._check_grouped_round(body, self.grouped)
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
        lends = self.opened.statistic is not None and self.opened.statistic.lends
        if token.tail is not None and not lends:
            raise VerificationError(
                "6",
                f"the token of {token.client!r} lends a tail, and the first entry of the log does "
                "not say that members lend them",
            )
        if token.attestation in self.attestations(token.client, step="6", at=at):
            self._refuse_other_statistic(token)
            return
        for commitment in self.state.batches.get(token.client, ()):
            until = self._holds_until(commitment)
            if self.attestation(commitment) == token.attestation and at > until:
                raise VerificationError(
                    "5.4",
                    f"attestation {token.attestation[:12]}... of {token.client!r} expired on "
                    f"{until}; it must attest later rows",
                )
        raise VerificationError(
            "6",
            f"{token.client!r} has no attestation {token.attestation[:12]}... under the rules "
            "that are in force for it",
        )

    def _refuse_other_statistic(self, token: Token) -> None:
        """In a bound federation, a token pledges the statistic that its commitment names.

        In groups it pledges the coordinator's share, which only the coordinator can compare.
        """
        if not self.bound or self.grouped:
            return
        commit = self.attested_commit(token.client, token.attestation, step=OTHER_STATISTIC)
        assert commit.statistic is not None  # of every commitment in this log
        named = bytes.fromhex(commit.statistic)
        pledged = update_digest(token.federation, token.client, token.round, named)
        if token.update != pledged:
            raise VerificationError(
                OTHER_STATISTIC,
                f"{token.client!r} pledges another statistic than its attested commitment names",
            )

    # -- groups -------------------------------------------------------------------------------

    def _check_group(self, body: GroupBody, *, at: str) -> None:
        """Step 6: an epoch is drawn from this log; a group is summed as a whole, or given up."""
        terms = self.grouped
        if terms is None:
            raise VerificationError("6", "plants of this federation do not share in groups")
        helper = terms.helper
        assert helper is not None  # of every federation with groups
        match body:
            case EpochDrawn(order=signed):
                signed.verify(self.coordinator, step="6")
                order = signed.content
                if order.federation != self.opened.federation:
                    raise VerificationError("6", f"the epoch is of {order.federation!r}")
                self.groups.check_drawn(order, terms, head=self.state.recent[-1], at=at)
                for client in order.members:
                    self._demand_unshared(client, at=at)
            case GroupSummed(released=released):
                released.verify(helper.key, step="6")
                body_of = released.content.body
                if isinstance(body_of, GroupReleased):
                    body_of.order.verify(self.coordinator, step="6")
                self.groups.check_summed(body, self._pledged_commits())
            case GroupGivenUp():
                self.groups.check_given_up(body)

    def _demand_unshared(self, client: str, *, at: str) -> None:
        """Raise unless a plant has attested rows that it has not shared yet."""
        attested = self.attestations(client, step="6", at=at)
        if self.rounds.removed(client) or not attested or self.groups.used(attested[-1]):
            raise VerificationError(
                "6", f"{client!r} was removed, or has no attested rows that it has not shared yet"
            )

    def _pledged_commits(self) -> dict[str, str]:
        """Return the digests of the commitments that clients pledged in the last round."""
        found = {}
        for client in self.rounds.pledged:
            token = self.rounds.token(self.rounds.last, client)
            assert token is not None
            found[client] = content_digest(
                self.attested_commit(client, token.attestation, step="6.9.1")
            )
        return found

    def _check_grouped_round(self, body: RoundBody, terms: StatisticTerms) -> None:
        match body:
            case RoundOpened():
                self.groups.check_opened()
            case UpdatePledged(token=signed):
                token = signed.content
                self.groups.check_pledged(token.client, token.attestation)
            case UpdateRevealed(client=client):
                self.groups.check_revealed(client)
            case ModelAggregated():
                self.groups.check_aggregated(body, terms)
            case _:
                pass

    def _note_grouped_round(self, body: RoundBody, terms: StatisticTerms) -> None:
        match body:
            case RoundOpened(round=number):
                self.groups.note_opened(number)
            case PledgesClosed():
                self.groups.note_closed(terms)
            case ModelAggregated(round=number):
                self.groups.note_aggregated(number)
            case RoundAbandoned():
                self.groups.note_discarded()
            case _:
                pass

    def _check_countersigned(self, body: HeadCountersigned) -> None:
        head = body.head.content
        body.head.verify(self.client(head.signer, step="7").key, step="7")
        if head != self.head(head.signer, size=head.size):
            raise VerificationError("7", f"{head.signer!r} has signed the head of another log")


def _check_opened(body: LogOpened) -> None:
    """What the coordinator must not decide alone needs another party's approval."""
    if body.coordinator in body.approvers:
        raise VerificationError("7", "the coordinator's key is among the approvers' keys")
    if min(body.terms.approvals, body.terms.approvals_looser) < 1:
        raise VerificationError("7", "a log must demand at least one approval of rules and orders")
    if body.statistic is not None and body.statistic.bound and body.statistic.limits is None:
        raise VerificationError("7", "a log of bound statistics must say how much one covers")
    if body.statistic is not None and body.statistic.helper is not None:
        _check_grouped(body.statistic, body)


def _check_grouped(statistic: StatisticTerms, body: LogOpened) -> None:
    """Only bound statistics are shared in groups, with a helper that is no other party."""
    helper = statistic.helper
    assert helper is not None
    if not statistic.bound or helper.federation != body.federation:
        raise VerificationError(
            "7", "only bound statistics are shared in groups, with a helper of this federation"
        )
    if helper.key in (body.coordinator, *body.approvers):
        raise VerificationError("7", "the helper's key is the coordinator's or an approver's")


def _after(time: str, *, days: int = 0, hours: int = 0) -> str:
    """Return a time of the log or of a plant's clock after a duration, in the same form."""
    zone = "Z" if time.endswith("Z") else ""
    try:
        later = datetime.fromisoformat(time.removesuffix("Z")) + timedelta(days=days, hours=hours)
    except OverflowError:  # the terms of a log can name any number
        return f"{'9999-12-31' if days + hours > 0 else '0001-01-01'}T00:00:00.000000{zone}"
    return later.isoformat(timespec="microseconds") + zone
