"""`sluice score` from the outside."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import polars as pl
import pytest

from sluice.detector.alone import train
from sluice.detector.model import DetectorKind
from sluice.detector.modelfile import save_detector
from sluice.invariants.mining.profiles import mine
from sluice.invariants.rulesfile import rules_hash, save_rules
from sluice.lab.plants.catalogue import simulate
from sluice.reports.page import plotly_name
from sluice.telemetry.record import Label, Record
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write
from tests.unit.conftest import Outcome

Run = Callable[..., Outcome]


@pytest.fixture(scope="module")
def plant() -> Record:
    return simulate("line", seed=0, days=5)


@pytest.fixture(scope="module")
def folder(plant: Record, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model, and a record whose tank jumps up and down for a while, labelled so."""
    made = tmp_path_factory.mktemp("plant")
    save_detector(train(plant, kind=DetectorKind.SUBSPACE), made / "model.safetensors")
    batch = plant.rows(4000, 5000)
    values, labels = batch.values.copy(), batch.labels.copy()
    values[300:400:2, batch.index("L_T2")] += 5
    labels[300:400] = Label.ATTACK
    write(
        replace(batch, values=values, labels=labels), made / "attacked.parquet", FileLayout.PARQUET
    )
    unlabelled = replace(batch, labels=labels * 0 + Label.UNLABELLED)
    write(unlabelled, made / "unlabelled.parquet", FileLayout.PARQUET)
    return made


def score(sluice: Run, folder: Path, out: Path, *options: object) -> Outcome:
    model = ("--model", folder / "model.safetensors")
    return sluice("score", folder / "attacked.parquet", *model, "--out", out, *options)


def test_help_has_an_example(sluice: Run) -> None:
    assert "Example: sluice score" in sluice("score", "--help").out


METRICS = {
    "average_precision", "vus_pr", "attacks", "attacks_detected", "batadal_score",
    "false_alarms_per_week", "detection_delay_s",
}  # fmt: skip


@pytest.mark.parametrize("name", ["scores.csv", "scores.parquet"])
def test_every_row_is_written_with_score_alarm_and_blame(
    sluice: Run, folder: Path, plant: Record, tmp_path: Path, name: str
) -> None:
    seen = score(sluice, folder, tmp_path / name, "--json")
    assert (seen.code, seen.err) == (0, "")
    first_release = {"windows", "alarms", "threshold", "false_alarms_per_day", "stretches"}
    assert set(seen.json) >= first_release | {"events"} | METRICS
    if name.endswith("csv"):
        written = pl.read_csv(tmp_path / name, try_parse_dates=True)
    else:
        written = pl.read_parquet(tmp_path / name)
    assert written.columns == ["time", "score", "alarm", "blame"]
    assert len(written) == 1_000
    assert seen.json["windows"] == 991
    assert written["time"][9] == plant.times[4009].item()
    assert written["score"][:9].is_null().all()
    assert written["score"][9:].is_not_null().all()
    assert set(written["alarm"].unique()) == {0, 1}
    assert written["alarm"].sum() == seen.json["alarms"]
    above = (written["score"] > cast("float", seen.json["threshold"])).fill_null(False)
    assert above.cast(pl.Int64).to_list() == written["alarm"].to_list()
    assert (written["blame"].is_not_null() == (written["alarm"] == 1)).all()
    assert all("L_T2" in one.split(";") for one in written["blame"][320:390])


def test_the_metrics_are_those_of_the_labels(sluice: Run, folder: Path, tmp_path: Path) -> None:
    seen = score(sluice, folder, tmp_path / "scores.csv", "--json").json
    assert (seen["attacks"], seen["attacks_detected"]) == (1, 1)
    assert cast("float", seen["average_precision"]) > 0.9
    assert 0.5 < cast("float", seen["batadal_score"]) <= 1
    assert cast("float", seen["detection_delay_s"]) <= 120
    events = cast("list[dict[str, object]]", seen["events"])
    longest = max(events, key=lambda event: cast("int", event["alarms"]))
    assert set(longest) == {"start_row", "end_row", "start", "end", "peak", "alarms", "blame"}
    assert "L_T2" in cast("list[str]", longest["blame"])


def test_the_attack_alarms_and_is_told(sluice: Run, folder: Path, tmp_path: Path) -> None:
    seen = score(sluice, folder, tmp_path / "scores.csv", "--json")
    stretches = cast("list[dict[str, object]]", seen.json["stretches"])
    longest = max(stretches, key=lambda s: cast("int", s["end_row"]) - cast("int", s["start_row"]))
    assert cast("int", longest["start_row"]) <= 301
    assert cast("int", longest["end_row"]) >= 399
    assert set(longest) == {"start_row", "end_row", "start", "end", "peak"}
    assert cast("float", seen.json["false_alarms_per_day"]) < 10
    shown = score(sluice, folder, tmp_path / "scores.csv")
    assert re.match(r"\d+ alarm events \(\d+ of 991 windows\)", shown.out)
    assert "BATADAL's score S" in shown.out
    assert "Longest alarms" in shown.out
    assert "a fault and an attack look the same" in shown.out


