"""All clients of a federation train in one process: rows laid out once, rounds run compiled.

Each client's local epochs are one compiled call, the one that `sluice.detector.training.train`
makes. Therefore a client learns the same numbers here, alone, or with other clients. Several
clients train at once, a thread each, because products of this size gain little from a second core.
"""

import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from sluice.arrays import Ints
from sluice.detector import Descent, Parameters, batches, padded, walk
from sluice.errors import SettingError
from sluice.telemetry import Windows

__all__ = ["Fleet"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Shard:
    """One client's windows, as the compiled round reads them."""

    rows: Any  # jax, padded
    starts: Ints
    length: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fleet:
    """The clients' windows, laid out once and trained on every round.

        fleet = Fleet.of({"north": north, "south": south}, descent=Descent())
        shuffles = {client: stream(seed, "shuffle", client, 1) for client in ("north", "south")}
        updates = fleet.train(parameters, shuffles=shuffles)

    What a client learns depends only on its own windows, its generator and the parameters. It is
    the same bit by bit whichever other clients take part, and in a repeated run on the same cores.
    """

    shards: Mapping[str, _Shard]
    descent: Descent

    @classmethod
    def of(cls, windows: Mapping[str, Windows], *, descent: Descent) -> "Fleet":
        """Lay out each client's windows; clients may have different numbers of them."""
        return cls(
            shards={
                client: _Shard(
                    rows=jnp.asarray(padded(own.rows)), starts=own.starts, length=own.length
                )
                for client, own in windows.items()
            },
            descent=descent,
        )

    def train(
        self,
        parameters: Parameters,
        *,
        shuffles: Mapping[str, np.random.Generator],
        clients: Sequence[str] | None = None,
    ) -> dict[str, Parameters]:
        """Return the parameters of each client after its local epochs of one round.

        Adam starts with a new state. `shuffles` orders each client's windows: give every client and
        round a generator of its own. Without `clients`, all train.
        """
        chosen = tuple(self.shards if clients is None else clients)
        self._demand_known(chosen, shuffles)
        shared = jnp.asarray(parameters, jnp.float32)

        def trained(client: str) -> Parameters:
            return self._trained(client, shared, shuffles[client])

        with ThreadPoolExecutor(max_workers=_workers()) as pool:
            return dict(zip(chosen, pool.map(trained, chosen), strict=True))

    def _trained(self, client: str, parameters: Any, shuffle: np.random.Generator) -> Parameters:
        shard = self.shards[client]
        try:
            return walk(
                parameters,
                shard.rows,
                batches(shard.starts, self.descent, shuffle=shuffle),
                learning_rate=self.descent.learning_rate,
                length=shard.length,
            )
        except SettingError as error:
            raise SettingError(f"client {client!r}: {error}") from error

    def _demand_known(
        self, clients: Sequence[str], shuffles: Mapping[str, np.random.Generator]
    ) -> None:
        for client in clients:
            if client not in self.shards:
                known = ", ".join(sorted(self.shards))
                raise SettingError(f"no client {client!r} in this fleet; known are {known}")
            if client not in shuffles:
                raise SettingError(f"client {client!r} has no generator in `shuffles`; give one")


def _workers() -> int:
    """Return one thread more than the usable cores: it works while another one waits."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on every system
    return 1 + (len(affinity(0)) if affinity else os.cpu_count() or 1)
