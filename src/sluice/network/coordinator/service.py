"""The coordinator service: admits plants, runs rounds, saves checkpoints, logs each round's model.

Every step is in the log or the store before the next one begins. A coordinator that was killed
therefore continues in the middle of its round and asks no plant for a second update. After a round
it saves the checkpoint first and logs the model second. If it is killed in between, it logs the
model when it resumes.
"""

import time
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from datetime import timedelta

from sluice.attestation.log import RoundAbandoned
from sluice.attestation.messages import instant
from sluice.errors import CheckpointError, RefusedError
from sluice.federation import Checkpoint, admit, begin
from sluice.network.coordinator.intake import Intake
from sluice.network.coordinator.rounds import LoggedTransport
from sluice.network.coordinator.sharing import Sharing
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.wire import AskModel, ModelTaken, Payload, model_hash, write_parameters

__all__ = ["ABANDONED", "CoordinatorService"]

LOOK_S = 0.5
"""Seconds between two looks at which plants are online, while a round waits for them."""
ABANDONED = "abandoned"
"""Why a checkpoint has the weights that its round was opened with: an operator ended the round."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorService:
    """Runs one federation between sites, from the state in its log and store."""

    intake: Intake
    transport: LoggedTransport
    shadow: bool | None = None  # None: keep the log's setting

    @property
    def _store(self) -> CoordinatorStore:
        return self.transport.requests.store

    def run(self, *, rounds: int, on_round: Callable[[Checkpoint], None]) -> Checkpoint:
        """Run until the log counts `rounds` rounds, without those given up; report each one."""
        self._compare()
        checkpoint = self._resume() or self._first()
        if self.transport.terms.statistic is not None:
            current = self._prepared(checkpoint)
            if self._begun(current.round + 1) or self._due(current):
                checkpoint = self._round(current)
                on_round(checkpoint)
        else:
            while self.transport.protocol.log.ledger.rounds.counted < rounds:
                checkpoint = self._round(self._prepared(checkpoint))
                on_round(checkpoint)
        self._hand_out(checkpoint)
        return checkpoint

    @property
    def _sharing(self) -> Sharing:
        return self.transport.sharing

    def _due(self, current: Checkpoint) -> frozenset[str]:
        """Return the plants that a round would ask and that are online."""
        return frozenset(self._sharing.asked(current)) & self.transport.requests.wire.present()

    def _hand_out(self, last: Checkpoint) -> None:
        """Hand the last model to the plants that are online and do not hold it yet."""
        requests, store = self.transport.requests, self._store
        number = self.transport.protocol.log.ledger.rounds.last
        waiting = {member.name for member in store.members() if member.model_of != number}
        present = self._active & requests.wire.present()
        online = present & waiting
        requests.catch_up(online, round_=number)
        weights = write_parameters(last.parameters)
        asks = dict.fromkeys(online, AskModel(round=number, over=True, parameters=weights))

        def accept(plant: str, answer: Payload) -> bool:
            if isinstance(answer, ModelTaken):
                store.took_model(plant, number)
                return True
            return False

        seconds = requests.seconds_for(
            len(online),
            settled=len(present - waiting),
            most=self.transport.terms.round_deadline_s,
        )
        requests.ask(asks, round_=number, seconds=seconds, accept=accept, absences=False)

    def _compare(self) -> None:
        """Raise if a plant that is online follows another log; before anything is written.

        Before the first round nothing is written before plants have answered.
        """
        last = self.transport.protocol.log.ledger.rounds.last
        if last:
            requests = self.transport.requests
            requests.compare(self._active & requests.wire.present(), round_=last)

    @property
    def _active(self) -> set[str]:
        return {member.name for member in self._store.members() if member.active}

    def _first(self) -> Checkpoint:
        """Admit plants and begin; save nothing unless a plant is admitted."""
        self._admit(0)
        start = begin(self._sharing.first(), self.intake.decisions())
        self._keep(start)
        return start

    def _prepared(self, before: Checkpoint) -> Checkpoint:
        """Admit plants before the next round, unless it has begun; return who takes part."""
        if not self._begun(before.round + 1):
            self._admit(before.round + 1)
        return replace(before, decisions=self.intake.decisions(), excluded={}, unchanged=None)

    def _round(self, current: Checkpoint) -> Checkpoint:
        """Run one round; a round without a usable aggregate leaves the weights unchanged."""
        if not self._begun(current.round + 1):
            self._demand_members(current)
        after = self._sharing.take(current, self.transport)
        self._keep(after)
        self._close(after)
        return after

    def _demand_members(self, current: Checkpoint) -> None:
        """Wait until enough plants are online, or in the model; raise after the time of a round.

        A round without them would have no aggregate, and would count as their absence.
        """
        requests, terms = self.transport.requests, self.transport.terms
        now, admitted = requests.clock(), current.admitted
        until = now + timedelta(seconds=terms.round_deadline_s)

        def can_begin(plants: Collection[str]) -> bool:
            return self._sharing.can_begin(current.parameters, plants, at=instant(now))

        due = self._due(current)
        why = f" for {terms.groups_in_words}" if terms.grouped else ""
        while not can_begin(due):
            if not can_begin(admitted) or requests.clock() > until:
                raise RefusedError(
                    f"round {current.round + 1} has {len(admitted)} plants with an attestation, "
                    f"{len(due)} of them online; the terms need {terms.members_min}{why}: see "
                    "'sluice coordinator status' and run again when more plants are online"
                )
            time.sleep(LOOK_S)
            due = self._due(current)

    def _begun(self, number: int) -> bool:
        standing = self.transport.protocol.log.ledger.rounds.standing
        return standing is not None and standing.opened.round == number

    def _admit(self, round_: int) -> None:
        if self.shadow is not None:
            self.intake.set_gate(shadow=self.shadow)
        requests = self.transport.requests
        requests.catch_up(self._active & requests.wire.present(), round_=round_)
        plants = self.intake.due(round_=round_)
        if plants:
            admit(plants, self.transport, self.intake.before(round_), round_=round_)

    def _keep(self, checkpoint: Checkpoint) -> None:
        self._store.keep(
            checkpoint,
            model_hash(checkpoint.parameters),
            federation=self.transport.terms.federation,
            at=self.transport.requests.clock(),
        )

    def _close(self, after: Checkpoint) -> None:
        """Log the model of a saved round, and suspend plants that are absent too often."""
        protocol, clock = self.transport.protocol, self.transport.requests.clock
        rounds = protocol.log.ledger.rounds
        if after.unchanged == ABANDONED:
            protocol.log.append(RoundAbandoned(round=after.round), at=clock())
            return
        revealing = protocol.revealing(after.round)
        revealed = rounds.standing.revealed if rounds.standing else frozenset()
        if after.unchanged is not None:  # no update is in the model
            for plant in rounds.members:
                revealing.exclude(plant, after.unchanged, at=clock())
            kind = f"weights unchanged: step {after.unchanged}"
            self._store.note(kind, plant="", round_=after.round, at=clock())
        settled = self._sharing.accounted(after)
        revealing.finish(model_hash(after.parameters), at=clock(), settled=settled)
        self._note_shared(after)
        requests, terms = self.transport.requests, self.transport.terms
        for member in self._store.members():
            late = member.active and member.name not in revealed | settled
            proves = member.attestation is None and member.proving == after.round
            # A plant far behind still gets the log.
            if late and not proves and not requests.behind(member):
                self._store.absent(member.name, after.round)
        self._store.suspend(after.round, after=terms.suspend_after, at=clock())
        self._store.prune(after.round, keep=terms.keep_rounds)

    def _note_shared(self, after: Checkpoint) -> None:
        """Note for operators whose statistic is in the model."""
        if self.transport.terms.statistic is not None:
            held = self._sharing.in_model(after.parameters)
            for member in self._store.members():
                self._store.shared(member.name, held.get(member.name))

    def _resume(self) -> Checkpoint | None:
        """Return the last checkpoint, after checking that log and store agree."""
        checkpoint = self._store.last(federation=self.transport.terms.federation)
        standing = self.transport.protocol.log.ledger.rounds.standing
        logged = 0 if standing is None else standing.opened.round
        if standing is not None and not standing.ended:
            if (
                checkpoint is not None
                and checkpoint.round == logged
                and (standing.closed or checkpoint.unchanged == ABANDONED)
            ):
                self._close(checkpoint)
                return checkpoint
            logged -= 1
        if (0 if checkpoint is None else checkpoint.round) != logged:
            raise CheckpointError(
                f"the log has {logged} finished rounds but the store's last checkpoint is of round "
                f"{0 if checkpoint is None else checkpoint.round}: one of them is an older copy. "
                "Restore both from the same backup; plants refuse a rewritten log"
            )
        model = self.transport.protocol.log.ledger.rounds.model
        if checkpoint is not None and model not in (None, model_hash(checkpoint.parameters)):
            raise CheckpointError(
                f"the store's model of round {checkpoint.round} is not the one that the log names. "
                "If 'sluice coordinator remove' was interrupted, run it again; otherwise restore "
                "both from the same backup"
            )
        return checkpoint
