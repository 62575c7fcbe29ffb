"""`sluice federate` from the outside."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sluice.detector import VotedModel, load_detector
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write
from tests.unit.conftest import Outcome

Run = Callable[..., Outcome]

SMALL = ("--plant", "line", "--days", 8, "--clients", 4, "--rounds", 2, "--epochs", 1, "--quiet")
KEYS = {
    "targeted_recall",
    "untargeted_recall",
    "f1",
    "auc_pr",
    "admitted",
    "refused",
    "influence",
}


def test_a_federation_leaves_a_model_a_result_and_a_checkpoint(sluice: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    told = sluice("federate", *SMALL, "--rule", "median", "--out", out, "--json")
    assert told.code == 0, told.err
    assert set(told.json) >= KEYS
    assert told.json["admitted"] == ["plant-0", "plant-1", "plant-2", "plant-3"]
    assert told.json["refused"] == []
    influence = told.json["influence"]
    assert isinstance(influence, dict)
    assert sum(influence.values()) == pytest.approx(1)
    assert sorted(path.name for path in out.iterdir()) == [
        "checkpoint.safetensors",
        "model.safetensors",
        "result.json",
    ]
    assert json.loads((out / "result.json").read_text())["score"]["f1"] == told.json["f1"]


def test_a_vote_leaves_a_model_and_a_certificate(sluice: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    vote = ("--detector", "moments", "--rule", "vote", "--malicious", 1)
    asked = ("--false-alarms-per-week", 20, "--attack", "replay", "--mode", "naive")
    told = sluice("federate", *SMALL, *vote, *asked, "--out", out, "--json")
    assert told.code == 0, told.err
    certificate = told.json["certificate"]
    assert isinstance(certificate, dict)
    assert (certificate["members"], certificate["votes_needed"]) == (4, 2)
    assert certificate["malicious"] == 1
    assert certificate["recall_certified"] <= certificate["recall"]
    written = json.loads((out / "result.json").read_text())
    assert written["certificate"] == certificate
    assert written["admitted"] == told.json["admitted"]
    model = load_detector(out / "model.safetensors").model
    assert isinstance(model, VotedModel)
    assert model.members == tuple(certificate["member_names"])
    shown = sluice("federate", *SMALL, *vote, *asked, "--out", tmp_path / "again")
    assert "Whatever any 1 of 4 members contribute" in shown.out


def test_other_rules_have_a_vacuous_certificate(sluice: Run, tmp_path: Path) -> None:
    told = sluice(
        *("federate", *SMALL, "--detector", "moments", "--malicious", 1),
        *("--out", tmp_path / "run", "--json"),
    )
    certificate = told.json["certificate"]
    assert isinstance(certificate, dict)
    assert certificate["vacuous"] is True


def test_the_model_it_leaves_can_score_the_plant(sluice: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert sluice("federate", *SMALL, "--out", out).code == 0
    record = tmp_path / "later.csv"
    write(simulate("line", seed=5, days=1), record, FileLayout.CSV)
    told = sluice(
        "score", record, "--model", out / "model.safetensors", "--out", tmp_path / "s.csv", "--json"
    )
    assert told.code == 0, told.err


def test_more_rounds_go_on_from_the_checkpoint_and_other_settings_are_refused(
    sluice: Run, tmp_path: Path
) -> None:
    once, twice = tmp_path / "once", tmp_path / "twice"
    assert sluice("federate", *SMALL, "--rounds", 4, "--out", once).code == 0
    assert sluice("federate", *SMALL, "--out", twice).code == 0
    assert sluice("federate", *SMALL, "--rounds", 4, "--out", twice).code == 0
    models = [(folder / "model.safetensors").read_bytes() for folder in (once, twice)]
    assert models[0] == models[1]
    refused = sluice("federate", *SMALL, "--seed", 1, "--out", twice)
    assert refused.code == 2
    assert "other data or settings" in refused.err


def test_a_gated_federation_says_who_was_refused_and_why(sluice: Run, tmp_path: Path) -> None:
    attacked = ("--days", 24, "--attack", "channel-roll", "--mode", "gated")
    told = sluice("federate", *SMALL, *attacked, "--out", tmp_path / "run", "--json")
    assert told.code == 0, told.err
    assert set(told.json["refused"]) <= set(told.json["malicious"])  # type: ignore[call-overload]
    assert told.json["liars"] == told.json["malicious"]
    shown = sluice("federate", *SMALL, *attacked, "--out", tmp_path / "run")
    assert "(malicious)" in shown.out
    assert "recall on the attacks that malicious clients try to hide" in shown.out


def test_drawn_rows_are_proven_after_commitments_are_logged(sluice: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    attacked = ("--attack", "channel-roll", "--mode", "gated", "--detector", "subspace")
    drawn = ("--proof", "sampled", "--samples", 3)  # too few to detect the attack every time
    told = sluice("federate", *SMALL, *attacked, *drawn, "--out", out, "--json")
    assert told.code == 0, told.err
    assert set(told.json["refused"]) <= set(told.json["malicious"])  # type: ignore[call-overload]
    reasons = told.json["reasons"]
    assert isinstance(reasons, dict)
    assert all(why == ["it sent no proof"] for why in reasons.values())
    assert sluice("audit-log", "verify", out / "log.jsonl").code == 0
    lines = (out / "log.jsonl").read_text(encoding="utf-8").splitlines()
    kinds = [json.loads(line)["body"]["kind"] for line in lines[:-1]]  # without the head
    assert kinds.count("attested") == len(told.json["admitted"])  # type: ignore[arg-type]
    assert kinds.index("committed") < kinds.index("challenged") < kinds.index("attested")


def test_drawn_rows_are_proven_under_the_papers_policy_only(sluice: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    told = sluice(
        *("federate", *SMALL, "--attack", "channel-roll", "--mode", "gated", "--out", out),
        *("--proof", "sampled", "--policy", "hardened"),
    )
    assert told.code == 2
    assert "paper policy only" in told.err
    assert not out.exists() or not list(out.iterdir())


def test_each_plant_alone_leaves_a_model_each(sluice: Run, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert sluice("federate", *SMALL, "--mode", "local-only", "--out", out).code == 0
    assert len(list(out.glob("model-*.safetensors"))) == 4


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (("--rule", "medain"), "did you mean 'median'?"),
        (("--mode", "gatd"), "did you mean 'gated'?"),
        (("--mode", "gated"), "needs an attack"),
        (("--mode", "naive", "--attack", "bribery"), "unknown attack 'bribery'"),
        (("--malicious", 4), "cannot have 4 malicious ones"),
        (("--detector", "subspace", "--rule", "krum"), "no updates to weigh"),
        (("--detector", "subspace", "--rule", "vote"), "use the detector 'moments'"),
        (("--rule", "vote"), "an autoencoder is trained in rounds"),
        (
            ("--detector", "moments", "--rule", "vote", "--malicious", 2),
            "a vote of 4 members cannot withstand 2 malicious ones",
        ),
        (("--plant", "lime"), "did you mean 'line'?"),
        (("--rules", "none.json"), "none.json"),
        (("--policy", "lax"), "'lax'"),
    ],
)
def test_what_cannot_be_run_is_said_and_nothing_is_written(
    sluice: Run, tmp_path: Path, options: tuple[object, ...], why: str
) -> None:
    out = tmp_path / "run"
    told = sluice("federate", *SMALL, *options, "--out", out)
    assert told.code == 2
    assert why in told.err
    assert not out.exists() or not list(out.iterdir())


def test_records_of_ones_own_are_federated(sluice: Run, tmp_path: Path) -> None:
    clean, labelled = tmp_path / "clean.csv", tmp_path / "labelled.csv"
    write(simulate("line", seed=0, days=8), clean, FileLayout.CSV)
    write(simulate("line", seed=1, days=4, attacks=True), labelled, FileLayout.CSV)
    told = sluice(
        *("federate", "--plant", clean, "--test", labelled, "--clients", 4, "--rounds", 1),
        *("--detector", "subspace", "--out", tmp_path / "run", "--json"),
    )
    assert told.code == 0, told.err
    assert told.json["auc_pr"]


def test_an_attack_that_the_mode_does_not_run_is_announced(sluice: Run, tmp_path: Path) -> None:
    told = sluice("federate", *SMALL, "--attack", "replay", "--out", tmp_path / "run", "--json")
    assert told.code == 0, told.err
    assert "mode 'clean' has no attack, so --attack replay is not used" in told.err


def test_a_record_without_a_labelled_one_is_trained_and_not_measured(
    sluice: Run, tmp_path: Path
) -> None:
    clean, out = tmp_path / "clean.csv", tmp_path / "run"
    write(simulate("line", seed=0, days=8), clean, FileLayout.CSV)
    asked = ("--clients", 4, "--rounds", 1, "--epochs", 1, "--quiet", "--out", out, "--json")
    told = sluice("federate", "--plant", clean, *asked)
    assert told.code == 0, told.err
    assert told.json["admitted"] == ["plant-0", "plant-1", "plant-2", "plant-3"]
    assert told.json["recall"] is None
    assert told.json["certificate"] is None
    assert json.loads((out / "result.json").read_text())["score"] is None
    assert (
        load_detector(out / "model.safetensors").score(simulate("line", seed=1, days=1)).alarms.size
    )


def test_an_attack_needs_a_labelled_record(sluice: Run, tmp_path: Path) -> None:
    clean, out = tmp_path / "clean.csv", tmp_path / "run"
    write(simulate("line", seed=0, days=8), clean, FileLayout.CSV)
    told = sluice(
        "federate", "--plant", clean, "--mode", "naive", "--attack", "replay", "--out", out
    )
    assert told.code == 2
    assert "hide attacks of a labelled record; give --test" in " ".join(told.err.split())
    assert not out.exists()


BOUND = ("--detector", "moments", "--rule", "vote", "--bound", "--malicious", 1)
FEW = ("--statistic-rows-min", 64, "--statistic-span-min", 0)


def test_bound_admits_no_forged_statistic_and_says_what_is_bound(
    sluice: Run, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    told = sluice(
        "federate", *SMALL, *BOUND, *FEW, "--attack", "attest-clean", "--out", out, "--json"
    )
    assert told.code == 0, told.err
    named = told.json["malicious"]
    assert isinstance(named, list)
    (malicious,) = named
    assert (told.json["mode"], told.json["bound"]) == ("bound", "moments")
    assert told.json["refused"] == [malicious]
    assert told.json["reasons"] == {malicious: ["its proof fails step 5.8"]}
    assert "statistic_rows_min is 64 (default 4,096)" in told.err
    written = json.loads((out / "result.json").read_text())
    assert written["bound"] == "moments"
    assert written["limits"] == {"rows_min": 64, "span_min_s": 0}
    assert written["certificate"]["members"] == 3
    model = load_detector(out / "model.safetensors").model
    assert isinstance(model, VotedModel)
    assert malicious not in model.members


def test_bound_refuses_batches_below_the_default_limits(sluice: Run, tmp_path: Path) -> None:
    told = sluice("federate", *SMALL, *BOUND, "--out", tmp_path / "run", "--json")
    assert (told.code, told.json["refused"]) == (3, True)
    assert "a statistic covers at least 4,096 rows" in str(told.json["reason"])
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (("--detector", "autoencoder"), "'autoencoder' cannot be bound"),
        (("--detector", "subspace", "--rule", "fedavg"), "'subspace' cannot be bound"),
        (("--detector", "moments", "--rule", "fedavg"), "rule 'fedavg' is no vote"),
        (("--detector", "moments", "--rule", "vote", "--mode", "naive"), "--mode is 'naive'"),
        (("--detector", "moments", "--rule", "vote", "--proof", "sampled"), "omit --proof sampled"),
    ],
)
def test_bound_refuses_what_cannot_be_bound(
    sluice: Run, tmp_path: Path, given: tuple[str, ...], why: str
) -> None:
    told = sluice("federate", *SMALL, "--bound", *given, "--out", tmp_path / "run")
    assert (told.code, told.out) == (2, "")
    assert why in " ".join(told.err.split())
    assert not (tmp_path / "run").exists()
