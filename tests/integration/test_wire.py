"""A coordinator's wire over a real SuperLink: honest nodes beside plants that attack the wire."""

import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)
from flwr.proto.error_pb2 import Error
from flwr.proto.fleet_pb2 import PushMessagesRequest
from flwr.proto.message_pb2 import Message, Metadata, ObjectTree
from flwr.proto.node_pb2 import Node as NodeName

from sluice.network.wire import superlink
from sluice.network.wire.certificates import Authority, write_certificate
from sluice.network.wire.node import FleetConnection, Node, serve
from sluice.network.wire.superlink import FlowerWire, Link, start_superlink
from sluice.network.wire.wire import LARGEST_ANSWER

from .fleet_client import SUPERLINK, FleetClient, Received
from .sites import free_port

pytestmark = pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning")
HONEST = ("east", "north", "south")
ATTACKER = "attacker"
SLOW_S = 60.0


class Echo:
    """An honest plant."""

    def __init__(self) -> None:
        self.asked = 0

    def answer(self, question: bytes) -> bytes:
        self.asked += 1
        return b"an answer to " + question[:32]


@dataclass
class Flower:
    """A SuperLink, the coordinator's wire over it, three honest nodes and an attacker's client."""

    link: Link
    process: subprocess.Popen[bytes]
    wire: FlowerWire
    attacker: FleetClient
    plants: dict[str, Echo] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    asks: int = 0

    def ask(self, *plants: str, seconds: float = 30.0) -> dict[str, tuple[bytes, float]]:
        """Ask plants; return each answer and after how many seconds it came."""
        began = time.monotonic()
        self.asks += 1
        questions = {plant: f"{self.asks}: {plant}?".encode() for plant in plants}
        return {
            plant: (answer, time.monotonic() - began)
            for plant, answer in self.wire.ask(questions, seconds=seconds)
        }

    @contextmanager
    def attacks(self, attack: Callable[[FleetClient, Received], object]) -> Iterator[None]:
        """Let the attacker take each question and attack it."""
        over = threading.Event()

        def attacking() -> None:
            while not over.is_set():
                question = self.attacker.pull()
                if question is None:
                    time.sleep(0.05)
                else:
                    attack(self.attacker, question)

        thread = threading.Thread(target=attacking, daemon=True)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join(timeout=120)

    def attacked(
        self, attack: Callable[[FleetClient, Received], object], *, seconds: float = 12.0
    ) -> tuple[dict[str, tuple[bytes, float]], float]:
        """Ask all while the attacker attacks each question; return answers and total seconds."""
        with self.attacks(attack):
            began = time.monotonic()
            answers = self.ask(ATTACKER, *HONEST, seconds=seconds)
            return answers, time.monotonic() - began

    def memory_mb(self) -> float:
        """The SuperLink's memory now."""
        status = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return next(int(line.split()[1]) for line in status.splitlines() if "VmRSS" in line) / 1024


class EndError(Exception):
    """The tests are over."""


def start(link: Link) -> subprocess.Popen[bytes]:
    process = start_superlink(link)
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            with socket.create_connection(("127.0.0.1", link.port), timeout=1):
                return process
        except OSError:
            time.sleep(0.1)
    raise AssertionError((link.folder / "superlink.log").read_text(encoding="utf-8")[-2_000:])


