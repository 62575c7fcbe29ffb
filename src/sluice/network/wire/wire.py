"""The wire sends questions to plants by name and returns the answers that arrive in time.

It does not read the messages. `FlowerWire` reaches other machines; `Direct` reaches plants in the
same process, for tests.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol

__all__ = ["LARGEST_MESSAGE", "Answerer", "Direct", "Wire"]

LARGEST_MESSAGE = 32 * 1024 * 1024
"""Bytes of a question or an answer; a longer one is refused before it is read."""


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

        With a quorum, stop earlier: `grace_s` seconds after so many plants have answered.
        """
        ...


class Answerer(Protocol):
    """A plant, as the wire sees it."""

    def answer(self, question: bytes) -> bytes:
        """Answer a question."""
        ...


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
        quorum: int | None = None,  # noqa: ARG002
        grace_s: float = 0.0,  # noqa: ARG002
    ) -> Iterator[tuple[str, bytes]]:
        """Ask each plant of this process."""
        for plant, question in questions.items():
            if plant in self._plants:
                yield plant, self._plants[plant].answer(question)
