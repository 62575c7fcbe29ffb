"""The page and the figures of a federation, from its folder."""

import logging
from datetime import timedelta

import pytest
from fastapi import FastAPI

from sluice.attestation.protocol.step_words import step_in_words
from sluice.attestation.protocol.verifier import STEPS
from sluice.lab.plants.catalogue import simulate
from sluice.network.coordinator.founding import detector
from sluice.network.coordinator.operations import go_back
from sluice.network.coordinator.states import PlantWord, round_in_words
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.plant.folder import PlantFolder
from sluice.reports.dashboard.app import serve
from sluice.reports.dashboard.metrics import exposition
from sluice.reports.dashboard.quality import ModelEvaluator
from sluice.reports.dashboard.snapshot import take
from sluice.telemetry.record import Label
from tests.unit.reports.pages import Page

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
    assert "of round 1 because it sent no proof (step 4)" in page
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
        assert step_in_words(step) != f"step {step} failed"


def test_a_tampered_log_entry_is_shown(ran: Consortium) -> None:
    raw = ran.site.log.read_bytes()
    ran.site.log.write_bytes(raw.replace(b'"round":1', b'"round":2', 1))
    found = take(ran.site.folder)
    assert found.fault
    assert "does not verify" in body(serve(ran.site.folder), "/")
    assert "sluice_log_verifies 0" in exposition(found)


def states(ran: Consortium) -> dict[str, PlantWord]:
    return {plant.name: plant.state.word for plant in take(ran.site.folder).plants}


def test_a_plant_that_fell_silent_is_not_green(ran: Consortium, founder: Founder) -> None:
    consortium = founder_of_three(ran)
    consortium.run(rounds=2)
    assert states(consortium) == dict.fromkeys(("north", "south", "west"), PlantWord.TRAINED)
    del consortium.plants["south"]  # attested, and gone
    consortium.run(rounds=3)
    found = take(consortium.site.folder)
    south = next(plant for plant in found.plants if plant.name == "south")
    assert south.state.word is PlantWord.SILENT
    assert not south.takes_part
    assert south.state.detail == "in round 3 it sent no token or no update in time"
    page = body(serve(consortium.site.folder), "/")
    assert '<span class="state bad">silent</span>' in page
    assert page.count('<span class="state good">trained</span>') == 2
    assert 'sluice_plant_takes_part{plant="south"} 0' in exposition(found)
    assert 'sluice_plant_takes_part{plant="west"} 1' in exposition(found)


def founder_of_three(ran: Consortium) -> Consortium:
    """Let the absent plant come back, and a third one join."""
    ran.plants["south"] = PlantFolder(ran.folder / "south").agent(reveal_rows=True)
    ran.join("west", 2)
    return ran


def test_page_and_round_line_name_who_was_aggregated_and_why_others_were_left_out(
    ran: Consortium,
) -> None:
    page = Page(body(serve(ran.site.folder), "/"))
    assert page.tiles["aggregated in round 1"] == ("1 of 2 plants", "north; left out: south")
    header, row = page.rows[-2:]
    assert header[:3] == ["round", "aggregated", "left out because"]
    assert row[:3] == ["1", "north", "south: it sent no proof (step 4)"]
    assert round_in_words(ran.site.ledger(), rounds=10) == (
        "round 1 of 10: aggregated north. Left out: south because it sent no proof (step 4)"
    )


def test_every_state_of_a_plant_has_its_word(founder: Founder) -> None:
    consortium = founder(suspend_after=2)
    consortium.join("north", 0)
    consortium.join("south", 1)
    assert set(states(consortium).values()) == {PlantWord.WAITING}  # no batch yet
    gone = consortium.plants.pop("south")
    consortium.run(rounds=1)
    assert states(consortium) == {"north": PlantWord.TRAINED, "south": PlantWord.LEFT_OUT}
    consortium.join("west", 2)
    assert states(consortium)["west"] is PlantWord.WAITING
    consortium.run(rounds=2)
    assert states(consortium)["south"] is PlantWord.SUSPENDED
    consortium.plants["south"] = gone
    go_back(consortium.site.folder, "west", before=2, at=consortium.clock())
    assert states(consortium)["west"] is PlantWord.REMOVED


def test_a_plant_whose_token_is_awaited_is_waiting_and_not_green(ran: Consortium) -> None:
    protocol = ran.site.protocol()
    model = protocol.log.ledger.rounds.model
    assert model is not None
    opened = ran.clock()
    protocol.open_round(model, opened + timedelta(minutes=5), at=opened)
    found = take(ran.site.folder)
    assert (found.progress, found.round, found.phase) == (2, 2, "collecting tokens")
    north = next(plant for plant in found.plants if plant.name == "north")
    assert north.state.sentence == "waiting: its token of round 2 has not arrived"
    assert '<span class="state good">' not in body(serve(ran.site.folder), "/")


def test_rounds_that_were_given_up_never_make_round_11_of_10(ran: Consortium) -> None:
    founder_of_three(ran).run(rounds=10)
    assert take(ran.site.folder).phase == "finished"
    go_back(ran.site.folder, "west", before=10, at=ran.clock())
    found = take(ran.site.folder)
    assert (found.progress, found.round, found.phase) == (9, 10, "between rounds")
    del ran.plants["west"]
    ran.run(rounds=10)
    found = take(ran.site.folder)
    assert (found.progress, found.round, found.phase) == (10, 11, "finished")
    page = body(serve(ran.site.folder), "/")
    assert "<h1>water: round 10 of 10</h1>" in page
    assert "11 of 10" not in page
    assert "round 11 of the log, because rounds were given up" in page
    line = round_in_words(ran.site.ledger(), rounds=10)
    assert line.startswith("round 10 of 10 (number 11 in the log): aggregated north, south")
    figures = exposition(found)
    assert "sluice_rounds_progress 10" in figures
    assert "sluice_rounds 10" in figures


def test_a_round_without_an_aggregate_says_so(ran: Consortium) -> None:
    class Wordless:
        def answer(self, question: bytes) -> bytes:  # noqa: ARG002
            return b""

    ran.run(rounds=2)
    ran.plants["north"] = Wordless()
    ran.run(rounds=3)
    line = round_in_words(ran.site.ledger(), rounds=10)
    assert line.startswith("round 3 of 10: aggregated none, so the model is unchanged. Left out: ")
    assert "north because it sent no token or no update in time (step 6)" in line


def test_what_becomes_of_a_round_is_said_at_the_plant(
    ran: Consortium, caplog: pytest.LogCaptureFixture
) -> None:
    founder_of_three(ran)
    with caplog.at_level(logging.INFO, logger="sluice.plant"):
        ran.run(rounds=3)
    said = [record.getMessage() for record in caplog.records]
    assert "proving the batch of 600 rows" in said
    assert "the commitment to the batch is sent, with its proof" in said
    assert "round 2 of 10: trained; the update is pledged" in said
    assert "round 2 of 10: the update is sent" in said
    assert "round 2: aggregated, one of 3 plants" in said
    assert "round 1: this plant was left out because it sent no proof (step 4)" in said