@pytest.fixture(scope="module")
def flower(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Flower]:
    folder = tmp_path_factory.mktemp("wire")
    authority, certificate, key = (folder / name for name in ("a.pem", "s.pem", "s.key"))
    found = Authority.found(authority, folder / "a.key", at=datetime.now(UTC))
    issued = found.server("127.0.0.1", at=datetime.now(UTC))
    write_certificate(issued, certificate=certificate, key=key)
    link = Link(
        port=free_port(),
        folder=folder / "flower",
        certificate=certificate,
        key=key,
        authority=authority,
    )
    keys = {name: ec.generate_private_key(ec.SECP384R1()) for name in (*HONEST, ATTACKER)}
    process = start(link)
    wire = FlowerWire(link)
    wire.enrol(
        {
            name: each.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
            for name, each in keys.items()
        }
    )
    client = FleetClient(link.address, authority=authority, key=keys[ATTACKER])
    running = Flower(link, process, wire, client)
    over = threading.Event()

    def connecting() -> None:
        if over.is_set():
            raise EndError

    def serving(node: Node, plant: Echo) -> None:
        with suppress(EndError):
            serve(partial(FleetConnection, node), plant, connecting=connecting)

    nodes: list[threading.Thread] = []
    for name in HONEST:
        path = folder / f"{name}.key"
        raw = keys[name].private_bytes(Encoding.PEM, PrivateFormat.OpenSSH, NoEncryption())
        path.write_bytes(raw)
        node = Node(
            proxy=link.address, authority=authority, key=path, memory=folder / f"{name}.number"
        )
        running.nodes[name] = node
        running.plants[name] = Echo()
        nodes.append(
            threading.Thread(target=serving, args=(node, running.plants[name]), daemon=True)
        )
        nodes[-1].start()
    assert client.activate().accepted
    deadline = time.monotonic() + 60
    while set(wire.present()) != {*HONEST, ATTACKER}:
        assert time.monotonic() < deadline, wire.present()
        time.sleep(0.1)
    yield running
    wire.close()
    over.set()
    running.process.kill()
    running.process.wait()
    for each in nodes:
        each.join(timeout=30)
    client.close()


@pytest.fixture(autouse=True)
def signed_in(flower: Flower) -> None:
    while flower.attacker.pull() is not None:
        pass  # questions of the test before
    assert flower.attacker.heartbeat().accepted


def test_honest_plants_answer_within_seconds(flower: Flower) -> None:
    answers = flower.ask(*HONEST)
    assert {name: answer for name, (answer, _) in answers.items()} == {
        name: f"an answer to {flower.asks}: {name}?".encode() for name in HONEST
    }
    assert flower.wire.present() >= set(HONEST)


def test_a_reply_whose_objects_never_arrive_delays_no_other_plant(flower: Flower) -> None:
    answers, took = flower.attacked(
        lambda client, question: client.announce(question, client.answer(b"never")), seconds=8.0
    )
    assert set(answers) == set(HONEST)
    assert took < 10.0  # the phase ends at its deadline


def test_a_reply_with_most_of_its_objects_delays_no_other_plant(flower: Flower) -> None:
    def all_but_the_answer(client: FleetClient, question: Received) -> None:
        announced = client.announce(question, client.answer(b"never"))
        for object_id in announced.awaited[1:]:
            client.push(announced, object_id)

    answers, took = flower.attacked(all_but_the_answer, seconds=8.0)
    assert set(answers) == set(HONEST)
    assert took < 10.0


def test_a_reply_whose_objects_arrive_late_counts(flower: Flower) -> None:
    def late(client: FleetClient, question: Received) -> None:
        announced = client.announce(question, client.answer(b"late but in time"))
        time.sleep(2)
        for object_id in reversed(announced.awaited):  # the answer's bytes come last
            assert client.push(announced, object_id)

    answers, _ = flower.attacked(late)
    assert answers[ATTACKER][0] == b"late but in time"
    assert answers[ATTACKER][1] > 2


def test_an_answer_of_400_mb_is_refused_without_its_content(flower: Flower) -> None:
    stored: list[str] = []
    pieces = flower.attacker.large(400 * 2**20)
    before = own_memory_mb()

    def large(client: FleetClient, question: Received) -> None:
        announced = client.announce(question, pieces)
        for object_id in announced.awaited:
            if not client.push(announced, object_id):
                break  # Flower takes no more of what the coordinator has refused
            stored.append(object_id)

    answers, took = flower.attacked(large, seconds=SLOW_S)
    assert answers[ATTACKER][0] == b""  # refused
    assert {name for name, (answer, _) in answers.items() if answer} == set(HONEST)
    assert took < SLOW_S
    assert own_memory_mb() - before < 100
    assert len(stored) < len(pieces.large)


