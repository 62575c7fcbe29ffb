"""Attacks on the way to Flower, as real processes: nginx, the filter and a SuperLink, over TLS."""

import os
import shutil
import signal
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from flwr.proto.fleet_pb2 import PullMessagesRequest, RegisterNodeFleetRequest
from flwr.proto.node_pb2 import Node

from sluice.lab.plants.catalogue import simulate
from sluice.network.coordinator.folder import CoordinatorFolder
from sluice.network.coordinator.founding import FederationPlan, found_federation
from sluice.network.coordinator.hosting import hosted
from sluice.network.coordinator.rotation import reissue_plant, reissue_server, write_proxy
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.training_rows import TrainingRows
from sluice.network.wire.certificates import Issued, write_certificate
from sluice.network.wire.proxy import FILTER_HEADER
from sluice.network.wire.questions import ANSWERS, Answer, Declined
from sluice.network.wire.refusals import read_refusals
from sluice.network.wire.superlink import FlowerWire
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write

from .fleet_client import FleetClient
from .sites import free_port

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
pytestmark = [
    pytest.mark.skipif(NGINX is None, reason="nginx is not installed"),
    pytest.mark.filterwarnings("ignore:GitWildMatchPattern:DeprecationWarning"),
]
HONEST, FORGED = (
    ANSWERS.write(Answer(instance="0" * 64, seen=0, answer=Declined(word=word)))
    for word in ("honest", "forged")
)
PROMPT_S = 2.0


@dataclass
class Hosted:
    """A running coordinator without rounds, and plants that a test directs."""

    site: CoordinatorFolder
    store: CoordinatorStore
    wire: FlowerWire
    keys: dict[str, ec.EllipticCurvePrivateKey] = field(default_factory=dict)

    @property
    def address(self) -> str:
        terms = self.site.terms
        return f"{terms.host}:{terms.port}"

    def join(self, name: str) -> None:
        """Let a plant join: its node key goes to Flower, its certificate into a file."""
        now = datetime.now(UTC)
        invitation = self.site.invite(name, at=now)
        self.keys[name] = ec.generate_private_key(ec.SECP384R1())
        public = (
            self.keys[name]
            .public_key()
            .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
        )
        self.store.join(name, invitation.secret, node_key=public, rules="", at=now)
        self.install(
            name, Issued(certificate=invitation.certificate, key=invitation.certificate_key)
        )
        self.wire.enrol({name: public})

    def install(self, name: str, issued: Issued) -> None:
        write_certificate(issued, certificate=self.file(name, "pem"), key=self.file(name, "key"))

    def file(self, name: str, kind: str) -> Path:
        return self.site.folder.parent / f"{name}.{kind}"

    def plant(self, name: str, *, certificate_of: str | None = None) -> FleetClient:
        """Return a plant's client, through the proxy."""
        shown = certificate_of or name
        return FleetClient(
            self.address,
            authority=self.site.authority,
            key=self.keys[name],
            certificate=self.file(shown, "pem"),
            certificate_key=self.file(shown, "key"),
        )

    def past_the_filter(self, name: str) -> FleetClient:
        """Return a plant's client that reaches Flower directly, as a plant could before."""
        return FleetClient(
            f"127.0.0.1:{self.site.link_port}",
            authority=self.site.authority,
            key=self.keys[name],
        )

    def stranger(self) -> httpx.Client:
        trust = ssl.create_default_context(cafile=str(self.site.authority))
        return httpx.Client(verify=trust, base_url=f"https://{self.address}", timeout=10)

    def refused(self, name: str) -> dict[str, int]:
        """Return what the coordinator sees of the filter's refusals, once it is written."""
        time.sleep(1.5)
        return read_refusals(self.site.refusals).get(name, {})


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    folder = tmp_path_factory.mktemp("filter")
    record = folder / "line.csv"
    write(simulate("line", seed=0, days=1), record, FileLayout.CSV)
    plan = FederationPlan(
        members_min=1,
        federation="water",
        host="127.0.0.1",
        port=free_port(),
        link_port=free_port(),
        filter_port=free_port(),
        reference=TrainingRows(record=str(record), start=0, stop=1_000),
        policy='kind = "hardened"\n',
        approvers=("0" * 64,),
    )
    site = found_federation(folder / "water", plan, at=datetime.now(UTC))
    store = CoordinatorStore(site.base)
    with site.alone(), hosted(site, store, proxy=True) as wire:  # its self-check has passed
        made = Hosted(site, store, wire)
        for name in ("north", "south", "removed"):
            made.join(name)
        time.sleep(1.5)  # the filter reads the store once a second
        yield made
    store.close()


