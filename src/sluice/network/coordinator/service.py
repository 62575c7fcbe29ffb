"""The coordinator service: admits plants, runs rounds, saves checkpoints, logs each round's model.

Every step is in the log or the store before the next one begins. A coordinator that was killed
therefore continues in the middle of its round and asks no plant for a second update. After a round
it saves the checkpoint first and logs the model second. If it is killed in between, it logs the
model when it resumes.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

from sluice.aggregation import RULES, Aggregate, RootUpdate, Rule, State, Update
from sluice.attestation.log import RoundAbandoned
from sluice.detector import Parameters, initial
from sluice.errors import CheckpointError, RefusedError, SluiceError
from sluice.federation import NOT_FINITE, Checkpoint, RootTrainer, admit, begin, take_round
from sluice.network.coordinator.intake import Intake
from sluice.network.coordinator.rounds import LoggedTransport
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.wire import model_hash

__all__ = ["ABANDONED", "CoordinatorService"]

LOOK_S = 0.5
ABANDONED = "abandoned"
"""Why a checkpoint has the weights that its round was opened with: an operator ended the round."""


class _AggregationError(RefusedError):
    """The rule, or the server's own training, failed on these updates or this model."""


@dataclass(frozen=True, slots=True)
class _GuardedRule:
    """A rule whose failure ends the round with unchanged weights, and not the federation."""

    rule: Rule

    @property
    def needs_root(self) -> bool:
        return self.rule.needs_root

    def __call__(self, updates: Sequence[Update], state: State) -> tuple[Aggregate, State]:
        with _failures_refused():
            return self.rule(updates, state)


@dataclass(frozen=True, slots=True)
class _GuardedRoot:
    """The server's own training, whose failure ends the round with unchanged weights."""

    root: RootTrainer

    def __call__(self, parameters: Parameters, round_: int) -> Parameters:
        with _failures_refused():
            trained = self.root(parameters, round_)
            RootUpdate(vector=trained - parameters)  # it must be finite and not zero
            return trained


@contextmanager
def _failures_refused() -> Iterator[None]:
    try:
        yield
    except (SluiceError, ArithmeticError, ValueError) as error:
        raise _AggregationError(f"the updates cannot be aggregated: {error}") from error


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

    @property
    def members(self) -> tuple[str, ...]:
        """The plants whose updates are in the last round's model, by the log."""
        return self.transport.protocol.log.ledger.rounds.members

    def run(self, *, rounds: int, on_round: Callable[[Checkpoint], None]) -> Checkpoint:
        """Run until the log counts `rounds` rounds, without those given up; report each one."""
        self._compare()
        checkpoint = self._resume() or self._first()
        while self.transport.protocol.log.ledger.rounds.counted < rounds:
            checkpoint = self._round(checkpoint)
            on_round(checkpoint)
        return checkpoint

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
        terms = self.transport.terms
        self._admit(0)
        start = begin(initial(terms.framing.width, seed=terms.seed), self.intake.decisions())
        self._keep(start)
        return start

    def _round(self, before: Checkpoint) -> Checkpoint:
        """Run one round; a round without a usable aggregate leaves the weights unchanged."""
        number = before.round + 1
        if not self._begun(number):
            self._admit(number)
        current = replace(before, decisions=self.intake.decisions(), excluded={}, unchanged=None)
        if not current.admitted:
            raise RefusedError(
                f"round {number} has no plant with an attestation; see 'sluice coordinator status' "
                "and run again when plants are online"
            )
        self._await_one_of(set(current.admitted), number)
        terms = self.transport.terms
        try:
            after = take_round(
                current,
                self.transport,
                _GuardedRule(RULES[terms.rule]),
                _GuardedRoot(self.root) if self.root else None,
                update_max=terms.update_max,
            )
        except _AggregationError:
            after = replace(current, round=number, unchanged=NOT_FINITE)
        except RefusedError:
            after = replace(current, round=number)
        self._keep(after)
        self._close(after)
        return after

    def _await_one_of(self, plants: set[str], number: int) -> None:
        """Wait until a plant that can take part is online, for the time of a round at most.

        A round without any plant would only count absences, and a few of them suspend every plant.
        """
        requests = self.transport.requests
        until = requests.clock() + timedelta(seconds=self.transport.terms.round_deadline_s)
        while not plants & requests.wire.present():
            if requests.clock() > until:
                raise RefusedError(
                    f"no plant with an attestation is online for round {number}; check the proxy "
                    "and the network, then run 'sluice coordinator resume'"
                )
            time.sleep(LOOK_S)

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
        revealing.finish(model_hash(after.parameters), at=clock())
        requests, terms = self.transport.requests, self.transport.terms
        for member in self._store.members():
            late = member.active and member.name not in revealed
            if late and not requests.behind(member):  # a plant far behind still gets the log
                self._store.absent(member.name, after.round)
        self._store.suspend(after.round, after=terms.suspend_after, at=clock())
        self._store.prune(after.round, keep=terms.keep_rounds)

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
