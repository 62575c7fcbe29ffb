"""Whose answers are awaited, who is asked again, and whom nobody waits for any longer.

Flower hands a message to a node once. A node that is killed with it in hand never answers, and
Flower says nothing before the message has expired. So whoever stays silent is asked again, each
time after twice as long; a plant says the same twice.
"""

from collections.abc import Iterable

__all__ = ["Awaited"]

ASK_AGAIN_S = 20.0
RETRY_S = 2.0
GRACE_S = 120.0
"""How long a plant whose node has gone is asked again before the others stop waiting for it."""


class Awaited:
    """The plants that have not answered yet. Times are seconds of a clock that never goes back."""

    def __init__(self, plants: Iterable[str]) -> None:
        self._due = dict.fromkeys(plants, 0.0)  # when each is asked next
        self._pause = dict.fromkeys(self._due, ASK_AGAIN_S)
        self._away: dict[str, float] = {}  # since when Flower says that a node is gone

    @property
    def plants(self) -> tuple[str, ...]:
        """Those who are still waited for."""
        return tuple(self._due)

    def due(self, now: float) -> tuple[str, ...]:
        """Return whom to ask now."""
        return tuple(plant for plant, when in self._due.items() if when <= now)

    def asked(self, plant: str, now: float) -> None:
        """Note that a question is on its way."""
        self._due[plant] = now + self._pause[plant]
        self._pause[plant] *= 2

    def answered(self, plant: str) -> bool:
        """Note an answer; False where one came before."""
        return self._due.pop(plant, None) is not None

    def lost(self, plant: str, now: float) -> None:
        """Note that a question will not be answered; a node gone for long is given up."""
        if plant not in self._due:
            return
        if now - self._away.setdefault(plant, now) > GRACE_S:
            del self._due[plant]
        else:
            self._due[plant] = now + RETRY_S

    def ask_all_again(self) -> None:
        """Note that every question is lost, with Flower's process or its run."""
        self._due = dict.fromkeys(self._due, 0.0)
        self._pause = dict.fromkeys(self._pause, ASK_AGAIN_S)
