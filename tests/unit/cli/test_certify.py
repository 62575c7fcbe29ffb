"""`sluice certify` and the recalibration of votes from the outside."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from sluice.detector import (
    MERGE_ROWS,
    Physics,
    VotedModel,
    load_detector,
    save_detector,
    train,
    with_rules,
)
from sluice.evaluation import MERGE_ROWS as MERGED_BY_METRICS
from sluice.federation import FederationSettings, ballots_of, certificate_of, federate
from sluice.invariants import mine
from sluice.lab.plants import simulate
from sluice.telemetry import FileLayout, Label, Record, read_record, write
from tests.unit.conftest import Outcome

Run = Callable[..., Outcome]
KEYS = (
    "members",
    "votes_needed",
    "recall",
    "recall_certified",
    "attacks_detected",
    "attacks_certified",
    "precision_certified",
    "false_alarms_per_week_certified",
)


@pytest.fixture(scope="module")
def plant() -> Record:
    return simulate("line", seed=0, days=6)


@pytest.fixture(scope="module")
def folder(plant: Record, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A vote of five members, a pooled detector, clean rows and attacked rows."""
    made = tmp_path_factory.mktemp("vote")
    settings = FederationSettings(
        clients={name: plant.rows(at * 900, (at + 1) * 900) for at, name in enumerate("abcde")},
        validation=plant.rows(5_000, 7_500),
        detector="moments",
        rule="vote",
        malicious=2,
        false_alarms_per_week=20,
    )
    save_detector(federate(settings).detector, made / "vote.safetensors")
    save_detector(federate(replace(settings, rule="fedavg")).detector, made / "sum.safetensors")
    write(plant.rows(5_000, 7_500), made / "clean.parquet", FileLayout.PARQUET)
    batch = plant.rows(8_000, 8_600)
    values, labels = batch.values.copy(), batch.labels.copy()
    column = batch.index("S_PU1")
    values[200:400, column] = 1 - values[200:400, column]
    labels[200:400] = Label.ATTACK
    attacked = replace(batch, values=values, labels=labels)
    write(attacked, made / "attacked.parquet", FileLayout.PARQUET)
    return made


def options(folder: Path, malicious: int = 2) -> tuple[object, ...]:
    return (
        *("--record", folder / "attacked.parquet", "--clean", folder / "clean.parquet"),
        *("--malicious", malicious),
    )


def test_help_has_an_example(sluice: Run) -> None:
    assert "Example: sluice certify" in sluice("certify", "--help").out


def test_the_certificate_as_json(sluice: Run, folder: Path, plant: Record) -> None:
    seen = sluice("certify", folder / "vote.safetensors", *options(folder), "--json")
    assert (seen.code, seen.err) == (0, "")
    assert set(KEYS) <= set(seen.json)
    assert (seen.json["members"], seen.json["votes_needed"]) == (5, 3)
    recall, certified = cast("float", seen.json["recall"]), seen.json["recall_certified"]
    assert 0 < cast("float", certified) <= recall
    assert (seen.json["attacks_detected"], seen.json["attacks_certified"]) == (1, 1)
    assert seen.json["vacuous"] is False
    # The thresholds of the file were set on the same clean rows, so the numbers are the same.
    detector = load_detector(folder / "vote.safetensors")
    batch = plant.rows(8_000, 8_600)
    values, labels = batch.values.copy(), batch.labels.copy()
    values[200:400, batch.index("S_PU1")] = 1 - values[200:400, batch.index("S_PU1")]
    labels[200:400] = Label.ATTACK
    attacked = replace(batch, values=values, labels=labels)
    expected = certificate_of(detector, attacked, malicious=2).certified
    assert certified == pytest.approx(expected.recall)
    assert seen.json["false_events_certified"] == expected.false_events


def test_the_certificate_as_text_and_page(sluice: Run, folder: Path, tmp_path: Path) -> None:
    page = tmp_path / "certificate.html"
    seen = sluice("certify", folder / "vote.safetensors", *options(folder), "--html", page)
    assert seen.code == 0
    for words in (
        "3 of 5 votes",
        "recall of attack windows",
        "false-alarm events",
        "If this member is malicious",
        "certified",
        "owners and integrators",
    ):
        assert words in seen.out
    written = page.read_text(encoding="utf-8")
    for words in ("whatever any 2 of 5 members", "this calibration", "Votes over time"):
        assert words in written


