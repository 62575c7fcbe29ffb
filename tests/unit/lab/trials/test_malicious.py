"""Transports of malicious clients: whose update is replaced, and what is left alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pytest

from sluice.aggregation import Fresh, RuleMemory, Vector
from sluice.aggregation.registry import RULES
from sluice.arrays import Floats
from sluice.detector.autoencoder import Parameters
from sluice.federation.messages import Reply, Request, Show, Train, Trained
from sluice.federation.rounds import Checkpoint
from sluice.lab.trials.malicious import BlendingTransport, Eavesdropper, MaliciousTransport

SIZE = 4
ZEROS = np.zeros(SIZE, np.float32)


@dataclass
class Sending:
    """Every client that is asked to train sends its own vector."""

    vectors: Mapping[str, float]
    silent: frozenset[str] = frozenset()
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def exchange(self, requests: Mapping[str, Request]) -> Mapping[str, Reply]:
        self.asked.append(tuple(requests))
        return {
            client: Trained(vector=np.full(SIZE, self.vectors[client]))
            for client, request in requests.items()
            if isinstance(request, Train) and client not in self.silent
        }


@dataclass
class Noting:
    """An attack that notes what it sees and sends its seed."""

    seen: list[tuple[float, tuple[float, ...], int]] = field(default_factory=list)

    def __call__(self, own: Vector, honest: Sequence[Vector], *, seed: int) -> Floats:
        self.seen.append((float(own[0]), tuple(float(one[0]) for one in honest), seed))
        return np.full(SIZE, float(seed))


def training(clients: str, *, round_: int = 1) -> dict[str, Request]:
    return dict.fromkeys(clients, Train(round=round_, parameters=ZEROS))


def sent(replies: Mapping[str, Reply]) -> dict[str, float]:
    return {
        client: float(reply.vector[0])
        for client, reply in replies.items()
        if isinstance(reply, Trained)
    }


def root(parameters: Parameters, round_: int) -> Parameters:
    return parameters + np.float32(1.0)


def blending(
    inner: Sending, clean: Sending, *, rule: str = "fedavg", heard: Eavesdropper | None = None
) -> BlendingTransport:
    return BlendingTransport(
        inner=inner,
        clean=clean,
        malicious=("b",),
        rows=dict.fromkeys("abc", 3),
        rule=RULES[rule],
        root=root,
        heard=heard or Eavesdropper(),
    )


def test_an_attack_sees_its_own_update_and_all_honest_ones_but_no_accomplices() -> None:
    attack = Noting()
    inner = Sending({"a": 1.0, "b": 2.0, "c": 3.0, "d": 4.0})
    transport = MaliciousTransport(inner=inner, malicious=("b", "d"), attack=attack, seed=0)
    replies = transport.exchange(training("dcba"))
    assert [(own, others) for own, others, _ in attack.seen] == [
        (2.0, (1.0, 3.0)),
        (4.0, (1.0, 3.0)),
    ]
    assert {c: v for c, v in sent(replies).items() if c in "ac"} == {"a": 1.0, "c": 3.0}
    assert sent(replies)["b"] == attack.seen[0][2]


def test_every_client_and_round_has_a_seed_of_its_own_and_keeps_it() -> None:
    def seeds(*, seed: int = 0) -> list[int]:
        attack = Noting()
        inner = Sending(dict.fromkeys("abc", 1.0))
        transport = MaliciousTransport(inner=inner, malicious=("b", "c"), attack=attack, seed=seed)
        for round_ in (1, 2):
            transport.exchange(training("abc", round_=round_))
        return [one for *_, one in attack.seen]

    assert len(set(seeds())) == 4
    assert seeds() == seeds()
    assert not set(seeds()) & set(seeds(seed=1))


def test_a_malicious_client_that_is_silent_or_not_asked_is_not_attacked_with() -> None:
    attack = Noting()
    inner = Sending(dict.fromkeys("abc", 1.0), silent=frozenset("b"))
    transport = MaliciousTransport(inner=inner, malicious=("b", "c"), attack=attack, seed=0)
    assert set(transport.exchange(training("ab"))) == {"a"}
    assert attack.seen == []


def test_replies_that_are_no_updates_pass_unchanged() -> None:
    attack = Noting()
    inner = Sending(dict.fromkeys("ab", 1.0))
    transport = MaliciousTransport(inner=inner, malicious=("b",), attack=attack, seed=0)
    assert transport.exchange(dict.fromkeys("ab", Show(round=0))) == {}
    assert attack.seen == []
    assert inner.asked == [("a", "b")]


def test_an_eavesdropper_knows_the_state_after_the_last_round() -> None:
    heard = Eavesdropper()
    assert Eavesdropper().state == Fresh()
    memory = RuleMemory(sums={"a": np.ones(SIZE)})
    heard.hear(
        Checkpoint(round=1, parameters=ZEROS, state=memory, decisions={}, influence={}, passed={})
    )
    assert heard.state is memory


def test_a_blend_lies_between_the_clean_and_the_poisoned_update() -> None:
    inner = Sending({"a": 1.0, "b": 5.0, "c": 1.2})
    clean = Sending({"b": 1.1})
    replies = sent(blending(inner, clean).exchange(training("abc")))
    assert 1.1 <= replies["b"] <= 5.0
    assert (replies["a"], replies["c"]) == (1.0, 1.2)
    assert clean.asked == [("b",)]


def test_fedavg_weighs_by_windows_so_the_blend_is_all_poison() -> None:
    inner, clean = Sending({"a": 1.0, "b": 5.0, "c": 1.2}), Sending({"b": 1.1})
    assert sent(blending(inner, clean).exchange(training("abc")))["b"] == pytest.approx(5.0)


@pytest.mark.parametrize("clients", ["ac", "b"], ids=["none of them", "only this one"])
def test_there_is_no_blend_without_malicious_clients_or_without_others(clients: str) -> None:
    inner, clean = Sending({"a": 1.0, "b": 5.0, "c": 1.2}), Sending({"b": 1.1})
    replies = sent(blending(inner, clean).exchange(training(clients)))
    assert replies == {client: inner.vectors[client] for client in clients}
    assert clean.asked == []


def test_a_rule_with_a_root_is_blended_against_the_servers_update() -> None:
    inner, clean = Sending({"a": 1.0, "b": -5.0, "c": 1.2}), Sending({"b": 1.1})
    transport = blending(inner, clean, rule="fltrust")
    state = transport._state(Train(round=1, parameters=np.full(SIZE, 2.0, np.float32)))
    np.testing.assert_array_equal(getattr(state, "vector", None), np.ones(SIZE))
    assert sent(transport.exchange(training("abc")))["b"] > -5.0
