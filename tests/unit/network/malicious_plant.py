"""Malicious plants on the same wire as honest ones: `malicious_plant.py FOLDER ATTACK [OTHER]`.

FOLDER was created by `sluice plant join`. The malicious plant has the plant's certificate, node key
and signing key, and sends wrong answers under its own name. OTHER is the folder of the plant it
copies.

    silent    takes every question and answers none                        left out at step 4
    forged    its own commitment, a proof with one byte changed            5.7 or 5.8
    copied    its own commitment, another plant's proof signed as its own  5.8
    stale     a second commitment to rows that it has committed to         2
    overflow  pledges and reveals the largest numbers of float32           6.4
    swapped   reveals another update than it has pledged                   6.3
"""

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from sluice.attestation.messages.messages import COMMITS, PROOFS
from sluice.attestation.messages.signing import sign
from sluice.attestation.messages.tokens import TOKENS, update_digest
from sluice.attestation.protocol.plant import Registered
from sluice.network.plant.agent import Agent
from sluice.network.plant.folder import PlantFolder
from sluice.network.wire.questions import (
    ANSWERS,
    QUESTIONS,
    AskBatch,
    AskToken,
    Batch,
    Pledge,
    Revelation,
)
from sluice.network.wire.wire import Answerer

LARGEST_PROOF_DOCUMENT = 1 << 26
WAIT_S = 300.0


class Malicious:
    """Answers as the plant does, except for its batch."""

    def __init__(self, plant: PlantFolder, attack: Callable[[Batch], Batch]) -> None:
        self.agent: Agent = plant.agent(reveal_rows=True)
        self._attack = attack

    def answer(self, question: bytes) -> bytes:
        if not isinstance(QUESTIONS.read(question).content.ask, AskBatch):
            return self.agent.answer(question)
        batch = self._attack(self.agent.attested_documents())
        return answering(self.agent.answer(question), batch)


class Falsified:
    """Pledges and reveals other bytes than its training gave; batch and token are in order."""

    def __init__(self, plant: PlantFolder, falsify: Callable[[bytes], bytes]) -> None:
        self.agent: Agent = plant.agent(reveal_rows=True)
        self._plant = plant
        self._falsify = falsify

    def answer(self, question: bytes) -> bytes:
        ask = QUESTIONS.read(question).content.ask
        answer = self.agent.answer(question)
        if not isinstance(ask, AskToken):
            return answer
        stem = self._plant.folder / "rounds" / f"{ask.round:06d}"
        update, token = stem.with_suffix(".update"), stem.with_suffix(".token")
        raw = self._falsify(update.read_bytes())
        honest = TOKENS.read(token.read_bytes()).content
        hashed = update_digest(honest.federation, honest.client, ask.round, raw)
        pledged = sign(replace(honest, update=hashed), self._plant.keys.ensure_client_key())
        update.write_bytes(raw)  # the agent reveals what these files hold
        token.write_bytes(TOKENS.write(pledged))
        return answering(answer, Pledge(token=TOKENS.write(pledged)))


class Swapped:
    """Pledges what it trained, and reveals other bytes."""

    def __init__(self, plant: PlantFolder) -> None:
        self.agent: Agent = plant.agent(reveal_rows=True)

    def answer(self, question: bytes) -> bytes:
        answer = ANSWERS.read(self.agent.answer(question))
        if isinstance(answer.answer, Revelation):
            update = bytes(len(answer.answer.update))
            answer = replace(answer, answer=replace(answer.answer, update=update))
        return ANSWERS.write(answer)


def largest(raw: bytes) -> bytes:
    """Replace every weight of an update by the largest number of float32."""
    return np.full(len(raw) // 4, np.finfo(np.float32).max, "<f4").tobytes()


def answering(honest: bytes, payload: Batch | Pledge) -> bytes:
    """Replace the content of an honest answer."""
    return ANSWERS.write(replace(ANSWERS.read(honest), answer=payload))


class Silent:
    """Takes questions and loses them: the coordinator gets no answer."""

    def answer(self, question: bytes) -> bytes:  # noqa: ARG002
        raise ConnectionError


def with_proof(plant: PlantFolder, batch: Batch, change: Callable[[bytes], bytes]) -> Batch:
    """Replace the plant's proof with another one, signed by the plant."""
    content = PROOFS.read(batch.proof, largest=LARGEST_PROOF_DOCUMENT).content
    other = sign(replace(content, proof=change(content.proof)), plant.keys.ensure_client_key())
    return replace(batch, proof=PROOFS.write(other))


def flipped(proof: bytes) -> bytes:
    middle = len(proof) // 2
    return proof[:middle] + bytes([proof[middle] ^ 1]) + proof[middle + 1 :]


def forged(plant: PlantFolder) -> Malicious:
    return Malicious(plant, lambda batch: with_proof(plant, batch, flipped))


def copied(plant: PlantFolder, other: Path) -> Malicious:
    def theirs(_: bytes) -> bytes:
        until = time.monotonic() + WAIT_S
        while not (proofs := list((other / "batches").glob("*/proof.json"))):
            if time.monotonic() > until:
                raise TimeoutError(f"{other} has proven nothing to copy")
            time.sleep(0.5)
        return PROOFS.read(proofs[0].read_bytes(), largest=LARGEST_PROOF_DOCUMENT).content.proof

    return Malicious(plant, lambda batch: with_proof(plant, batch, theirs))


def stale(plant: PlantFolder) -> Malicious:
    terms, keys = plant.invitation.terms, plant.keys
    sent: list[Batch] = []
    registered = Registered(
        federation=terms.federation,
        client=plant.invitation.plant,
        key=keys.ensure_client_key(),
        system=keys.system,
        circuit=keys.circuit,
    )

    def again(batch: Batch) -> Batch:
        sent.append(batch)
        if len(sent) == 1:
            return with_proof(plant, batch, flipped)
        rows = plant.share.read()
        committed = registered.commit(rows)
        proof = PROOFS.write(committed.prove(rows).message)
        return Batch(commit=COMMITS.write(committed.message), proof=proof)

    return Malicious(plant, again)


def main(folder: Path, attack: str, other: Path | None) -> None:
    from sluice.network.plant.participation import node_of, take_part  # noqa: PLC0415 - Flower

    plant = PlantFolder(folder)
    attacks: dict[str, Callable[[PlantFolder], Answerer]] = {
        "silent": lambda _: Silent(),
        "forged": forged,
        "copied": lambda plant: copied(plant, other or folder),
        "stale": stale,
        "overflow": lambda plant: Falsified(plant, largest),
        "swapped": Swapped,
    }
    take_part(node_of(plant), attacks[attack](plant))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]) if sys.argv[3:] else None)
