"""Transports that replace the updates of malicious clients, unseen by the federation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sluice.aggregation import Fresh, RootUpdate, Rule, State, Update, Vector
from sluice.federation import Checkpoint, Reply, Request, RootTrainer, Train, Trained, Transport
from sluice.lab.attacks import Blend, CleanAndPoisoned, UpdateAttack
from sluice.seeding import stream

__all__ = ["BlendingTransport", "Eavesdropper", "MaliciousTransport"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MaliciousTransport:
    """Replaces the updates of malicious clients; the attack sees all honest updates first."""

    inner: Transport
    malicious: tuple[str, ...]
    attack: UpdateAttack
    seed: int

    def exchange(self, requests: Mapping[str, Request]) -> Mapping[str, Reply]:
        """Forward all requests and replies; falsify the updates of malicious clients."""
        replies = dict(self.inner.exchange(requests))
        trained = _trained(replies)
        others = [vector for client, vector in trained.items() if client not in self.malicious]
        for client in self.malicious:
            if client in trained:
                vector = self._falsified(trained[client], others, client, requests[client])
                replies[client] = Trained(vector=vector)
        return replies

    def _falsified(
        self, own: Vector, others: Sequence[Vector], client: str, request: Request
    ) -> Vector:
        assert isinstance(request, Train), "only a training request returns an update"
        seed = int(stream(self.seed, "update-attack", client, request.round).integers(2**31))
        return self.attack(own, others, seed=seed)


class Eavesdropper:
    """The complete state of the aggregation rule, as malicious clients know it."""

    def __init__(self) -> None:
        self.state: State = Fresh()

    def hear(self, checkpoint: Checkpoint) -> None:
        """Store the rule's state after a round."""
        self.state = checkpoint.state


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BlendingTransport:
    """Sends, for each malicious client, the mixture of its two updates that the rule accepts."""

    inner: Transport  # malicious clients train on poison
    clean: Transport  # malicious clients train on their clean rows
    malicious: tuple[str, ...]
    rows: Mapping[str, int]  # of each client's admitted batch; the log shows them to everyone
    rule: Rule
    root: RootTrainer
    heard: Eavesdropper
    blend: Blend = Blend()  # noqa: RUF009 - frozen, so sharing it is safe

    def exchange(self, requests: Mapping[str, Request]) -> Mapping[str, Reply]:
        """Forward all requests and replies; mix the two updates of each malicious client."""
        replies = dict(self.inner.exchange(requests))
        poisoned = _trained(replies)
        malicious = {c: requests[c] for c in self.malicious if c in poisoned}
        if not malicious or len(malicious) == len(poisoned):
            return replies
        clean = _trained(self.clean.exchange(malicious))
        faces = [
            CleanAndPoisoned(
                client=client,
                clean=clean[client],
                poisoned=poisoned[client],
                weight=self.rows[client],
            )
            for client in malicious
        ]
        others = [
            Update(client=client, vector=vector, weight=self.rows[client])
            for client, vector in poisoned.items()
            if client not in malicious
        ]
        state = self._state(next(iter(malicious.values())))
        for update in self.blend(faces, others, rule=self.rule, state=state).updates:
            replies[update.client] = Trained(vector=update.vector)
        return replies

    def _state(self, request: Request) -> State:
        assert isinstance(request, Train), "only a training request returns an update"
        if not self.rule.needs_root:
            return self.heard.state
        rooted = self.root(request.parameters, request.round)
        return RootUpdate(vector=rooted - request.parameters)


def _trained(replies: Mapping[str, Reply]) -> dict[str, Vector]:
    return {c: reply.vector for c, reply in sorted(replies.items()) if isinstance(reply, Trained)}
