"""The dashboard in a real Chromium: it shows the federation, and follows it while it runs."""

import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import uvicorn

from sluice.lab.plants.catalogue import simulate
from sluice.network.coordinator.store import CoordinatorStore
from sluice.reports.dashboard.app import serve

from .browser import CHROMIUM, chromium
from .conftest import START, Consortium, Founder

PICTURES = os.environ.get("SLUICE_PICTURES")  # a folder to leave pictures in, for people to look at

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")


@pytest.fixture
def ran(founder: Founder) -> Consortium:
    consortium = founder()
    for index, name in enumerate(("north", "south", "west")):
        consortium.join(name, index)
    absent = consortium.plants.pop("south")
    consortium.run(rounds=2)
    consortium.plants["south"] = absent
    return consortium


@pytest.fixture
def address(ran: Consortium) -> Iterator[str]:
    labelled = simulate("line", seed=1, days=2, attacks=True)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        app = serve(ran.site.folder, labelled)
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off", ws="none"))
        thread = threading.Thread(target=server.run, args=([taken],), daemon=True)
        thread.start()
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/"
        server.force_exit = True
        server.should_exit = True
        thread.join(timeout=10)


def test_the_page_shows_a_federation_and_follows_it(
    ran: Consortium, address: str, tmp_path: Path
) -> None:
    with chromium(tmp_path / "profile") as browser:
        browser.size(1_280, 900)
        browser.open(address)
        browser.wait("document.getElementById('live').textContent === 'live'")
        assert browser.value("document.getElementById('round').textContent") == "2 of 10"
        assert "verifies" in browser.value("document.getElementById('log-tile').textContent")
        plants = browser.value("document.getElementById('plants').innerText")
        assert "left out" in plants
        assert "it sent no proof (step 4)" in plants
        browser.value("document.getElementById('section-charts').scrollIntoView()")
        browser.wait("document.querySelectorAll('#section-charts .bars .point').length >= 2")
        browser.wait("document.querySelectorAll('#section-charts .scatter').length === 3")
        assert 0.0 < float(browser.value("document.getElementById('auc-pr').textContent")) <= 1.0
        keep(browser.picture, tmp_path / "dashboard-1280.png")
        # On a phone nothing is cut off at the side.
        browser.size(390, 844)
        browser.wait("document.documentElement.scrollWidth <= 390")
        browser.wait("document.querySelector('#section-charts .main-svg').clientWidth <= 390")
        keep(browser.picture, tmp_path / "dashboard-390.png")
        # The federation goes on; the page follows without being loaded again.
        browser.value("window.untouched = true")
        ran.run(rounds=3)
        browser.wait("document.getElementById('round').textContent === '3 of 10'")
        browser.wait("document.getElementById('aggregated').textContent === '3 of 3 plants'")
        assert browser.value("window.untouched")
        assert browser.complaints() == []
        assert [url for url in browser.asked_for() if not url.startswith(address)] == []


def test_what_a_plant_is_called_is_text_and_nothing_else(
    ran: Consortium, address: str, tmp_path: Path
) -> None:
    # No plant can join under such a name; a store that was changed by hand may still hold one.
    store = CoordinatorStore(ran.site.base)
    with store._changing() as base:
        base.execute(
            "INSERT INTO plants (name, node_key, rules, joined) VALUES (?, '', '', ?)",
            ("<img src=x onerror=\"document.title='owned'\">", START.isoformat()),
        )
    store.close()
    with chromium(tmp_path / "profile") as browser:
        browser.open(address)
        assert browser.value("document.querySelectorAll('#plants img').length") == 0
        assert browser.value("document.title") != "owned"


def keep(picture: Callable[[Path], None], path: Path) -> None:
    picture(path)
    assert path.stat().st_size > 20_000
    if PICTURES:
        (Path(PICTURES) / path.name).write_bytes(path.read_bytes())
