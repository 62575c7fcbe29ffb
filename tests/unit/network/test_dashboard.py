"""The page and the figures of a federation, from its folder."""

import pytest
from fastapi import FastAPI

from sluice.attestation.protocol.verifier import STEPS
from sluice.lab.plants.catalogue import simulate
from sluice.network.coordinator.founding import detector
from sluice.network.coordinator.store import CoordinatorStore
from sluice.reports.dashboard.app import serve
from sluice.reports.dashboard.metrics import exposition
from sluice.reports.dashboard.quality import ModelEvaluator
from sluice.reports.dashboard.snapshot import take
from sluice.reports.dashboard.step_names import plain
from sluice.telemetry.record import Label

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
    assert "verifies" in page
    assert "left out at step 4" in page
    assert "it sent no proof" in page
    assert "http" not in page.replace("http-equiv", "")  # nothing comes from elsewhere
    figures = body(serve(ran.site.folder), "/metrics")
    measured = take(ran.site.folder, ModelEvaluator(ran.site))
    assert figures == exposition(measured)
    (quality,) = measured.quality
    assert f"sluice_model_error {quality.error}" in figures
    assert (quality.round, quality.auc_pr) == (1, None)
    assert "sluice_log_verifies 1" in figures
    assert 'sluice_plant_absent_rounds{plant="south"} 1' in figures


def test_the_quality_of_a_round_is_that_of_its_model(ran: Consortium) -> None:
    ran.run(rounds=3)
    labelled = simulate("line", seed=1, days=1, attacks=True)
    found = take(ran.site.folder, ModelEvaluator(ran.site, labelled))
    assert [each.round for each in found.quality] == [1, 2, 3]
    store = CoordinatorStore(ran.site.base, read_only=True)
    last = store.last(federation="water")
    store.close()
    assert last is not None
    final = detector(ran.site, last)
    assert found.quality[-1].threshold == final.threshold.score
    scored = final.score(labelled)
    attack = scored.labels == Label.ATTACK
    assert found.quality[-1].recall == float(scored.alarms[attack].mean())
    # A folder without its reference has a page, and no quality on it.
    (ran.site.folder / "reference.json").unlink()
    assert take(ran.site.folder, ModelEvaluator(ran.site)).quality == ()


def test_every_step_of_the_protocol_has_words() -> None:
    for step in (*"123467", *STEPS):
        assert plain(step) != f"step {step} failed"


def test_a_tampered_log_entry_is_shown(ran: Consortium) -> None:
    raw = ran.site.log.read_bytes()
    ran.site.log.write_bytes(raw.replace(b'"round":1', b'"round":2', 1))
    found = take(ran.site.folder)
    assert found.fault
    assert "does not verify" in body(serve(ran.site.folder), "/")
    assert "sluice_log_verifies 0" in exposition(found)
