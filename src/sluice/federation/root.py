"""The server's own training on its clean root slice."""

from typing import TYPE_CHECKING

from sluice.detector import Descent, Parameters
from sluice.seeding import stream
from sluice.telemetry import Windows

if TYPE_CHECKING:
    from sluice.federation.trainer import Fleet

__all__ = ["RootSlice"]

SERVER = "server"


class RootSlice:
    """Trains as a client does, on the server's own clean rows.

    The paper calls the root small; its code gives it as many rows as a client has.
    """

    def __init__(self, windows: Windows, *, descent: Descent, seed: int) -> None:
        self._windows = windows
        self._descent = descent
        self._seed = seed
        self._fleet: Fleet | None = None

    def __call__(self, parameters: Parameters, round_: int) -> Parameters:
        """Return the weights after local training."""
        from sluice.federation.trainer import Fleet  # noqa: PLC0415 - jax takes a second

        if self._fleet is None:
            self._fleet = Fleet.of({SERVER: self._windows}, descent=self._descent)
        shuffles = {SERVER: stream(self._seed, "shuffle", SERVER, round_)}
        return self._fleet.train(parameters, shuffles=shuffles)[SERVER]