@contextmanager
def question_to(running: Hosted, name: str) -> Iterator[list[bytes]]:
    """Ask a plant; yield a list that holds its answer once it has come."""
    answers: list[bytes] = []

    def ask() -> None:
        for _, answer in running.wire.ask({name: b"a question"}, seconds=15):
            answers.append(answer)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        yield answers
    finally:
        asking.join()


@contextmanager
def online(client: FleetClient) -> Iterator[FleetClient]:
    """Sign a node in and off; Flower refuses a node that is online already."""
    with client:
        answer = client.activate()
        assert answer.accepted, answer
        try:
            yield client
        finally:
            client.claims = client.node
            client.deactivate()


def test_an_honest_plant_answers_through_proxy_and_filter(running: Hosted) -> None:
    with online(running.plant("south")) as south:
        assert south.heartbeat().accepted
        with question_to(running, "south") as answers:
            question = south.await_question(10)
            assert question.content == b"a question"
            assert south.reply(question, HONEST).response.accepted
        assert answers == [HONEST]
    assert running.refused("south") == {}


# -- the sender -------------------------------------------------------------------------------


def test_flower_alone_takes_an_answer_of_one_node_as_that_of_another(running: Hosted) -> None:
    # Why there is a filter: past it, north answers a question that it knows for south.
    with (
        online(running.plant("south")) as south,
        online(running.past_the_filter("north")) as north,
        question_to(running, "south") as answers,
    ):
        question = south.await_question(10)
        assert north.reply(question, FORGED, source=south.node).response.accepted
    assert answers == [FORGED]


def test_a_node_that_answers_as_another_is_refused_and_the_other_answers(running: Hosted) -> None:
    with (
        online(running.plant("south")) as south,
        online(running.plant("north")) as north,
        question_to(running, "south") as answers,
    ):
        question = south.await_question(10)
        forged = north.reply(question, FORGED, source=south.node)
        assert (forged.response.status, forged.awaited) == (403, ())
        north.claims = south.node
        assert north.reply(question, FORGED, source=south.node).response.status == 403
        assert north.confirm(question.run, question.message).status == 403
        assert south.reply(question, HONEST).response.accepted
    assert answers == [HONEST]
    refused = running.refused("north")
    assert refused["sender of a message is another node"] >= 1
    assert refused["id of another node"] >= 2


def test_a_plant_with_its_own_certificate_and_anothers_node_key_is_refused(
    running: Hosted,
) -> None:
    with running.plant("south", certificate_of="north") as thief:
        assert thief.activate().status == 403
    with running.plant("north", certificate_of="south") as thief:
        assert thief.activate().status == 403
    assert running.refused("south")["key of another node"] == 1


def test_a_plant_cannot_register_a_second_node(running: Hosted) -> None:
    with running.plant("north") as north:
        answer = north.call("register-node", RegisterNodeFleetRequest(public_key=north.public))
        assert answer.status == 403
    assert running.refused("north")["registration of a node"] == 1


def test_an_answer_of_400_mb_never_reaches_flower(running: Hosted) -> None:
    with online(running.plant("north")) as north, question_to(running, "north") as answers:
        question = north.await_question(10)
        announced = north.announce(question, north.large(400 * 2**20))
        assert (announced.response.status, announced.awaited) == (403, ())
        assert all(each.awaited for each in north.flood(question, 50))  # only the filter has them
        north.reply(question, HONEST)
    assert answers == [HONEST]


# -- certificates -----------------------------------------------------------------------------


def test_a_client_without_a_certificate_reaches_nothing(running: Hosted) -> None:
    with running.stranger() as stranger:
        for path in ("/", "/v1/fleet/pull-messages", "/v1/control/list-nodes"):
            answer = stranger.post(path, content=b"")
            assert answer.status_code == 400, path
            assert FILTER_HEADER not in answer.headers


def test_a_removed_plants_certificate_is_refused(running: Hosted) -> None:
    with running.plant("removed") as removed:
        assert removed.activate().accepted
        assert removed.deactivate().accepted
        running.store.remove("removed", at=datetime.now(UTC))
        time.sleep(1.5)
        assert removed.activate().status == 403  # the filter reads the store
        assert b"not enrolled" in removed.activate().body
        write_proxy(running.site)  # the next start of the coordinator does this
        pid = int((running.site.folder / "proxy" / "nginx.pid").read_text(encoding="ascii"))
        os.kill(pid, signal.SIGHUP)
        time.sleep(1)
    with running.plant("removed") as removed:
        answer = removed.activate()
        assert answer.status == 403
        assert b"nginx" in answer.body  # it does not reach the filter any more


