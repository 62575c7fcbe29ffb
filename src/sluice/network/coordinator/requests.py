"""Send signed questions to plants, read their answers strictly, and count malformed ones."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sluice.attestation.messages import SigningKey, sign
from sluice.errors import DocumentError
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.wire import ANSWERS, QUESTIONS, Ask, Declined, Payload, Question, Wire

__all__ = ["Requests"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """Sends the coordinator's questions over the wire and reads the answers."""

    federation: str
    key: SigningKey = field(repr=False)
    wire: Wire
    store: CoordinatorStore
    clock: Callable[[], datetime]

    def ask(
        self,
        asks: Mapping[str, Ask],
        *,
        round_: int,
        seconds: float,
    ) -> Iterator[tuple[str, Payload]]:
        """Ask each plant and yield the valid answers; record every other outcome as an event."""
        began = self.clock()
        questions = {plant: self._signed(plant, ask) for plant, ask in asks.items()}
        silent = set(questions)
        if questions:
            for plant, raw in self.wire.ask(questions, seconds=seconds):
                silent.discard(plant)
                answer = self._read(plant, raw, round_=round_, began=began)
                if answer is not None:
                    yield plant, answer
        for plant in sorted(silent):
            self._note("silent", plant, round_)

    def _signed(self, plant: str, ask: Ask) -> bytes:
        question = Question(federation=self.federation, client=plant, ask=ask)
        return QUESTIONS.write(sign(question, self.key))

    def _read(self, plant: str, raw: bytes, *, round_: int, began: datetime) -> Payload | None:
        try:
            answer = ANSWERS.read(raw).answer
        except DocumentError:
            self._note("malformed", plant, round_)
            return None
        if isinstance(answer, Declined):
            self._note("declined", plant, round_)
            return None
        lasted = (self.clock() - began).total_seconds()
        self.store.note(
            f"answered {answer.kind}", plant=plant, round_=round_, at=self.clock(), seconds=lasted
        )
        return answer

    def _note(self, kind: str, plant: str, round_: int) -> None:
        self.store.note(kind, plant=plant, round_=round_, at=self.clock())