def test_without_labels_no_alarm_is_called_false(sluice: Run, folder: Path, tmp_path: Path) -> None:
    options: tuple[object, ...] = ("--model", folder / "model.safetensors")
    options += ("--out", tmp_path / "scores.csv")
    seen = sluice("score", folder / "unlabelled.parquet", *options, "--json")
    assert (seen.code, seen.json["false_alarms_per_day"]) == (0, None)
    assert METRICS.isdisjoint(seen.json)
    assert "false alarms" not in sluice("score", folder / "unlabelled.parquet", *options).out


@pytest.mark.parametrize("alone", [False, True])
def test_the_page_needs_no_network_and_alone_no_other_file(
    sluice: Run, folder: Path, tmp_path: Path, *, alone: bool
) -> None:
    record, page = tmp_path / "<b>x.parquet", tmp_path / "page.html"
    record.write_bytes((folder / "attacked.parquet").read_bytes())
    options: tuple[object, ...] = ("--model", folder / "model.safetensors")
    options += ("--out", tmp_path / "scores.csv")
    options += ("--self-contained",) if alone else ()
    seen = sluice("score", record, *options, "--html", page, "--quiet")
    assert (seen.code, seen.err) == (0, "")
    beside = {path.name for path in tmp_path.glob("*.js")}
    assert beside == (set() if alone else {plotly_name()})
    assert (page.stat().st_size < 1_500_000) is not alone
    text = page.read_text(encoding="utf-8")
    assert not re.search(r'<(script|link)[^>]+(src|href)="http', text)
    assert "<b>x" not in text
    assert "labelled attack with an alarm" in text
    assert "evidence about telemetry" in text
    assert 'id="shaded"' in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--model", "nowhere.safetensors"), "nowhere.safetensors cannot be read: No such file"),
        (("--out", "scores.xlsx"), "--out is 'scores.xlsx'; scores are a table, so it must end in"),
        (("--every", "2"), "the model reads one every 60 s"),
        (("--html", "no/such/folder/x.html"), "cannot write"),
        (("--out", "no/such/folder/x.csv"), "cannot write"),
    ],
)
def test_bad_input_exits_2_and_writes_nothing(
    sluice: Run, folder: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    seen = score(sluice, folder, tmp_path / "scores.csv", *options)
    assert (seen.code, seen.out) == (2, "")
    assert message in seen.err
    assert [path for path in tmp_path.iterdir() if path.is_file()] == []


def test_a_missing_channel_is_named(
    sluice: Run, folder: Path, plant: Record, tmp_path: Path
) -> None:
    record = tmp_path / "fewer.parquet"
    write(plant.rows(0, 500).without("L_T2"), record, FileLayout.PARQUET)
    model = ("--model", folder / "model.safetensors")
    seen = sluice("score", record, *model, "--out", tmp_path / "scores.csv")
    assert seen.code == 2
    assert "has no channel 'L_T2', which the model reads" in seen.err


def test_the_record_and_the_model_are_not_written_over(
    sluice: Run, folder: Path, tmp_path: Path
) -> None:
    model = folder / "model.safetensors"
    seen = score(sluice, folder, folder / "attacked.parquet")
    assert (seen.code, "is an input of this command" in seen.err) == (2, True)
    seen = score(sluice, folder, tmp_path / "scores.csv", "--html", model)
    assert (seen.code, "is an input of this command" in seen.err) == (2, True)


def test_a_detector_reads_its_own_rules_and_refuses_others(
    sluice: Run, folder: Path, plant: Record, tmp_path: Path
) -> None:
    write(plant, tmp_path / "clean.parquet", FileLayout.PARQUET)
    rules = mine(plant.rows(0, 2_000), plant.rows(2_000, 4_000))
    save_rules(rules, tmp_path / "rules.json")
    save_rules(replace(rules, plant="other"), tmp_path / "other.json")
    model, out = tmp_path / "m.safetensors", tmp_path / "scores.csv"
    options = ("--rules", tmp_path / "rules.json", "--out", model, "--json")
    trained = sluice("train", tmp_path / "clean.parquet", *options)
    assert (trained.code, trained.json["detector"]) == (0, "physics+moments")
    assert trained.json["rules"] == rules_hash(rules)
    attacked = folder / "attacked.parquet"
    alone = sluice("score", attacked, "--model", model, "--out", out, "--json")
    given = sluice(
        "score", attacked, "--model", model, "--rules", tmp_path / "rules.json", "--out", out,
        "--json",
    )  # fmt: skip
    assert alone.code == given.code == 0
    assert alone.json == given.json
    refused = sluice(
        "score", attacked, "--model", model, "--rules", tmp_path / "other.json",
        "--out", tmp_path / "no.csv",
    )  # fmt: skip
    assert (refused.code, refused.out) == (2, "")
    assert "was calibrated with rules" in refused.err
    assert not (tmp_path / "no.csv").exists()


def test_rules_for_a_detector_that_reads_none_are_refused(
    sluice: Run, folder: Path, plant: Record, tmp_path: Path
) -> None:
    save_rules(mine(plant.rows(0, 2_000), plant.rows(2_000, 4_000)), tmp_path / "rules.json")
    seen = score(sluice, folder, tmp_path / "s.csv", "--rules", tmp_path / "rules.json")
    assert (seen.code, "reads no rules" in seen.err) == (2, True)
