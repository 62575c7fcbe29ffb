"""`sluice rules` from the outside."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import cast

import pytest

from sluice.admission.policy import HardenedPolicy, read_policy
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile, RuleSet, untied_channels
from sluice.invariants.rulesfile import load_rules, rules_hash, save_rules
from sluice.lab.plants.catalogue import simulate
from tests.unit.conftest import Outcome

Run = Callable[..., Outcome]
IDLE = ("--declare", "S_PU4=runs only if S_PU3 fails")


@pytest.fixture(scope="module")
def mined() -> RuleSet:
    plant = simulate("line", seed=0, days=5)
    return mine(plant.rows(0, 3600), plant.rows(3600, 7200), profile=Profile.HARDENED)


@pytest.fixture
def file(mined: RuleSet, tmp_path: Path) -> Path:
    path = tmp_path / "rules.json"
    save_rules(mined, path)
    return path


@pytest.fixture
def uncovered(mined: RuleSet, tmp_path: Path) -> Path:
    """Rules that say nothing of a pump which never ran."""
    path = tmp_path / "uncovered.json"
    bare = replace(
        mined, invariants=tuple(rule for rule in mined.invariants if rule.name != "S_PU4 idle")
    )
    save_rules(replace(bare, untied=untied_channels(bare)), path)
    return path


def set_tolerance(path: Path, factor: float) -> None:
    """Edit the first rule by hand."""
    document = json.loads(path.read_text())
    document["invariants"][0]["tolerance"] *= factor
    path.write_text(json.dumps(document))


@pytest.mark.parametrize("command", ["show", "seal", "diff", "accept", "policy"])
def test_help_has_an_example(sluice: Run, command: str) -> None:
    assert f"Example: sluice rules {command}" in sluice("rules", command, "--help").out


def test_show_says_rules_power_and_evidence(sluice: Run, file: Path, mined: RuleSet) -> None:
    seen = sluice("rules", "show", file)
    assert seen.code == 0
    assert "L_T1 rises 0.00139 m per m3/h of F_PU1" in seen.out
    assert "detects on reported as off" in seen.out
    assert "on held-out rows" in seen.out
    told = sluice("rules", "show", file, "--json").json
    assert told["hash"] == rules_hash(mined)
    assert len(cast("list[object]", told["rules"])) == len(mined.invariants)


def test_an_edit_is_refused_shown_by_diff_and_sealed(
    sluice: Run, file: Path, tmp_path: Path, mined: RuleSet
) -> None:
    before = tmp_path / "before.json"
    save_rules(mined, before)
    set_tolerance(file, 2)
    assert sluice("rules", "show", file).code == 2
    told = sluice("rules", "diff", before, file)
    assert told.code == 0
    assert "S_PU1~F_PU1's tolerance changed from" in told.out
    assert "(+100 %): it detects less" in told.out
    (change,) = cast(
        "list[dict[str, object]]", sluice("rules", "diff", before, file, "--json").json["changes"]
    )
    assert (change["change"], change["what"], change["share"]) == ("moved", "tolerance", 1.0)
    sealed = sluice("rules", "seal", file, "--json")
    assert (sealed.code, sealed.json["hash"]) == (0, rules_hash(load_rules(file)))


def test_diff_of_the_same_rules_says_so(sluice: Run, file: Path) -> None:
    assert sluice("rules", "diff", file, file).out == "the rules are the same\n"
    assert sluice("rules", "diff", file, file, "--json").json == {"changes": []}


@pytest.mark.parametrize(
    ("factor", "message"),
    [(0, "must be above 0"), (-3, "must be above 0"), (1e-15, "half the proof field")],
)
def test_rules_that_cannot_work_are_not_sealed(
    sluice: Run, file: Path, factor: float, message: str
) -> None:
    set_tolerance(file, factor)
    before = file.read_bytes()
    seen = sluice("rules", "seal", file)
    assert (seen.code, seen.out) == (2, "")
    assert message in seen.err
    assert file.read_bytes() == before


def test_a_damaged_file_is_named_as_the_user_named_it(sluice: Run, tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text("{}")
    for command in (("seal", bad), ("diff", bad, bad), ("show", bad)):
        seen = sluice("rules", *command)
        assert seen.code == 2
        assert str(bad) in seen.err
    assert "cannot be read" in sluice("rules", "seal", tmp_path / "none.json").err


def test_accept_exits_0_or_3(sluice: Run, file: Path, tmp_path: Path, mined: RuleSet) -> None:
    last = tmp_path / "last.json"
    save_rules(mined, last)
    asked = ("rules", "accept", file, "--policy", "hardened", *IDLE)
    seen = sluice(*asked, "--last", last, "--json")
    assert (seen.code, seen.json) == (0, {"accepted": True, "objections": [], "reasons": []})
    set_tolerance(file, 1.5)
    sluice("rules", "seal", file)
    assert sluice(*asked).code == 0
    seen = sluice(*asked, "--last", last, "--json")
    assert (seen.code, seen.json["accepted"]) == (3, False)
    reasons = cast("list[str]", seen.json["reasons"])
    assert reasons[0].startswith("S_PU1~F_PU1: tolerance")
    listed = cast("list[dict[str, str]]", seen.json["objections"])
    assert [one["kind"] for one in listed] == ["looser-than-last", "larger-residual"]
    for objection, reason in zip(listed, reasons, strict=True):
        keys = {"kind", "subject", "found", "allowed", "remedy", "sentence", "command"}
        assert set(objection) == keys
        assert objection["command"] == f"sluice mine RECORD --out {file} --update {last}"
        assert objection["subject"] == "S_PU1~F_PU1"
        assert objection["sentence"] == reason
        assert objection["found"] and objection["allowed"] and objection["remedy"]  # noqa: PT018
    shown = sluice(*asked, "--last", last)
    assert shown.code == 3
    assert all(reason in shown.out for reason in reasons)
    assert shown.out.count(f"--update {last}") == 1  # one command cures both


def test_accept_shows_what_an_approver_would_have_to_declare(
    sluice: Run, file: Path, uncovered: Path
) -> None:
    """The plant's own text says that the pump hardly ever switched, which decides nothing."""
    assert sluice("rules", "accept", file, "--policy", "hardened").code == 0
    seen = sluice("rules", "accept", uncovered, "--policy", "hardened", "--json")
    (objection,) = cast("list[dict[str, str]]", seen.json["objections"])
    assert (seen.code, objection["kind"], objection["subject"]) == (
        3,
        "uncovered-actuator",
        "S_PU4",
    )
    assert "S_PU4 in [acceptance.reasons] of the policy" in objection["remedy"]
    assert "sluice rules approve --declare S_PU4=REASON" in objection["remedy"]
    assert objection["command"] == (
        f"sluice rules approve {uncovered} --key approver.key --out approval.json "
        "--declare S_PU4=REASON"
    )
    assert sluice("rules", "accept", uncovered, "--policy", "hardened", *IDLE).code == 0


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        (["S_PU4"], "--declare is 'S_PU4'; write TAG=REASON"),
        (["S_PU4= "], "--declare is 'S_PU4= '; write TAG=REASON"),
        (["S_PU5=idle"], "--declare names 'S_PU5', which no rules file has; did you mean 'S_PU"),
        (["S_PU4=idle", "S_PU4=dry"], "--declare names 'S_PU4' twice"),
    ],
)
def test_a_declaration_names_a_channel_and_a_reason(
    sluice: Run, file: Path, declared: list[str], message: str
) -> None:
    options = [option for text in declared for option in ("--declare", text)]
    seen = sluice("rules", "accept", file, "--policy", "hardened", *options)
    assert (seen.code, seen.out) == (2, "")
    assert message in seen.err


