"""The coordinator conducts: admits plants, takes rounds, keeps checkpoints, closes each in the log.

Every step is in the log or the store before the next is taken, so that a coordinator that was
killed goes on in the middle of the round it was in and asks nobody for a second update. After a
round the checkpoint is kept first and logged second; the log's word is then made good on resuming.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from sluice.aggregation import RULES
from sluice.attestation.protocol import Revealing
from sluice.detector import initial
from sluice.errors import CheckpointError, RefusedError
from sluice.federation import Checkpoint, Decision, RootTrainer, begin, take_round
from sluice.network.coordinator.intake import NO_PROOF, Intake
from sluice.network.coordinator.rounds import LoggedTransport
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.wire import model_hash

__all__ = ["CoordinatorService"]


@dataclass(frozen=True, slots=True, kw_only=True)
class CoordinatorService:
    """One federation between sites, from where its log and its store stand."""

    intake: Intake
    transport: LoggedTransport
    root: RootTrainer | None = None
    shadow: bool | None = None  # None: as the log has it

    @property
    def _store(self) -> CoordinatorStore:
        return self.transport.requests.store

    def run(self, *, rounds: int, on_round: Callable[[Checkpoint], None]) -> Checkpoint:
        """Take rounds up to the given number, those given up left out, and tell of each."""
        checkpoint = self._resumed() or self._first()
        while self.transport.protocol.log.ledger.rounds.counted < rounds:
            checkpoint = self._round(checkpoint)
            on_round(checkpoint)
        return checkpoint

    def _first(self) -> Checkpoint:
        """Admit plants and begin; nothing is kept before somebody was admitted."""
        terms = self.transport.terms
        self._admit(0)
        start = begin(initial(terms.framing.width, seed=terms.seed), self._decisions())
        self._keep(start)
        return start

    def _round(self, before: Checkpoint) -> Checkpoint:
        """Take one round; one that brings no update leaves the weights as they were."""
        number = before.round + 1
        if not self._begun(number):
            self._admit(number)
        current = replace(before, decisions=self._decisions())
        if not current.admitted:
            raise RefusedError(
                f"round {number} finds no plant with an attestation; see 'sluice coordinator "
                "status', and run again when plants have come"
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
        self.intake.invite_batches(round_=round_, seconds=self.transport.terms.batch_deadline_s)

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
        """Log the model of a round that is kept, and count who had no part in it."""
        revealing = Revealing(log=self.transport.protocol.log, round=after.round)
        clock = self.transport.requests.clock
        members = revealing.finish(model_hash(after.parameters), at=clock())
        for member in self._store.members():
            if member.name in members:
                self._store.took_part(member.name)
            elif member.active:
                limit = self.transport.terms.suspend_after
                self._store.failed(member.name, limit=limit, at=clock())

    def _resumed(self) -> Checkpoint | None:
        """Return the last checkpoint, once log and store agree on where the federation stands."""
        held = self._store.last(federation=self.transport.terms.federation)
        standing = self.transport.protocol.log.ledger.rounds.standing
        logged = 0 if standing is None else standing.opened.round
        if standing is not None and not standing.aggregated:
            if held is not None and held.round == logged and standing.closed:
                self._close(held)
                return held
            logged -= 1
        if (0 if held is None else held.round) != logged:
            raise CheckpointError(
                f"the log has {logged} finished rounds and the store's last checkpoint is of round "
                f"{0 if held is None else held.round}: one was put back to an earlier time. "
                "Restore both from one backup; plants refuse a log that was rewritten"
            )
        model = self.transport.protocol.log.ledger.rounds.model
        if held is not None and model not in (None, model_hash(held.parameters)):
            raise CheckpointError(
                f"the store's model of round {held.round} is not the one that the log names. If "
                "'sluice coordinator remove' was cut short, run it again; else restore both from "
                "one backup"
            )
        return held
