"""`sluice mine` from the outside."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import numpy as np
import pytest

from sluice.invariants.relations import RelationKind
from sluice.invariants.rulesfile import load_rules, rules_hash, save_rules
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.reading import read_record
from sluice.telemetry.writers.layout import FileLayout
from sluice.telemetry.writers.write import write
from tests.unit.conftest import Outcome

Run = Callable[..., Outcome]
HALVES = ("--fit", "0.5", "--calibrate", "0.5")
FITTED = (RelationKind.COUPLING, RelationKind.BALANCE, RelationKind.WINDOW, RelationKind.TIE)
"""Rules with a tolerance that rows decide; others have limits, and the meter's step."""


@pytest.fixture(scope="module")
def march(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plant") / "march.parquet"
    write(simulate("line", seed=0, days=5), path, FileLayout.PARQUET)
    return path


@pytest.fixture(scope="module")
def april(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("plant") / "april.parquet"
    write(simulate("line", seed=3, days=5), path, FileLayout.PARQUET)
    return path


def listed(outcome: Outcome, key: str) -> list[dict[str, object]]:
    return cast("list[dict[str, object]]", outcome.json[key])


def test_help_has_an_example(sluice: Run) -> None:
    assert "Example: sluice mine" in sluice("mine", "--help").out


def test_mines_rules_with_tolerances_units_and_evidence(
    sluice: Run, march: Path, tmp_path: Path
) -> None:
    path = tmp_path / "rules.json"
    seen = sluice("mine", march, "--out", path, *HALVES, "--json")
    assert seen.code == 0
    rules = load_rules(path)
    assert seen.json["hash"] == rules_hash(rules)
    assert seen.json["empty"] is False
    assert (rules.fit_rows, rules.calibration_rows) == (3600, 3600)
    first = listed(seen, "rules")[0]
    assert (first["name"], first["kind"], first["unit"]) == ("S_PU1~F_PU1", "coupling", "m3/h")
    assert first["tolerance"] == rules.invariants[0].tolerance
    assert {"r2", "r2_held_out", "support", "judged_rows", "sentence", "power"} <= first.keys()
    balance = next(rule for rule in listed(seen, "rules") if rule["kind"] == "balance")
    assert cast("float", balance["r2"]) > 0.9
    assert all(gone["why"] for gone in listed(seen, "dropped"))


def test_says_rules_in_words_and_why_candidates_were_dropped(
    sluice: Run, march: Path, tmp_path: Path
) -> None:
    seen = sluice("mine", march, "--out", tmp_path / "rules.json", *HALVES)
    assert "S_PU1 on: F_PU1 reads 132 ± " in seen.out
    assert "detects a ramp of" in seen.out
    assert "it hardly ever switched in the clean record" in seen.out
    assert "mining 7,200 rows" in seen.err


def test_mine_lists_every_objection_of_a_policy(sluice: Run, march: Path, tmp_path: Path) -> None:
    path, policy = tmp_path / "rules.json", tmp_path / "policy.toml"
    assert sluice("rules", "policy", "--out", policy).code == 0
    policy.write_text(policy.read_text().replace("rules_min = 3", "rules_min = 99"))
    mining = ("mine", march, "--out", path, *HALVES, "--policy", policy)
    seen = sluice(*mining, "--strict", "--json")
    (objection,) = listed(seen, "objections")
    assert (seen.code, objection["kind"]) == (3, "too-few-rules")
    assert not path.exists()  # --strict
    assert sluice(*mining).code == 3
    assert path.exists()
    policy.write_text(policy.read_text().replace("rules_min = 99", "rules_min = 3"))
    accepted = sluice(*mining, "--declare", "S_PU4=a standby pump", "--json")
    assert (accepted.code, accepted.json["objections"]) == (0, [])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--declare", "S_PU4=dry"), "give --policy too"),
        (("--policy", "paper"), "requires nothing of rules"),
        (("--policy", "nowhere.toml"), "nor a readable file"),
        (("--policy", "hardened", "--declare", "S_PU5=dry"), "did you mean 'S_PU"),
    ],
)
def test_mine_refuses_settings_of_a_policy_that_make_no_sense(
    sluice: Run, march: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    path = tmp_path / "rules.json"
    seen = sluice("mine", march, "--out", path, *HALVES, *options)
    assert (seen.code, seen.out, path.exists()) == (2, "", False)
    assert message in seen.err


@pytest.mark.parametrize("profile", ["paper-narrow", "paper-wide", "paper-generic", "paper-expert"])
def test_paper_profiles_may_calibrate_on_the_rows_they_fitted(
    sluice: Run, march: Path, tmp_path: Path, profile: str
) -> None:
    path = tmp_path / "rules.json"
    slices = ("--fit", "0:3000", "--calibrate", "0:3000")
    seen = sluice("mine", march, "--out", path, "--profile", profile, *slices, "--json")
    assert (seen.code, load_rules(path).profile.value) == (0, profile)
    assert load_rules(path).clean is None


def test_shares_follow_each_other_in_time(sluice: Run, march: Path, tmp_path: Path) -> None:
    shares, ranges = tmp_path / "shares.json", tmp_path / "ranges.json"
    sluice("mine", march, "--out", shares, "--fit", "0.4", "--calibrate", "0.2", "--quiet")
    sluice("mine", march, "--out", ranges, "--fit", ":2880", "--calibrate", "2880:4320", "--quiet")
    assert load_rules(shares) == load_rules(ranges)


def test_no_physics_is_said_aloud(sluice: Run, tmp_path: Path) -> None:
    record, path = tmp_path / "levels.csv", tmp_path / "rules.json"
    levels = simulate("line", seed=0, days=2).select(["L_T1", "L_T2"])
    write(levels, record, FileLayout.CSV)
    seen = sluice("mine", record, "--out", path, *HALVES, "--json")
    assert (seen.code, seen.json["empty"]) == (0, True)
    assert "no physics found" in seen.err
    assert "every batch in range would be admitted" in seen.err
    assert load_rules(path).empty


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--fit", "0:3000", "--calibrate", "2000:5000"), "share 1000 rows"),
        (("--fit", "most"), "it must be a share such as 0.15 or rows such as 0:5000"),
        (("--fit", "1.5"), "a share must be above 0"),
        (("--fit", "0.9", "--calibrate", "0.2"), "selects rows 6480:7920"),
        (("--fit", "0:9999999"), "has rows 0:7200"),
        (("--fit", "50:20"), "has rows 0:7200"),
        (("--fit", "a:b"), "write rows as A:B"),
        (
            ("--fit", "0:100", "--calibrate", "100:400"),
            "there are 100 fit rows; hardened rules need at least 200",
        ),
        (("--widen",), "give --update too"),
        (("--update", "nowhere.json"), "cannot be read"),
        (("--profile", "paper"), "Invalid value"),
        (("--plant", "nowhere.toml"), "cannot be read"),
    ],
)
def test_bad_usage_exits_2_and_writes_nothing(
    sluice: Run, march: Path, tmp_path: Path, options: tuple[str, ...], message: str
) -> None:
    path = tmp_path / "rules.json"
    seen = sluice("mine", march, "--out", path, *options)
    assert (seen.code, seen.out) == (2, "")
    assert message in seen.err
    assert not path.exists()


