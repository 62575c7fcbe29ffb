"""Rows from an OPC UA server: a subscription to every tag, sampled once per stride.

A server does not keep what a client misses. After a lost connection the rows between are missing.
"""

import asyncio
import math
import os
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, final

from sluice.errors import MissingChannelError, SettingError
from sluice.watch.rows import StreamRows
from sluice.watch.sources.sampling import Sampler
from sluice.watch.sources.source import SourceState, no_rows
from sluice.watch.subject import Subject

__all__ = ["PASSWORD", "SECURITY", "OpcUaSource"]

SECURITY = "SLUICE_OPCUA_SECURITY"  # such as Basic256Sha256,SignAndEncrypt,cert.der,key.pem
PASSWORD = "SLUICE_OPCUA_PASSWORD"  # noqa: S105 - the variable's name
START_S = 20.0
RETRY_S = 2.0
DEEPEST, MOST_NODES = 8, 20_000


@final
class OpcUaSource:
    """Subscribes to the nodes of the watch's tags."""

    unreadable = 0

    def __init__(
        self,
        address: str,
        subject: Subject,
        *,
        nodes: Mapping[str, str],
        max_age_s: float | None = None,
    ) -> None:
        import asyncua  # noqa: F401, PLC0415 - a missing extra is an error at once

        self.name = address
        self._subject = subject
        self._nodes = nodes
        self._sampler = Sampler(subject.names, stride_s=subject.stride_s, max_age_s=max_age_s)
        self._state = SourceState.STARTING
        self._failure: Exception | None = None
        self._started = threading.Event()
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._work, name="opcua", daemon=True)
        self._thread.start()
        self._started.wait(START_S)
        if self._failure is not None or not self._started.is_set():
            self.close()
            if isinstance(self._failure, MissingChannelError | SettingError):
                raise self._failure
            raise SettingError(
                f"the OPC UA server {address} cannot be reached: "
                f"{self._failure or f'no answer within {START_S:g} s'}; check the address and the "
                "server's security settings"
            )

    @property
    def state(self) -> SourceState:
        """Whether the server is there."""
        return self._state

    def take(self, wait_s: float) -> StreamRows:
        """Return the next row, if its time has come."""
        time.sleep(min(wait_s, self._sampler.wait_s))
        if self._state is not SourceState.READING:
            return no_rows(len(self._subject.names))
        return self._sampler.row()

    def confirm(self) -> None:
        """A server keeps nothing."""

    def close(self) -> None:
        """Disconnect."""
        self._ending.set()
        self._thread.join(5.0)

    # -- the client's thread ------------------------------------------------------------------

    def datachange_notification(self, node: Any, value: Any, data: Any) -> None:
        """Take a reading; the client calls this for every change."""
        status = data.monitored_item.Value.StatusCode
        good = status is None or status.is_good()
        with suppress(TypeError, ValueError):
            self._sampler.put(self._tags[node.nodeid], float(value) if good else math.nan)

    def status_change_notification(self, status: Any) -> None:
        """Nothing to do: a lost connection is noticed by `check_connection`."""

    def _work(self) -> None:
        while not self._ending.is_set():
            try:
                asyncio.run(self._session())
            except Exception as error:  # noqa: BLE001 - the library raises its own and the system's
                self._failure = error
            if not self._started.is_set():
                self._started.set()
                return
            self._state = SourceState.LOST
            self._sampler.forget()
            self._ending.wait(RETRY_S)

    async def _session(self) -> None:
        from asyncua.client.client import Client  # noqa: PLC0415 - an extra

        client = Client(self.name, timeout=10)
        if os.environ.get(SECURITY):
            await client.set_security_string(os.environ[SECURITY])
        if os.environ.get(PASSWORD):
            client.set_password(os.environ[PASSWORD])
        async with client:
            found = await self._find(client)
            self._tags = {node.nodeid: tag for tag, node in found.items()}
            period_ms = max(50.0, min(self._subject.stride_s * 500, 1_000.0))
            subscription = await client.create_subscription(period_ms, self)
            await subscription.subscribe_data_change(list(found.values()))
            self._state, self._failure = SourceState.READING, None
            self._started.set()
            while not self._ending.is_set():
                await asyncio.sleep(0.2)
                await client.check_connection()

    async def _find(self, client: Any) -> dict[str, Any]:
        """Return the node of each tag: as given, else the variable with the tag's name."""
        found = {
            tag: client.get_node(self._nodes[tag])
            for tag in self._subject.names
            if tag in self._nodes
        }
        wanted = set(self._subject.names) - set(found)
        if wanted:
            found |= await _browsed(client, wanted)
        missing = next((tag for tag in self._subject.names if tag not in found), None)
        if missing is not None:
            raise MissingChannelError(
                self.name, missing, needed_by="the watch's rules or model", known=tuple(found)
            )
        return found


async def _browsed(client: Any, wanted: set[str]) -> dict[str, Any]:
    from asyncua import ua  # noqa: PLC0415 - an extra

    found: dict[str, Any] = {}
    level, seen = [client.nodes.objects], 0
    for _ in range(DEEPEST):
        below = []
        for node in level:
            for child in await node.get_children_descriptions():
                seen += 1
                name = child.BrowseName.Name
                if child.NodeClass is ua.NodeClass.Variable and name in wanted:
                    found.setdefault(name, client.get_node(child.NodeId))
                elif child.NodeClass is ua.NodeClass.Object and child.NodeId.NamespaceIndex:
                    below.append(client.get_node(child.NodeId))
        if wanted <= set(found) or not below or seen > MOST_NODES:
            break
        level = below
    return found
