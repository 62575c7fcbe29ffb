"""The four questions, each answered in sentences from the results."""

from collections.abc import Callable, Iterator
from functools import partial
from statistics import fmean

from benchmarks.evidence.runs import (
    FIGURES,
    BySeed,
    Runs,
    honest_refused,
    malicious_admitted,
    points,
    precision,
    recall,
)
from benchmarks.evidence.study import RULES, TWO_RULES
from sluice.evaluation import PairedDifference
from sluice.lab.trials import CellResult

ATTACKED = {
    "a replay": ("naive", "replay", ""),
    "a rolled replay": ("naive", "channel-roll", ""),
    "poison optimised within the hardened rules": ("physics-aware", "feasible", "hardened"),
}


def answers(runs: Runs) -> Iterator[str]:
    """Write the questions and their answers."""
    for question, answer in (
        ("Does poisoning do damage?", _damage),
        ("How much damage does the gate prevent?", _gate),
        ("What do physics rules add to ranges?", _physics),
        ("Does federation beat training alone?", _joining),
    ):
        yield f"- **{question}**"
        yield from (f"  - {sentence}" for sentence in answer(runs))
    yield ""


def _damage(runs: Runs) -> Iterator[str]:
    for words, (mode, attack, gate) in ATTACKED.items():
        parts = []
        for name, figure in FIGURES:
            changes = {
                rule: runs.difference(
                    runs.of(mode, rule, attack, gate), runs.of("honest-only", rule), figure
                )
                for rule in RULES
            }
            damaged = [rule for rule, change in changes.items() if change.high < 0]
            named = f" ({', '.join(damaged)})" if 0 < len(damaged) < len(RULES) else ""
            mean = 100 * fmean(change.mean for change in changes.values())
            parts.append(
                f"{name} changes by {mean:+.1f} points (mean over aggregation rules) and falls "
                f"beyond chance under {len(damaged)} of {len(RULES)} aggregation rules{named}"
            )
        yield f"With {words} and without a gate, {'; '.join(parts)}."


def _gate(runs: Runs) -> Iterator[str]:
    for gate in ("paper", "hardened"):
        counts = [
            f"{n} of {of} {words}"
            for words, mode, attack in (
                ("replays", "guarded", "replay"),
                ("rolled replays", "guarded", "channel-roll"),
                ("projected replays", "gated", "replay"),
                ("poisons optimised within its rules", "gated", "feasible"),
                ("clients that show clean rows and train on others", "gated", "attest-clean"),
            )
            for n, of in (malicious_admitted(runs.of(mode, "fedavg", attack, gate)),)
        ]
        refused, of = honest_refused(runs.of("gated", "fedavg", "replay", gate))
        yield (
            f"The {gate} gate admits {', '.join(counts)}, and refuses {refused} of {of} honest "
            "clients."
        )
    for words, attack in (("a certified projection", "replay"), ("optimised poison", "feasible")):
        saved = _over_rules(
            runs,
            partial(_gated, runs, "gated", attack),
            partial(_gated, runs, "physics-aware", attack),
            lower="lowers it",
        )
        yield f"Against {words}, the hardened gate raises recall beyond chance under {saved}."
    left = _over_rules(
        runs,
        lambda rule: runs.of("gated", rule, "replay", "hardened"),
        lambda rule: runs.of("honest-only", rule),
        lower="lower",
    )
    yield (
        "With the hardened gate and malicious clients that project, recall is higher than in "
        f"honest-only, beyond chance, under {left}."
    )


def _gated(runs: Runs, mode: str, attack: str, rule: str) -> BySeed:
    return runs.of(mode, rule, attack, "hardened")


def _over_rules(
    runs: Runs, here: Callable[[str], BySeed], there: Callable[[str], BySeed], *, lower: str
) -> str:
    changes = [runs.difference(here(rule), there(rule), recall) for rule in RULES]
    better = sum(change.low > 0 for change in changes)
    worse = sum(change.high < 0 for change in changes)
    mean = 100 * fmean(change.mean for change in changes)
    return (
        f"{better} of {len(RULES)} aggregation rules and {lower} under {worse} (mean over "
        f"aggregation rules {mean:+.1f} points)"
    )


def _physics(runs: Runs) -> Iterator[str]:
    inside = [
        f"{n} of {of} {words}"
        for words, attack in (("projected replays", "replay"), ("optimised poisons", "feasible"))
        for n, of in (malicious_admitted(runs.of("gated", "fedavg", attack, "ranges")),)
    ]
    yield f"The ranges gate admits {' and '.join(inside)} made for it."
    for gate in ("paper", "hardened"):
        for words, attack in (("projected replays", "replay"), ("optimised poison", "feasible")):
            gains = [
                f"{points(_added(runs, rule, attack, gate, recall))} points with {rule}"
                for rule in TWO_RULES
            ]
            yield (
                f"With the {gate} gate in place of the ranges gate, recall under {words} changes "
                f"by {' and by '.join(gains)}."
            )


def _added(
    runs: Runs, rule: str, attack: str, gate: str, figure: Callable[[CellResult], float]
) -> PairedDifference:
    behind = runs.of("gated", rule, attack, gate)
    return runs.difference(behind, runs.of("gated", rule, attack, "ranges"), figure)


def _joining(runs: Runs) -> Iterator[str]:
    joined, alone = runs.of("clean", "fedavg"), runs.of("local-only", "fedavg")
    for name, figure in (("targeted recall", recall), ("targeted average precision", precision)):
        change = runs.difference(joined, alone, figure)
        yield f"{_beyond(change)}: {points(change)} points of {name} (FedAvg, no attack)."
    poisoned = runs.difference(runs.of("naive", "fedavg", "replay"), alone, recall)
    yield (
        "With malicious clients that replay, the federation changes recall by "
        f"{points(poisoned)} points, compared with training alone."
    )


def _beyond(change: PairedDifference) -> str:
    if change.low > 0:
        return "Yes"
    return "No, worse" if change.high < 0 else "No difference beyond chance"
