"""The gate that a command's --rules, --policy and --allow-empty make."""

import warnings
from pathlib import Path
from typing import Annotated

import typer

from sluice.admission import Gate, HardenedPolicy, PaperPolicy, read_policy
from sluice.invariants import load_rules

__all__ = ["AllowEmpty", "PolicyName", "open_gate"]

PolicyName = Annotated[
    str | None,
    typer.Option("--policy", help="paper, hardened or a policy file; default: as the rules."),
]
AllowEmpty = Annotated[
    bool, typer.Option("--allow-empty", help="Go on though the rules hold no physics.")
]


def open_gate(rules_path: Path, policy_name: str | None, *, allow_empty: bool) -> Gate:
    """Make a gate ready, by default as hard as its rules allow; say its warnings on stderr."""
    rules = load_rules(rules_path)
    if policy_name is not None:
        policy = read_policy(policy_name)
    else:
        policy = HardenedPolicy() if rules.clean else PaperPolicy()
    with warnings.catch_warnings(record=True) as met:
        warnings.simplefilter("always")
        gate = Gate.of(rules, policy, allow_empty=allow_empty)
    for warning in met:
        typer.echo(f"sluice: warning: {warning.message}", err=True)
    return gate
