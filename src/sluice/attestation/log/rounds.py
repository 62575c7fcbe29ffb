"""Rounds recorded in the log: opened, pledged, closed, revealed, aggregated, in that order.

An operator can abandon a round before it is aggregated.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from sluice.attestation.log.entries import (
    ClientExcluded,
    ClientRemoved,
    FederationRecovered,
    ModelAggregated,
    PledgesClosed,
    RoundAbandoned,
    RoundBody,
    RoundOpened,
    UpdatePledged,
    UpdateRevealed,
)
from sluice.attestation.messages import Token
from sluice.errors import VerificationError

__all__ = ["Rounds", "RoundsState", "Standing"]

STEP = "6"


@dataclass(slots=True, kw_only=True)
class RoundState:
    """The last round, in detail."""

    opened: RoundOpened
    pledges: dict[str, Token] = field(default_factory=dict)
    closed: int = 0  # entries of the log when pledges were closed; 0: they are open
    revealed: set[str] = field(default_factory=set)
    countersigned: set[str] = field(default_factory=set)  # heads of the log since then
    excluded: dict[str, str] = field(default_factory=dict)
    aggregated: bool = False
    abandoned: bool = False

    @property
    def ended(self) -> bool:
        """Whether the round is over."""
        return self.aggregated or self.abandoned


@dataclass(slots=True, kw_only=True)
class RoundsState:
    """Every round so far: the last one in detail, the others by the model they ended with."""

    first: str = ""  # the model that the first round was opened on
    models: list[str] = field(default_factory=list)  # the federation's model after each round
    counts: list[int] = field(default_factory=list)  # rounds that this model includes
    current: RoundState | None = None
    removed: dict[str, ClientRemoved] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """The progress of the last round; a coordinator continues from it after a restart."""

    opened: RoundOpened
    closed: bool  # to tokens
    aggregated: bool
    abandoned: bool
    revealed: frozenset[str]
    excluded: frozenset[str]

    @property
    def ended(self) -> bool:
        """Whether the round is over: it has a model, or it was abandoned."""
        return self.aggregated or self.abandoned


class Rounds:
    """Every round so far; entries out of order are refused."""

    def __init__(self, state: RoundsState) -> None:
        self._state = state

    @property
    def last(self) -> int:
        """The number of the last round; 0 if none was opened. Rounds count from 1."""
        current = self._state.current
        return current.opened.round if current else 0

    @property
    def between(self) -> bool:
        """Whether no round is in progress."""
        current = self._state.current
        return current is None or current.ended

    @property
    def counted(self) -> int:
        """How many finished rounds the model includes; discarded rounds do not count."""
        return self._state.counts[-1] if self._state.counts else 0

    @property
    def model(self) -> str | None:
        """The federation's model between rounds; None during a round and before the first."""
        return self._state.models[-1] if self._state.models and self.between else None

    @property
    def removals(self) -> tuple[ClientRemoved, ...]:
        """The removed clients, each with the model that the federation went back to."""
        return tuple(self._state.removed.values())

    def removed(self, client: str) -> bool:
        """Whether a client was removed."""
        return client in self._state.removed

    @property
    def standing(self) -> Standing | None:
        """The progress of the last round; None if none was opened."""
        current = self._state.current
        if current is None:
            return None
        return Standing(
            opened=current.opened,
            closed=bool(current.closed),
            aggregated=current.aggregated,
            abandoned=current.abandoned,
            revealed=frozenset(current.revealed),
            excluded=frozenset(current.excluded),
        )

    def token(self, round_: int, client: str) -> Token | None:
        """Return a client's token in the last round, if that is this round and there is one."""
        current = self._state.current
        return current.pledges.get(client) if current and round_ == self.last else None

    def revealed(self, body: UpdateRevealed) -> bool:
        """Whether exactly this update was revealed in the last round."""
        current = self._state.current
        if current is None or body.round != self.last or body.client not in current.revealed:
            return False
        return current.pledges[body.client].update == body.update

    @property
    def members(self) -> tuple[str, ...]:
        """The clients of the last round whose updates were revealed, less those excluded."""
        current = self._state.current
        return tuple(sorted(current.revealed - set(current.excluded))) if current else ()

    @property
    def pledged(self) -> tuple[str, ...]:
        """The clients of the last round with a token, less those excluded."""
        current = self._state.current
        return tuple(sorted(set(current.pledges) - set(current.excluded))) if current else ()

    @property
    def excluded(self) -> Mapping[str, str]:
        """The clients that were left out of the last round, each with the step that failed."""
        current = self._state.current
        return dict(current.excluded) if current else {}

    @property
    def unseen(self) -> tuple[str, ...]:
        """The members of the last round that have not countersigned the log of the round."""
        current = self._state.current
        return tuple(c for c in self.members if current and c not in current.countersigned)

    def silent(self, clients: tuple[str, ...]) -> tuple[str, ...]:
        """Return clients that revealed no update in the last round and were not excluded."""
        current = self._state.current
        accounted = set(self._state.removed)
        if current:
            accounted |= current.revealed | set(current.excluded)
        return tuple(client for client in clients if client not in accounted)

    def model_after(self, round_: int) -> str:
        """Return the federation's model after a finished round; 0: before the first."""
        return self._state.models[round_ - 1] if round_ else self._state.first

    def check(self, body: RoundBody, *, at: str) -> None:  # noqa: C901 - one case for each kind
        """Raise a `VerificationError` if the entry is out of order."""
        match body:
            case RoundOpened():
                self._check_opened(body)
            case UpdatePledged(token=token):
                self._check_pledged(token.content, at=at)
            case PledgesClosed(round=number):
                if self._current(number, "closing").closed:
                    raise VerificationError(STEP, f"round {number} is already closed to tokens")
            case UpdateRevealed():
                self._check_revealed(body)
            case ClientExcluded(round=number):
                if self._current(number, "an exclusion").ended:
                    raise VerificationError(STEP, f"round {number} is finished")
            case ModelAggregated():
                self._check_aggregated(body)
            case RoundAbandoned(round=number):
                if self._current(number, "the end").ended:
                    raise VerificationError(STEP, f"round {number} is finished")

    def check_removed(self, body: ClientRemoved, *, statistics: bool) -> None:
        """A client is removed once, between rounds, and back to an earlier model.

        Where plants share `statistics`, its own is taken out of the last model instead.
        """
        if body.client in self._state.removed or not self.between:
            raise VerificationError(
                STEP, f"{body.client!r} is already removed, or a round is in progress"
            )
        if not statistics:
            self._check_back(body.since, body.model_of, body.model)
        elif (body.since, body.model_of) != (0, self.last) or not self.last:
            raise VerificationError(
                STEP,
                f"a statistic is taken out of the model of round {self.last}, and no round is "
                f"discarded; the entry names round {body.model_of} and discards from {body.since}",
            )

    def check_recovered(self, body: FederationRecovered) -> None:
        """A recovery goes back to an earlier model; it also ends a round in progress."""
        recovery = body.recovery
        self._check_back(recovery.since, recovery.model_of, recovery.model)

    def _check_back(self, since: int, model_of: int, model: str) -> None:
        if not model_of < since <= self.last:
            raise VerificationError(
                STEP,
                f"cannot discard rounds from {since} on and go back to {model_of}; the last round "
                f"is {self.last}",
            )
        if model != self.model_after(model_of):
            raise VerificationError(
                STEP, f"{model[:12]}... is not the model after round {model_of}"
            )

    def _check_opened(self, body: RoundOpened) -> None:
        """Rounds are numbered in sequence; each starts from the federation's model."""
        if body.round != self.last + 1 or not self.between:
            raise VerificationError(STEP, f"round {body.round} cannot follow round {self.last}")
        models = self._state.models
        if models and body.model != models[-1]:
            raise VerificationError(
                STEP,
                f"round {body.round} is opened on {body.model[:12]}...; the federation's model is "
                f"{models[-1][:12]}...",
            )

    def _check_pledged(self, token: Token, *, at: str) -> None:
        """A token is for the open round and its model, in time, and the client's only one."""
        current = self._current(token.round, "a token")
        if current.closed:
            raise VerificationError(STEP, f"round {token.round} accepts no more tokens")
        if at > current.opened.deadline:
            raise VerificationError(
                STEP, f"the token of {token.client!r} arrived after {current.opened.deadline}"
            )
        if token.model != current.opened.model:
            raise VerificationError(
                STEP,
                f"the token of {token.client!r} is for model {token.model[:12]}...; round "
                f"{token.round} has {current.opened.model[:12]}...",
            )
        self._refuse_excluded(current, token.client)
        if self.removed(token.client):
            raise VerificationError(STEP, f"{token.client!r} was removed")
        if token.client in current.pledges:
            raise VerificationError(
                STEP, f"{token.client!r} already has a token in round {token.round}"
            )

    def _check_revealed(self, body: UpdateRevealed) -> None:
        """An update is revealed once, after tokens are closed, and matches its pledge."""
        current = self._current(body.round, "an update")
        if not current.closed:
            raise VerificationError(
                STEP, f"round {body.round} still accepts tokens; close it before updates"
            )
        if current.ended or body.client in current.revealed:
            raise VerificationError(
                STEP, f"the update of {body.client!r} is already revealed, or the round is finished"
            )
        self._refuse_excluded(current, body.client)
        token = current.pledges.get(body.client)
        if token is None or token.update != body.update:
            raise VerificationError(
                STEP,
                f"the update of {body.client!r} is {body.update[:12]}...; it pledged "
                f"{token.update[:12] + '...' if token else 'no update'}",
            )

    def _check_aggregated(self, body: ModelAggregated) -> None:
        """The model includes every revealed update and no other."""
        current = self._current(body.round, "a model")
        if current.ended or not current.closed or body.clients != self.members:
            raise VerificationError(
                STEP,
                f"the model of round {body.round} names clients {list(body.clients)}; "
                f"revealed and not excluded are {list(self.members)}",
            )
        if self.unseen:
            raise VerificationError(
                STEP,
                f"{', '.join(self.unseen)} revealed an update in round {body.round} and did not "
                "countersign its log",
            )

    def note(self, body: RoundBody, *, size: int) -> None:
        """Record an entry that was checked; the log has `size` entries with it."""
        if isinstance(body, RoundOpened):
            self._state.first = self._state.first or body.model
            self._state.current = RoundState(opened=body)
            return
        current = self._current(self.last, "an entry")
        match body:
            case UpdatePledged(token=signed):
                current.pledges[signed.content.client] = signed.content
            case PledgesClosed():
                current.closed = size
            case UpdateRevealed(client=client):
                current.revealed.add(client)
            case ClientExcluded(client=client, step=step):
                current.excluded[client] = step
            case ModelAggregated(model=model):
                current.aggregated = True
                self._end(model, self.counted + 1)
            case RoundAbandoned():
                self._abandon(current)

    def note_countersigned(self, client: str, size: int) -> None:
        """Record that a client has signed the head of `size` entries."""
        current = self._state.current
        if current and current.closed and size >= current.closed:
            current.countersigned.add(client)

    def note_removed(self, body: ClientRemoved) -> None:
        """Record a removal: back to an earlier model, or the last one without a statistic."""
        self._state.removed[body.client] = body
        if body.since:
            self._back(body.model_of, body.model)
        else:
            self._state.models[-1] = body.model

    def note_recovered(self, body: FederationRecovered) -> None:
        """Record a recovery; a round in progress ends, and an earlier model is used again."""
        current = self._state.current
        if current and not current.ended:
            self._abandon(current)
        self._back(body.recovery.model_of, body.recovery.model)

    def _abandon(self, current: RoundState) -> None:
        current.abandoned = True
        self._end(current.opened.model, self.counted)

    def _end(self, model: str, counted: int) -> None:
        self._state.models.append(model)
        self._state.counts.append(counted)

    def _back(self, model_of: int, model: str) -> None:
        self._state.models[-1] = model
        self._state.counts[-1] = self._state.counts[model_of - 1] if model_of else 0

    def _current(self, round_: int, what: str) -> RoundState:
        current = self._state.current
        if current is None or round_ != self.last:
            raise VerificationError(
                STEP, f"{what} for round {round_}; the last round is {self.last}"
            )
        if current.abandoned:
            raise VerificationError(STEP, f"{what} for round {round_}, which was abandoned")
        return current

    def _refuse_excluded(self, current: RoundState, client: str) -> None:
        if client in current.excluded:
            raise VerificationError(
                STEP, f"{client!r} is excluded from the round, by step {current.excluded[client]}"
            )
