"""The coordinator's processes: Flower's SuperLink, the filter and nginx; and the self-check.

Flower and the filter listen on loopback. nginx accepts the plants' connections and passes their
calls to the filter, which passes them to Flower. All end with the coordinator, even if it is
killed: `setpriv` asks the system for that. If one of them is killed, it is restarted.
"""

import logging
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import final

from sluice.errors import SettingError
from sluice.network.coordinator.folder import CoordinatorFolder
from sluice.network.coordinator.rotation import write_proxy
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.ports import demand_free_port
from sluice.network.wire import (
    FlowerWire,
    Link,
    Wire,
    bound_to_us,
    demand_unexposed,
    start_superlink,
)

__all__ = ["Supervisor", "hosted", "wait_for_plants"]

LOOK_S = 0.5
PAUSE_S = 2.0
_log = logging.getLogger("sluice.coordinator")


@final
class Supervisor:
    """A process and its process group; `watch` restarts it whenever it ends, until `stop`."""

    def __init__(self, what: str, start: Callable[[], subprocess.Popen[bytes]]) -> None:
        self._what = what
        self._start = start
        self._process = start()
        self._stopped = threading.Event()
        # Daemon, so that it lives as long as this process: the system ends a child when the thread
        # that started it ends.
        self._watcher = threading.Thread(target=self._keep, daemon=True, name=f"keeps {what}")

    @property
    def ended(self) -> bool:
        """Whether the process has ended."""
        return self._process.poll() is not None

    def watch(self) -> None:
        """Restart the process whenever it ends, from now on."""
        self._watcher.start()

    def stop(self) -> None:
        """Stop the process: SIGTERM, up to 10 s to end, then SIGKILL to its group."""
        self._stopped.set()
        if self._watcher.is_alive():
            self._watcher.join()
        self._process.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=10)
        self._end_group()

    def _keep(self) -> None:
        while not self._stopped.wait(LOOK_S):
            if self.ended:
                _log.warning("%s ended (%s); restarting it", self._what, self._process.returncode)
                self._end_group()
                self._process = self._start()
                self._stopped.wait(PAUSE_S)

    def _end_group(self) -> None:
        """Kill the rest of the group: nginx's workers outlive a killed master."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


START_S = 120.0
ENDING_S = 10.0
"""For which the processes of a killed coordinator may still hold its ports."""


@contextmanager
def hosted(
    site: CoordinatorFolder, store: CoordinatorStore, *, proxy: bool
) -> Iterator[FlowerWire]:
    """Run Flower, the filter, and nginx if `proxy`; yield the wire after the self-check.

    Every plant that has joined is registered; removed and suspended plants get no questions.
    """
    terms, port = site.terms, site.link_port
    link = Link(
        port=port,
        folder=(site.folder / "flower").resolve(),
        certificate=site.certificate.resolve(),
        key=site.certificate_key.resolve(),
        authority=site.authority.resolve(),
    )
    _demand_free_ports(site, proxy=proxy)
    site.ensure_own_certificate(at=datetime.now(UTC))
    configuration = write_proxy(site)
    with ExitStack() as stack:
        superlink = Supervisor("Flower's SuperLink", partial(start_superlink, link))
        stack.callback(superlink.stop)
        filter_ = Supervisor("the filter", partial(_start_filter, site))
        stack.callback(filter_.stop)
        supervisors = [superlink, filter_]
        if proxy:
            supervisors.append(Supervisor("nginx", partial(_start_nginx, configuration)))
            stack.callback(supervisors[-1].stop)
        _await_port("127.0.0.1", port, superlink, "Flower's SuperLink (see flower/superlink.log)")
        _await_port("127.0.0.1", site.filter_port, filter_, "the filter (see proxy/filter.log)")
        _await_port(terms.host, terms.port, superlink, "the proxy (see proxy/error.log)")
        demand_unexposed(site.endpoint(terms), {"Flower": port, "the filter": site.filter_port})
        for supervisor in supervisors:
            supervisor.watch()
        wire = FlowerWire(link)
        stack.callback(wire.close)
        wire.enrol({member.name: member.node_key for member in store.members()})
        yield wire


def _demand_free_ports(site: CoordinatorFolder, *, proxy: bool) -> None:
    """Raise if another process uses a port that Flower, the filter or nginx will listen on."""
    terms, changed = site.terms, "end that process, or write another port to"
    wanted = [
        ("Flower", "127.0.0.1", site.link_port, f"{changed} {site.folder / 'link.port'}"),
        ("the filter", "127.0.0.1", site.filter_port, f"{changed} {site.folder / 'filter.port'}"),
    ]
    if proxy:
        remedy = "end that process, or give --no-proxy if it is your own proxy"
        wanted.append(("the proxy", terms.host, terms.port, remedy))
    for whose, host, port, remedy in wanted:
        demand_free_port(host, port, whose=whose, remedy=remedy, patience_s=ENDING_S)


def wait_for_plants(wire: Wire, store: CoordinatorStore, *, seconds: float) -> frozenset[str]:
    """Wait until every active plant is online or the time is up; return the plants online."""
    wanted = {member.name for member in store.members() if member.active}
    deadline = time.monotonic() + seconds
    while not wanted <= (present := wire.present()) and time.monotonic() < deadline:
        time.sleep(0.5)
    return present


def _start_filter(site: CoordinatorFolder) -> subprocess.Popen[bytes]:
    command = [
        *bound_to_us(),
        *(sys.executable, "-m", "sluice.network.coordinator.filter_process"),
        str(site.folder.resolve()),
    ]
    with (site.folder / "proxy" / "filter.log").open("ab") as written:
        return subprocess.Popen(  # noqa: S603 - our own command, no shell
            command, stdout=written, stderr=subprocess.STDOUT, start_new_session=True
        )


def _start_nginx(configuration: Path) -> subprocess.Popen[bytes]:
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
    if nginx is None:
        raise SettingError(
            "nginx is not installed; install it (Debian: apt install nginx-light), or run another "
            "proxy with the same rules and give --no-proxy"
        )
    command = [*bound_to_us(), nginx, "-c", str(configuration), "-p", str(configuration.parent)]
    return subprocess.Popen(command, start_new_session=True)  # noqa: S603 - our own, no shell


def _await_port(host: str, port: int, process: Supervisor, what: str) -> None:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if process.ended:
            break
        try:
            with socket.create_connection((host, port), timeout=1):
                return
        except OSError:
            time.sleep(0.2)
    raise SettingError(
        f"{what} does not answer at {host}:{port}; check whether another process uses the port"
    )
