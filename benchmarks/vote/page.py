"""The page of the evidence on the vote."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import fmean

from benchmarks.vote.store import Result

__all__ = ["page"]

HEAD = """# The vote under attack

Written by `python -m benchmarks vote`. Malicious members attack a shared detector without a gate.
The *vote* makes one detector of each member's statistic ([how](../explanation/vote.md)). Its
certificate is computed once for each seed, from the federation in which every member is honest. It
is the worst over all sets of so many members and all their behaviours. Here the malicious members
of the seed behave in particular ways, so no figure may be worse than the certificate.

Each cell is a mean over seeds, with the lowest and the highest. *Targeted recall* is the share of
windows of the hidden attacks that raise an alarm. All detectors ask for the same number of false
alarms a week on clean rows of the receiver."""


def page(results: Sequence[Result], *, plants: Sequence[str], attacks: Sequence[str]) -> str:
    """Return the page of stored results, with a list of what has not been run."""
    parts = [HEAD, *_missing(results, plants, attacks)]
    for study in dict.fromkeys(result.study for result in results):
        parts += _study(study, [result for result in results if result.study == study])
    return "\n".join(parts)


def _missing(
    results: Sequence[Result], plants: Sequence[str], attacks: Sequence[str]
) -> Iterator[str]:
    """Say which plants, attacks and rivals the results do not cover."""
    ran = {result.study for result in results}
    missing = [f"the plant {plant}" for plant in plants if plant not in ran]
    tried = {result.attack for result in results}
    missing += [f"the attack `{attack}`" for attack in attacks if attack not in tried]
    if not any(result.detector == "autoencoder" for result in results):
        missing.append("the autoencoder beside the vote")
    if missing:
        yield f"\n**Not run yet:** {', '.join(missing)}. `python -m benchmarks vote` runs them."


def _study(name: str, results: list[Result]) -> Iterator[str]:
    votes = [result for result in results if result.rule == "vote"]
    if not votes:
        return
    seeds = sorted({result.seed for result in votes})
    attacked = [result for result in votes if result.attack != "none"]
    held = sum(bool(result.holds) for result in attacked)
    yield f"\n## {name}\n"
    yield (
        f"{len(seeds)} seeds ({seeds[0]} to {seeds[-1]}). **{held} of {len(attacked)} attacked "
        "votes are at or above their certificate** in every figure: recall, attacks, precision, "
        "false alarms, time in alarm and BATADAL's score.\n"
    )
    yield "| vote of `moments` | targeted recall | recall | attacks | false alarms a week |"
    yield "|---|---|---|---|---|"
    plain = [result for result in votes if result.attack == "none"]
    promised = [replace(r, figures=r.certified) for r in plain if r.certified is not None]
    yield (
        f"| **certified** | ≥ {_over(plain, lambda r: r.targeted_recall_certified)} "
        f"| ≥ {_over(promised, lambda r: r.figures.recall)} "
        f"| ≥ {_over(promised, lambda r: r.figures.attacks_detected, '.1f')} "
        f"| ≤ {_over(promised, lambda r: r.figures.false_alarms_per_week, '.2f')} |"
    )
    for attack in dict.fromkeys(result.attack for result in votes):
        same = [result for result in votes if result.attack == attack]
        yield _row(f"{attack} ({len(same)} seeds)", same)
    yield from _others(results)


def _others(results: list[Result]) -> Iterator[str]:
    others = [result for result in results if result.rule != "vote"]
    if not others:
        return
    yield "\nOther ways to share a detector have no certificate:\n"
    yield "| detector, rule, attack | targeted recall | recall | attacks | false alarms a week |"
    yield "|---|---|---|---|---|"
    for key in dict.fromkeys((r.detector, r.rule, r.attack) for r in others):
        same = [r for r in others if (r.detector, r.rule, r.attack) == key]
        yield _row(f"{', '.join(key)} ({len(same)} seeds)", same)


def _row(name: str, results: list[Result]) -> str:
    return (
        f"| {name} | {_over(results, lambda r: r.targeted_recall)} "
        f"| {_over(results, lambda r: r.figures.recall)} "
        f"| {_over(results, lambda r: r.figures.attacks_detected, '.1f')} "
        f"| {_over(results, lambda r: r.figures.false_alarms_per_week, '.2f')} |"
    )


def _over(
    results: list[Result], figure: Callable[[Result], float | None], form: str = ".3f"
) -> str:
    values = [value for result in results if (value := figure(result)) is not None]
    if not values:
        return "-"
    return f"{fmean(values):{form}} ({min(values):{form}} to {max(values):{form}})"
