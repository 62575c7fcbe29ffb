"""A round at the coordinator: first every pledge, then every update, then the model."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import final

from sluice.attestation.entries import (
    ClientExcluded,
    ModelAggregated,
    PledgesClosed,
    UpdatePledged,
    UpdateRevealed,
)
from sluice.attestation.log import Log
from sluice.attestation.tokens import TOKENS, update_digest
from sluice.errors import DocumentError, VerificationError

__all__ = ["Attested", "Pledging", "Revealed", "Revealing"]

STEP = "6"


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Attested:
    """A client whose batch attestation is in the log."""

    client: str
    attestation: str


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pledge:
    """A client's token, logged."""

    client: str
    round: int


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Revealed:
    """An update that is the pledged one; only these are aggregated."""

    client: str
    update: bytes = field(repr=False)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Pledging:
    """A round that takes tokens. No update can be handed to it."""

    log: Log
    round: int

    def pledge(self, attested: Attested, raw: bytes, *, at: datetime) -> Pledge:
        """Log the token of an attested client; the same one twice is one entry."""
        try:
            signed = TOKENS.read(raw)
        except DocumentError as error:
            raise VerificationError(STEP, str(error)) from None
        token = signed.content
        if (token.client, token.attestation) != (attested.client, attested.attestation):
            raise VerificationError(STEP, f"the token is not for this batch of {attested.client!r}")
        if token.round != self.round:
            raise VerificationError(STEP, f"a token for round {token.round} in {self.round}")
        if self.log.ledger.rounds.token(self.round, token.client) != token:
            self.log.append(UpdatePledged(token=signed), at=at)
        return Pledge(client=token.client, round=self.round)

    def exclude(self, client: str, step: str, *, at: datetime) -> None:
        """Log that a client has no part in this round, with the step as the reason."""
        self.log.append(ClientExcluded(round=self.round, client=client, step=step), at=at)

    def close(self, *, at: datetime) -> "Revealing":
        """Take no more tokens; from now on updates are revealed."""
        self.log.append(PledgesClosed(round=self.round), at=at)
        return Revealing(log=self.log, round=self.round)


@final
@dataclass(frozen=True, slots=True, kw_only=True)
class Revealing:
    """A round that takes updates. No token can be handed to it."""

    log: Log
    round: int

    def reveal(self, pledge: Pledge, update: bytes, *, at: datetime) -> Revealed:
        """Take an update whose hash is the pledged one; the same one twice is one entry."""
        if pledge.round != self.round:
            raise VerificationError(STEP, f"a pledge of round {pledge.round} in {self.round}")
        federation = self.log.ledger.opened.federation
        hashed = update_digest(federation, pledge.client, self.round, update)
        body = UpdateRevealed(round=self.round, client=pledge.client, update=hashed)
        if not self.log.ledger.rounds.revealed(body):
            self.log.append(body, at=at)
        return Revealed(client=pledge.client, update=update)

    def exclude(self, client: str, step: str, *, at: datetime) -> None:
        """Log that a client has no part in this round, with the step as the reason."""
        self.log.append(ClientExcluded(round=self.round, client=client, step=step), at=at)

    def finish(self, model: str, *, at: datetime) -> tuple[str, ...]:
        """Log the model that the revealed updates gave; who was silent is excluded."""
        ledger = self.log.ledger
        for client in ledger.rounds.silent(ledger.clients):
            self.exclude(client, STEP, at=at)
        members = ledger.rounds.members
        self.log.append(ModelAggregated(round=self.round, model=model, clients=members), at=at)
        return members