def test_attack_rows_are_not_mined(sluice: Run, tmp_path: Path) -> None:
    record = tmp_path / "attacked.parquet"
    attacked = simulate("line", seed=0, days=20, attacks=True)
    write(attacked, record, FileLayout.PARQUET)
    run = attacked.attack_segments[0]
    rows = f"{run.start - 1000}:{run.start + 1}"
    calibrate = ("--calibrate", "0:300")
    seen = sluice("mine", record, "--out", tmp_path / "r.json", "--fit", rows, *calibrate)
    assert seen.code == 2
    assert f"contain 1 rows labelled as attack, from row {run.start} to row {run.start}" in seen.err


def test_paper_profiles_need_every_reading(sluice: Run, tmp_path: Path) -> None:
    record = tmp_path / "holed.parquet"
    plant = simulate("line", seed=0, days=1)
    values = plant.values.copy()
    values[40, plant.index("L_T2")] = float("nan")
    write(plant.with_values(values), record, FileLayout.PARQUET)
    options = ("--out", tmp_path / "r.json", *HALVES, "--profile", "paper-wide")
    seen = sluice("mine", record, *options)
    assert seen.code == 2
    assert "first 'L_T2' at row 40; paper profiles need every reading" in seen.err
    assert sluice("mine", record, *options, "--fill", "linear").code == 0


