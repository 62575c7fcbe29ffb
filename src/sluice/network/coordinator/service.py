"""The coordinator service: admits plants, runs rounds, saves checkpoints, logs each round's model.

Every step is in the log or the store before the next one begins. A coordinator that was killed
therefore continues in the middle of its round and asks no plant for a second update. After a round
it saves the checkpoint first and logs the model second. If it is killed in between, it logs the
model when it resumes.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sluice.aggregation import RULES
from sluice.detector import initial
from sluice.errors import CheckpointError, RefusedError
from sluice.federation import Checkpoint, Decision, RootTrainer, admit, begin, take_round
from sluice.network.coordinator.intake import NO_PROOF, Intake
from sluice.network.coordinator.rounds import LoggedTransport
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.wire import model_hash

__all__ = ["CoordinatorService"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorService:
    """Runs one federation between sites, from the state in its log and store."""

    intake: Intake
    transport: LoggedTransport
    root: RootTrainer | None = None
    shadow: bool | None = None  # None: keep the log's setting

    @property
    def _store(self) -> CoordinatorStore:
        return self.transport.requests.store

    def run(self, *, rounds: int, on_round: Callable[[Checkpoint], None]) -> Checkpoint:
        """Run until the log counts `rounds` rounds, without those given up; report each one."""
        checkpoint = self._resume() or self._first()
        while self.transport.protocol.log.ledger.rounds.counted < rounds:
            checkpoint = self._round(checkpoint)
            on_round(checkpoint)
        return checkpoint

    def _first(self) -> Checkpoint:
        """Admit plants and begin; save nothing unless a plant is admitted."""
        terms = self.transport.terms
        self._admit(0)
        start = begin(initial(terms.framing.width, seed=terms.seed), self._decisions())
        self._keep(start)
        return start

    def _round(self, before: Checkpoint) -> Checkpoint:
        """Run one round; a round without updates leaves the weights unchanged."""
        number = before.round + 1
        if not self._begun(number):
            self._admit(number)
        current = replace(before, decisions=self._decisions())
        if not current.admitted:
            raise RefusedError(
                f"round {number} has no plant with an attestation; see 'sluice coordinator status' "
                "and run again when plants are online"
            )
        try:
            after = take_round(current, self.transport, RULES[self.transport.terms.rule], self.root)
        except RefusedError:
            after = replace(current, round=number)
        self._keep(after)
        self._close(after)
        return after

    def _begun(self, number: int) -> bool:
        standing = self.transport.protocol.log.ledger.rounds.standing
        return standing is not None and standing.opened.round == number

    def _admit(self, round_: int) -> None:
        if self.shadow is not None:
            self.intake.set_gate(shadow=self.shadow)
        plants = self.intake.due(round_=round_)
        if plants:
            admit(plants, self.transport, self.intake.before(round_), round_=round_)

    def _decisions(self) -> Mapping[str, Decision]:
        return {
            member.name: Decision(admitted=False, reasons=(f"step {member.step or NO_PROOF}",))
            if member.attestation is None
            else Decision(admitted=True, reasons=(member.state,) if member.excuse else ())
            for member in self._store.members()
            if member.active
        }

    def _keep(self, checkpoint: Checkpoint) -> None:
        self._store.keep(
            checkpoint,
            model_hash(checkpoint.parameters),
            federation=self.transport.terms.federation,
            at=self.transport.requests.clock(),
        )

    def _close(self, after: Checkpoint) -> None:
        """Log the model of a saved round, and count the plants that did not take part."""
        revealing = self.transport.protocol.revealing(after.round)
        clock = self.transport.requests.clock
        members = revealing.finish(model_hash(after.parameters), at=clock())
        for member in self._store.members():
            if member.name in members:
                self._store.took_part(member.name)
            elif member.active:
                limit = self.transport.terms.suspend_after
                self._store.failed(member.name, limit=limit, at=clock())

    def _resume(self) -> Checkpoint | None:
        """Return the last checkpoint, after checking that log and store agree."""
        checkpoint = self._store.last(federation=self.transport.terms.federation)
        standing = self.transport.protocol.log.ledger.rounds.standing
        logged = 0 if standing is None else standing.opened.round
        if standing is not None and not standing.aggregated:
            if checkpoint is not None and checkpoint.round == logged and standing.closed:
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
