"""A plant takes part: its node connects out, and an answerer answers the coordinator's questions.

`sluice plant run` uses the plant's own `Agent`. A test that needs a plant which breaks the protocol
wraps or replaces the agent:

    plant = PlantFolder(folder)
    take_part(node_of(plant), Malicious(plant.agent()))

That plant reaches the coordinator with the same node, key and certificate as the real one.
"""

import logging
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial

from sluice.network.plant.folder import PlantFolder
from sluice.network.wire import (
    Answerer,
    Endpoint,
    Node,
    complaint,
    seconds_ahead,
    serve,
    start_supernode,
)

__all__ = ["node_of", "take_part"]

RESTART_S = 2.0
GRACE_S = 3.0
"""Seconds a node may take to sign off; Flower's node would wait for open connections and retry."""
ENDS_SOON = timedelta(days=30)
_log = logging.getLogger("sluice.plant")


def node_of(plant: PlantFolder, *, port: int = 0) -> Node:
    """Return a plant's node; its interface listens on this loopback port (0: any free port)."""
    terms = plant.invitation.terms
    if plant.certificate_ends < datetime.now(UTC) + ENDS_SOON:
        _log.warning(
            "the plant's certificate ends on %s; ask the coordinator for a new one and install it "
            "with 'sluice plant rotate'",
            f"{plant.certificate_ends:%Y-%m-%d}",
        )
    return Node(
        proxy=f"{terms.host}:{terms.port}",
        authority=plant.authority.resolve(),
        key=plant.node_key.resolve(),
        port=port or _free_port(),
        folder=(plant.folder / "flower").resolve(),
        certificate=plant.certificate.resolve(),
        certificate_key=plant.certificate_key.resolve(),
    )


def take_part(node: Node, plant: Answerer, *, seconds: float | None = None) -> None:
    """Answer questions for so many seconds, or without end.

    Flower's node exits if the coordinator is unreachable or does not know it yet; it is restarted.
    """
    until = None if seconds is None else time.monotonic() + seconds
    while until is None or time.monotonic() < until:
        _check_clock(node)
        with _stopped_after(start_supernode(node)) as process:
            serve(node, plant, alive=partial(_runs, process, until))
        time.sleep(RESTART_S)


def _check_clock(node: Node) -> None:
    host, _, port = node.proxy.rpartition(":")
    endpoint = Endpoint(
        host=host,
        port=int(port),
        authority=node.authority,
        certificate=node.certificate,
        certificate_key=node.certificate_key,
    )
    problem = complaint(seconds_ahead(endpoint))
    if problem:
        _log.warning("%s", problem)


@contextmanager
def _stopped_after(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """Stop the node at the end: SIGTERM, then SIGKILL. It holds no state of ours."""
    try:
        yield process
    finally:
        process.terminate()
        try:
            process.wait(timeout=GRACE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _runs(process: subprocess.Popen[bytes], until: float | None) -> bool:
    return process.poll() is None and (until is None or time.monotonic() < until)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
