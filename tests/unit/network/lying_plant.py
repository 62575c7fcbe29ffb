"""Plants that lie, at the same wire as real ones: `python lying_plant.py FOLDER LIE [OTHER]`.

FOLDER is what `sluice plant join` made. The liar has the plant's certificate, node key and signing
key: it speaks for itself, and what it says is wrong. OTHER is the folder of the plant it copies.

    silent   takes every question and answers none                        left out at step 4
    forged   its own commitment, a proof with one byte changed            5.7 or 5.8
    copied   its own commitment, another plant's proof signed as its own  5.8
    stale    commits anew to rows it had committed to before              2
"""

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from sluice.attestation.messages.messages import COMMITS, PROOFS
from sluice.attestation.messages.signing import sign
from sluice.attestation.protocol.plant import Registered
from sluice.network.plant.agent import Agent
from sluice.network.plant.batch_archive import LARGEST_PROOF_FILE
from sluice.network.plant.folder import PlantFolder
from sluice.network.wire.questions import ANSWERS, QUESTIONS, Answer, AskBatch, Batch
from sluice.network.wire.wire import Answerer

WAIT_S = 300.0


class Liar:
    """Answers as the plant does, but for what it says of its batch."""

    def __init__(self, held: PlantFolder, lie: Callable[[Batch], Batch]) -> None:
        self.agent: Agent = held.agent()
        self._lie = lie

    def answer(self, question: bytes) -> bytes:
        if not isinstance(QUESTIONS.read(question).content.ask, AskBatch):
            return self.agent.answer(question)
        return ANSWERS.write(Answer(answer=self._lie(self.agent.attested_documents())))


class Silent:
    """Takes questions and loses them: the coordinator hears nothing."""

    def answer(self, question: bytes) -> bytes:  # noqa: ARG002
        raise ConnectionError


def with_proof(held: PlantFolder, batch: Batch, change: Callable[[bytes], bytes]) -> Batch:
    """Put another proof in the place of the plant's own, and sign it as the plant."""
    told = PROOFS.read(batch.proof, largest=LARGEST_PROOF_FILE).content
    other = sign(replace(told, proof=change(told.proof)), held.keys.ensure_client_key())
    return replace(batch, proof=PROOFS.write(other))


def flipped(proof: bytes) -> bytes:
    middle = len(proof) // 2
    return proof[:middle] + bytes([proof[middle] ^ 1]) + proof[middle + 1 :]


def forged(held: PlantFolder) -> Liar:
    return Liar(held, lambda batch: with_proof(held, batch, flipped))


def copied(held: PlantFolder, other: Path) -> Liar:
    def theirs(_: bytes) -> bytes:
        until = time.monotonic() + WAIT_S
        while not (found := list((other / "batches").glob("*/proof.json"))):
            if time.monotonic() > until:
                raise TimeoutError(f"{other} has proven nothing to copy")
            time.sleep(0.5)
        return PROOFS.read(found[0].read_bytes(), largest=LARGEST_PROOF_FILE).content.proof

    return Liar(held, lambda batch: with_proof(held, batch, theirs))


def stale(held: PlantFolder) -> Liar:
    terms, keys = held.invitation.terms, held.keys
    told: list[Batch] = []
    plant = Registered(
        federation=terms.federation,
        client=held.invitation.plant,
        key=keys.ensure_client_key(),
        system=keys.system,
        circuit=keys.circuit,
    )

    def again(batch: Batch) -> Batch:
        told.append(batch)
        if len(told) == 1:
            return with_proof(held, batch, flipped)
        rows = held.share.read()
        committed = plant.commit(rows)
        proof = PROOFS.write(committed.prove(rows).message)
        return Batch(commit=COMMITS.write(committed.message), proof=proof)

    return Liar(held, again)


def main(folder: Path, lie: str, other: Path | None) -> None:
    from sluice.network.plant.participation import node_of, take_part  # noqa: PLC0415 - Flower

    held = PlantFolder(folder)
    plants: dict[str, Callable[[PlantFolder], Answerer]] = {
        "silent": lambda _: Silent(),
        "forged": forged,
        "copied": lambda held: copied(held, other or folder),
        "stale": stale,
    }
    take_part(node_of(held), plants[lie](held))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]) if sys.argv[3:] else None)
