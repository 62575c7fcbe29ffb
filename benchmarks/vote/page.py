"""The page of the evidence on the vote."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from statistics import fmean, stdev

from scipy.stats import t as student

from benchmarks.vote.store import OR_RULES, SUM, VOTE, Result

__all__ = ["page"]

HEAD = """# The vote under attack

Written by `python -m benchmarks vote`. Malicious members attack a shared detector without a gate.
The *vote* makes one detector of each member's statistic ([how](../explanation/vote.md)). Its
certificate is computed once for each seed, from the federation in which every member is honest. It
is the worst over all sets of so many members and all their behaviours. Here the malicious members
of the seed behave in particular ways, so no figure may be worse than the certificate.

*Vote or rules* is the same vote beside the receiver's own mined rules: an alarm of either is an
alarm. The voters and the rules then get half of the false alarms each. Members have no influence on
the rules.

The vote and the sum read no channel that the receiver's rules leave untied. The autoencoder is the
paper's and reads all channels.

A seed draws the malicious members and the attacks that they hide. Each cell is a mean over seeds,
with its 95 % interval (Student's t) and the worst seed. *Targeted recall* is the share of windows
of the hidden attacks that raise an alarm. All detectors ask for the same number of false alarms a
week on clean rows of the receiver: one on BATADAL, seven on treatment."""

TITLES = {VOTE: "vote of `moments`", OR_RULES: "vote of `moments`, or rules"}
COLUMNS = "| targeted recall | recall | attacks | false alarms a week |"
RULE = "|---|---|---|---|---|"


def page(
    results: Sequence[Result],
    *,
    plants: Sequence[str],
    attacks: Sequence[str],
    rivals: Sequence[str],
    seeds: int,
) -> str:
    """Return the page of stored results, with a list of what has not been run."""
    missing = _missing(results, plants, attacks, rivals, seeds)
    parts = [HEAD, *missing]
    for study in dict.fromkeys(result.study for result in results):
        parts += _study(study, [result for result in results if result.study == study])
    return "\n".join(parts)


def _missing(
    results: Sequence[Result],
    plants: Sequence[str],
    attacks: Sequence[str],
    rivals: Sequence[str],
    seeds: int,
) -> Iterator[str]:
    """Say which plants, attacks and rivals the results do not cover with all seeds."""
    ran = {(r.study, r.detector, r.attack, r.seed) for r in results if r.rule != SUM}
    missing = []
    for plant in plants:
        for detector, tried in (("moments", attacks), ("autoencoder", rivals)):
            counts = [sum(key[:3] == (plant, detector, attack) for key in ran) for attack in tried]
            names = [f"`{attack}`" for attack in tried]
            if len(set(counts)) == 1:
                names, counts = ["every attack"], counts[:1]
            missing += [
                f"{name} on the {detector} of {plant} ({count} of {seeds} seeds)"
                for name, count in zip(names, counts, strict=True)
                if count < seeds
            ]
    if missing:
        yield f"\n**Not run yet:** {', '.join(missing)}. `python -m benchmarks vote` runs them."


def _study(name: str, results: list[Result]) -> Iterator[str]:
    yield f"\n## {name}\n"
    if untied := next((result.untied for result in results if result.untied), ()):
        yield f"{len(untied)} untied channels are not read: {', '.join(untied)}.\n"
    for rule, title in TITLES.items():
        votes = [result for result in results if result.rule == rule]
        if votes:
            yield from _votes(title, votes)
    yield from _others(results)


def _votes(title: str, votes: list[Result]) -> Iterator[str]:
    seeds = sorted({result.seed for result in votes})
    attacked = [result for result in votes if result.attack != "none"]
    held = sum(bool(result.holds) for result in attacked)
    yield (
        f"{len(seeds)} seeds ({seeds[0]} to {seeds[-1]}). **{held} of {len(attacked)} attacked "
        "votes are at or above their certificate** in every figure: targeted recall, recall, "
        "attacks, precision, false alarms, time in alarm and BATADAL's score.\n"
    )
    yield f"| {title} {COLUMNS}"
    yield RULE
    plain = [result for result in votes if result.attack == "none"]
    promised = [
        replace(r, figures=r.certified, targeted_recall=r.targeted_recall_certified)
        for r in plain
        if r.certified is not None and r.targeted_recall_certified is not None
    ]
    yield _row("**certified**: at least, or at most", promised)
    for attack in dict.fromkeys(result.attack for result in votes):
        same = [result for result in votes if result.attack == attack]
        yield _row(f"{attack} (n = {len(same)})", same)
    yield ""


def _others(results: list[Result]) -> Iterator[str]:
    others = [result for result in results if result.rule not in TITLES]
    if not others:
        return
    yield "Other ways to share a detector have no certificate:\n"
    yield f"| detector, rule, attack {COLUMNS}"
    yield RULE
    for key in dict.fromkeys((r.detector, r.rule, r.attack) for r in others):
        same = [r for r in others if (r.detector, r.rule, r.attack) == key]
        yield _row(f"{', '.join(key)} (n = {len(same)})", same)


def _row(name: str, results: list[Result]) -> str:
    return (
        f"| {name} | {_over(results, lambda r: r.targeted_recall)} "
        f"| {_over(results, lambda r: r.figures.recall)} "
        f"| {_over(results, lambda r: r.figures.attacks_detected, '.1f')} "
        f"| {_over(results, lambda r: r.figures.false_alarms_per_week, '.2f', worst=max)} |"
    )


def _over(
    results: list[Result],
    figure: Callable[[Result], float | None],
    form: str = ".3f",
    *,
    worst: Callable[[list[float]], float] = min,
) -> str:
    """Return the mean over seeds, its 95 % interval, and the worst seed."""
    values = [value for result in results if (value := figure(result)) is not None]
    if not values:
        return "-"
    mean, text = fmean(values), f"worst {worst(values):{form}}"
    if len(values) > 1:
        half = float(student.ppf(0.975, len(values) - 1)) * stdev(values) / len(values) ** 0.5
        text = f"[{mean - half:{form}}, {mean + half:{form}}], {text}"
    return f"{mean:{form}} ({text})"
