"""The wire: questions go to plants by name, answers come back in time or not at all.

It knows nothing of what is said. `superlink` is the one that reaches other machines;
tests use `Direct`, which reaches plants in the same process.
"""

from collections.abc import Iterator, Mapping
from typing import Protocol

__all__ = ["LARGEST_MESSAGE", "Answerer", "Direct", "Wire"]

LARGEST_MESSAGE = 32 * 1024 * 1024
"""Bytes of a question or an answer; a longer one is refused before it is read."""


class Wire(Protocol):
    """Carries bytes to plants and back."""

    def present(self) -> frozenset[str]:
        """Return the plants that were heard of lately; others are not worth a wait."""
        ...

    def ask(self, questions: Mapping[str, bytes], *, seconds: float) -> Iterator[tuple[str, bytes]]:
        """Ask each named plant and give its answer as it comes, for so many seconds."""
        ...


class Answerer(Protocol):
    """A plant, as the wire sees it."""

    def answer(self, question: bytes) -> bytes:
        """Answer a question."""
        ...


class Direct:
    """Plants in this process, asked one after the other; one that is not there stays silent."""

    def __init__(self, plants: Mapping[str, Answerer]) -> None:
        self._plants = plants

    def present(self) -> frozenset[str]:
        """Return the plants that are there."""
        return frozenset(self._plants)

    def ask(
        self,
        questions: Mapping[str, bytes],
        *,
        seconds: float,  # noqa: ARG002 - nobody waits here
    ) -> Iterator[tuple[str, bytes]]:
        """Ask each plant that is there."""
        for plant, question in questions.items():
            if plant in self._plants:
                yield plant, self._plants[plant].answer(question)
