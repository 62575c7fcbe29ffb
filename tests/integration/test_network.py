"""Runs the how-to of a federation between sites: real Flower processes over TLS, nginx."""

import json
import re
import shlex
import shutil
import ssl
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from flwr.proto.control_pb2 import ListNodesRequest, RegisterNodeRequest, StartRunRequest
from flwr.proto.fleet_pb2 import ActivateNodeRequest
from flwr.supercore.control.control_http_client import ControlHttpClient
from flwr.supernode.fleet_http_client import FleetHttpClient
from flwr.supernode.node_auth_http_interceptor import NodeAuthHttpInterceptor

from sluice.lab.plants.catalogue import simulate
from sluice.network.coordinator.founding import FederationPlan, found_federation
from sluice.network.coordinator.hosting import hosted
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.training_rows import TrainingRows
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "how-to" / "federation.md"
SLUICE = [sys.executable, "-c", "from sluice.cli import main; main()"]

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
needs_network = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")


def commands() -> list[list[str]]:
    text = PAGE.read_text(encoding="utf-8")
    lines = [
        line
        for block in re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
        for line in block.splitlines()
    ]
    return [shlex.split(line)[1:] for line in lines if line.startswith("sluice ")]


def test_the_page_shows_the_whole_way() -> None:
    typed = [" ".join(command[:2]) for command in commands()]
    assert typed.count("plant run") == 2
    assert typed.index("coordinator run") > typed.index("coordinator import")
    assert typed[-1] == "audit-log verify"


@needs_network
def test_the_how_to_leads_to_a_model_and_an_unbroken_log(tmp_path: Path) -> None:
    plants: list[subprocess.Popen[bytes]] = []
    outputs: dict[str, str] = {}
    try:
        for command in commands():
            if command[:2] == ["plant", "run"]:
                plants.append(subprocess.Popen([*SLUICE, *command], cwd=tmp_path))
                continue
            arguments = [*SLUICE, *command]
            if command[0] in ("coordinator", "audit-log"):
                arguments.append("--json")
            done = subprocess.run(
                arguments, cwd=tmp_path, check=False, capture_output=True, text=True
            )
            assert done.returncode == 0, (command, done.stderr)
            outputs[" ".join(command[:2])] = done.stdout
    finally:
        for plant in plants:
            plant.terminate()
            plant.wait(timeout=30)
    ran = json.loads(outputs["coordinator run"])
    assert ran["admitted"] == ["north", "south"]
    assert ran["rounds"] == 2
    assert (tmp_path / "water" / "model.safetensors").exists()
    verified = json.loads(outputs["audit-log verify"])
    assert verified["rounds"] == 2
    assert verified["clients"] == ["north", "south"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hosted:
    """A coordinator's Flower behind its proxy, with one plant registered by its public key."""

    address: str
    trust: bytes
    authority: Path
    public: bytes  # of the plant's node


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hosted]:
    folder = tmp_path_factory.mktemp("proxy")
    record = folder / "line.csv"
    write(simulate("line", seed=0, days=1), record, FileLayout.CSV)
    plan = FederationPlan(
        federation="water",
        host="127.0.0.1",
        port=18_444,
        link_port=18_001,
        reference=TrainingRows(record=str(record), start=0, stop=1_000),
        policy='kind = "hardened"\n',
    )
    site = found_federation(folder / "water", plan, at=datetime.now(UTC))
    store = CoordinatorStore(site.base)
    key = ec.generate_private_key(ec.SECP384R1()).public_key()
    public = key.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    with hosted(site, store, proxy=True) as wire:  # its self-check has passed
        wire.enrol({"north": public})  # the control interface answers on loopback
        yield Hosted(
            address="127.0.0.1:18444",
            trust=site.authority.read_bytes(),
            authority=site.authority,
            public=public,
        )
    store.close()


@needs_network
def test_the_control_interface_cannot_be_reached_through_the_proxy(endpoint: Hosted) -> None:
    outside = ControlHttpClient.from_server_address(endpoint.address, False, endpoint.trust, [])
    with pytest.raises(httpx.HTTPStatusError, match="404"):
        outside.ListNodes(ListNodesRequest())
    with pytest.raises(httpx.HTTPStatusError, match="404"):
        outside.StartRun(StartRunRequest())
    with pytest.raises(httpx.HTTPStatusError, match="404"):
        outside.RegisterNode(RegisterNodeRequest(public_key=endpoint.public))
    outside.close()


@needs_network
def test_an_impostor_with_a_stolen_certificate_but_no_key_is_refused(endpoint: Hosted) -> None:
    # It has the certificate, and even the node's public key, but not the private one.
    fleet = FleetHttpClient.from_server_address(endpoint.address, False, endpoint.trust, [])
    with pytest.raises(httpx.HTTPStatusError, match="401"):
        fleet.ActivateNode(ActivateNodeRequest(public_key=endpoint.public, heartbeat_interval=30))
    fleet.close()


@needs_network
def test_an_impostor_who_signs_with_a_key_of_its_own_is_refused(endpoint: Hosted) -> None:
    own = ec.generate_private_key(ec.SECP384R1())
    signing = NodeAuthHttpInterceptor(own, own.public_key())
    fleet = FleetHttpClient.from_server_address(endpoint.address, False, endpoint.trust, [signing])
    with pytest.raises(httpx.HTTPStatusError, match="40[13]"):
        fleet.ActivateNode(ActivateNodeRequest(public_key=endpoint.public, heartbeat_interval=30))
    fleet.close()


@needs_network
@pytest.mark.parametrize(("size", "status"), [(9 * 1024 * 1024, 413), (1024, 415)])
def test_an_oversized_message_is_refused_at_the_proxy(
    endpoint: Hosted, size: int, status: int
) -> None:
    with httpx.Client(verify=ssl.create_default_context(cafile=str(endpoint.authority))) as outside:
        answer = outside.post(
            f"https://{endpoint.address}/v1/fleet/push-object", content=b"x" * size
        )
    assert answer.status_code == status  # a small one reaches Flower, which refuses its type


@needs_network
def test_no_call_is_served_without_tls(endpoint: Hosted) -> None:
    with httpx.Client() as outside:
        answer = outside.post(f"http://{endpoint.address}/v1/fleet/pull-messages", content=b"")
    assert answer.status_code == 400
