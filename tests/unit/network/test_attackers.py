"""Attackers by name: each is refused, and the federation goes on without them.

Those that need a real network (the control interface, a stolen certificate at the proxy) are in
tests/integration/test_network.py; a reused invitation and readable secrets in test_joining.py.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from sluice.attestation.log.chain import read_log
from sluice.attestation.messages.messages import COMMITS, PROOFS
from sluice.attestation.messages.signing import SigningKey, sign
from sluice.attestation.messages.tokens import TOKENS
from sluice.attestation.protocol.plant import Registered
from sluice.errors import CheckpointError, VerificationError
from sluice.network.coordinator.founding import coordinator_service
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.plant.agent import Agent
from sluice.network.plant.folder import PlantFolder
from sluice.network.wire.questions import (
    ANSWERS,
    QUESTIONS,
    Answer,
    Ask,
    AskToken,
    Batch,
    Pledge,
    Revelation,
)
from sluice.network.wire.wire import LARGEST_MESSAGE, Direct

from .conftest import Consortium


class Between:
    """Sits between the coordinator and a plant, and changes what the plant says."""

    def __init__(self, agent: Agent, change: Callable[[Answer, type[Ask]], bytes]) -> None:
        self.agent = agent
        self._change = change

    def answer(self, question: bytes) -> bytes:
        asked = type(QUESTIONS.read(question).content.ask)
        return self._change(ANSWERS.read(self.agent.answer(question)), asked)


def south(consortium: Consortium) -> Agent:
    agent = consortium.plants["south"]
    assert isinstance(agent, Agent)
    return agent


def with_answer(change: Callable[[object], object]) -> Callable[[Answer, type], bytes]:
    def changed(answer: Answer, _: type) -> bytes:
        return ANSWERS.write(replace(answer, answer=change(answer.answer)))  # type: ignore[arg-type]

    return changed


def excluded(consortium: Consortium, rounds: int = 1) -> str:
    """Run, and return the step at which south was left out of the last round."""
    consortium.run(rounds=rounds)
    ledger = read_log(consortium.site.log)
    assert ledger.rounds.members == ("north", "west")
    for line in reversed(consortium.site.log.read_text(encoding="utf-8").splitlines()):
        if '"kind":"excluded"' in line and '"client":"south"' in line:
            return line.split('"step":"')[1].split('"')[0]
    raise AssertionError("south was not left out")


def test_an_impostor_with_a_stolen_certificate_and_node_key_has_no_signing_key(
    consortium: Consortium,
) -> None:
    """It reaches the coordinator as south, and signs with a key of its own."""
    plant_folder = PlantFolder(consortium.folder / "south")
    keys, terms, thief = plant_folder.keys, plant_folder.invitation.terms, SigningKey.generate()
    plant = Registered(
        federation=terms.federation,
        client="south",
        key=thief,
        system=keys.system,
        circuit=keys.circuit,
    )
    rows = plant_folder.share.read()
    committed = plant.commit(rows)
    stolen = Batch(
        commit=COMMITS.write(committed.message),
        proof=PROOFS.write(committed.prove(rows).message),
    )
    consortium.plants["south"] = Between(south(consortium), with_answer(lambda _: stolen))
    assert excluded(consortium) == "2"


def test_a_token_signed_with_another_key_is_refused(consortium: Consortium) -> None:
    thief = SigningKey.generate()

    def change(answer: object) -> object:
        if not isinstance(answer, Pledge):
            return answer
        return Pledge(token=TOKENS.write(sign(TOKENS.read(answer.token).content, thief)))

    consortium.plants["south"] = Between(south(consortium), with_answer(change))
    assert excluded(consortium) == "6"


@pytest.mark.parametrize(("message", "step"), [(Pledge, "6"), (Revelation, "6.3")])
def test_a_replayed_message_is_refused(
    consortium: Consortium, message: type[Pledge | Revelation], step: str
) -> None:
    said: list[object] = []

    def change(answer: object) -> object:
        if isinstance(answer, message):
            said.append(answer)
            return said[0]
        return answer

    consortium.plants["south"] = Between(south(consortium), with_answer(change))
    consortium.run(rounds=1)
    assert excluded(consortium, rounds=2) == step


def test_a_proof_from_another_plant_is_refused(consortium: Consortium) -> None:
    north = consortium.plants["north"]
    assert isinstance(north, Agent)
    theirs = north.attested_documents()

    def change(answer: object) -> object:
        return replace(answer, proof=theirs.proof) if isinstance(answer, Batch) else answer

    consortium.plants["south"] = Between(south(consortium), with_answer(change))
    assert excluded(consortium) == "5.2"  # it is signed by north


def test_an_update_other_than_the_pledged_one_is_refused(consortium: Consortium) -> None:
    def change(answer: object) -> object:
        if not isinstance(answer, Revelation):
            return answer
        return replace(answer, update=answer.update[:-4] + b"\0\0\0\0")

    consortium.plants["south"] = Between(south(consortium), with_answer(change))
    assert excluded(consortium) == "6.3"


@pytest.mark.parametrize(
    "nonsense",
    [b"", b"{}", b"\x80\x04pickle", b"[" * 100_000, b"9" * (LARGEST_MESSAGE + 1)],
    ids=["nothing", "no answer", "a pickle", "nested deep", "oversized"],
)
def test_malformed_and_oversized_messages_are_counted_and_refused(
    consortium: Consortium, nonsense: bytes
) -> None:
    def change(answer: Answer, asked: type) -> bytes:
        return nonsense if asked is AskToken else ANSWERS.write(answer)

    consortium.plants["south"] = Between(south(consortium), change)
    assert excluded(consortium) == "6"
    store = CoordinatorStore(consortium.site.base)
    assert store.counts()["south", "malformed"] == 1
    store.close()


def test_a_tampered_log_entry_stops_the_federation(consortium: Consortium) -> None:
    consortium.run(rounds=1)
    raw = consortium.site.log.read_bytes()
    consortium.site.log.write_bytes(raw.replace(b'"client":"south"', b'"client":"sauth"', 1))
    with pytest.raises(VerificationError, match="step"):
        read_log(consortium.site.log)
    with pytest.raises(VerificationError, match="step"):
        consortium.run(rounds=2)


def test_another_model_in_the_store_is_refused(consortium: Consortium) -> None:
    """A checkpoint of the right round that the log does not know, as after a cut-short removal."""
    done = consortium.run(rounds=2)
    store = CoordinatorStore(consortium.site.base)
    earlier = store.last(federation="water", before=2)
    assert earlier is not None
    store.keep(
        replace(earlier, round=done.round), "0" * 64, federation="water", at=consortium.clock()
    )
    service = coordinator_service(
        consortium.site, store, Direct(consortium.plants), clock=consortium.clock
    )
    with pytest.raises(CheckpointError, match="not the one that the log names"):
        service.run(rounds=3, on_round=lambda _: None)
    store.close()
