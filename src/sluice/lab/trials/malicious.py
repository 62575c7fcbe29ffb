"""Liars in the update space, put between a federation and its transport: neither can tell."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from sluice.aggregation import Fresh, RootUpdate, Rule, State, Update, Vector
from sluice.federation import Checkpoint, Reply, Request, RootTrainer, Train, Trained, Transport
from sluice.lab.attacks import Blend, TwoFaces, UpdateAttack
from sluice.seeding import stream

__all__ = ["BlendingTransport", "Eavesdropper", "MaliciousTransport"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MaliciousTransport:
    """Replaces the liars' updates; they see everybody else's first."""

    inner: Transport
    liars: tuple[str, ...]
    attack: UpdateAttack
    seed: int

    def exchange(self, requests: Mapping[str, Request]) -> Mapping[str, Reply]:
        """Pass everything on, and falsify what the liars trained."""
        replies = dict(self.inner.exchange(requests))
        trained = _trained(replies)
        others = [update.vector for client, update in trained.items() if client not in self.liars]
        for liar in self.liars:
            if liar in trained:
                vector = self._falsified(trained[liar].vector, others, liar, requests[liar])
                replies[liar] = Trained(update=replace(trained[liar], vector=vector))
        return replies

    def _falsified(
        self, own: Vector, others: Sequence[Vector], liar: str, request: Request
    ) -> Vector:
        assert isinstance(request, Train), "only a round brings updates"
        seed = int(stream(self.seed, "update-attack", liar, request.round).integers(2**31))
        return self.attack(own, others, seed=seed)


class Eavesdropper:
    """What liars know of the rule's memory: all of it."""

    def __init__(self) -> None:
        self.state: State = Fresh()

    def hear(self, checkpoint: Checkpoint) -> None:
        """Take note of a round that is over."""
        self.state = checkpoint.state


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlendingTransport:
    """Sends for each liar the mixture of its two updates that the rule takes for ordinary."""

    inner: Transport  # in which the liars train on poison
    clean: Transport  # in which they train as agreed
    liars: tuple[str, ...]
    rule: Rule
    root: RootTrainer
    heard: Eavesdropper
    blend: Blend = Blend()  # noqa: RUF009 - frozen, so sharing it is safe

    def exchange(self, requests: Mapping[str, Request]) -> Mapping[str, Reply]:
        """Pass everything on, and mix what the liars trained."""
        replies = dict(self.inner.exchange(requests))
        poisoned = _trained(replies)
        lying = {liar: requests[liar] for liar in self.liars if liar in poisoned}
        if not lying or len(lying) == len(poisoned):
            return replies
        clean = _trained(self.clean.exchange(lying))
        faces = [
            TwoFaces(
                client=liar,
                clean=clean[liar].vector,
                poisoned=poisoned[liar].vector,
                weight=poisoned[liar].weight,
            )
            for liar in lying
        ]
        others = [update for client, update in poisoned.items() if client not in lying]
        state = self._state(next(iter(lying.values())))
        for update in self.blend(faces, others, rule=self.rule, state=state).updates:
            replies[update.client] = Trained(update=update)
        return replies

    def _state(self, request: Request) -> State:
        assert isinstance(request, Train), "only a round brings updates"
        if not self.rule.needs_root:
            return self.heard.state
        rooted = self.root(request.parameters, request.round)
        return RootUpdate(vector=rooted - request.parameters)


def _trained(replies: Mapping[str, Reply]) -> dict[str, Update]:
    return {c: reply.update for c, reply in sorted(replies.items()) if isinstance(reply, Trained)}
