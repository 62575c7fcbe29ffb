"""A plant takes part: its node connects out and whoever answers for the plant is asked.

`sluice plant run` gives the plant's own `Agent`. Whoever wants another plant at the same wire, such
as a test that wants one which does not keep to the protocol, wraps or replaces the agent:

    held = Membership(folder)
    take_part(node_of(held), Mistaken(held.agent()))

It then reaches the coordinator by the same node, key and certificate as the real one.
"""

import logging
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
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
"""How long a node may take to sign off: Flower's would wait for open connections, and retry."""
_log = logging.getLogger("sluice.plant")


def node_of(held: PlantFolder, *, port: int = 0) -> Node:
    """Return a plant's node; its own interface is at a port on loopback, any where 0 is given."""
    terms = held.invitation.terms
    return Node(
        proxy=f"{terms.host}:{terms.port}",
        authority=held.authority.resolve(),
        key=held.node_key.resolve(),
        port=port or _free_port(),
        folder=(held.folder / "flower").resolve(),
    )


def take_part(node: Node, plant: Answerer, *, seconds: float | None = None) -> None:
    """Answer until the time is up, or for good.

    Flower's node gives up when the coordinator is away or does not know it yet; this does not.
    """
    until = None if seconds is None else time.monotonic() + seconds
    while until is None or time.monotonic() < until:
        _look_at_the_clock(node)
        with _stopped_after(start_supernode(node)) as process:
            serve(node, plant, alive=partial(_runs, process, until))
        time.sleep(RESTART_S)


def _look_at_the_clock(node: Node) -> None:
    host, _, port = node.proxy.rpartition(":")
    wrong = complaint(seconds_ahead(Endpoint(host=host, port=int(port), authority=node.authority)))
    if wrong:
        _log.warning("%s", wrong)


@contextmanager
def _stopped_after(process: subprocess.Popen[bytes]) -> Iterator[subprocess.Popen[bytes]]:
    """End the node when its work is done: asked first, then made to. It holds nothing of ours."""
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
