"""Rounds as the log tells them: opened, pledged, closed, revealed, aggregated, in that order."""

from dataclasses import dataclass, field

from sluice.attestation.log.entries import (
    ClientExcluded,
    ClientRemoved,
    ModelAggregated,
    PledgesClosed,
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
    model: str = ""  # that the federation has after it
    counted: int = 0  # rounds that this model is made of, those given up left out


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """How far the last round has come: what a coordinator goes on from after a restart."""

    opened: RoundOpened
    closed: bool  # to tokens
    aggregated: bool
    revealed: frozenset[str]
    excluded: frozenset[str]


class Rounds:
    """Every round so far; what comes out of order is refused."""

    def __init__(self) -> None:
        self._rounds: list[_Round] = []
        self._removed: dict[str, ClientRemoved] = {}

    @property
    def last(self) -> int:
        """The number of the last round; 0 where none was opened. Rounds count from 1."""
        return len(self._rounds)

    @property
    def between(self) -> bool:
        """Whether no round is going on."""
        return not self._rounds or self._rounds[-1].aggregated

    @property
    def counted(self) -> int:
        """How many finished rounds the model is made of; those that were given up do not count."""
        return next((each.counted for each in reversed(self._rounds) if each.aggregated), 0)

    @property
    def model(self) -> str | None:
        """The model that the federation has between rounds; None before the first was finished."""
        return self._rounds[-1].model if self._rounds and self._rounds[-1].aggregated else None

    @property
    def removals(self) -> tuple[ClientRemoved, ...]:
        """The clients that were removed, and where the federation went back to."""
        return tuple(self._removed.values())

    def removed(self, client: str) -> bool:
        """Whether a client was removed."""
        return client in self._removed

    @property
    def standing(self) -> Standing | None:
        """How far the last round has come; None where none was opened."""
        if not self._rounds:
            return None
        current = self._rounds[-1]
        return Standing(
            opened=current.opened,
            closed=current.closed,
            aggregated=current.aggregated,
            revealed=frozenset(current.revealed),
            excluded=frozenset(current.excluded),
        )

    def token(self, round_: int, client: str) -> Token | None:
        """Return what a client pledged in a round."""
        known = 1 <= round_ <= len(self._rounds)
        return self._rounds[round_ - 1].pledges.get(client) if known else None

    def revealed(self, body: UpdateRevealed) -> bool:
        """Whether this very update was revealed in the last round."""
        if body.round != self.last or body.client not in self._rounds[-1].revealed:
            return False
        return self._rounds[-1].pledges[body.client].update == body.update

    @property
    def members(self) -> tuple[str, ...]:
        """The clients of the last round whose updates were revealed, less those excluded."""
        current = self._rounds[-1]
        return tuple(sorted(current.revealed - set(current.excluded)))

    def silent(self, clients: tuple[str, ...]) -> tuple[str, ...]:
        """Return those who neither revealed an update in the last round nor were excluded."""
        current = self._rounds[-1]
        heard = current.revealed | set(current.excluded) | set(self._removed)
        return tuple(client for client in clients if client not in heard)

    def check(self, body: RoundBody, *, at: str) -> None:
        """Raise a `VerificationError` where the entry comes out of order."""
        match body:
            case RoundOpened():
                self._check_opened(body)
            case UpdatePledged(token=token):
                self._check_pledged(token.content, at=at)
            case PledgesClosed(round=number):
                if self._current(number, "closing").closed:
                    raise VerificationError(STEP, f"round {number} is closed to tokens already")
            case UpdateRevealed():
                self._check_revealed(body)
            case ClientExcluded(round=number):
                if self._current(number, "an exclusion").aggregated:
                    raise VerificationError(STEP, f"round {number} is over")
            case ModelAggregated():
                self._check_aggregated(body)

    def check_removed(self, body: ClientRemoved) -> None:
        """A client is removed once, between rounds, and back to a model that there was."""
        if body.client in self._removed or not self.between:
            raise VerificationError(
                STEP, f"{body.client!r} is removed already, or a round is going on"
            )
        if not body.model_of < body.since <= self.last:
            raise VerificationError(
                STEP, f"from round {body.since} on, after round {self.last}: there is nothing"
            )
        if body.model != self._model_after(body.model_of):
            raise VerificationError(
                STEP, f"{body.model[:12]}... is not the model after round {body.model_of}"
            )

    def _check_opened(self, body: RoundOpened) -> None:
        """Rounds follow each other, each on the model that the federation has."""
        if body.round != self.last + 1 or not self.between:
            raise VerificationError(STEP, f"round {body.round} cannot follow {self.last}")
        if self._rounds and body.model != self._rounds[-1].model:
            raise VerificationError(
                STEP,
                f"round {body.round} is opened on {body.model[:12]}..., the federation's model is "
                f"{self._rounds[-1].model[:12]}...",
            )

    def _model_after(self, round_: int) -> str:
        return self._rounds[round_ - 1].model if round_ else self._rounds[0].opened.model

    def _check_pledged(self, token: Token, *, at: str) -> None:
        """A token is of the open round and its model, in time, and the client's only one."""
        current = self._current(token.round, "a token")
        if current.closed:
            raise VerificationError(STEP, f"round {token.round} takes no more tokens")
        if at > current.opened.deadline:
            raise VerificationError(
                STEP, f"the token of {token.client!r} came after {current.opened.deadline}"
            )
        if token.model != current.opened.model:
            raise VerificationError(
                STEP,
                f"the token of {token.client!r} is for model {token.model[:12]}..., round "
                f"{token.round} has {current.opened.model[:12]}...",
            )
        self._refuse_excluded(current, token.client)
        if self.removed(token.client):
            raise VerificationError(STEP, f"{token.client!r} was removed")
        if token.client in current.pledges:
            raise VerificationError(STEP, f"{token.client!r} has a token in round {token.round}")

    def _check_revealed(self, body: UpdateRevealed) -> None:
        """No update is revealed while tokens are taken, and each only as it was pledged."""
        current = self._current(body.round, "an update")
        if not current.closed:
            raise VerificationError(
                STEP, f"round {body.round} still takes tokens: updates are revealed after that"
            )
        if current.aggregated or body.client in current.revealed:
            raise VerificationError(STEP, f"the update of {body.client!r} comes too often or late")
        self._refuse_excluded(current, body.client)
        token = current.pledges.get(body.client)
        if token is None or token.update != body.update:
            raise VerificationError(
                STEP,
                f"the update of {body.client!r} is {body.update[:12]}..., pledged was "
                f"{token.update[:12] + '...' if token else 'none'}",
            )

    def _check_aggregated(self, body: ModelAggregated) -> None:
        """The model is made of every update that was revealed and of no other."""
        current = self._current(body.round, "a model")
        if current.aggregated or not current.closed or body.clients != self.members:
            raise VerificationError(
                STEP,
                f"the model of round {body.round} is said to be made by {list(body.clients)}; "
                f"revealed and not excluded are {list(self.members)}",
            )

    def note(self, body: RoundBody) -> None:
        """Remember an entry that was checked."""
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
                before = self._rounds[-2].counted if self.last > 1 else 0
                current = self._rounds[-1]
                current.aggregated, current.model, current.counted = True, model, before + 1

    def note_removed(self, body: ClientRemoved) -> None:
        """Remember a removal: the federation has an earlier model again."""
        self._removed[body.client] = body
        self._rounds[-1].model = body.model
        counted = self._rounds[body.model_of - 1].counted if body.model_of else 0
        self._rounds[-1].counted = counted

    def _current(self, round_: int, what: str) -> _Round:
        if round_ != self.last or not self._rounds:
            raise VerificationError(STEP, f"{what} for round {round_}; the last is {self.last}")
        return self._rounds[-1]

    def _refuse_excluded(self, current: _Round, client: str) -> None:
        if client in current.excluded:
            raise VerificationError(
                STEP, f"{client!r} is excluded from the round, by step {current.excluded[client]}"
            )