def test_the_pooled_sum_has_a_vacuous_certificate(sluice: Run, folder: Path) -> None:
    seen = sluice("certify", folder / "sum.safetensors", *options(folder, 1), "--json")
    assert seen.code == 0
    assert seen.json["vacuous"] is True
    assert (seen.json["members"], seen.json["voters"]) == (5, 1)
    assert (seen.json["recall_certified"], seen.json["attacks_certified"]) == (0, 0)
    shown = sluice("certify", folder / "sum.safetensors", *options(folder, 1))
    assert "vacuous" in shown.out


def test_another_number_of_votes(sluice: Run, folder: Path) -> None:
    model = folder / "vote.safetensors"
    seen = sluice("certify", model, *options(folder), "--votes", 5, "--json")
    assert (seen.json["votes_needed"], seen.json["can_silence"]) == (5, True)
    assert seen.json["recall_certified"] == 0


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--malicious", 6), "6 malicious members of 5; expected 0 to 5"),
        (("--votes", 6), "an alarm needs 6 votes of 5"),
        (("--false-alarms-per-week", 0), "false alarms a week must be above 0"),
        (("--self-contained",), "--html PAGE"),
    ],
)
def test_what_cannot_be_certified_is_refused(
    sluice: Run, folder: Path, more: tuple[object, ...], message: str
) -> None:
    seen = sluice("certify", folder / "vote.safetensors", *options(folder), *more, "--json")
    assert (seen.code, seen.out) == (2, "")
    assert message in seen.err


def test_a_record_without_attacks_is_refused(sluice: Run, folder: Path) -> None:
    clean = folder / "clean.parquet"
    seen = sluice(
        *("certify", folder / "vote.safetensors", "--record", clean, "--clean", clean),
        *("--malicious", 1),
    )
    assert seen.code == 2
    assert "no window is labelled attack" in seen.err


def test_attacked_rows_set_no_threshold(sluice: Run, folder: Path) -> None:
    record = folder / "attacked.parquet"
    seen = sluice(
        *("certify", folder / "vote.safetensors", "--record", record, "--clean", record),
        *("--malicious", 1),
    )
    assert seen.code == 2
    assert "windows given as clean are labelled attack" in seen.err


def test_recalibration_shows_what_changes_and_can_be_undone(
    sluice: Run, folder: Path, tmp_path: Path
) -> None:
    before, changed, back = (
        folder / "vote.safetensors",
        tmp_path / "new.safetensors",
        tmp_path / "back.safetensors",
    )
    asked = ("--clean", folder / "clean.parquet", "--false-alarms-per-week", 40)
    seen = sluice("model", "recalibrate", before, *asked, "--out", changed, "--json")
    assert seen.code == 0
    changes = cast("list[dict[str, object]]", seen.json["changes"])
    assert [change["voter"] for change in changes] == list("abcde")
    assert any(change["before"] != change["after"] for change in changes)
    assert "threshold of" in sluice("model", "restore", changed, "--out", back).out
    first, last = (load_detector(path).model for path in (before, back))
    assert isinstance(first, VotedModel)
    assert isinstance(last, VotedModel)
    assert last.calibration.thresholds == first.calibration.thresholds
    assert len(last.calibrations) == 3
    shown = sluice("model", "show", back, "--json").json
    assert (shown["voters"], shown["votes_needed"]) == (list("abcde"), 3)
    assert len(cast("list[str]", shown["calibrations"])) == 3


def test_an_alarm_names_its_tags_and_who_voted(sluice: Run, folder: Path, tmp_path: Path) -> None:
    scored = ("score", folder / "attacked.parquet", "--model", folder / "vote.safetensors")
    seen = sluice(*scored, "--out", tmp_path / "scores.csv", "--json")
    assert seen.code == 0, seen.err
    votes = cast("list[dict[str, list[str]]]", seen.json["votes"])
    assert votes
    for vote in votes:
        assert vote["tags"]
        assert len(vote["voted"]) >= 3
        assert sorted((*vote["voted"], *vote["dissented"])) == list("abcde")
    assert "dissented" in sluice(*scored, "--out", tmp_path / "scores.csv").out


