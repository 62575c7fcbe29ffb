"""Policies: every budget by name, round trip as TOML, misprints refused."""

from dataclasses import replace
from pathlib import Path

import pytest

from sluice.admission.acceptance import Acceptance
from sluice.admission.policy import (
    HardenedPolicy,
    PaperPolicy,
    Policy,
    policy_hash,
    read_policy,
    write_policy,
)
from sluice.errors import RulesFileError
from sluice.invariants.budgets import Margins

EDITED = HardenedPolicy(
    rows_min=500,
    margins=Margins(alpha=0.005, severe_share=0.002),
    acceptance=Acceptance(rules_min=7, reasons={"LIT601": "decommissioned in May"}),
)


@pytest.mark.parametrize("policy", [HardenedPolicy(), PaperPolicy(alpha=0.02), EDITED])
def test_a_policy_survives_its_file(policy: Policy, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    write_policy(policy, path)
    assert read_policy(str(path)) == policy
    assert policy_hash(read_policy(str(path))) == policy_hash(policy)


def test_built_in_policies_go_by_name() -> None:
    assert read_policy("paper") == PaperPolicy()
    assert read_policy("hardened") == HardenedPolicy()


def test_the_file_names_every_budget(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    write_policy(HardenedPolicy(), path)
    text = path.read_text()
    for table in (Margins, Acceptance):
        for name in table.__dataclass_fields__:
            assert name in text


def test_a_file_may_say_only_what_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text('kind = "hardened"\n[margins]\nalpha = 0\nsevere_multiple = 2\n')
    read = read_policy(str(path))
    assert read == HardenedPolicy(margins=Margins(alpha=0.0, severe_multiple=2.0))


def test_every_budget_is_in_the_hash() -> None:
    stricter = replace(HardenedPolicy(), rows_min=201)
    hashes = {policy_hash(p) for p in (HardenedPolicy(), stricter, EDITED, PaperPolicy())}
    assert len(hashes) == 4


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kind = ", "is not TOML"),
        ("alpha = 0.01", "kind is None; it must be paper or hardened"),
        ('kind = "soft"', "kind is 'soft'"),
        ('kind = "paper"\nalhpa = 0.5', "unknown key 'alhpa'; did you mean 'alpha'"),
        ('kind = "hardened"\n[margins]\nalhpa = 0.5', r"\[margins\]: unknown key 'alhpa'"),
        ('kind = "hardened"\n[acceptance]\ntanks = 1', r"\[acceptance\]: unknown key 'tanks'"),
        ('kind = "hardened"\n[margins]\nalpha = "1 %"', "margins.alpha: .*valid number"),
        ('kind = "hardened"\nrows_min = 2.5', "rows_min: .*integer"),
        ('kind = "hardened"\nmargins = 3', "margins"),
        ('kind = "hardened"\n[acceptance.reasons]\nLIT1 = 3', "acceptance.reasons.LIT1"),
        ('kind = "paper"\nalpha = 1.0', "alpha is 1.0; it is a share of rows below 1"),
        ('kind = "paper"\nalpha = -0.1', "alpha is -0.1; a budget is finite and not negative"),
        ('kind = "hardened"\n[margins]\nalpha = nan', "alpha"),
        ('kind = "hardened"\n[margins]\nsevere_factor = inf', "severe_factor"),
        ('kind = "hardened"\nrows_min = 9\nrows_max = 8', "rows_min is 9 and rows_max 8"),
        ('kind = "hardened"\nrows_min = 2020-01-01', "rows_min"),
    ],
)
def test_misprints_do_not_open_the_gate(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(text)
    with pytest.raises(RulesFileError, match=message):
        read_policy(str(path))


def test_a_name_that_is_neither_is_refused() -> None:
    with pytest.raises(RulesFileError, match="neither one of paper, hardened nor a readable file"):
        read_policy("hardend")
