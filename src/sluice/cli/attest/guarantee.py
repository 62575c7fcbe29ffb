"""`sluice attest guarantee`: what drawn rows promise, and how often they exclude a clean plant."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from sluice.admission import PaperPolicy
from sluice.attestation.protocol import KeyFolder, Verification
from sluice.attestation.systems.sampled import (
    LEAST_VIOLATIONS,
    ROUNDS,
    SAMPLED_ROWS,
    Exclusion,
    Guarantee,
    Sampled,
    Sampling,
    clean_share,
    exclusion,
    guarantee,
    silent_budgets,
    statement_of,
    violation_budget,
)
from sluice.cli.console import Json, emit, out, table
from sluice.invariants import RuleSet, load_rules

__all__ = ["guarantee_of", "sampling_of", "show_guarantee"]

CLEAN_SHARE = 0.0032
"""Violating rows of clean SWaT batches under the paper's wide rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnBudgets:
    """What follows from a rules file: budgets of silence by coupling, and false exclusions."""

    silent: tuple[tuple[str, int], ...]
    exclusion: Exclusion


def sampling_of(rules: RuleSet, samples: int, violations: int | None) -> Sampling:
    """Return how rows are drawn; the budget follows from the rules where nobody says one."""
    if violations is None:
        violations = violation_budget(rules, samples=samples)
    return Sampling(samples=samples, violations=violations)


def guarantee_of(
    rows: Annotated[int, typer.Option(min=2, help="Rows of the batch.")] = SAMPLED_ROWS,
    samples: Annotated[int, typer.Option(min=1, help="Rows that are drawn.")] = 32,
    violations: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Of which so many may violate (the paper: 1).",
            show_default="2, or more where clean batches of the rules need it",
        ),
    ] = None,
    rules_path: Annotated[
        Path | None, typer.Option("--rules", help="Derive rates and budgets from these rules.")
    ] = None,
    clean: Annotated[
        float | None,
        typer.Option(
            "--clean-share",
            help="Share of violating rows in a clean batch.",
            show_default="the most that the rules leave; 0.0032 without them",
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of a run.")] = ROUNDS,
    json: Json = False,
) -> None:
    """Say exactly what sampling promises: how likely a bad batch passes and a clean one does not.

    Example: [bold]sluice attest guarantee --rows 1024 --samples 32 --violations 2[/bold]
    """
    budgets, share = None, CLEAN_SHARE
    if rules_path is not None:
        rules = load_rules(rules_path)
        sampling = sampling_of(rules, samples, violations)
        budgets, share = _budgets(rules, sampling, rows=rows, rounds=rounds), clean_share(rules)
        allowed = sampling.violations
    else:
        allowed = min(LEAST_VIOLATIONS, samples - 1) if violations is None else violations
    found = guarantee(
        rows, samples, allowed, clean_share=share if clean is None else clean, rounds=rounds
    )
    if json:
        emit(_payload(found, budgets))
    else:
        _show(found, budgets)


def show_guarantee(folder: KeyFolder, found: Verification) -> None:
    """Say what a proof about drawn rows leaves open; nothing where every row was proven."""
    if not isinstance(folder.system, Sampled):
        return
    sampling = folder.system.sampling
    chances = guarantee(
        found.rows, sampling.samples, sampling.violations, clean_share=CLEAN_SHARE
    ).passes
    told = ", ".join(
        f"{each.share:.0%}: {each.probability:.3f}" for each in chances if each.share >= 0.01
    )
    out.print(
        f"It looked at {sampling.samples} of {found.rows:,} rows. A batch of which this share "
        f"violates passes with probability {told}."
    )


def _budgets(rules: RuleSet, sampling: Sampling, *, rows: int, rounds: int) -> DrawnBudgets:
    statement = statement_of(rules, PaperPolicy(), sampling, rows_max=rows)
    names = (coupling.name for coupling in statement.couplings)
    return DrawnBudgets(
        silent=tuple(zip(names, silent_budgets(statement), strict=True)),
        exclusion=exclusion(statement, sampling.violations, rounds=rounds),
    )


def _payload(found: Guarantee, budgets: DrawnBudgets | None) -> dict[str, object]:
    told: dict[str, object] = {
        "pass": [{"share": each.share, "probability": each.probability} for each in found.passes],
        "violations": found.violations,
        "clean_share": found.clean_share,
        "excluded_per_round": found.excluded_per_round,
        "excluded_per_run": found.excluded_per_run,
        "rounds": found.rounds,
    }
    if budgets:
        told["silent"] = [{"rule": name, "budget": most} for name, most in budgets.silent]
        told["excluded_per_round_at_most"] = budgets.exclusion.per_round
        told["excluded_per_run_at_most"] = budgets.exclusion.per_run
    return told


def _show(found: Guarantee, budgets: DrawnBudgets | None) -> None:
    drawn = table(
        f"{found.samples} of {found.rows:,} rows drawn, at most {found.violations} violating",
        "violating rows",
        "passes",
    )
    for each in found.passes:
        drawn.add_row(f"{each.share:.1%}", f"{each.probability:.4f}")
    out.print(drawn)
    once = f", once in {1 / found.excluded_per_round:,.0f}" if found.excluded_per_round else ""
    out.print(
        f"A clean batch with {found.clean_share:.2%} violating rows is excluded with "
        f"{found.excluded_per_round:.4%} per round{once}; {found.excluded_per_run:.2%} per run of "
        f"{found.rounds} rounds with fresh draws."
    )
    if budgets:
        silent = ", ".join(f"{name} {most}" for name, most in budgets.silent)
        out.print(f"Drawn rows on which a coupling may be silent: {silent or 'there is none'}.")
        out.print(
            f"For violating rows or silence a clean batch of these rules is excluded with at most "
            f"{budgets.exclusion.per_round:.3%} per round, {budgets.exclusion.per_run:.2%} per run."
        )