def test_update_tells_what_drifted_and_loosens_nothing(
    sluice: Run, march: Path, april: Path, tmp_path: Path
) -> None:
    old, new = tmp_path / "old.json", tmp_path / "new.json"
    assert sluice("mine", march, "--out", old, *HALVES, "--quiet").code == 0
    seen = sluice("mine", april, "--out", new, *HALVES, "--update", old, "--json")
    assert seen.code == 0
    assert {change["change"] for change in listed(seen, "changes")} >= {"moved"}
    assert listed(seen, "kept")
    assert isinstance(seen.json["drift"], list)
    before = {rule.name: rule.tolerance for rule in load_rules(old).invariants}
    after = {rule.name: rule for rule in load_rules(new).invariants}
    fitted = {name for name, rule in after.items() if rule.kind in FITTED}
    assert all(after[name].tolerance <= before[name] for name in fitted & before.keys())
    idle = ("--declare", "S_PU4=runs only if S_PU3 fails")
    accepted = sluice("rules", "accept", new, "--policy", "hardened", "--last", old, *idle)
    assert accepted.code == 0, accepted.out
    shown = sluice("mine", april, "--out", new, *HALVES, "--update", old, "--quiet")
    assert "Kept unchanged (--widen allows these rules to loosen)" in shown.out
    assert "Clean data of this plant may now be refused" in shown.out


def test_update_calls_a_leak_a_leak(sluice: Run, march: Path, tmp_path: Path) -> None:
    old, new, record = tmp_path / "old.json", tmp_path / "new.json", tmp_path / "leaking.parquet"
    assert sluice("mine", march, "--out", old, *HALVES, "--quiet").code == 0
    clean = read_record(march)
    values = clean.values.copy()
    half = len(clean) // 2
    values[half:, clean.index("L_T1")] -= 0.01 * np.arange(1, len(clean) - half + 1)
    write(clean.with_values(values), record, FileLayout.PARQUET)
    arguments = ("mine", record, "--out", new, *HALVES, "--update", old)
    (found,) = listed(sluice(*arguments, "--json"), "drift")
    assert (found["kind"], found["subject"]) == ("leak", "L_T1")
    shown = sluice(*arguments, "--quiet").out
    assert "What may have changed in the plant" in shown
    assert "L_T1 loses about 7,200 L/h beyond its meters" in shown


def test_widen_lets_rules_loosen(sluice: Run, march: Path, april: Path, tmp_path: Path) -> None:
    old, new, fresh = (tmp_path / f"{name}.json" for name in ("old", "new", "fresh"))
    sluice("mine", march, "--out", old, *HALVES, "--quiet")
    sluice("mine", april, "--out", fresh, *HALVES, "--quiet")
    seen = sluice("mine", april, "--out", new, *HALVES, "--update", old, "--widen", "--json")
    assert (seen.code, seen.json["kept"]) == (0, [])
    assert load_rules(new) == load_rules(fresh)


def test_update_refuses_unsealed_rules(sluice: Run, march: Path, tmp_path: Path) -> None:
    old = tmp_path / "old.json"
    plant = tmp_path / "new.json"
    sluice("mine", march, "--out", old, *HALVES, "--quiet")
    save_rules(load_rules(old), old)
    old.write_text(old.read_text().replace('"stride_s": 60.0', '"stride_s": 61.0'))
    seen = sluice("mine", march, "--out", plant, *HALVES, "--update", old)
    assert seen.code == 2
    assert "was edited after it was sealed" in seen.err


