"""A coordinator that a test drives by hand: it writes its own log and asks what the test says."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from pathlib import Path

from sluice.attestation.log.chain import Log
from sluice.attestation.log.entries import UpdatePledged
from sluice.attestation.messages.signing import SigningKey, sign
from sluice.attestation.messages.tokens import TOKENS
from sluice.attestation.protocol.coordinator import ProtocolCoordinator
from sluice.detector.autoencoder import Parameters, initial
from sluice.network.coordinator.pages import LogPages
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.plant.agent import Agent
from sluice.network.wire.questions import (
    ANSWERS,
    QUESTIONS,
    Answer,
    Ask,
    AskToken,
    AskUpdate,
    Declined,
    LogPage,
    Payload,
    Pledge,
    Question,
    model_hash,
    write_parameters,
)
from sluice.network.wire.wire import Answerer

from .conftest import Consortium

HOUR = timedelta(hours=1)


@dataclass
class Driven:
    """The coordinator's key, one log of it, and the questions that go with that log."""

    consortium: Consortium
    protocol: ProtocolCoordinator
    path: Path
    key: SigningKey = field(repr=False)

    @classmethod
    def of(cls, consortium: Consortium) -> "Driven":
        """Drive the coordinator of this folder."""
        site = consortium.site
        key = site.signing_key()
        return cls(consortium, site.protocol(), site.log, key)

    def forked(self, path: Path) -> "Driven":
        """Return a second log of the same coordinator; it is equal so far."""
        path.write_bytes(self.path.read_bytes())
        protocol = ProtocolCoordinator(log=Log.open(path, self.key))
        return Driven(self.consortium, protocol, path, self.key)

    @property
    def log(self) -> Log:
        return self.protocol.log

    def now(self) -> datetime:
        return self.consortium.clock()

    # -- the log ------------------------------------------------------------------------------

    def attest(self, agent: Agent) -> str:
        """Log a plant's commitment and attestation; return the latter."""
        batch = agent.attested_documents()
        store = CoordinatorStore(self.consortium.site.base)
        agreement = self.consortium.site.agreements(store)[agent.name]
        store.close()
        received = self.protocol.enrolled(agent.name, agreement).receive(
            batch.commit, at=self.now()
        )
        attested = received.attest(batch.proof, at=self.now(), statistic=batch.statistic)
        return attested.attestation

    def weights(self, *, seed: int = 0) -> Parameters:
        return initial(self.consortium.site.terms.framing.width, seed=seed)

    def open(self, *, seed: int = 0) -> int:
        """Open the next round on a model; return its number."""
        model, now = model_hash(self.weights(seed=seed)), self.now()
        return self.protocol.open_round(model, now + HOUR, at=now).round

    def take(self, pledge: Payload | Declined) -> None:
        """Log a plant's token."""
        assert isinstance(pledge, Pledge)
        self.log.append(UpdatePledged(token=TOKENS.read(pledge.token)), at=self.now())

    def close(self) -> None:
        self.protocol.pledging(self.log.ledger.rounds.last).close(at=self.now())

    # -- questions ----------------------------------------------------------------------------

    def token(self, attestation: str, *, round_: int | None = None, seed: int = 0) -> AskToken:
        number = self.log.ledger.rounds.last if round_ is None else round_
        weights = write_parameters(self.weights(seed=seed))
        return AskToken(round=number, attestation=attestation, parameters=weights)

    def update(self, round_: int | None = None) -> AskUpdate:
        return AskUpdate(round=self.log.ledger.rounds.last if round_ is None else round_)

    def page(self, start: int = 0) -> LogPage:
        return LogPages(log=self.log, path=self.path, key=self.key).page(start)

    def ask(
        self,
        agent: Agent,
        ask: Ask,
        *,
        page: LogPage | None = None,
        key: SigningKey | None = None,
        client: str | None = None,
        copied: bool = False,
    ) -> Payload | Declined:
        """Ask a plant and return its answer."""
        answer = self.answer(agent, ask, page=page, key=key, client=client, copied=copied)
        return answer.answer

    def answer(
        self,
        agent: Agent,
        ask: Ask,
        *,
        page: LogPage | None = None,
        key: SigningKey | None = None,
        client: str | None = None,
        copied: bool = False,
    ) -> Answer:
        """Ask a plant and return its answer with what the plant says of itself."""
        question = Question(
            federation=self.log.ledger.opened.federation,
            client=client or agent.name,
            page=self.page() if page is None else page,
            copied=copied,
            ask=ask,
        )
        return ANSWERS.read(agent.answer(QUESTIONS.write(sign(question, key or self.key))))

    def pledged(self, agent: Agent, attestation: str) -> None:
        """Ask an honest plant for its token in the open round, and log it."""
        self.take(self.ask(agent, self.token(attestation)))


def changed(answer: bytes, change: Callable[[Payload | Declined], Payload | Declined]) -> bytes:
    """Return an answer with another content, under the same instance."""
    read = ANSWERS.read(answer)
    return ANSWERS.write(replace(read, answer=change(read.answer)))


class Falsifying:
    """Answers as its plant does, with some answers changed."""

    def __init__(self, agent: Answerer, change: Callable[[Payload], Payload]) -> None:
        self._agent = agent
        self._change = change

    def answer(self, question: bytes) -> bytes:
        def change(answer: Payload | Declined) -> Payload | Declined:
            return answer if isinstance(answer, Declined) else self._change(answer)

        return changed(self._agent.answer(question), change)
