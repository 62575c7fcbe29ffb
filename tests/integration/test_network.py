"""Runs the how-to of a federation between sites: real Flower processes over TLS, nginx."""

import json
import re
import shlex
import shutil
import ssl
import subprocess
import sys
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from flwr.proto.fleet_pb2 import ActivateNodeRequest

from sluice.attestation.log.chain import read_log
from sluice.detector.modelfile import load_detector
from sluice.lab.plants.catalogue import simulate
from sluice.network.coordinator.folder import CoordinatorFolder
from sluice.network.coordinator.founding import FederationPlan, found_federation
from sluice.network.coordinator.hosting import hosted
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.training_rows import TrainingRows
from sluice.network.wire.certificates import Issued, write_certificate
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write

from .test_docs import exit_code_of

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "federation.md"
SLUICE = [sys.executable, "-c", "from sluice.cli import main; main()"]

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
needs_network = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")


def commands() -> list[tuple[list[str], int]]:
    """Return each command of the page with its exit code."""
    text = PAGE.read_text(encoding="utf-8")
    lines = [
        line
        for block in re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
        for line in block.splitlines()
    ]
    return [
        (shlex.split(line, comments=True)[1:], exit_code_of(line))
        for line in lines
        if line.startswith("sluice ")
    ]


def test_the_page_shows_the_whole_way() -> None:
    typed = [" ".join(command[:2]) for command, _ in commands()]
    assert typed.count("plant run") == 3
    assert typed.index("coordinator run") > typed.index("coordinator import")
    assert typed[-1] == "audit-log verify"


@needs_network
def test_the_how_to_leads_to_a_model_and_an_unbroken_log(tmp_path: Path) -> None:
    plants: list[subprocess.Popen[bytes]] = []
    outputs: dict[str, str] = {}
    try:
        for command, code in commands():
            if command[:2] == ["plant", "run"]:
                plants.append(subprocess.Popen([*SLUICE, *command], cwd=tmp_path))
                continue
            arguments = [*SLUICE, *command]
            if command[0] in ("coordinator", "audit-log"):
                arguments.append("--json")
            done = subprocess.run(
                arguments, cwd=tmp_path, check=False, capture_output=True, text=True
            )
            assert done.returncode == code, (command, done.stderr)
            outputs[" ".join(command[:2])] = done.stdout
        assert [plant.wait(timeout=60) for plant in plants] == [0, 0, 0]  # it is over for all
    finally:
        for plant in plants:
            plant.terminate()
            plant.wait(timeout=30)
    ran = json.loads(outputs["coordinator run"])
    assert ran["admitted"] == ["north", "south", "west"]
    assert ran["rounds"] == 2
    assert (tmp_path / "water" / "model.safetensors").exists()
    verified = json.loads(outputs["audit-log verify"])
    assert verified["rounds"] == 2
    assert verified["clients"] == ["north", "south", "west"]
    for name in verified["clients"]:
        model, scores = tmp_path / f"{name}.model", tmp_path / f"{name}.csv"
        own = [*SLUICE, "plant", "model", name, "--out", str(model)]
        subprocess.run(own, cwd=tmp_path, check=True)
        assert load_detector(model).training.model == ran_model(tmp_path / "water")
        scoring = [*SLUICE, "score", "line.parquet", "--model", str(model), "--out", str(scores)]
        subprocess.run(scoring, cwd=tmp_path, check=True)
        assert len(scores.read_text().splitlines()) > 10_000


def ran_model(water: Path) -> str:
    """Return the hash of the last model in the log."""
    model = read_log(water / "log.jsonl").rounds.model
    assert model is not None
    return model


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A coordinator's Flower behind its filter and proxy, and the certificate of one plant."""

    address: str
    site: CoordinatorFolder
    plant: Path  # its certificate; the key is beside it
    public: bytes  # of the plant's node

    def post(self, path: str, content: bytes = b"", **headers: str) -> httpx.Response:
        """Call as a party that has the plant's certificate."""
        trust = ssl.create_default_context(cafile=str(self.site.authority))
        trust.load_cert_chain(self.plant, self.plant.with_suffix(".key"))
        with httpx.Client(verify=trust) as client:
            return client.post(f"https://{self.address}{path}", content=content, headers=headers)


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    folder = tmp_path_factory.mktemp("proxy")
    record = folder / "line.csv"
    write(simulate("line", seed=0, days=1), record, FileLayout.CSV)
    plan = FederationPlan(
        members_min=1,
        federation="water",
        host="127.0.0.1",
        port=18_444,
        link_port=18_001,
        reference=TrainingRows(record=str(record), start=0, stop=1_000),
        policy='kind = "hardened"\n',
        approvers=("0" * 64,),
    )
    now = datetime.now(UTC)
    site = found_federation(folder / "water", plan, at=now)
    store = CoordinatorStore(site.base)
    key = ec.generate_private_key(ec.SECP384R1()).public_key()
    public = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    invitation = site.invite("north", at=now)
    store.join("north", invitation.secret, node_key=public, rules="", at=now)
    issued = Issued(certificate=invitation.certificate, key=invitation.certificate_key)
    write_certificate(issued, certificate=folder / "north.pem", key=folder / "north.key")
    with hosted(site, store, proxy=True):  # its self-check has passed
        yield Endpoint(
            address="127.0.0.1:18444", site=site, plant=folder / "north.pem", public=public
        )
    store.close()


@needs_network
def test_the_control_interface_cannot_be_reached_through_the_proxy(endpoint: Endpoint) -> None:
    for call in ("list-nodes", "start-run", "register-node"):
        answer = endpoint.post(f"/v1/control/{call}")
        assert answer.status_code == 404
        assert answer.headers["x-sluice-proxy"] == "closed"


@needs_network
def test_an_impostor_with_a_stolen_certificate_but_no_key_is_refused(endpoint: Endpoint) -> None:
    # It has the certificate with its key, and the node's public key, but not the node's own.
    own = ec.generate_private_key(ec.SECP384R1())
    request = ActivateNodeRequest(public_key=endpoint.public, heartbeat_interval=30)
    for shown, status in (
        (own.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo), 403),
        (endpoint.public, 401),
    ):
        at = datetime.now(UTC).isoformat()
        signature = own.sign(at.encode(), ec.ECDSA(hashes.SHA256()))
        headers = {
            "content-type": "application/protobuf",
            "flwr-public-key": b64encode(shown).decode(),
            "flwr-timestamp": at,
            "flwr-signature": b64encode(signature).decode(),
        }
        answer = endpoint.post("/v1/fleet/activate-node", request.SerializeToString(), **headers)
        assert answer.status_code == status


@needs_network
@pytest.mark.parametrize(("size", "status"), [(9 * 1024 * 1024, 413), (1024, 403)])
def test_an_oversized_message_is_refused_at_the_proxy(
    endpoint: Endpoint, size: int, status: int
) -> None:
    answer = endpoint.post("/v1/fleet/push-object", b"x" * size)
    assert answer.status_code == status  # a small one reaches the filter, which refuses its caller


@needs_network
def test_no_call_is_served_without_tls(endpoint: Endpoint) -> None:
    with httpx.Client() as outside:
        answer = outside.post(f"http://{endpoint.address}/v1/fleet/pull-messages", content=b"")
    assert answer.status_code == 400
