"""The interface between a server and its clients: one method, two backends."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from sluice.detector import Descent
from sluice.federation.messages import Attestation, Reply, Request, Show, Shown, Train, Trained
from sluice.seeding import stream
from sluice.telemetry import Record, Windows

if TYPE_CHECKING:
    from sluice.federation.trainer import Fleet

__all__ = ["InProcess", "Transport"]


class Transport(Protocol):
    """Sends requests to clients and returns the replies that arrive in time."""

    def exchange(self, requests: Mapping[str, Request]) -> Mapping[str, Reply]:
        """Send each client its request; a client that does not reply is absent from the result."""
        ...


class InProcess:
    """All clients in this process: they show their batches and train in one compiled call.

    Each client's shuffles come from the stream `("shuffle", client, round)` of the seed, so its
    training in a round does not depend on other clients. The rows it trains on (`windows`) and the
    rows it shows (`batches`) are separate: nothing proves that they are the same. With `attest`,
    clients reply with a proof instead of the batch; a client that cannot prove does not reply.
    """

    def __init__(
        self,
        *,
        batches: Mapping[str, Record],
        windows: Mapping[str, Windows],
        descent: Descent,
        seed: int,
        attest: Callable[[str, Record], Attestation | None] | None = None,
    ) -> None:
        self._batches = batches
        self._windows = windows
        self._descent = descent
        self._seed = seed
        self._attest = attest
        self._fleet: Fleet | None = None  # laid out when the first round opens

    def exchange(self, requests: Mapping[str, Request]) -> Mapping[str, Reply]:
        """Return the replies of all clients."""
        replies: dict[str, Reply] = {}
        opened: dict[str, Train] = {}
        for client, request in requests.items():
            match request:
                case Show():
                    shown = self._shown(client)
                    if shown is not None:
                        replies[client] = shown
                case Train():
                    opened[client] = request
        return replies | self._train(opened)

    def _shown(self, client: str) -> Reply | None:
        batch = self._batches[client]
        return self._attest(client, batch) if self._attest else Shown(batch=batch)

    def _train(self, opened: Mapping[str, Train]) -> dict[str, Reply]:
        if not opened:
            return {}
        # Imported here because jax takes a second, which a gate alone should not wait for.
        from sluice.federation.trainer import Fleet  # noqa: PLC0415

        if self._fleet is None:
            self._fleet = Fleet.of(
                {client: self._windows[client] for client in opened}, descent=self._descent
            )
        before = next(iter(opened.values())).parameters
        shuffles = {
            client: stream(self._seed, "shuffle", client, request.round)
            for client, request in opened.items()
        }
        trained = self._fleet.train(before, shuffles=shuffles, clients=tuple(opened))
        return {client: Trained(vector=after - before) for client, after in trained.items()}
