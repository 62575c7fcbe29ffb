"""`sluice attest guarantee`: how often sampling admits a bad batch and excludes a clean one."""

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
    TRIES,
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
from sluice.cli.paths import reads_file
from sluice.invariants import RuleSet, load_rules

__all__ = ["guarantee_of", "sampling_of", "show_guarantee"]

CLEAN_SHARE = 0.0032
"""Violating rows of clean SWaT batches under the paper's wide rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnBudgets:
    """Derived from a rules file: drawn rows on which a coupling may be silent, false exclusions."""

    silent: tuple[tuple[str, int], ...]
    exclusion: Exclusion


def sampling_of(rules: RuleSet, samples: int, violations: int | None) -> Sampling:
    """Return the sampling; without `violations`, the budget follows from the rules."""
    if violations is None:
        violations = violation_budget(rules, samples=samples)
    return Sampling(samples=samples, violations=violations)


def guarantee_of(
    rows: Annotated[int, typer.Option(min=2, help="Rows of the batch.")] = SAMPLED_ROWS,
    samples: Annotated[int, typer.Option(min=1, help="Rows to draw.")] = 32,
    violations: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Drawn rows that may violate a rule (the paper: 1).",
            show_default="2, or more if clean batches under --rules need it",
        ),
    ] = None,
    rules_path: Annotated[
        Path | None,
        typer.Option(
            "--rules",
            help="Derive rates and budgets from these rules.",
            click_type=reads_file("a rules file"),
        ),
    ] = None,
    clean: Annotated[
        float | None,
        typer.Option(
            "--clean-share",
            help="Share of violating rows in a clean batch.",
            show_default="the largest that --rules leave; 0.0032 without --rules",
        ),
    ] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of a run.")] = ROUNDS,
    tries: Annotated[
        int,
        typer.Option(
            min=1,
            help="Draws that a plant with a bad batch gets: the log's limit of challenges without "
            "an answer.",
        ),
    ] = TRIES,
    json: Json = False,
) -> None:
    """Compute exactly how often sampling admits a bad batch and excludes a clean one.

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
    chances = guarantee(
        rows,
        samples,
        allowed,
        clean_share=share if clean is None else clean,
        rounds=rounds,
        tries=tries,
    )
    if json:
        emit(_payload(chances, budgets))
    else:
        _show(chances, budgets)


def show_guarantee(folder: KeyFolder, verified: Verification) -> None:
    """Print how often a bad batch passes a sampled proof; print nothing for other systems."""
    if not isinstance(folder.system, Sampled):
        return
    sampling = folder.system.sampling
    passes = guarantee(
        verified.rows, sampling.samples, sampling.violations, clean_share=CLEAN_SHARE
    ).passes
    probabilities = ", ".join(
        f"{each.share:.0%}: {each.probability:.3f}" for each in passes if each.share >= 0.01
    )
    out.print(
        f"The proof covers {sampling.samples} of {verified.rows:,} rows. A batch with this share "
        f"of violating rows passes with this probability: {probabilities}."
    )


def _budgets(rules: RuleSet, sampling: Sampling, *, rows: int, rounds: int) -> DrawnBudgets:
    statement = statement_of(rules, PaperPolicy(), sampling, rows_max=rows)
    names = (coupling.name for coupling in statement.couplings)
    return DrawnBudgets(
        silent=tuple(zip(names, silent_budgets(statement), strict=True)),
        exclusion=exclusion(statement, sampling.violations, rounds=rounds),
    )


def _payload(chances: Guarantee, budgets: DrawnBudgets | None) -> dict[str, object]:
    payload: dict[str, object] = {
        "pass": [{"share": each.share, "probability": each.probability} for each in chances.passes],
        "tries": chances.tries,
        "passes_after_tries": [
            {"share": each.share, "probability": each.probability}
            for each in chances.passes_after_tries
        ],
        "violations": chances.violations,
        "clean_share": chances.clean_share,
        "excluded_per_round": chances.excluded_per_round,
        "excluded_per_run": chances.excluded_per_run,
        "rounds": chances.rounds,
    }
    if budgets:
        payload["silent"] = [{"rule": name, "budget": most} for name, most in budgets.silent]
        payload["excluded_per_round_at_most"] = budgets.exclusion.per_round
        payload["excluded_per_run_at_most"] = budgets.exclusion.per_run
    return payload


def _show(chances: Guarantee, budgets: DrawnBudgets | None) -> None:
    passes = table(
        f"{chances.samples} of {chances.rows:,} rows drawn, at most {chances.violations} violating",
        "violating rows",
        "probability to pass",
        f"at least once in {chances.tries} tries",
    )
    for once, after in zip(chances.passes, chances.passes_after_tries, strict=True):
        passes.add_row(f"{once.share:.1%}", f"{once.probability:.4f}", f"{after.probability:.4f}")
    out.print(passes)
    often = chances.excluded_per_round
    seldom = f" (once in {1 / often:,.0f} rounds)" if often else ""
    out.print(
        f"A clean batch with {chances.clean_share:.2%} violating rows is excluded with probability "
        f"{often:.4%} per round{seldom}, and {chances.excluded_per_run:.2%} per run of "
        f"{chances.rounds} rounds with fresh draws."
    )
    if budgets:
        silent = ", ".join(f"{name} {most}" for name, most in budgets.silent)
        out.print(
            f"Drawn rows on which each coupling may be silent: {silent or 'there is no coupling'}."
        )
        out.print(
            "Counting violating rows and silent couplings, a clean batch under these rules is "
            f"excluded with probability at most {budgets.exclusion.per_round:.3%} per round and "
            f"{budgets.exclusion.per_run:.2%} per run."
        )