def test_a_first_calibration_is_not_undone(sluice: Run, folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "back.safetensors"
    seen = sluice("model", "restore", folder / "vote.safetensors", "--out", out)
    assert (seen.code, out.exists()) == (2, False)
    assert "none to go back to" in seen.err


def test_events_are_merged_alike_when_calibrated_and_when_measured() -> None:
    assert MERGE_ROWS == MERGED_BY_METRICS


@pytest.fixture(scope="module")
def beside_rules(folder: Path, plant: Record) -> Path:
    """The vote, beside rules of the plant that uses it."""
    rules = mine(plant.rows(0, 2_500), plant.rows(2_500, 5_000))
    clean = plant.rows(5_000, 7_500)
    vote = load_detector(folder / "vote.safetensors")
    save_detector(with_rules(vote, Physics(rules=rules), clean), folder / "or.safetensors")
    return folder / "or.safetensors"


def test_a_certificate_beside_rules_counts_their_alarms_whatever_members_do(
    sluice: Run, folder: Path, beside_rules: Path
) -> None:
    alone = sluice("certify", folder / "vote.safetensors", *options(folder), "--json")
    both = sluice("certify", beside_rules, *options(folder), "--json")
    assert (alone.code, both.code) == (0, 0), both.err
    assert alone.json["rule_windows"] is None
    assert cast("int", both.json["rule_windows"]) > 0
    for figure in ("recall", "recall_certified", "attacks_certified"):
        assert cast("float", both.json[figure]) >= cast("float", alone.json[figure])
    words = " ".join(sluice("certify", beside_rules, *options(folder)).out.split())
    assert "An alarm of the plant's own rules is an alarm too" in words
    assert "No member has a say in these rules" in words


def test_rules_keep_their_recall_where_all_members_are_malicious(
    sluice: Run, folder: Path, beside_rules: Path
) -> None:
    seen = sluice("certify", beside_rules, *options(folder, malicious=5), "--json")
    assert seen.code == 0, seen.err
    assert seen.json["vacuous"] is False
    detector = load_detector(beside_rules)
    record = read_record(folder / "attacked.parquet")
    ballots = ballots_of(detector, record)
    assert ballots.rules is not None
    attack = ballots.labels == Label.ATTACK
    assert seen.json["recall_certified"] == pytest.approx(ballots.rules[attack].mean())
    assert detector.score(record).alarms.tolist() == ballots.alarms.tolist()


def test_recalibration_beside_rules_lists_the_rules_and_can_be_undone(
    sluice: Run, folder: Path, beside_rules: Path, tmp_path: Path
) -> None:
    changed, back = tmp_path / "new.safetensors", tmp_path / "back.safetensors"
    asked = ("--clean", folder / "clean.parquet", "--false-alarms-per-week", 60)
    seen = sluice("model", "recalibrate", beside_rules, *asked, "--out", changed, "--json")
    assert seen.code == 0, seen.err
    changes = cast("list[dict[str, object]]", seen.json["changes"])
    assert [change["voter"] for change in changes] == [*"abcde", "the plant's own rules"]
    assert all(change["before"] != change["after"] for change in changes)
    assert sluice("model", "restore", changed, "--out", back).code == 0
    record = read_record(folder / "attacked.parquet")
    first, last = (load_detector(path).score(record) for path in (beside_rules, back))
    assert first.scores.tolist() == last.scores.tolist()


def test_a_detector_with_rules_is_recalibrated_by_the_same_command(
    sluice: Run, folder: Path, plant: Record, tmp_path: Path
) -> None:
    before, changed, back = (tmp_path / f"{name}.safetensors" for name in ("a", "b", "c"))
    rules = mine(plant.rows(0, 2_500), plant.rows(2_500, 5_000))
    save_detector(train(plant.rows(0, 5_000), rules=rules, false_alarms_per_week=20), before)
    asked = ("--clean", folder / "clean.parquet")
    seen = sluice("model", "recalibrate", before, *asked, "--out", changed)
    assert seen.code == 0, seen.err
    assert "rules' score in clean peaks" in seen.out
    assert sluice("model", "restore", changed, "--out", back).code == 0
    shown = sluice("model", "show", back, "--json").json
    assert shown["kind"] == "physics+moments"
    assert len(cast("list[str]", shown["calibrations"])) == 3
