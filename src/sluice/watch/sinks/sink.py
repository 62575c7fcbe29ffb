"""The interface of a sink, and the failure that is tried again."""

from typing import Protocol

from sluice.watch.store import Outgoing

__all__ = ["Sink", "SinkError"]


class SinkError(Exception):
    """An event could not be delivered now; it stays and is tried again."""


class Sink(Protocol):
    """Delivers events to one place; called by one thread."""

    @property
    def name(self) -> str:
        """Its name in the state and in messages: never with a password."""
        ...

    @property
    def beats(self) -> bool:
        """Whether it also takes heartbeats."""
        ...

    def deliver(self, event: Outgoing) -> None:
        """Deliver one event, or raise `SinkError`."""
        ...

    def beat(self, text: str) -> None:
        """Deliver a heartbeat, or raise `SinkError`; it is not tried again."""
        ...

    def close(self) -> None:
        """Release what it holds."""
        ...
