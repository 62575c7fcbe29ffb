"""A round over the wire: tokens of attested plants, then the pledged updates, all in the log.

`LoggedTransport` is the `Transport` of a federation between sites. It goes on where the log says
that a round stands, so that it can be called again for a round in which the coordinator was killed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from sluice.attestation.log import HEADS, Standing
from sluice.attestation.protocol import (
    Attested,
    LoggedPledge,
    Pledging,
    ProtocolCoordinator,
    Revealing,
)
from sluice.errors import CheckpointError, DocumentError, SettingError, VerificationError
from sluice.federation import Reply, Request, Train, Trained
from sluice.network.coordinator.intake import NO_PROOF
from sluice.network.coordinator.requests import Requests
from sluice.network.coordinator.store import Member
from sluice.network.terms import FederationTerms
from sluice.network.wire import (
    AskToken,
    AskUpdate,
    Pledge,
    Revelation,
    model_hash,
    read_update,
    write_parameters,
)

__all__ = ["LoggedTransport"]

ROUND = "6"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoggedTransport:
    """Carries rounds to plants by way of the coordinator's log."""

    terms: FederationTerms
    protocol: ProtocolCoordinator
    requests: Requests
    log: Path

    def exchange(self, requests: Mapping[str, Request]) -> Mapping[str, Reply]:
        """Take the tokens of a round, close it, and return the updates that were pledged."""
        opened = [request for request in requests.values() if isinstance(request, Train)]
        if len(opened) != len(requests) or not opened:
            raise SettingError("over the wire, batches are attested apart from rounds")
        train, members = opened[0], self._members(requests)
        standing = self._standing(train)
        if not standing.closed:
            self._gather(train, members, standing)
        return self._reveal(train.round, members)

    def _members(self, requests: Mapping[str, Request]) -> dict[str, Member]:
        found = {member.name: member for member in self.requests.store.members()}
        return {name: found[name] for name in requests}

    def _standing(self, train: Train) -> Standing:
        """Open the round, or find it as it was left."""
        rounds, model = self.protocol.log.ledger.rounds, model_hash(train.parameters)
        standing = rounds.standing
        if standing is None or standing.aggregated:
            now = self.requests.clock()
            deadline = now + timedelta(seconds=self.terms.round_deadline_s)
            self.protocol.open_round(model, deadline, at=now)
            standing = rounds.standing
        if standing is None or standing.opened.round != train.round:
            raise CheckpointError(
                f"the log is in round {rounds.last} and the store would take round {train.round}; "
                "one of them is of another time: restore both from one backup"
            )
        if standing.opened.model != model:
            raise CheckpointError(
                f"round {train.round} was opened on another model than the store holds; restore "
                "store and log from one backup"
            )
        return standing

    def _exclude_unattested(self, pledging: Pledging, standing: Standing) -> None:
        for member in self.requests.store.members():
            unheard = member.name not in standing.excluded
            if member.active and member.attestation is None and unheard:
                step = member.step or NO_PROOF
                pledging.exclude(member.name, step, at=self.requests.clock())

    def _gather(self, train: Train, members: Mapping[str, Member], standing: Standing) -> None:
        """Take tokens until all are in or the round's deadline has come."""
        pledging = Pledging(log=self.protocol.log, round=train.round)
        self._exclude_unattested(pledging, standing)
        rounds, present = self.protocol.log.ledger.rounds, self.requests.wire.present()
        weights = write_parameters(train.parameters)
        asks = {
            name: AskToken(round=train.round, attestation=member.attestation, parameters=weights)
            for name, member in members.items()
            if member.attestation is not None
            and name in present
            and name not in standing.excluded
            and rounds.token(train.round, name) is None
        }
        left = datetime.fromisoformat(standing.opened.deadline) - self.requests.clock()
        for plant, answer in self.requests.ask(
            asks, round_=train.round, seconds=max(0.0, left.total_seconds())
        ):
            attested = Attested(client=plant, attestation=asks[plant].attestation)
            if not isinstance(answer, Pledge):
                self._excluded(pledging, plant, ROUND)
                continue
            try:
                pledging.pledge(attested, answer.token, at=self.requests.clock())
            except VerificationError as error:
                self._excluded(pledging, plant, error.step)
        pledging.close(at=self.requests.clock())

    def _reveal(self, round_: int, members: Mapping[str, Member]) -> Mapping[str, Reply]:
        """Take the updates of those who pledged; what came before a restart is in the store."""
        revealing = Revealing(log=self.protocol.log, round=round_)
        ledger, store = self.protocol.log.ledger, self.requests.store
        found: dict[str, Reply] = {}
        for plant, raw in store.updates(round_).items():
            self._take(revealing, plant, raw, found)
        standing = ledger.rounds.standing
        excluded = standing.excluded if standing else frozenset()
        head, lines = self.protocol.log.signed_head(), self.log.read_bytes().split(b"\n")
        asks = {
            name: AskUpdate(
                round=round_,
                head=HEADS.write(head),
                lines=tuple(lines[member.seen : head.content.size]),
            )
            for name, member in members.items()
            if ledger.rounds.token(round_, name) is not None
            and name not in found
            and name not in excluded
        }
        seconds = self.terms.round_deadline_s
        for plant, answer in self.requests.ask(asks, round_=round_, seconds=seconds):
            if isinstance(answer, Revelation):
                store.keep_update(plant, round_, answer.update)
                store.renews(plant, renews=answer.renews)
                self._take(revealing, plant, answer.update, found)
                self._countersign(plant, answer.head)
        for plant in set(asks) - set(found):
            store.seen(plant, 0)  # put back to an earlier time it knows less: it is shown all anew
        return found

    def _take(self, revealing: Revealing, plant: str, raw: bytes, found: dict[str, Reply]) -> None:
        """Take an update that is well formed and the pledged one; any other is left out."""
        try:
            update = read_update(raw, client=plant, count=self.terms.weights)
            pledge = LoggedPledge(client=plant, round=revealing.round)
            revealing.reveal(pledge, raw, at=self.requests.clock())
        except (DocumentError, SettingError):
            self._excluded(revealing, plant, ROUND)
        except VerificationError as error:
            self._excluded(revealing, plant, error.step)
        else:
            found[plant] = Trained(update=update)

    def _countersign(self, plant: str, raw: bytes) -> None:
        """Log a plant's signature of the head; one that signs another log is only counted."""
        now, last = self.requests.clock(), self.protocol.log.ledger.rounds.last
        try:
            head = HEADS.read(raw).content
            if head.signer == plant:
                self.protocol.countersign(raw, at=now)
                self.requests.store.seen(plant, head.size)
                return
        except (DocumentError, VerificationError):
            pass
        self.requests.store.note("head refused", plant=plant, round_=last, at=now)

    def _excluded(self, stage: Pledging | Revealing, plant: str, step: str) -> None:
        now = self.requests.clock()
        stage.exclude(plant, step, at=now)
        self.requests.store.note(
            f"excluded at step {step}", plant=plant, round_=stage.round, at=now
        )
