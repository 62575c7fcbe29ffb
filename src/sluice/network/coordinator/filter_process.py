"""The process of the filter: it reads the coordinator's store and serves on loopback.

`hosting.py` starts it with `python -m sluice.network.coordinator.filter_process FOLDER`. It opens
the store for reading only, so that a plant that is removed or suspended, or whose certificate is
revoked, is refused at once.
"""

import ssl
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import httpx
import uvicorn

from sluice.network.coordinator.folder import CoordinatorFolder
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.wire import EnrolledPlant, FleetFilter, RefusalCounts

__all__ = ["enrolled_plants", "fleet_filter"]

FRESH_S = 1.0
LONGEST_S = 120.0


def enrolled_plants(store: CoordinatorStore) -> dict[str, EnrolledPlant]:
    """Return the active plants with their node keys and valid certificates."""
    serials: dict[str, set[str]] = {}
    for each in store.certificates():
        if not each.revoked:
            serials.setdefault(each.plant, set()).add(each.serial)
    return {
        member.name: EnrolledPlant(
            name=member.name,
            node_key=member.node_key,
            serials=frozenset(serials.get(member.name, ())),
        )
        for member in store.members()
        if member.active
    }


def fleet_filter(site: CoordinatorFolder, store: CoordinatorStore) -> FleetFilter:
    """Build the filter of a federation."""
    link = httpx.AsyncClient(
        base_url=f"https://127.0.0.1:{site.link_port}",
        verify=ssl.create_default_context(cafile=str(site.authority)),
        timeout=LONGEST_S,
        limits=httpx.Limits(max_connections=256, max_keepalive_connections=64),
        trust_env=False,
    )
    return FleetFilter(
        link=link,
        secret=site.filter_secret,
        roster=_fresh(partial(enrolled_plants, store)),
        refusals=RefusalCounts(site.refusals),
    )


def _fresh(
    read: Callable[[], Mapping[str, EnrolledPlant]],
) -> Callable[[], Mapping[str, EnrolledPlant]]:
    """Return a function that reads at most once a second."""
    last: tuple[float, Mapping[str, EnrolledPlant]] = (float("-inf"), {})

    def fresh() -> Mapping[str, EnrolledPlant]:
        nonlocal last
        if time.monotonic() - last[0] > FRESH_S:
            last = time.monotonic(), read()
        return last[1]

    return fresh


def _spare_searches() -> None:
    """Let an import of `sniffio` fail at once if it is not installed.

    httpcore imports it several times in every call, and Python does not remember that a module is
    missing: it would search all folders each time.
    """
    if find_spec("sniffio") is None:
        sys.modules["sniffio"] = None  # type: ignore[assignment]  # then an import raises


def main(folder: Path) -> None:
    """Serve until the process is stopped."""
    _spare_searches()
    site = CoordinatorFolder(folder)
    store = CoordinatorStore(site.base, read_only=True)
    uvicorn.run(
        fleet_filter(site, store),
        host="127.0.0.1",
        port=site.filter_port,
        log_level="warning",
        access_log=False,
        ws="none",
        proxy_headers=False,
        server_header=False,
        timeout_keep_alive=120,
        timeout_graceful_shutdown=3,
        backlog=1_024,
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]))
