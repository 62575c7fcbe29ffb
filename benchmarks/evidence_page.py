"""The page of the evidence: tables with intervals, and one plain sentence on each question."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from evidence_store import Kept
from evidence_study import ADAPTIVE, DESCENT, GATES, HEEDLESS, RULES, TWO_RULES

from sluice.evaluation import (
    Federation,
    Pair,
    PairedDifference,
    Reference,
    RemovalCase,
    Unit,
    paired_difference,
    removal,
)
from sluice.lab.cell import CellResult

BOOTSTRAP_SEED = 0
GATE_WORDS = {
    "ranges": "ranges (min, max and step per channel)",
    "paper": "the paper's rules and policy",
    "hardened": "hardened rules and policy",
}


@dataclass(frozen=True, slots=True)
class Runs:
    """The cells of one plant, found by gate, mode, attack and rule."""

    study: str
    kept: Sequence[Kept]

    def by_seed(
        self, mode: str, rule: str, attack: str | None = None, gate: str = ""
    ) -> dict[int, CellResult]:
        """Return one kind of cell, seed by seed."""
        return {
            one.result.seed: one.result
            for one in self.kept
            if (one.gate, one.result.mode, one.result.rule, one.result.attack)
            == (gate, mode, rule, attack)
        }

    def difference(
        self,
        runs: Mapping[int, CellResult],
        against: Mapping[int, CellResult],
        figure: Callable[[CellResult], float] | None = None,
    ) -> PairedDifference:
        """Return how far two kinds of cells differ, by default in targeted recall, over seeds."""
        figure = figure or _recall
        pairs = [
            Pair(
                unit=Unit(seed=seed, record=self.study, targets="drawn by seed"),
                recall=figure(runs[seed]),
                against=figure(against[seed]),
            )
            for seed in sorted(runs)
        ]
        return paired_difference(pairs, seed=BOOTSTRAP_SEED)


def _recall(result: CellResult) -> float:
    found = result.score.targeted_recall
    assert found is not None, "every target set has windows"
    return found


def _precision(result: CellResult) -> float:
    found = result.score.targeted_auc_pr
    assert found is not None, "every target set has windows"
    return found


FIGURES = (("targeted recall", _recall), ("targeted average precision", _precision))


def page(kept: Mapping[str, Sequence[Kept]]) -> str:
    """Write the page."""
    parts = [HEAD]
    for study, found in kept.items():
        runs = Runs(study, found)
        parts += [f"\n## {study}\n", *_study(runs)]
    return "\n".join(parts) + "\n"


def _study(runs: Runs) -> Iterator[str]:
    first = runs.kept[0].result
    seeds = len({one.result.seed for one in runs.kept})
    clients = len(first.admitted) + len(first.refused)
    yield (
        f"{clients} plants, {len(first.liars)} of whom lie, {seeds} seeds, 25 rounds of 2 epochs, "
        f"batch {DESCENT.batch}.\n"
    )
    yield from _references(runs)
    yield from _damage(runs)
    yield from _admitted(runs)
    yield from _given_back(runs)
    yield from _ranges(runs)
    yield from _removal(runs)


def _references(runs: Runs) -> Iterator[str]:
    yield "### What a plant gains by joining\n"
    yield "| | targeted recall | F1 | average precision | attacks detected | false alarms a day |"
    yield "|---|---|---|---|---|---|"
    for mode, words in (
        ("local-only", "each plant alone"),
        ("honest-only", "federation without the liars"),
        ("clean", "federation of all, nobody lies"),
        ("centralised", "all rows in one place"),
    ):
        yield f"| {words} | {_figures(list(runs.by_seed(mode, 'fedavg').values()))} |"
    gain = runs.difference(runs.by_seed("clean", "fedavg"), runs.by_seed("local-only", "fedavg"))
    yield f"\nFederation (FedAvg, nobody lies) against each plant alone: {_told(gain)}.\n"


def _figures(results: Sequence[CellResult]) -> str:
    scores = [result.score for result in results]
    alarms = [s.false_alarms_per_day for s in scores if s.false_alarms_per_day is not None]
    return " | ".join(
        (
            _spread([_recall(result) for result in results]),
            _spread([score.f1 for score in scores]),
            _spread([score.auc_pr for score in scores]),
            f"{fmean(score.detected_attacks for score in scores):.1f} of {scores[0].attacks}",
            f"{fmean(alarms):.2f}" if alarms else "-",
        )
    )


def _damage(runs: Runs) -> Iterator[str]:
    yield "### Is there damage at all?\n"
    yield (
        "Without the liars (mean, standard deviation over seeds), and the change in points when "
        "they take part, with a 95 % interval. Recall is taken at the alarm threshold; average "
        "precision of targeted against normal windows needs none. Attest-clean trains on the "
        "replay, behind the hardened gate.\n"
    )
    for name, figure in FIGURES:
        yield f"| {name} | without liars | {' | '.join(HEEDLESS)} | attest-clean |"
        yield "|---|---|" + "---|" * (len(HEEDLESS) + 1)
        hurt: dict[str, list[str]] = {attack: [] for attack in HEEDLESS}
        for rule in RULES:
            reference = runs.by_seed("honest-only", rule)
            attacked = [runs.by_seed("naive", rule, attack) for attack in HEEDLESS]
            attacked.append(runs.by_seed("gated", rule, "attest-clean", "hardened"))
            changes = [runs.difference(one, reference, figure) for one in attacked]
            for attack, change in zip(HEEDLESS, changes, strict=False):
                if change.high < 0:
                    hurt[attack].append(rule)
            level = _spread([figure(result) for result in reference.values()])
            yield f"| {rule} | {level} | {' | '.join(_points(change) for change in changes)} |"
        yield ""
        for attack, found in hurt.items():
            under = f" ({', '.join(found)})" if found else ""
            yield (
                f"{attack}: {name} falls beyond chance under {len(found)} of {len(RULES)} "
                f"rules{under}.\n"
            )


def _admitted(runs: Runs) -> Iterator[str]:
    yield "### Who gets in\n"
    yield (
        "Liars admitted of liars that came, over all seeds; faithful plants refused stand in the "
        "last column.\n"
    )
    yield "| gate | attack | heedless | projected onto the gate's rules | faithful refused |"
    yield "|---|---|---|---|---|"
    for gate in GATES:
        for attack in ATTACKS:
            heedless = runs.by_seed("guarded", "fedavg", attack, gate)
            shaped = runs.by_seed("gated", "fedavg", attack, gate)
            plain = _let_in(heedless) if heedless else "-"
            yield (f"| {gate} | {attack} | {plain} | {_let_in(shaped)} | {_turned_away(shaped)} |")
    yield ""


def _let_in(results: Mapping[int, CellResult]) -> str:
    came = sum(len(result.liars) for result in results.values())
    return f"{sum(result.liars_admitted for result in results.values())} of {came}"


def _turned_away(results: Mapping[int, CellResult]) -> str:
    faithful = [
        client in result.refused
        for result in results.values()
        for client in (*result.admitted, *result.refused)
        if client not in result.liars
    ]
    return f"{sum(faithful)} of {len(faithful)}"


def _given_back(runs: Runs) -> Iterator[str]:
    yield "### What the gate gives back\n"
    yield (
        "Change in points: *left* is gated against honest-only (the damage that is still there), "
        "*saved* is gated against the same poison with the door open; of recall, then of average "
        "precision.\n"
    )
    yield "| gate | attack | rule | recall left | recall saved | precision left | precision saved |"
    yield "|---|---|---|---|---|---|---|"
    for gate in ("paper", "hardened"):
        for attack in ATTACKS:
            for rule in RULES:
                gated = runs.by_seed("gated", rule, attack, gate)
                against = (
                    runs.by_seed("honest-only", rule),
                    runs.by_seed("physics-aware", rule, attack, gate),
                )
                told = " | ".join(
                    _points(runs.difference(gated, other, figure))
                    for _, figure in FIGURES
                    for other in against
                )
                yield f"| {gate} | {attack} | {rule} | {told} |"
    yield ""


def _ranges(runs: Runs) -> Iterator[str]:
    yield "### What physics adds to ranges\n"
    yield (
        "The same liars, each time projected onto what the gate knows; behind the gate against "
        "behind ranges alone, in points.\n"
    )
    yield "| gate | attack | rule | targeted recall | targeted average precision |"
    yield "|---|---|---|---|---|"
    for gate in ("paper", "hardened"):
        for attack in (*HEEDLESS, "feasible"):
            for rule in FEW_RULES["ranges"]:
                behind = runs.by_seed("gated", rule, attack, gate)
                alone = runs.by_seed("gated", rule, attack, "ranges")
                told = [_points(runs.difference(behind, alone, figure)) for _, figure in FIGURES]
                yield f"| {gate} | {attack} | {rule} | {' | '.join(told)} |"
    yield ""


def _removal(runs: Runs) -> Iterator[str]:
    yield "### Removal (equation 7), the paper's figure\n"
    yield (
        "Share of the naive damage that is gone, over seeds with at least one point of it "
        "(n informative of all); *by construction* counts seeds on which the gate left no liar, "
        "so that gated and honest-only are one federation.\n"
    )
    yield (
        "| attack | rule | damage | n | projection alone | paper gate | hardened gate "
        "| by construction (paper, hardened) | hardened, against clean (n) |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for attack in HEEDLESS:
        for rule in RULES:
            yield _removal_row(runs, attack, rule)
    yield ""


def _removal_row(runs: Runs, attack: str, rule: str) -> str:
    def removed(mode: str, gate: str, reference: Reference = Reference.HONEST_ONLY):  # noqa: ANN202
        whole = runs.by_seed(reference.value, rule)
        naive = runs.by_seed("naive", rule, attack)
        defended = runs.by_seed(mode, rule, attack, gate)
        return removal(
            [
                RemovalCase(
                    unit=Unit(seed=seed, record=runs.study, targets="drawn by seed"),
                    reference=_federation(whole[seed]),
                    naive=_federation(naive[seed]),
                    defended=_federation(defended[seed]),
                )
                for seed in sorted(whole)
            ],
            reference=reference,
        )

    projection = removed("physics-aware", "paper")
    paper, hardened = removed("gated", "paper"), removed("gated", "hardened")
    clean = removed("gated", "hardened", Reference.CLEAN)
    return (
        f"| {attack} | {rule} | {_share(projection.damage, 100)} "
        f"| {len(projection.informative)} of {projection.units} | {_percent(projection.share)} "
        f"| {_percent(paper.share)} | {_percent(hardened.share)} "
        f"| {len(paper.by_construction)}, {len(hardened.by_construction)} "
        f"| {_percent(clean.share)} ({len(clean.informative)}) |"
    )


def _federation(result: CellResult) -> Federation:
    return Federation(
        targeted_recall=_recall(result),
        roster=frozenset(result.admitted),
        liars=frozenset(result.liars) & frozenset(result.admitted),
    )


def _spread(values: Sequence[float]) -> str:
    around = f" ({stdev(values):.3f})" if len(values) > 1 else ""
    return f"{fmean(values):.3f}{around}"


def _points(change: PairedDifference) -> str:
    return f"{100 * change.mean:+.1f} ({100 * change.low:+.1f} to {100 * change.high:+.1f})"


def _told(change: PairedDifference) -> str:
    told = f"{_points(change)} points of targeted recall, {change.seeds} seeds"
    if change.low > 0:
        return f"more: {told}"
    if change.high < 0:
        return f"less: {told}"
    return f"no difference beyond chance: {told}"


def _share(value: float | None, times: float) -> str:
    return "-" if value is None else f"{times * value:.1f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


HEAD = """# What poisoning does, and what the gate gives back

Written by `make evidence`, from nothing but the code and the records; another run on the same
machine gives the same numbers. Modes are paired: poison is made once per plant and seed, initial
weights and shuffles are the same in every mode, and what differs is who takes part with which rows.
Liars spend half of their training windows on the attacks they want overlooked (a quarter of a
shard's rows, drawn anew by each seed), whatever the gate says of each row's weight; no gate and no
proof reaches that. Alarm thresholds come from clean validation rows alone. Intervals are bootstrap
intervals over seeds, widened for their number.

Gates: *ranges* knows min, max and step of each channel; *paper* is the paper's wide rules and its
1 % policy in floats; *hardened* is ours. *Projected* liars move their batch onto the rules of the
very gate they face, by a certified least-squares projection that also spends the 1 % of rows that
may violate. *Feasible* liars optimise the poison inside those rules. *Attest-clean* liars show a
clean shard and train on the replay."""