def test_one_object_that_is_too_large_is_refused_without_its_content(flower: Flower) -> None:
    answers, _ = flower.attacked(
        lambda client, question: client.reply(question, b"x" * (LARGEST_ANSWER + 1024)),
        seconds=SLOW_S,
    )
    assert answers[ATTACKER][0] == b""
    assert {name for name, (answer, _) in answers.items() if answer} == set(HONEST)


def test_the_largest_answer_is_taken(flower: Flower) -> None:
    largest = os.urandom(1024) * (LARGEST_ANSWER // 1024)
    answers, _ = flower.attacked(
        lambda client, question: client.reply(question, largest), seconds=SLOW_S
    )
    assert answers[ATTACKER][0] == largest


def test_a_flood_of_replies_to_one_question_counts_once(flower: Flower) -> None:
    def flood(client: FleetClient, question: Received) -> None:
        client.reply(question, b"first")
        client.flood(question, 20)

    answers, took = flower.attacked(flood, seconds=SLOW_S)
    assert answers[ATTACKER][0] == b"first"
    assert set(answers) == {ATTACKER, *HONEST}
    assert took < SLOW_S


def test_a_reply_that_reports_an_error_is_an_answer_and_not_asked_again(flower: Flower) -> None:
    questions: list[Received] = []

    def failing(client: FleetClient, question: Received) -> None:
        questions.append(question)
        client.call("push-messages", error_reply(client.node, question))

    answers, _ = flower.attacked(failing, seconds=SLOW_S)
    assert answers[ATTACKER][0] == b""
    assert len(questions) == 1


def test_a_head_of_a_megabyte_costs_no_honest_plant_its_answer(flower: Flower) -> None:
    def long_head(client: FleetClient, question: Received) -> None:
        long = Received(
            metadata=Metadata.FromString(question.metadata.SerializeToString()), tree=question.tree
        )
        long.metadata.group_id = "x" * 2**20
        client.reply(long, b"small")

    for _ in range(2):
        answers, took = flower.attacked(long_head, seconds=SLOW_S)
        assert {name for name, (answer, _) in answers.items() if answer} == set(HONEST)
        assert answers[ATTACKER][0] == b""
        assert took < SLOW_S


def test_plants_beyond_the_quorum_have_the_grace_period(flower: Flower) -> None:
    began = time.monotonic()
    questions = dict.fromkeys((ATTACKER, *HONEST), b"?")
    answers = dict(flower.wire.ask(questions, seconds=SLOW_S, quorum=len(HONEST), grace_s=1.0))
    assert set(answers) == set(HONEST)
    assert time.monotonic() - began < SLOW_S / 2


def test_an_answer_to_a_phase_that_has_ended_is_not_taken_for_one_of_the_next(
    flower: Flower,
) -> None:
    taken: list[Received] = []
    questions = dict.fromkeys((ATTACKER, *HONEST), b"the last phase")
    with flower.attacks(lambda _, question: taken.append(question)):
        dict(flower.wire.ask(questions, seconds=SLOW_S, quorum=len(HONEST), grace_s=2.0))
    assert len(taken) == 1
    flower.attacker.reply(taken[0], b"too late")
    assert set(flower.ask(ATTACKER, *HONEST, seconds=4.0)) == set(HONEST)


def test_an_answer_to_the_same_question_asked_again_counts(flower: Flower) -> None:
    taken: list[Received] = []
    questions = dict.fromkeys((ATTACKER, *HONEST), b"the same")
    with flower.attacks(lambda _, question: taken.append(question)):
        dict(flower.wire.ask(questions, seconds=SLOW_S, quorum=len(HONEST), grace_s=2.0))
        flower.attacker.reply(taken[0], b"slow")
        answers = dict(flower.wire.ask({ATTACKER: b"the same"}, seconds=SLOW_S))
    assert answers == {ATTACKER: b"slow"}
    assert len(taken) == 1  # it was not sent again


def test_answers_that_arrive_while_the_caller_is_busy_are_not_lost(flower: Flower) -> None:
    answers: dict[str, bytes] = {}
    for plant, answer in flower.wire.ask(dict.fromkeys(HONEST, b"all at once"), seconds=4.0):
        answers[plant] = answer
        if len(answers) == 1:
            time.sleep(5)  # it verifies the first answer until the time is up
    assert set(answers) == set(HONEST)


def test_a_plant_that_never_answers_is_asked_a_few_times_only(
    flower: Flower, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(superlink, "ASK_AGAIN_S", 0.2)
    taken: list[str] = []
    answers, _ = flower.attacked(lambda _, question: taken.append(question.message), seconds=8.0)
    assert set(answers) == set(HONEST)
    assert len(taken) == superlink.MOST_ASKS


def test_two_hundred_questions_leave_nothing_behind_in_flower(flower: Flower) -> None:
    """One plant fetches each question, confirms none, and answers after the phase."""
    held: list[Received] = []
    memory: list[float] = []
    for number in range(50):
        questions = dict.fromkeys((ATTACKER, *HONEST), os.urandom(300_000))
        taken: list[Received] = []
        with flower.attacks(lambda _, question: taken.append(question)):  # noqa: B023
            answers = dict(flower.wire.ask(questions, seconds=20, quorum=3, grace_s=0.1))
        assert set(answers) == set(HONEST)
        for question in taken:
            flower.attacker.reply(question, os.urandom(300_000))
        held += taken
        if number in {9, 49}:
            memory.append(flower.memory_mb())
    assert len(held) > 30
    assert memory[1] - memory[0] < 20, memory  # MB; 40 rounds sent 48 MB, and 12 MB came too late


def test_a_plant_that_was_killed_is_back_at_once(flower: Flower) -> None:
    node = flower.nodes["north"]  # Flower takes it for online, as after a kill
    with (
        closing(FleetConnection(replace(node, memory=None))) as unknown,
        pytest.raises(httpx.HTTPStatusError, match="412"),
    ):
        unknown.sign_in()
    with closing(FleetConnection(node)) as again:
        again.sign_in()
        assert again.pull() is None


def test_a_flower_that_is_killed_loses_no_plant(flower: Flower) -> None:
    answers: dict[str, bytes] = {}

    def asking() -> None:
        answers.update(flower.wire.ask(dict.fromkeys(HONEST, b"after"), seconds=SLOW_S))

    flower.process.kill()
    flower.process.wait()
    thread = threading.Thread(target=asking)
    thread.start()
    flower.process = start(flower.link)  # on this thread: the process ends with its thread
    thread.join()
    assert answers == dict.fromkeys(HONEST, b"an answer to after")
    assert flower.attacker.activate().accepted


def test_plants_that_were_online_are_awaited_when_flower_was_killed(flower: Flower) -> None:
    assert flower.wire.present() >= set(HONEST)
    found: list[frozenset[str]] = []
    flower.process.kill()
    flower.process.wait()
    thread = threading.Thread(target=lambda: found.append(flower.wire.present()))
    thread.start()
    flower.process = start(flower.link)  # on this thread: the process ends with its thread
    while thread.is_alive() and not flower.attacker.activate().accepted:
        time.sleep(0.1)
    thread.join()
    assert found == [frozenset({ATTACKER, *HONEST})]


def error_reply(node: int, question: Received) -> PushMessagesRequest:
    """A reply that reports an error in place of an answer."""
    metadata = Metadata(
        run_id=question.run,
        message_id="ab" * 32,
        src_node_id=node,
        dst_node_id=SUPERLINK,
        reply_to_message_id=question.message,
        message_type=question.metadata.message_type,
        created_at=question.metadata.created_at,
        ttl=question.metadata.ttl,
    )
    return PushMessagesRequest(
        node=NodeName(node_id=node),
        messages_list=[Message(metadata=metadata, error=Error(code=1, reason="no"))],
        message_object_trees=[ObjectTree(object_id="ab" * 32)],
    )


def own_memory_mb() -> float:
    """The most memory that this process, which is the coordinator's, has used."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return next(int(line.split()[1]) for line in status.splitlines() if "VmHWM" in line) / 1024
