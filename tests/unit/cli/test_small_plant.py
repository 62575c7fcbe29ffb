"""`check`, `rules`, `data` and `mine` on sixteen typed rows: every JSON key and every exit code."""

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from sluice.admission.objections import ObjectionKind
from sluice.admission.policy import HardenedPolicy, PaperPolicy, policy_hash, write_policy
from sluice.invariants.budgets import Margins
from sluice.invariants.rulesfile import load_rules, rules_hash, save_rules
from tests.unit.admission.objectionable import CASES
from tests.unit.conftest import Outcome
from tests.unit.invariants.small_plant import BOUNDED, COUPLED, EVERY_RULE, RATED, quiet_day

Run = Callable[..., Outcome]
Rows = list[dict[str, object]]
POLICY = HardenedPolicy(
    rows_min=1, margins=Margins(alpha=0.1, envelope_points=0.25, anchor_points=0.125)
)


def write_csv(columns: Mapping[str, Sequence[float]], path: Path) -> None:
    rows = zip(*columns.values(), strict=True)
    lines = [
        f"2026-03-01 00:{10 * at // 60:02}:{10 * at % 60:02},{','.join(map(str, row))}"
        for at, row in enumerate(rows)
    ]
    path.write_text("\n".join([f"time,{','.join(columns)}", *lines]) + "\n")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The quiet day, a spoiled one, the rules and a policy for batches this short."""
    write_csv(quiet_day(), tmp_path / "quiet.csv")
    spoiled = quiet_day()
    spoiled["F1"][2] = 30.0
    spoiled["L1"][13:] = [2_400.0, 1_800.0, 2_400.0]
    write_csv(spoiled, tmp_path / "spoiled.csv")
    save_rules(EVERY_RULE, tmp_path / "rules.json")
    write_policy(POLICY, tmp_path / "policy.toml")
    return tmp_path


def check(sluice: Run, folder: Path, batch: str, *options: object) -> Outcome:
    return sluice(
        "check", folder / f"{batch}.csv", "--rules", folder / "rules.json",
        "--policy", folder / "policy.toml", *options,
    )  # fmt: skip


def test_check_admits_the_quiet_day_with_these_numbers(sluice: Run, folder: Path) -> None:
    seen = check(sluice, folder, "quiet", "--json")
    assert (seen.code, seen.err) == (0, "")
    rules = cast("Rows", seen.json.pop("rules"))
    assert seen.json["rows"] == 16
    found = {key: value for key, value in seen.json.items() if key != "rules"}
    assert found == {
        "admitted": True,
        "rows": 16,
        "violating_rows": 1,
        "violating_share": 0.0625,
        "reasons": [],
        "drift": [],
    }
    assert [rule["name"] for rule in rules] == [rule.name for rule in EVERY_RULE.invariants]
    assert rules[0] == {
        "name": "P1~F1",
        "kind": "coupling",
        "violating_rows": 0,
        "violating_share": 0.0,
        "inapplicable_share": 0.0,
        "envelope_share": 0.1875,
        "limit": 0.1,
        "sentence": "",
    }
    assert (rules[2]["inapplicable_share"], rules[2]["limit"]) == (1 - 6 / 16, 1 / 16)


def test_check_refuses_with_reasons_furthest_exceeded_first(sluice: Run, folder: Path) -> None:
    seen = check(sluice, folder, "spoiled", "--json")
    assert (seen.code, seen.json["admitted"]) == (3, False)
    assert seen.json["reasons"] == [
        {
            "kind": "violating-rows",
            "rule": None,
            "found": 5,
            "allowed": 1,
            "sentence": "5 of 16 rows (31.25%) break a rule, miss a reading or show an unknown "
            "code; the limit is 1",
        },
        {
            "kind": "severe-rows",
            "rule": None,
            "found": 4,
            "allowed": 0,
            "sentence": "4 rows are further from a rule than any clean row (first at 2026-03-01 "
            "00:00:20); the limit is 0",
        },
    ]
    rules = {rule["name"]: rule for rule in cast("Rows", seen.json["rules"])}
    assert rules["P1~F1"]["sentence"] == (
        "P1 reads off while F1 shows 30 on 1 of 16 rows, first at 00:00:20"
    )
    assert [rule["violating_rows"] for rule in rules.values()] == [1, 4, 1, 0, 3]


def test_check_shows_the_verdict_its_reasons_and_the_worst_rows(sluice: Run, folder: Path) -> None:
    seen = check(sluice, folder, "spoiled", "--quiet")
    assert (seen.code, seen.err) == (3, "")
    assert seen.out.startswith("not admitted, for 2 reasons: 5 of 16 rows (31.25%)")
    worst = seen.out.partition("Worst rows")[2]
    rules = [line.split()[3] for line in worst.splitlines()[2:6]]
    assert rules == ["dL1", "P1~F1", "L1", "dL1/4"]  # 50, 5, 600 / 384 and 1.25 tolerances
    quiet = check(sluice, folder, "quiet", "--quiet")
    assert quiet.out.startswith("admitted: 1 of 16 rows (6.25%) count as violating, 1 are part")
    assert "Worst rows" not in quiet.out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--rows", "0:17"), "record 'quiet' has rows 0:16"),
        (("--rows", "4:4"), "record 'quiet' has rows 0:16"),
        (("--skip-seconds", "160"), "which lasts 160 s; give less"),
        (("--every", "2"), "has a stride of 20 s"),
        (("--every", "0"), "Invalid value"),
        (("--policy", "hardened"), "has 16 rows; the policy takes 200 to 1048576"),
        (("--format", "xlsx"), "xlsx"),
        (("--png", "nowhere/v.png"), "there is no folder nowhere"),
    ],
)
def test_check_exits_2_with_nothing_on_stdout(
    sluice: Run, folder: Path, options: tuple[str, ...], message: str
) -> None:
    seen = check(sluice, folder, "quiet", "--json", *options)
    assert (seen.code, seen.out) == (2, "")
    assert message in seen.err


def test_a_policy_with_the_papers_kind_judges_in_floats(sluice: Run, folder: Path) -> None:
    write_policy(PaperPolicy(alpha=0.3), folder / "policy.toml")
    seen = check(sluice, folder, "spoiled", "--json")
    (reason,) = cast("Rows", seen.json["reasons"])
    # rows 2, 13, 14 and 15, and the windows that end at rows 4 and 14 or 15
    assert (seen.code, reason["kind"], reason["rule"]) == (3, "broken-rows", None)
    assert (reason["found"], reason["allowed"]) == (5, 4)


@pytest.mark.parametrize("kind", ObjectionKind)
def test_accept_prints_every_kind_of_objection(
    sluice: Run, tmp_path: Path, kind: ObjectionKind
) -> None:
    case = CASES[kind]
    save_rules(case.rules, tmp_path / "rules.json")
    options: list[object] = ["--policy", "hardened"]
    if case.last is not None:
        save_rules(case.last, tmp_path / "last.json")
        options += ["--last", tmp_path / "last.json"]
    seen = sluice("rules", "accept", tmp_path / "rules.json", *options, "--json")
    assert (seen.code, seen.err, seen.json["accepted"]) == (3, "", False)
    objections = cast("Rows", seen.json["objections"])
    objection = case.objection
    listed = [
        {name: value for name, value in each.items() if name != "command"} for each in objections
    ]
    assert {
        "kind": kind.value,
        "subject": objection.subject,
        "found": objection.found,
        "allowed": objection.allowed,
        "remedy": objection.remedy,
        "sentence": objection.sentence,
    } in listed
    assert seen.json["reasons"] == [one["sentence"] for one in objections]
    shown = sluice("rules", "accept", tmp_path / "rules.json", *options)
    assert shown.code == 3
    assert shown.out.startswith(f"not accepted: {len(objections)} objections\n")
    assert f"  {objection.sentence}\n" in shown.out
    for command in {str(each["command"]) for each in objections}:
        assert shown.out.count(f"  {command}\n") == 1
        program, *words = shlex.split(command)
        assert program == "sluice"
        help_ = sluice(*(word for word in words[:2] if word.islower()), "--help").out
        assert all(word in help_ for word in words if word.startswith("--"))


def test_accept_says_how_many_rules_it_accepts(sluice: Run, folder: Path) -> None:
    seen = sluice("rules", "accept", folder / "rules.json", "--policy", "hardened")
    assert (seen.code, seen.out) == (0, "accepted: 5 rules\n")


def test_show_prints_these_keys(sluice: Run, folder: Path) -> None:
    seen = sluice("rules", "show", folder / "rules.json", "--json").json
    assert list(seen) == [
        "plant", "profile", "stride_s", "rules", "dropped", "empty", "clean", "hash",
    ]  # fmt: skip
    assert (seen["plant"], seen["profile"], seen["stride_s"]) == ("march", "hardened", 10.0)
    assert (seen["empty"], seen["hash"]) == (False, rules_hash(EVERY_RULE))
    first = cast("Rows", seen["rules"])[0]
    assert list(first) == [
        "name", "kind", "tolerance", "unit", "r2", "r2_held_out", "support", "variation",
        "judged_rows", "few_rows", "smallest_offset", "smallest_freeze_rows",
        "sees_contradiction", "sentence", "power",
    ]  # fmt: skip
    assert first["sentence"] == (
        "P1 on: F1 reads 300 ± 6 m3/h; off: 0; for 1 row from a switch: between 0 and 300"
    )


def test_diff_tells_each_change_as_an_object(sluice: Run, folder: Path, tmp_path: Path) -> None:
    after = tmp_path / "after.json"
    looser = replace(COUPLED, tolerance=9.0)
    save_rules(replace(EVERY_RULE, stride_s=20.0, invariants=(looser, RATED)), after)
    changes = cast(
        "Rows", sluice("rules", "diff", folder / "rules.json", after, "--json").json["changes"]
    )
    assert changes[0] == {
        "change": "moved",
        "rule": "P1~F1",
        "sentence": "P1~F1's tolerance changed from 6 to 9 m3/h (+50 %): it detects less",
        "what": "tolerance",
        "before": 6.0,
        "after": 9.0,
        "share": 0.5,
    }
    assert [set(change) for change in changes[1:4]] == [{"change", "rule", "sentence"}] * 3
    assert [change["rule"] for change in changes[1:4]] == ["dL1", "dL1/4", "L1 in range"]
    assert (changes[4]["change"], changes[4]["what"]) == ("redefined", "definition")


def test_a_change_from_nothing_has_no_share(sluice: Run, folder: Path, tmp_path: Path) -> None:
    after = tmp_path / "after.json"
    assert EVERY_RULE.clean is not None
    save_rules(replace(EVERY_RULE, clean=replace(EVERY_RULE.clean, refused_share=0.5)), after)
    seen = sluice("rules", "diff", folder / "rules.json", after, "--json")
    (change,) = cast("Rows", seen.json["changes"])
    assert (change["before"], change["after"], change["share"]) == (0.0, 0.5, None)


@pytest.mark.parametrize(("kind", "policy"), [("paper", PaperPolicy()), ("hardened", None)])
def test_policy_prints_kind_and_hash(
    sluice: Run, tmp_path: Path, kind: str, policy: PaperPolicy | None
) -> None:
    out = tmp_path / "p.toml"
    seen = sluice("rules", "policy", "--kind", kind, "--out", out, "--json")
    assert seen.json == {"kind": kind, "hash": policy_hash(policy or HardenedPolicy())}
    assert sluice("rules", "policy", "--out", tmp_path / "no" / "p.toml", "--json").code == 2


def test_seal_prints_the_hash_and_refuses_rules_that_contradict_themselves(
    sluice: Run, folder: Path
) -> None:
    path = folder / "rules.json"
    assert sluice("rules", "seal", path, "--json").json == {"hash": rules_hash(EVERY_RULE)}
    document = json.loads(path.read_text())
    document["invariants"][4]["relation"]["name"] = "dL1"
    path.write_text(json.dumps(document))
    seen = sluice("rules", "seal", path, "--json")
    assert (seen.code, seen.out) == (2, "")
    assert "2 rules are named 'dL1'; rename them" in seen.err


def test_bounds_alone_need_leave_to_judge(sluice: Run, folder: Path) -> None:
    assert EVERY_RULE.clean is not None
    bare = replace(EVERY_RULE.clean, severe=(), envelope=(), anchors=())
    save_rules(replace(EVERY_RULE, invariants=(BOUNDED,), clean=bare), folder / "rules.json")
    assert check(sluice, folder, "quiet", "--json").code == 2
    seen = check(sluice, folder, "quiet", "--json", "--allow-empty")
    assert (seen.code, seen.json["admitted"]) == (0, True)
    assert "warning: the rules of 'march' hold no coupling, balance or window" in seen.err


def test_inspect_prints_these_keys(sluice: Run, folder: Path) -> None:
    seen = sluice("data", "inspect", folder / "quiet.csv", "--json").json
    assert list(seen) == [
        "name", "rows", "stride_s", "start", "end", "channels", "roles", "gaps",
        "attack_segments", "attack_rows", "unlabelled_rows", "notes",
    ]  # fmt: skip
    assert (seen["name"], seen["rows"], seen["stride_s"]) == ("quiet", 16, 10.0)
    channels = {channel["name"]: channel for channel in cast("Rows", seen["channels"])}
    assert list(channels["L1"]) == [
        "name", "role", "unit", "why", "codes", "low", "high", "missing",
    ]  # fmt: skip
    assert (channels["L1"]["low"], channels["L1"]["high"]) == (600.0, 1_800.0)
    assert channels["P1"]["codes"] == {"off": 0, "on": [1], "moving": []}


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_convert_prints_its_rows(sluice: Run, folder: Path, suffix: str) -> None:
    out = folder / f"out.{suffix}"
    seen = sluice("data", "convert", folder / "quiet.csv", "--out", out, "--every", 5, "--json")
    assert (seen.code, seen.json) == (0, {"rows": 4})
    assert out.exists()


def test_list_prints_plants_and_formats(sluice: Run) -> None:
    seen = sluice("data", "list", "--json").json
    assert set(seen) == {"plants", "formats"}
    assert all(set(plant) == {"name", "title", "days"} for plant in cast("Rows", seen["plants"]))
    formats = cast("Rows", seen["formats"])
    assert all(set(one) == {"name", "title"} for one in formats)
    assert {"swat", "wadi", "batadal", "hai"} <= {one["name"] for one in formats}


@pytest.mark.parametrize(("rows", "code"), [(20, 0), (19, 2)])
def test_paper_rules_need_twenty_rows(sluice: Run, tmp_path: Path, rows: int, code: int) -> None:
    columns = {name: readings * 2 for name, readings in quiet_day().items()}
    write_csv(columns, tmp_path / "day.csv")
    out = tmp_path / "rules.json"
    seen = sluice(
        "mine", tmp_path / "day.csv", "--out", out, "--profile", "paper-narrow", "--json",
        "--fit", f"0:{rows}", "--calibrate", "0:32",
    )  # fmt: skip
    assert (seen.code, out.exists()) == (code, code == 0)
    if code:
        assert seen.out == ""
        assert "paper-narrow rules need at least 20: give more" in seen.err
        return
    assert list(seen.json) == [
        "rules", "hash", "dropped", "empty", "profile", "fit_rows", "calibration_rows",
        "refused_share", "untied", "used", "honest_refusal",
    ]  # fmt: skip
    assert seen.json["hash"] == rules_hash(load_rules(out))
    assert (seen.json["fit_rows"], seen.json["calibration_rows"]) == (20, 32)
    assert (seen.json["profile"], seen.json["refused_share"]) == ("paper-narrow", None)