def test_a_running_proxy_takes_new_certificates_and_refuses_revoked_ones(running: Hosted) -> None:
    running.join("rotated")
    time.sleep(1.5)
    with online(running.plant("rotated")):
        pass
    issued = reissue_plant(running.site.folder, "rotated", at=datetime.now(UTC), revoke=True)
    reissue_server(running.site.folder, at=datetime.now(UTC))
    time.sleep(1.5)
    with running.plant("rotated") as client:
        assert client.activate().status == 403
    running.install("rotated", Issued(certificate=issued.certificate, key=issued.certificate_key))
    with online(running.plant("rotated")):
        pass
    host, port = running.address.split(":")
    seen = ssl.get_server_certificate((host, int(port)))
    assert seen.strip() == running.site.certificate.read_text(encoding="ascii").strip()


# -- floods -----------------------------------------------------------------------------------


def open_lines(address: str, sources: list[str], count: int) -> list[socket.socket]:
    """Open connections from several addresses of this machine."""
    host, port = address.split(":")
    lines = []
    for at in range(count):
        source = (sources[at % len(sources)], 0)
        lines.append(socket.create_connection((host, int(port)), timeout=5, source_address=source))
    return lines


LOOPBACK = [f"127.0.0.{last}" for last in range(2, 10)]
SLOW_BODY = (
    b"POST /v1/fleet/push-object HTTP/1.1\r\nHost: localhost\r\n"
    b"Content-Type: application/protobuf\r\nContent-Length: 8000000\r\n\r\nx"
)


def seconds_of_a_call(client: FleetClient) -> float:
    began = time.monotonic()
    answer = client.call("pull-messages", PullMessagesRequest(node=Node(node_id=client.node)))
    assert answer.accepted, answer
    return time.monotonic() - began


def slow_bodies(running: Hosted, trust: ssl.SSLContext, stack: ExitStack) -> list[ssl.SSLSocket]:
    """Begin 511 calls from eight addresses, whose bodies come byte by byte."""
    lines = []
    for raw in open_lines(running.address, LOOPBACK, 511):
        stack.callback(raw.close)
        with suppress(OSError):  # a door that is closed does not open for the flood either
            line = trust.wrap_socket(raw, server_hostname="127.0.0.1")
            stack.callback(line.close)
            line.sendall(SLOW_BODY)
            lines.append(line)
    return lines


@contextmanager
def trickling(lines: list[ssl.SSLSocket]) -> Iterator[None]:
    """Send a byte on every line again and again; a line that is closed is left out."""
    over = threading.Event()

    def trickle() -> None:
        while not over.wait(0.2):
            for line in lines:
                with suppress(OSError):
                    line.send(b"x")

    thread = threading.Thread(target=trickle)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def test_511_slow_bodies_without_a_certificate_do_not_close_the_door(running: Hosted) -> None:
    trust = ssl.create_default_context(cafile=str(running.site.authority))
    with ExitStack() as stack:
        south = stack.enter_context(online(running.plant("south")))
        lines = slow_bodies(running, trust, stack)
        with trickling(lines):
            for _ in range(5):
                assert seconds_of_a_call(south) < PROMPT_S
            began = time.monotonic()
            with online(running.plant("north")):  # with a connection of its own
                assert time.monotonic() - began < PROMPT_S


def test_511_half_open_handshakes_do_not_close_the_door(running: Hosted) -> None:
    with ExitStack() as stack:
        for line in open_lines(running.address, LOOPBACK, 511):
            stack.callback(line.close)
            line.sendall(b"\x16\x03\x01\x02\x00\x01\x00")  # the first bytes of a handshake
        began = time.monotonic()
        with online(running.plant("south")) as south:
            assert time.monotonic() - began < PROMPT_S
            assert seconds_of_a_call(south) < PROMPT_S


def test_511_slow_bodies_of_one_plant_do_not_slow_another(running: Hosted) -> None:
    trust = ssl.create_default_context(cafile=str(running.site.authority))
    trust.load_cert_chain(running.file("north", "pem"), running.file("north", "key"))
    with ExitStack() as stack:
        south = stack.enter_context(online(running.plant("south")))
        lines = slow_bodies(running, trust, stack)
        with trickling(lines):
            for _ in range(5):
                assert seconds_of_a_call(south) < PROMPT_S
