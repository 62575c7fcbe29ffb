"""Policy text: every number at its edge, and what a wrong one is called."""

from pathlib import Path

import pytest

from sluice.admission.acceptance import Acceptance
from sluice.admission.policy import (
    BUILT_IN,
    HardenedPolicy,
    PaperPolicy,
    Policy,
    parse_policy,
    policy_hash,
    read_policy,
)
from sluice.errors import RulesFileError
from sluice.invariants.budgets import Margins


@pytest.mark.parametrize(
    ("text", "policy"),
    [
        ('kind = "paper"', PaperPolicy()),
        ('kind = "hardened"', HardenedPolicy()),
        ('kind = "paper"\nalpha = 0', PaperPolicy(alpha=0.0)),
        ('kind = "paper"\nalpha = 0.999', PaperPolicy(alpha=0.999)),
        (
            'kind = "hardened"\nrows_min = 1\nrows_max = 1',
            HardenedPolicy(rows_min=1, rows_max=1),
        ),
        (
            'kind = "hardened"\n[margins]\nanchor_points = 0\nsegment_points = 0.5',
            HardenedPolicy(margins=Margins(anchor_points=0, segment_points=0.5)),
        ),
        (
            'kind = "hardened"\n[acceptance]\nevery_tank = false\nrules_min = 0',
            HardenedPolicy(acceptance=Acceptance(every_tank=False, rules_min=0)),
        ),
    ],
)
def test_what_a_text_leaves_out_is_built_in(text: str, policy: Policy) -> None:
    assert parse_policy(text, name="p.toml") == policy


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "policy file p.toml: kind is None; it must be paper or hardened"),
        ("kind = 3", "kind is 3; it must be paper or hardened"),
        ("kind = []", "kind is []; it must be paper or hardened"),
        (
            'kind = "hardened"\nrows_min = 0',
            "rows_min is 0 and rows_max 1048576; a batch has 1 <= rows_min <= rows_max rows",
        ),
        ('kind = "hardened"\nrows_min = true', "policy file p.toml: rows_min: "),
        ('kind = "hardened"\n[margins]\nsevere_share = -1', "severe_share is -1.0; a budget is"),
        ('kind = "hardened"\n[margins]\nsevere_share = "none"', "margins.severe_share: "),
        (
            'kind = "hardened"\n[margins]\nsevere_rows = 2',
            "was replaced by 'severe_share', a share of the rows; remove 'severe_rows', or state",
        ),
        ('kind = "hardened"\n[margins]\nalpha = 1', "alpha is 1.0; it is a share of rows below 1"),
        ('kind = "hardened"\n[margins]\nalpha = true', "margins.alpha: "),
        ('kind = "hardened"\n[acceptance]\nevery_pump = 1', "acceptance.every_pump: "),
        ('kind = "hardened"\n[acceptance]\njumps_max = -0.01', "jumps_max is -0.01"),
        ('kind = "hardened"\nalpha = 0.5', "unknown key 'alpha'; known are rows_min, rows_max"),
        ('kind = "paper"\n[margins]\nalpha = 0', "unknown key 'margins'; known are alpha"),
        (
            'kind = "hardened"\n[margins]\nanchor_extra = 1',
            (
                "policy file p.toml: [margins]: 'anchor_extra', a number of its own for batches of "
                "any length, was replaced by 'anchor_points', a share of the windows of a rule; "
                "remove 'anchor_extra', or state the share"
            ),
        ),
        ('kind = "hardened"\n[margins]\nrepeat_rows = 0', "was replaced by 'repeat_points', a"),
        ('kind = "hardened"\n[margins]\nsegments_extra = 0', "was replaced by 'segment_points'"),
        ('kind = "paper"\nalpha = 0.1\nalpha = 0.2', "policy file p.toml is not TOML"),
    ],
)
def test_a_wrong_text_is_refused_by_name_and_key(text: str, message: str) -> None:
    with pytest.raises(RulesFileError) as refused:
        parse_policy(text, name="p.toml")
    assert message in str(refused.value)


def test_hashes_name_the_content_and_not_the_text() -> None:
    same = parse_policy('kind = "hardened"\nrows_min = 200', name="p.toml")
    assert policy_hash(same) == policy_hash(BUILT_IN["hardened"])
    other = parse_policy('kind = "hardened"\n[acceptance.reasons]\nL1 = "dry"', name="p.toml")
    assert policy_hash(other) != policy_hash(same)


@pytest.mark.parametrize(
    ("name", "integers", "alpha"), [("paper", False, 0.01), ("hardened", True, 0.01)]
)
def test_built_in_policies_say_their_kind(name: str, integers: bool, alpha: float) -> None:  # noqa: FBT001
    policy = BUILT_IN[name]
    assert (policy.kind, policy.integers, policy.alpha) == (name, integers, alpha)


def test_bytes_that_are_no_text_and_folders_are_refused(tmp_path: Path) -> None:
    binary = tmp_path / "p.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(RulesFileError, match="is not UTF-8 text"):
        read_policy(str(binary))
    with pytest.raises(RulesFileError, match="nor a readable file"):
        read_policy(str(tmp_path))
