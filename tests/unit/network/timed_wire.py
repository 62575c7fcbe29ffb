"""A wire on a clock of its own: plants answer after a delay, and waiting costs no real time."""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from sluice.network.wire.wire import Answerer

from .conftest import Clock


class TimedWire:
    """Plants that answer `delays` seconds after a question first reached them.

    A plant that raises `ConnectionError` takes the question and never answers.
    """

    def __init__(
        self, plants: Mapping[str, Answerer], clock: Clock, delays: Mapping[str, float]
    ) -> None:
        self._plants = plants
        self._clock = clock
        self._delays = delays
        self._ready: dict[tuple[str, bytes], datetime] = {}
        self.asked: list[tuple[str, ...]] = []

    def present(self) -> frozenset[str]:
        return frozenset(self._plants)

    def ask(
        self,
        questions: Mapping[str, bytes],
        *,
        seconds: float,
        quorum: int | None = None,
        grace_s: float = 0.0,
    ) -> Iterator[tuple[str, bytes]]:
        self.asked.append(tuple(sorted(questions)))
        end = self._clock.now + timedelta(seconds=seconds)
        answered = 0
        for ready, plant in sorted(
            (self._when(plant, raw), plant) for plant, raw in questions.items()
        ):
            if ready > end:
                break
            self._clock.now = max(self._clock.now, ready)
            try:
                answer = self._plants[plant].answer(questions[plant])
            except ConnectionError:
                continue
            yield plant, answer
            answered += 1
            if answered == quorum:
                end = min(end, self._clock.now + timedelta(seconds=grace_s))
        if answered < len(questions):
            self._clock.now = max(self._clock.now, end)

    def _when(self, plant: str, question: bytes) -> datetime:
        after = timedelta(seconds=self._delays.get(plant, 1.0))
        return self._ready.setdefault((plant, question), self._clock.now + after)
