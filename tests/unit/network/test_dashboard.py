"""The page and the figures of a federation, from its folder."""

import pytest
from fastapi import FastAPI

from sluice.dashboard.app import serve
from sluice.dashboard.metrics import exposition
from sluice.dashboard.snapshot import take

from .conftest import Consortium, Founder


@pytest.fixture
def ran(founder: Founder) -> Consortium:
    consortium = founder()
    for index, name in enumerate(("north", "south")):
        consortium.join(name, index)
    del consortium.plants["south"]
    consortium.run(rounds=1)
    return consortium


def body(app: FastAPI, path: str) -> str:
    route = next(route for route in app.routes if getattr(route, "path", "") == path)
    return bytes(route.endpoint().body).decode()  # type: ignore[attr-defined]


def test_page_and_figures_say_what_the_log_says(ran: Consortium) -> None:
    found = take(ran.site.folder)
    assert (found.round, found.phase, found.fault) == (1, "between rounds", "")
    assert found.history[0].members == ("north",)
    assert ("south", "4") in found.history[0].excluded
    page = body(serve(ran.site.folder), "/")
    assert "The log verifies" in page
    assert "left out at step 4" in page
    assert "http" not in page.replace("http-equiv", "")  # nothing comes from elsewhere
    figures = body(serve(ran.site.folder), "/metrics")
    assert figures == exposition(found)
    assert "sluice_log_verifies 1" in figures
    assert 'sluice_plant_failed_rounds{plant="south"} 1' in figures


def test_a_tampered_log_entry_is_shown(ran: Consortium) -> None:
    raw = ran.site.log.read_bytes()
    ran.site.log.write_bytes(raw.replace(b'"round":1', b'"round":2', 1))
    found = take(ran.site.folder)
    assert found.fault
    assert "does not verify" in body(serve(ran.site.folder), "/")
    assert "sluice_log_verifies 0" in exposition(found)
