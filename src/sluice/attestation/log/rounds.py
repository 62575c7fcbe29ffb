"""Rounds recorded in the log: opened, pledged, closed, revealed, aggregated, in that order.

An operator can abandon a round before it is aggregated.
"""

from dataclasses import dataclass, field

from sluice.attestation.log.entries import (
    ClientExcluded,
    ClientRemoved,
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

__all__ = ["Rounds", "Standing"]

STEP = "6"


@dataclass(slots=True, kw_only=True)
class _Round:
    opened: RoundOpened
    pledges: dict[str, Token] = field(default_factory=dict)
    closed: bool = False
    revealed: set[str] = field(default_factory=set)
    excluded: dict[str, str] = field(default_factory=dict)
    aggregated: bool = False
    abandoned: bool = False
    model: str = ""  # the federation's model after the round
    counted: int = 0  # rounds that this model includes, without discarded ones

    @property
    def ended(self) -> bool:
        return self.aggregated or self.abandoned


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
        """Whether the round is over: it has a model, or an operator abandoned it."""
        return self.aggregated or self.abandoned


class Rounds:
    """Every round so far; entries out of order are refused."""

    def __init__(self) -> None:
        self._rounds: list[_Round] = []
        self._removed: dict[str, ClientRemoved] = {}

    @property
    def last(self) -> int:
        """The number of the last round; 0 if none was opened. Rounds count from 1."""
        return len(self._rounds)

    @property
    def between(self) -> bool:
        """Whether no round is in progress."""
        return not self._rounds or self._rounds[-1].ended

    @property
    def counted(self) -> int:
        """How many finished rounds the model includes, without discarded and abandoned ones."""
        return next((each.counted for each in reversed(self._rounds) if each.ended), 0)

    @property
    def model(self) -> str | None:
        """The federation's model between rounds; None during a round and before the first."""
        return self._rounds[-1].model if self._rounds and self._rounds[-1].ended else None

    @property
    def removals(self) -> tuple[ClientRemoved, ...]:
        """The removed clients, each with the model that the federation went back to."""
        return tuple(self._removed.values())

    def removed(self, client: str) -> bool:
        """Whether a client was removed."""
        return client in self._removed

    @property
    def standing(self) -> Standing | None:
        """The progress of the last round; None if none was opened."""
        if not self._rounds:
            return None
        current = self._rounds[-1]
        return Standing(
            opened=current.opened,
            closed=current.closed,
            aggregated=current.aggregated,
            abandoned=current.abandoned,
            revealed=frozenset(current.revealed),
            excluded=frozenset(current.excluded),
        )

    def token(self, round_: int, client: str) -> Token | None:
        """Return a client's token in a round, if there is one."""
        known = 1 <= round_ <= len(self._rounds)
        return self._rounds[round_ - 1].pledges.get(client) if known else None

    def revealed(self, body: UpdateRevealed) -> bool:
        """Whether exactly this update was revealed in the last round."""
        if body.round != self.last or body.client not in self._rounds[-1].revealed:
            return False
        return self._rounds[-1].pledges[body.client].update == body.update

    @property
    def members(self) -> tuple[str, ...]:
        """The clients of the last round whose updates were revealed, less those excluded."""
        current = self._rounds[-1]
        return tuple(sorted(current.revealed - set(current.excluded)))

    def silent(self, clients: tuple[str, ...]) -> tuple[str, ...]:
        """Return clients that revealed no update in the last round and were not excluded."""
        current = self._rounds[-1]
        accounted = current.revealed | set(current.excluded) | set(self._removed)
        return tuple(client for client in clients if client not in accounted)

    def check(self, body: RoundBody, *, at: str) -> None:
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
            case ClientExcluded(round=number, kind=what) | RoundAbandoned(round=number, kind=what):
                if self._current(number, f"an entry {what!r}").aggregated:
                    raise VerificationError(STEP, f"round {number} is finished")
            case ModelAggregated():
                self._check_aggregated(body)

    def check_removed(self, body: ClientRemoved) -> None:
        """A client is removed once, between rounds, and back to an earlier model."""
        if body.client in self._removed or not self.between:
            raise VerificationError(
                STEP, f"{body.client!r} is already removed, or a round is in progress"
            )
        if not body.model_of < body.since <= self.last:
            raise VerificationError(
                STEP,
                f"cannot discard rounds from {body.since} on and go back to {body.model_of}; the "
                f"last round is {self.last}",
            )
        if body.model != self._model_after(body.model_of):
            raise VerificationError(
                STEP, f"{body.model[:12]}... is not the model after round {body.model_of}"
            )

    def _check_opened(self, body: RoundOpened) -> None:
        """Rounds are numbered in sequence; each starts from the federation's model."""
        if body.round != self.last + 1 or not self.between:
            raise VerificationError(STEP, f"round {body.round} cannot follow round {self.last}")
        if self._rounds and body.model != self._rounds[-1].model:
            raise VerificationError(
                STEP,
                f"round {body.round} is opened on {body.model[:12]}...; the federation's model is "
                f"{self._rounds[-1].model[:12]}...",
            )

    def _model_after(self, round_: int) -> str:
        return self._rounds[round_ - 1].model if round_ else self._rounds[0].opened.model

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
        if current.aggregated or body.client in current.revealed:
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
        if current.aggregated or not current.closed or body.clients != self.members:
            raise VerificationError(
                STEP,
                f"the model of round {body.round} names clients {list(body.clients)}; "
                f"revealed and not excluded are {list(self.members)}",
            )

    def note(self, body: RoundBody) -> None:
        """Record an entry that was checked."""
        match body:
            case RoundOpened():
                self._rounds.append(_Round(opened=body))
            case UpdatePledged(token=signed):
                self._rounds[-1].pledges[signed.content.client] = signed.content
            case PledgesClosed():
                self._rounds[-1].closed = True
            case UpdateRevealed(client=client):
                self._rounds[-1].revealed.add(client)
            case ClientExcluded(client=client, step=step):
                self._rounds[-1].excluded[client] = step
            case ModelAggregated(model=model):
                current = self._rounds[-1]
                current.aggregated, current.model = True, model
                current.counted = self._counted_before + 1
            case RoundAbandoned():
                current = self._rounds[-1]
                current.abandoned, current.model = True, current.opened.model
                current.counted = self._counted_before

    def note_removed(self, body: ClientRemoved) -> None:
        """Record a removal; the federation goes back to an earlier model."""
        self._removed[body.client] = body
        self._rounds[-1].model = body.model
        counted = self._rounds[body.model_of - 1].counted if body.model_of else 0
        self._rounds[-1].counted = counted

    @property
    def _counted_before(self) -> int:
        """The rounds that the model of the last round's opening includes."""
        return self._rounds[-2].counted if self.last > 1 else 0

    def _current(self, round_: int, what: str) -> _Round:
        if round_ != self.last or not self._rounds:
            raise VerificationError(
                STEP, f"{what} for round {round_}; the last round is {self.last}"
            )
        if self._rounds[-1].abandoned:
            raise VerificationError(STEP, f"{what} for round {round_}, which was abandoned")
        return self._rounds[-1]

    def _refuse_excluded(self, current: _Round, client: str) -> None:
        if client in current.excluded:
            raise VerificationError(
                STEP, f"{client!r} is excluded from the round, by step {current.excluded[client]}"
            )