def test_update_refuses_the_rules_of_another_plant_or_profile(
    sluice: Run, march: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.csv"
    write(simulate("network:Net1", seed=0, days=30), other, FileLayout.CSV)
    rules = tmp_path / "rules.json"
    assert sluice("mine", march, "--out", rules, "--fit", "0.4", "--calibrate", "0.4").code == 0
    again = tmp_path / "again.json"
    shares = ("--fit", "0.4", "--calibrate", "0.4", "--update", rules, "--out", again)
    seen = sluice("mine", other, *shares)
    assert seen.code == 2
    assert "mine this record without --update" in seen.err
    seen = sluice("mine", march, *shares, "--profile", "paper-wide")
    assert seen.code == 2
    assert "were mined with profile hardened" in seen.err
    assert not again.exists()


def test_the_whole_record_is_used_and_the_table_says_what_was_found(
    sluice: Run, march: Path, tmp_path: Path
) -> None:
    path = tmp_path / "rules.json"
    seen = sluice("mine", march, "--out", path)
    assert seen.code == 0
    for line in (
        "7,200 of 7,200",
        "candidates dropped",
        "untied channels",
        "honest batches of 300 rows",
        "at most 0.5% refused",
        "none: with",
        "may stay unseen",
    ):
        assert line in seen.out
    again = sluice("mine", march, "--out", path, "--json")
    assert again.json["used"] == ["0:3600", "3600:7200"]
    assert again.json["untied"] == list(load_rules(path).untied or ())
    refusal = cast("dict[str, float]", again.json["honest_refusal"])
    assert {"rate", "low", "high", "target", "rows", "batches"} <= refusal.keys()
    assert refusal["low"] <= refusal["rate"] <= refusal["high"]
    assert refusal["target"] == 0.005
    assert refusal["shown"] is False
    facts = load_rules(path).clean
    assert facts is not None
    assert (facts.refused_share, facts.refused_upper) == (refusal["rate"], refusal["high"])
    assert (facts.batch_rows, facts.batches) == (refusal["rows"], refusal["batches"])


def test_rows_labelled_as_attack_are_left_out_of_the_whole_record(
    sluice: Run, tmp_path: Path
) -> None:
    record = simulate("line", seed=0, days=6, attacks=True)
    write(record, tmp_path / "april.parquet", FileLayout.PARQUET)
    seen = sluice("mine", tmp_path / "april.parquet", "--out", tmp_path / "rules.json", "--json")
    used = [tuple(map(int, str(part).split(":"))) for part in cast("list[str]", seen.json["used"])]
    assert len(used) > 1
    assert not any(record.labels[start:stop].any() for start, stop in used)


def restless(tmp_path: Path) -> Path:
    """A plant whose first pump moves a quarter more water every day: no rule predicts the next."""
    record = simulate("line", seed=0, days=6)
    values = record.values.copy()
    values[:, record.index("F_PU1")] *= 1.25 ** (np.arange(len(record)) // 1_440)
    write(record.with_values(values), tmp_path / "restless.parquet", FileLayout.PARQUET)
    return tmp_path / "restless.parquet"


def test_a_plant_that_the_rules_cannot_promise_exits_3_with_the_rules_and_the_cure(
    sluice: Run, tmp_path: Path
) -> None:
    record, path = restless(tmp_path), tmp_path / "rules.json"
    seen = sluice("mine", record, "--out", path, "--json")
    refusal = cast("dict[str, float]", seen.json["honest_refusal"])
    assert (seen.code, path.exists()) == (3, True)
    assert refusal["rate"] > refusal["target"]
    assert "the target is 0.5%" in seen.err
    assert "is to blame for" in seen.err
    assert "mine more days of clean data, drop these rules, or widen them" in seen.err
    path.unlink()
    strict = sluice("mine", record, "--out", path, "--strict")
    assert (strict.code, path.exists()) == (3, False)
    assert "not written (--strict)" in strict.out


def test_a_short_record_promises_nothing_and_under_strict_exits_3(
    sluice: Run, march: Path, tmp_path: Path
) -> None:
    path = tmp_path / "rules.json"
    seen = sluice("mine", march, "--out", path, *HALVES)
    assert (seen.code, path.exists()) == (0, True)
    assert "none: with " in seen.out
    path.unlink()
    strict = sluice("mine", march, "--out", path, *HALVES, "--strict")
    assert (strict.code, path.exists()) == (3, False)
    assert "the target of 0.5% is not promised; add " in strict.err


def test_a_policys_target_is_used(sluice: Run, tmp_path: Path) -> None:
    policy = tmp_path / "policy.toml"
    assert sluice("rules", "policy", "--out", policy).code == 0
    text = policy.read_text().replace("refused_max = 0.005", "refused_max = 0.99")
    policy.write_text(text)
    options = ("--policy", policy, "--declare", "S_PU4=on standby", "--json")
    seen = sluice("mine", restless(tmp_path), "--out", tmp_path / "rules.json", *options)
    refusal = cast("dict[str, float]", seen.json["honest_refusal"])
    assert refusal["target"] == 0.99
    assert refusal["rate"] <= 0.99
