"""Malicious plants without Flower's node: `fleet_attacker.py FOLDER ATTACK OTHER`.

FOLDER was created by `sluice plant join`. The plant attests its batch and follows the log as an
honest one does. When it is asked for a token, it attacks. OTHER is the folder of an honest plant.

    withheld      the head of a reply whose objects never come
    large         the head of a reply of 64 MiB
    flood         the heads of 50 different replies to one question
    garbage       a reply that is not an answer of Sluice
    impersonator  an answer in the name of another plant's node, and calls with its number
"""

import signal
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import httpx

from sluice.network.plant.folder import PlantFolder
from sluice.network.wire.questions import QUESTIONS, AskToken
from tests.integration.fleet_client import FleetClient, Received

POLL_S, AGAIN_S, BEAT_S = 3.0, 1.0, 8.0
LARGE = 64 * 2**20
FLOOD = 50


def withheld(client: FleetClient, question: Received, answer: bytes, other: int) -> None:
    client.announce(question, client.answer(answer))


def large(client: FleetClient, question: Received, answer: bytes, other: int) -> None:
    client.announce(question, client.large(LARGE))


def flood(client: FleetClient, question: Received, answer: bytes, other: int) -> None:
    client.flood(question, FLOOD)


def garbage(client: FleetClient, question: Received, answer: bytes, other: int) -> None:
    client.reply(question, b"\x80\x04pickle" + answer[:100])


def impersonator(client: FleetClient, question: Received, answer: bytes, other: int) -> None:
    client.reply(question, answer, source=other)
    client.claims = other
    client.reply(question, answer, source=other)
    client.pull()
    client.claims = client.node


ATTACKS: dict[str, Callable[[FleetClient, Received, bytes, int], None]] = {
    "withheld": withheld,
    "large": large,
    "flood": flood,
    "garbage": garbage,
    "impersonator": impersonator,
}


def sign_in(client: FleetClient, memory: Path) -> bool:
    """Sign in; a node that Flower still takes for online goes on under its last number."""
    if memory.exists():
        client.node = client.claims = int(memory.read_text(encoding="ascii"))
        if client.heartbeat().accepted:
            return True
    client.node = client.claims = 0
    if not client.activate().accepted:
        return False
    memory.write_text(f"{client.node}\n", encoding="ascii")
    return True


def attack(plant: PlantFolder, kind: str, other: Path) -> None:
    """Take part and attack, until a call fails."""
    terms, agent = plant.invitation.terms, plant.agent()
    with FleetClient(
        f"{terms.host}:{terms.port}",
        authority=plant.authority,
        key=plant.node_key,
        certificate=plant.certificate,
        certificate_key=plant.certificate_key,
    ) as client:
        if not sign_in(client, plant.folder / "node.number"):
            return
        beaten = time.monotonic()
        while True:
            if time.monotonic() - beaten > BEAT_S:
                beaten = time.monotonic()
                if not client.heartbeat().accepted:
                    return
            with suppress(TimeoutError):
                question = client.await_question(POLL_S)
                answer = agent.answer(question.content)
                ask = QUESTIONS.read(question.content).content.ask
                if isinstance(ask, AskToken):
                    named = int((other / "node.number").read_text(encoding="ascii"))
                    ATTACKS[kind](client, question, answer, named)
                    sys.stderr.write(f"attacked in round {ask.round}\n")
                else:
                    client.reply(question, answer)


def stop(*_: object) -> NoReturn:
    sys.exit(0)


def main(folder: Path, kind: str, other: Path) -> None:
    signal.signal(signal.SIGTERM, stop)
    plant = PlantFolder(folder)
    while True:
        with suppress(httpx.HTTPError):
            attack(plant, kind, other)
        time.sleep(AGAIN_S)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3]))
