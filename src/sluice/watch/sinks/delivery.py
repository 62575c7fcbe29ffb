"""Delivery of events: one thread per sink, so that a slow or dead one stops nothing else."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

from sluice.watch.sinks.sink import Sink
from sluice.watch.store import Store

__all__ = ["Delivery", "SinkHealth"]

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkHealth:
    """How a sink does."""

    name: str
    waiting: int
    delivered: int
    failures: int
    last_error: str


class Delivery:
    """Delivers what the store keeps for each sink, in order, until it is confirmed."""

    def __init__(self, store: Store, sinks: Sequence[Sink]) -> None:
        self._store = store
        self._workers = tuple(_Worker(store, sink) for sink in sinks)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the sinks."""
        return tuple(worker.sink.name for worker in self._workers)

    def start(self) -> None:
        """Start the threads; they begin with what an earlier process left."""
        for worker in self._workers:
            worker.start()

    def wake(self) -> None:
        """Tell the threads that there may be something new."""
        for worker in self._workers:
            worker.wake()

    def beat(self, text: str) -> None:
        """Give every sink that takes heartbeats the newest one."""
        for worker in self._workers:
            if worker.sink.beats:
                worker.heartbeat = text
                worker.wake()

    def health(self) -> tuple[SinkHealth, ...]:
        """Return how each sink does."""
        return tuple(worker.health() for worker in self._workers)

    def stop(self, *, within_s: float) -> int:
        """Wait for the sinks, but not for long; return how many events they still need."""
        deadline = time.monotonic() + within_s
        while time.monotonic() < deadline and any(self._store.waits(name) for name in self.names):
            time.sleep(0.02)
        for worker in self._workers:
            worker.stop()
        for worker in self._workers:
            worker.join(max(0.0, deadline - time.monotonic()) + 0.2)
        return sum(self._store.waits(name) for name in self.names)


class _Worker(threading.Thread):
    def __init__(self, store: Store, sink: Sink) -> None:
        super().__init__(name=f"sink {sink.name}", daemon=True)
        self.sink = sink
        self.heartbeat = ""
        self._store = store
        self._wake = threading.Event()
        self._ending = threading.Event()
        self._delivered = self._failures = 0
        self._error = ""

    def wake(self) -> None:
        self._wake.set()

    def stop(self) -> None:
        self._ending.set()
        self._wake.set()

    def health(self) -> SinkHealth:
        return SinkHealth(
            name=self.sink.name,
            waiting=self._store.waits(self.sink.name),
            delivered=self._delivered,
            failures=self._failures,
            last_error=self._error,
        )

    def run(self) -> None:
        pause = FIRST_PAUSE_S
        while not self._ending.is_set():
            try:
                self._deliver()
            except Exception as error:  # noqa: BLE001 - a sink that fails must not end its thread
                if self._ending.is_set():
                    break
                self._failures += 1
                self._error = str(error)
                self._ending.wait(pause)
                pause = min(2 * pause, LONGEST_PAUSE_S)
                continue
            pause = FIRST_PAUSE_S
            self._wake.wait(1.0)
            self._wake.clear()
        self.sink.close()

    def _deliver(self) -> None:
        while events := self._store.waiting(self.sink.name):
            for event in events:
                if self._ending.is_set():
                    return
                self.sink.deliver(event)
                self._store.delivered(self.sink.name, event.number)
                self._delivered += 1
                self._error = ""
        text, self.heartbeat = self.heartbeat, ""
        if text:
            self.sink.beat(text)
