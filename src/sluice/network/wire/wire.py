"""The wire sends questions to plants by name and returns the answers that arrive in time.

It does not read the messages. `FlowerWire` reaches other machines; `Direct` reaches plants in the
same process, for tests.
"""

import math
import time
from collections.abc import Iterator, Mapping
from typing import Protocol, final

__all__ = ["LARGEST_ANSWER", "LARGEST_MESSAGE", "Answerer", "Cutoff", "Direct", "Wire"]

LARGEST_MESSAGE = 32 * 1024 * 1024
"""Bytes of a question; a longer one is refused before it is read."""
LARGEST_ANSWER = 7 * 1024 * 1024
"""Bytes of an answer, so that one call through the proxy holds it; a longer one is not pulled."""


class Wire(Protocol):
    """Carries bytes to plants and back."""

    def present(self) -> frozenset[str]:
        """Return the plants that are online; questions to others would only time out."""
        ...

    def ask(
        self,
        questions: Mapping[str, bytes],
        *,
        seconds: float,
        quorum: int | None = None,
        grace_s: float = 0.0,
    ) -> Iterator[tuple[str, bytes]]:
        """Ask each named plant and yield answers as they arrive, for so many seconds.

        Once `quorum` plants have answered, the others have `grace_s` more seconds. An answer that
        the wire refuses is empty and does not count.
        """
        ...


class Answerer(Protocol):
    """A plant, as the wire sees it."""

    def answer(self, question: bytes) -> bytes:
        """Answer a question."""
        ...


@final
class Cutoff:
    """When an `ask` ends: at its deadline, or a grace period after the quorum was reached."""

    def __init__(self, *, seconds: float, quorum: int | None, grace_s: float) -> None:
        self._end = time.monotonic() + seconds
        self._missing = quorum
        self._grace_s = grace_s
        self._shorten()

    @property
    def left_s(self) -> float:
        """The seconds left; 0 or less at the end."""
        return self._end - time.monotonic()

    def answered(self) -> None:
        """Count an answer."""
        if self._missing is not None:
            self._missing -= 1
            self._shorten()

    def _shorten(self) -> None:
        if self._missing is not None and self._missing <= 0:
            self._end = min(self._end, time.monotonic() + self._grace_s)
            self._missing = None


class Direct:
    """Plants in this process, asked in order; a plant that is missing does not answer."""

    def __init__(self, plants: Mapping[str, Answerer]) -> None:
        self._plants = plants

    def present(self) -> frozenset[str]:
        """Return the plants of this process."""
        return frozenset(self._plants)

    def ask(
        self,
        questions: Mapping[str, bytes],
        *,
        seconds: float,  # noqa: ARG002 - answers come at once
        quorum: int | None = None,
        grace_s: float = 0.0,
    ) -> Iterator[tuple[str, bytes]]:
        """Ask each plant of this process, one after another."""
        cutoff = Cutoff(seconds=math.inf, quorum=quorum, grace_s=grace_s)
        for plant, question in questions.items():
            if plant not in self._plants:
                continue
            if cutoff.left_s <= 0:
                return
            answer = self._plants[plant].answer(question)
            if answer:
                cutoff.answered()
            yield plant, answer