def test_accept_reads_a_policy_file(
    sluice: Run, file: Path, uncovered: Path, tmp_path: Path
) -> None:
    policy = tmp_path / "policy.toml"
    assert sluice("rules", "policy", "--out", policy).code == 0
    assert read_policy(str(policy)) == HardenedPolicy()
    assert sluice("rules", "accept", uncovered, "--policy", policy).code == 3
    assert sluice("rules", "policy", "--out", policy, *IDLE).code == 0
    assert sluice("rules", "accept", uncovered, "--policy", policy).code == 0
    declared = read_policy(str(policy))
    assert isinstance(declared, HardenedPolicy)
    assert declared.acceptance.reasons == {"S_PU4": "runs only if S_PU3 fails"}
    assert sluice("rules", "accept", file, "--policy", policy).code == 0
    policy.write_text(policy.read_text().replace("rules_min = 3", "rules_min = 99"))
    seen = sluice("rules", "accept", file, "--policy", policy)
    assert seen.code == 3
    assert "the policy requires 99" in seen.out
    seen = sluice("rules", "policy", "--out", policy, "--kind", "paper", *IDLE)
    assert (seen.code, seen.out) == (2, "")
    assert "takes no reasons" in seen.err


@pytest.mark.parametrize(
    ("policy", "message"),
    [("paper", "requires nothing of rules"), ("nowhere.toml", "nor a readable file")],
)
def test_accept_needs_a_policy_that_asks(
    sluice: Run, file: Path, policy: str, message: str
) -> None:
    seen = sluice("rules", "accept", file, "--policy", policy)
    assert (seen.code, seen.out) == (2, "")
    assert message in seen.err
