"""The four questions, each answered in plain sentences by what the runs say."""

from collections.abc import Callable, Iterator
from statistics import fmean

from evidence_runs import FIGURES, BySeed, Runs, let_in, points, precision, recall, turned_away
from evidence_study import RULES, TWO_RULES

from sluice.evaluation import PairedDifference
from sluice.lab.cell import CellResult

ATTACKED = {
    "a replay": ("naive", "replay", ""),
    "a rolled replay": ("naive", "channel-roll", ""),
    "poison optimised within the hardened rules": ("physics-aware", "feasible", "hardened"),
}


def answers(runs: Runs) -> Iterator[str]:
    """Answer in the order in which they are asked."""
    for question, answer in (
        ("Is there damage at all?", _damage),
        ("What does the gate give back?", _gate),
        ("What does physics add to ranges?", _physics),
        ("Does federation beat training alone?", _joining),
    ):
        yield f"- **{question}**"
        yield from (f"  - {sentence}" for sentence in answer(runs))
    yield ""


def _damage(runs: Runs) -> Iterator[str]:
    for words, (mode, attack, gate) in ATTACKED.items():
        told = []
        for name, figure in FIGURES:
            changes = {
                rule: runs.difference(
                    runs.of(mode, rule, attack, gate), runs.of("honest-only", rule), figure
                )
                for rule in RULES
            }
            hurt = [rule for rule, change in changes.items() if change.high < 0]
            named = f" ({', '.join(hurt)})" if 0 < len(hurt) < len(RULES) else ""
            mean = 100 * fmean(change.mean for change in changes.values())
            told.append(
                f"{name} changes by {mean:+.1f} points in the mean over rules, and falls beyond "
                f"chance under {len(hurt)} of {len(RULES)} of them{named}"
            )
        yield f"With {words} and no gate {'; '.join(told)}."


def _gate(runs: Runs) -> Iterator[str]:
    for gate in ("paper", "hardened"):
        told = [
            f"{n} of {of} {words}"
            for words, mode, attack in (
                ("replays", "guarded", "replay"),
                ("rolled ones", "guarded", "channel-roll"),
                ("projected ones", "gated", "replay"),
                ("optimised within its rules", "gated", "feasible"),
                ("that show clean rows and train on others", "gated", "attest-clean"),
            )
            for n, of in (let_in(runs.of(mode, "fedavg", attack, gate)),)
        ]
        wrong, of = turned_away(runs.of("gated", "fedavg", "replay", gate))
        yield (
            f"The {gate} gate admits {', '.join(told)}, and refuses {wrong} of {of} faithful "
            "plants."
        )
    for words, attack in (("a certified projection", "replay"), ("optimised poison", "feasible")):
        saved = _over_rules(
            runs,
            lambda rule, attack=attack: runs.of("gated", rule, attack, "hardened"),
            lambda rule, attack=attack: runs.of("physics-aware", rule, attack, "hardened"),
        )
        yield f"Against {words} the hardened gate changes recall under {saved}."
    left = _over_rules(
        runs,
        lambda rule: runs.of("gated", rule, "replay", "hardened"),
        lambda rule: runs.of("honest-only", rule),
    )
    yield f"Behind it, projected liars change recall against honest-only under {left}."


def _over_rules(runs: Runs, here: Callable[[str], BySeed], there: Callable[[str], BySeed]) -> str:
    changes = [runs.difference(here(rule), there(rule), recall) for rule in RULES]
    better = sum(change.low > 0 for change in changes)
    worse = sum(change.high < 0 for change in changes)
    mean = 100 * fmean(change.mean for change in changes)
    return (
        f"{better} of {len(RULES)} rules for the better and {worse} for the worse beyond chance "
        f"(mean over rules {mean:+.1f} points)"
    )


def _physics(runs: Runs) -> Iterator[str]:
    inside = [
        f"{n} of {of} {words}"
        for words, attack in (("projected replays", "replay"), ("optimised poisons", "feasible"))
        for n, of in (let_in(runs.of("gated", "fedavg", attack, "ranges")),)
    ]
    yield f"Ranges alone let in {' and '.join(inside)} made for them."
    for gate in ("paper", "hardened"):
        for words, attack in (("projected replays", "replay"), ("optimised poison", "feasible")):
            told = [
                f"{points(_added(runs, rule, attack, gate, recall))} points of recall under {rule}"
                for rule in TWO_RULES
            ]
            yield f"Behind the {gate} gate instead, {words}: {', '.join(told)}."


def _added(
    runs: Runs, rule: str, attack: str, gate: str, figure: Callable[[CellResult], float]
) -> PairedDifference:
    behind = runs.of("gated", rule, attack, gate)
    return runs.difference(behind, runs.of("gated", rule, attack, "ranges"), figure)


def _joining(runs: Runs) -> Iterator[str]:
    joined, alone = runs.of("clean", "fedavg"), runs.of("local-only", "fedavg")
    for name, figure in (("targeted recall", recall), ("targeted average precision", precision)):
        change = runs.difference(joined, alone, figure)
        yield f"{_beyond(change)}: {points(change)} points of {name} (FedAvg, nobody lies)."
    poisoned = runs.difference(runs.of("naive", "fedavg", "replay"), alone, recall)
    yield f"With replaying liars among them: {points(poisoned)} points of recall."


def _beyond(change: PairedDifference) -> str:
    if change.low > 0:
        return "Yes"
    return "No, it is worse" if change.high < 0 else "No difference beyond chance"
