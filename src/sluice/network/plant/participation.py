"""A plant takes part: its node connects out, and an answerer answers the coordinator's questions.

`sluice plant run` uses the plant's own `Agent`. A test that needs a plant which breaks the protocol
wraps or replaces the agent:

    plant = PlantFolder(folder)
    take_part(node_of(plant), Malicious(plant.agent()))

That plant reaches the coordinator with the same node, key and certificate as the real one.
"""

import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

from sluice.network.plant.folder import PlantFolder
from sluice.network.wire import (
    Answerer,
    Endpoint,
    FleetConnection,
    Node,
    complaint,
    seconds_ahead,
    serve,
)

__all__ = ["node_of", "take_part"]

CHECK_CLOCK_S = 60.0
ENDS_SOON = timedelta(days=30)
_log = logging.getLogger("sluice.plant")


def node_of(plant: PlantFolder) -> Node:
    """Return a plant's node."""
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
        certificate=plant.certificate.resolve(),
        certificate_key=plant.certificate_key.resolve(),
        memory=(plant.folder / "node.number").resolve(),
    )


def take_part(
    node: Node,
    plant: Answerer,
    *,
    seconds: float | None = None,
    over: Callable[[], bool] = lambda: False,
) -> None:
    """Answer questions for so many seconds, or until the federation is over.

    If the coordinator is unreachable or does not know the node yet, the node tries again.
    """
    connect, connecting = partial(FleetConnection, node), _ClockCheck(node)
    serve(connect, plant, seconds=seconds, connecting=connecting, over=over)


class _ClockCheck:
    """Warns about a clock that Flower refuses, at most once a minute."""

    def __init__(self, node: Node) -> None:
        host, _, port = node.proxy.rpartition(":")
        self._endpoint = Endpoint(
            host=host,
            port=int(port),
            authority=node.authority,
            certificate=node.certificate,
            certificate_key=node.certificate_key,
        )
        self._next = 0.0

    def __call__(self) -> None:
        if time.monotonic() < self._next:
            return
        ahead_s = seconds_ahead(self._endpoint)
        if ahead_s is None:
            return  # the proxy does not answer yet: check again with the next connection
        self._next = time.monotonic() + CHECK_CLOCK_S
        problem = complaint(ahead_s)
        if problem:
            _log.warning("%s", problem)
