"""A round over the wire: tokens of attested plants, then the pledged updates, all in the log.

`LoggedTransport` is the `Transport` of a federation between sites. It continues from the
round's state in the log, so that it can be called again for a round in which the coordinator was
killed.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sluice.attestation.log import HEADS, Standing
from sluice.attestation.messages import instant, update_digest
from sluice.attestation.protocol import (
    Pledging,
    ProtocolCoordinator,
    Revealing,
)
from sluice.errors import CheckpointError, DocumentError, SettingError, VerificationError
from sluice.federation import (
    Attestation,
    CommitmentOnly,
    NothingShown,
    Reply,
    Request,
    Show,
    Train,
)
from sluice.network.coordinator.intake import NO_PROOF
from sluice.network.coordinator.requests import Requests
from sluice.network.coordinator.sharing import TOO_FEW, Sharing
from sluice.network.coordinator.store import Member
from sluice.network.terms import FederationTerms
from sluice.network.wire import (
    AskBatch,
    AskToken,
    AskUpdate,
    Batch,
    CommitOnly,
    Payload,
    Pledge,
    Revelation,
    model_hash,
)

__all__ = ["LoggedTransport"]

NO_TOKEN = "6.1"  # noqa: S105 - a step
OTHER_UPDATE = "6.3"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedTransport:
    """Runs rounds over the wire and writes each step to the coordinator's log."""

    terms: FederationTerms
    protocol: ProtocolCoordinator
    requests: Requests
    sharing: Sharing

    def exchange(self, requests: Mapping[str, Request]) -> Mapping[str, Reply]:
        """Ask for attestations, or collect the tokens of a round and return its updates."""
        shows = [request for request in requests.values() if isinstance(request, Show)]
        if shows and len(shows) == len(requests):
            return self._attestations(tuple(requests), round_=shows[0].round)
        opened = [request for request in requests.values() if isinstance(request, Train)]
        if len(opened) != len(requests) or not opened:
            raise SettingError("one exchange asks all plants to show, or all of them to train")
        train, members = opened[0], self._members(requests)
        standing = self._standing(train)
        if not standing.closed:
            self._gather(train, members, standing)
        revealing = self.protocol.revealing(train.round)
        for plant, step in self.sharing.left_out().items():
            self._exclude(revealing, plant, step)
        if self._too_few(train, self.protocol.log.ledger.rounds.pledged):
            return {}
        replies = self._reveal(train, members)
        return {} if self._too_few(train, tuple(replies)) else replies

    def _too_few(self, train: Train, plants: Sequence[str]) -> bool:
        """Leave all plants out of a round that too few take part in; return whether this is one.

        With few members, an aggregate shows much of each plant's update.
        """
        now = instant(self.requests.clock())
        if self.sharing.enough(train.parameters, plants, at=now):
            return False
        revealing = self.protocol.revealing(train.round)
        for plant in plants:
            self._exclude(revealing, plant, TOO_FEW)
        return True

    def _attestations(self, plants: tuple[str, ...], *, round_: int) -> Mapping[str, Reply]:
        """Ask plants to attest their batch; those that the log excuses may send no proof."""
        exempt, now = self.protocol.log.ledger.exemptions, instant(self.requests.clock())
        asks = {plant: AskBatch(unproven=exempt.open_to(plant, at=now)) for plant in plants}
        replies: dict[str, Reply] = {}

        def accept(plant: str, answer: Payload) -> bool:
            match answer:
                case Batch(commit=commit, proof=proof, statistic=statistic):
                    replies[plant] = Attestation(commit=commit, proof=proof, statistic=statistic)
                case CommitOnly(commit=commit):
                    replies[plant] = CommitmentOnly(commit=commit)
                case _:
                    replies[plant] = NothingShown()
            return not isinstance(replies[plant], NothingShown)

        present = self.requests.wire.present()
        settled = sum(
            member.active and member.attestation is not None and member.name in present
            for member in self.requests.store.members()
            if member.name not in asks
        )
        most = self.terms.batch_deadline_s
        seconds = self.requests.seconds_for(len(asks), settled=settled, most=most)
        ends = {plant: self._batch_deadline(plant) for plant in asks}
        self.requests.ask(asks, round_=round_, seconds=seconds, accept=accept, deadlines=ends)
        return replies

    def _batch_deadline(self, plant: str) -> datetime:
        """Return when silence about a batch begins to count as absence.

        The phase may end much earlier, when the other plants have answered. The time runs from the
        first question for the batch.
        """
        asked = self.requests.store.asked_for_batch(plant, at=self.requests.clock())
        return asked + timedelta(seconds=self.terms.batch_deadline_s)

    def _members(self, requests: Mapping[str, Request]) -> dict[str, Member]:
        by_name = {member.name: member for member in self.requests.store.members()}
        return {name: by_name[name] for name in requests}

    def _standing(self, train: Train) -> Standing:
        """Open the round, or return its state if the log has it open already."""
        rounds, model = self.protocol.log.ledger.rounds, model_hash(train.parameters)
        standing = rounds.standing
        if standing is None or standing.ended:
            now = self.requests.clock()
            deadline = now + timedelta(seconds=self.terms.round_deadline_s)
            self.protocol.open_round(model, deadline, at=now)
            standing = rounds.standing
        assert standing is not None  # a round is open
        if standing.opened.round != train.round:
            raise CheckpointError(
                f"the log is in round {rounds.last} but the store continues with round "
                f"{train.round}; restore both from the same backup"
            )
        if standing.opened.model != model:
            raise CheckpointError(
                f"round {train.round} was opened with another model than the store holds; restore "
                "store and log from the same backup"
            )
        return standing

    def _exclude_unattested(self, pledging: Pledging, standing: Standing) -> None:
        for member in self.requests.store.members():
            excluded = member.name in standing.excluded
            if member.active and member.attestation is None and not excluded:
                step = member.step or NO_PROOF
                pledging.exclude(member.name, step, at=self.requests.clock())

    def _gather(self, train: Train, members: Mapping[str, Member], standing: Standing) -> None:
        """Collect tokens until all have arrived or the round's deadline has passed."""
        pledging = self.protocol.pledging(train.round)
        self._exclude_unattested(pledging, standing)
        rounds, present = self.protocol.log.ledger.rounds, self.requests.wire.present()
        weights = self.sharing.handed(train.parameters)
        asks = {
            name: AskToken(round=train.round, attestation=member.attestation, parameters=weights)
            for name, member in members.items()
            if member.attestation is not None
            and name in present
            and name not in standing.excluded
            and rounds.token(train.round, name) is None
        }

        def accept(plant: str, answer: Payload) -> bool:
            if not isinstance(answer, Pledge):
                self._exclude(pledging, plant, NO_TOKEN)
                return False
            now = self.requests.clock()
            try:
                attested = self.protocol.attested(plant, asks[plant].attestation, at=now)
                pledging.pledge(attested, answer.token, at=now)
            except VerificationError as error:
                self._exclude(pledging, plant, error.step)
                return False
            return True

        left = datetime.fromisoformat(standing.opened.deadline) - self.requests.clock()
        seconds = self._seconds(train, asks, most=max(0.0, left.total_seconds()))
        self.requests.ask(asks, round_=train.round, seconds=seconds, accept=accept)
        pledging.close(at=self.requests.clock())

    def _seconds(self, train: Train, asks: Collection[str], *, most: float) -> float:
        """Return the time for a phase of a round; online plants in the model need not be asked."""
        online = self.requests.wire.present() & self.sharing.settled(train.parameters)
        settled = sum(
            member.active and member.name in online
            for member in self.requests.store.members()
            if member.name not in asks
        )
        return self.requests.seconds_for(len(asks), settled=settled, most=most)

    def _reveal(self, train: Train, members: Mapping[str, Member]) -> Mapping[str, Reply]:
        """Collect the pledged updates; those received before a restart are in the store."""
        round_ = train.round
        revealing = self.protocol.revealing(round_)
        ledger, store = self.protocol.log.ledger, self.requests.store
        replies: dict[str, Reply] = {}
        for plant, raw in store.updates(round_).items():
            self._take(train, plant, raw, replies)
        standing = ledger.rounds.standing
        excluded = standing.excluded if standing else frozenset()
        asks = {
            name: AskUpdate(round=round_)
            for name in members
            if ledger.rounds.token(round_, name) is not None
            and (name not in replies or name in ledger.rounds.unseen)
            and name not in excluded
        }

        def accept(plant: str, answer: Payload) -> bool:
            if not isinstance(answer, Revelation):
                return False
            store.renews(plant, renews=answer.renews)
            self._take(train, plant, answer.update, replies)
            if plant in replies:
                self._countersign(plant, answer.head)
            return plant in replies and plant not in ledger.rounds.unseen

        seconds = self._seconds(train, asks, most=self.terms.round_deadline_s)
        self.requests.ask(asks, round_=round_, seconds=seconds, accept=accept)
        for plant in revealing.leave_out_unseen(at=self.requests.clock()):
            replies.pop(plant, None)
        return replies

    def _take(self, train: Train, plant: str, raw: bytes, replies: dict[str, Reply]) -> None:
        """Accept what was pledged, if it is well formed; exclude the plant otherwise.

        The store keeps an accepted update before the log records it.
        """
        revealing = self.protocol.revealing(train.round)
        token = self.protocol.log.ledger.rounds.token(revealing.round, plant)
        hashed = update_digest(self.terms.federation, plant, revealing.round, raw)
        if token is None or token.update != hashed:
            self._exclude(revealing, plant, OTHER_UPDATE)
            return
        try:
            reply = self.sharing.read(train, token, raw)
        except VerificationError as error:
            self._exclude(revealing, plant, error.step)
            return
        self.requests.store.keep_update(plant, revealing.round, raw)
        try:
            pledge = self.protocol.pledge(plant, revealing.round)
            revealing.reveal(pledge, raw, at=self.requests.clock())
        except VerificationError as error:
            self._exclude(revealing, plant, error.step)
        else:
            replies[plant] = reply

    def _countersign(self, plant: str, raw: bytes) -> None:
        """Log a plant's signature of the head. Without it, the plant's update does not count."""
        now, last = self.requests.clock(), self.protocol.log.ledger.rounds.last
        try:
            head = HEADS.read(raw).content
            if head.signer == plant:
                self.protocol.countersign(raw, at=now)
                return
        except (DocumentError, VerificationError):
            pass
        self.requests.store.note("head refused", plant=plant, round_=last, at=now)

    def _exclude(self, stage: Pledging | Revealing, plant: str, step: str) -> None:
        now = self.requests.clock()
        stage.exclude(plant, step, at=now)
        self.requests.store.note(
            f"excluded at step {step}", plant=plant, round_=stage.round, at=now
        )
