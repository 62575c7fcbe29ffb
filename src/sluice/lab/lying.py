"""Liars in the update space, put between a federation and its transport: neither can tell."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from sluice.attacks import UpdateAttack
from sluice.federation import Reply, Request, Trained, Transport
from sluice.seeding import stream

__all__ = ["LyingTransport"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LyingTransport:
    """Replaces the liars' updates; they see everybody else's first."""

    inner: Transport
    liars: tuple[str, ...]
    attack: UpdateAttack
    seed: int

    def exchange(self, requests: Mapping[str, Request]) -> Mapping[str, Reply]:
        """Pass everything on, and falsify what the liars trained."""
        replies = dict(self.inner.exchange(requests))
        trained = {c: reply for c, reply in sorted(replies.items()) if isinstance(reply, Trained)}
        others = [reply.update.vector for c, reply in trained.items() if c not in self.liars]
        for liar in self.liars:
            if liar in trained:
                replies[liar] = self._falsified(liar, trained[liar], others, requests)
        return replies

    def _falsified(
        self,
        liar: str,
        trained: Trained,
        others: list[np.ndarray],
        requests: Mapping[str, Request],
    ) -> Trained:
        number = getattr(requests[liar], "round", 0)
        seed = int(stream(self.seed, "update-attack", liar, number).integers(2**31))
        vector = self.attack(trained.update.vector, others, seed=seed)
        return Trained(update=replace(trained.update, vector=vector))
