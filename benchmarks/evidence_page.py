"""The page of the evidence: the answers first, then the tables they are read from."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from evidence_answers import answers
from evidence_runs import (
    FIGURES,
    BySeed,
    Runs,
    grounds,
    let_in,
    points,
    recall,
    spread,
    turned_away,
)
from evidence_store import Kept
from evidence_study import ADAPTIVE, DESCENT, GATES, HEEDLESS, RULES, TWO_RULES

from sluice.evaluation import Federation, Reference, RemovalCase, removal
from sluice.evaluation.removal import Removal
from sluice.lab.cell import CellResult

PROJECTED = {"replay": "projected replay"}


def page(kept: Mapping[str, Sequence[Kept]]) -> str:
    """Write the page."""
    parts = [HEAD]
    for study, found in kept.items():
        runs = Runs(study, found)
        parts += [f"\n## {study}\n", *_study(runs)]
    return "\n".join(parts).rstrip("\n") + "\n"


def _study(runs: Runs) -> Iterator[str]:
    first = runs.kept[0].result
    clients = len(first.admitted) + len(first.refused)
    yield (
        f"{clients} plants, {len(first.liars)} of whom lie, {runs.seeds} seeds, 25 rounds of "
        f"2 epochs, batch {DESCENT.batch}.\n"
    )
    yield from answers(runs)
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
        yield f"| {words} | {_figures(list(runs.of(mode, 'fedavg').values()))} |"
    yield ""


def _figures(results: Sequence[CellResult]) -> str:
    scores = [result.score for result in results]
    alarms = [s.false_alarms_per_day for s in scores if s.false_alarms_per_day is not None]
    return " | ".join(
        (
            spread([recall(result) for result in results]),
            spread([score.f1 for score in scores]),
            spread([score.auc_pr for score in scores]),
            f"{fmean(score.detected_attacks for score in scores):.1f} of {scores[0].attacks}",
            f"{fmean(alarms):.2f}" if alarms else "-",
        )
    )


def _damage(runs: Runs) -> Iterator[str]:
    yield "### Is there damage at all?\n"
    yield (
        "Without the liars (mean, standard deviation over seeds), and the change in points when "
        "they take part and nobody stands at the door, with a 95 % interval. Feasible poison was "
        "made within the hardened rules; attest-clean trains on the replay.\n"
    )
    for name, figure in FIGURES:
        yield f"| {name} | without liars | {' | '.join(HEEDLESS)} | feasible | attest-clean |"
        yield "|---|---|" + "---|" * (len(HEEDLESS) + 2)
        for rule in RULES:
            reference = runs.of("honest-only", rule)
            attacked = [runs.of("naive", rule, attack) for attack in HEEDLESS]
            attacked += [
                runs.of("physics-aware", rule, attack, "hardened")
                for attack in ("feasible", "attest-clean")
            ]
            level = spread([figure(result) for result in reference.values()])
            told = " | ".join(points(runs.difference(a, reference, figure)) for a in attacked)
            yield f"| {rule} | {level} | {told} |"
        yield ""


def _admitted(runs: Runs) -> Iterator[str]:
    yield "### Who gets in\n"
    yield (
        "Liars admitted of liars that came, over all seeds, and on which grounds the others were "
        "refused (liars each); faithful plants refused stand in the last column.\n"
    )
    yield "| gate | attack | admitted | refused for | faithful refused |"
    yield "|---|---|---|---|---|"
    for gate in GATES:
        for attack in HEEDLESS:
            yield _door(gate, attack, runs.of("guarded", "fedavg", attack, gate))
        for attack in ADAPTIVE:
            name = PROJECTED.get(attack, attack)
            yield _door(gate, name, runs.of("gated", "fedavg", attack, gate))
    yield ""


def _door(gate: str, attack: str, results: BySeed) -> str:
    counted = sorted(grounds(results).items(), key=lambda found: (-found[1], found[0]))
    why = "; ".join(f"{ground} ({times})" for ground, times in counted)
    admitted, refused = (f"{n} of {of}" for n, of in (let_in(results), turned_away(results)))
    return f"| {gate} | {attack} | {admitted} | {why or '-'} | {refused} |"


def _given_back(runs: Runs) -> Iterator[str]:
    yield "### What the gate gives back\n"
    yield (
        "Change in points: *left* is behind the gate against honest-only (the damage that is still "
        "there), *saved* is behind the gate against the same poison with the door open; of recall, "
        "then of average precision.\n"
    )
    yield "| gate | attack | rule | recall left | recall saved | precision left | precision saved |"
    yield "|---|---|---|---|---|---|---|"
    for gate in ("paper", "hardened"):
        for attack in HEEDLESS:
            for rule in RULES:
                behind = runs.of("guarded", rule, attack, gate)
                open_door = runs.of("naive", rule, attack)
                yield f"| {gate} | {attack} | {rule} | {_left_saved(runs, rule, behind, open_door)}"
        for attack in ADAPTIVE:
            for rule in TWO_RULES if (gate, attack) == ("paper", "feasible") else RULES:
                behind = runs.of("gated", rule, attack, gate)
                open_door = runs.of("physics-aware", rule, attack, gate)
                name = PROJECTED.get(attack, attack)
                yield f"| {gate} | {name} | {rule} | {_left_saved(runs, rule, behind, open_door)}"
    yield ""


def _left_saved(runs: Runs, rule: str, behind: BySeed, open_door: BySeed) -> str:
    told = (
        points(runs.difference(behind, other, figure))
        for _, figure in FIGURES
        for other in (runs.of("honest-only", rule), open_door)
    )
    return f"{' | '.join(told)} |"


def _ranges(runs: Runs) -> Iterator[str]:
    yield "### What physics adds to ranges\n"
    yield (
        "The same liars, each time minding what the gate knows; behind the gate against behind "
        "ranges alone, in points.\n"
    )
    yield "| gate | attack | rule | targeted recall | targeted average precision |"
    yield "|---|---|---|---|---|"
    for gate in ("paper", "hardened"):
        for attack in ("replay", "feasible"):
            for rule in TWO_RULES:
                behind = runs.of("gated", rule, attack, gate)
                alone = runs.of("gated", rule, attack, "ranges")
                told = [points(runs.difference(behind, alone, figure)) for _, figure in FIGURES]
                name = PROJECTED.get(attack, attack)
                yield f"| {gate} | {name} | {rule} | {' | '.join(told)} |"
    yield ""


def _removal(runs: Runs) -> Iterator[str]:
    yield "### Removal (equation 7), the paper's figure\n"
    yield (
        "Share of the naive replay's damage that is gone when liars project, over seeds with at "
        "least one point of it (n informative of all); *by construction* counts informative seeds "
        "on which the gate left no liar, so that gated and honest-only are one federation.\n"
    )
    yield (
        "| rule | damage | n | projection alone | paper gate | hardened gate "
        "| by construction (paper, hardened) | hardened, against clean (n) |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for rule in RULES:
        projection = _removed(runs, rule, "physics-aware", "paper")
        paper = _removed(runs, rule, "gated", "paper")
        hardened = _removed(runs, rule, "gated", "hardened")
        clean = _removed(runs, rule, "gated", "hardened", Reference.CLEAN)
        yield (
            f"| {rule} | {_damage_of(projection)} "
            f"| {len(projection.informative)} of {projection.units} | {_percent(projection)} "
            f"| {_percent(paper)} | {_percent(hardened)} "
            f"| {len(paper.by_construction)}, {len(hardened.by_construction)} "
            f"| {_percent(clean)} ({len(clean.informative)}) |"
        )
    yield ""


def _removed(
    runs: Runs, rule: str, mode: str, gate: str, reference: Reference = Reference.HONEST_ONLY
) -> Removal:
    whole = runs.of(reference.value, rule)
    naive = runs.of("naive", rule, "replay")
    defended = runs.of(mode, rule, "replay", gate)
    cases = [
        RemovalCase(
            unit=runs.unit(seed),
            reference=_federation(whole[seed]),
            naive=_federation(naive[seed]),
            defended=_federation(defended[seed]),
        )
        for seed in sorted(whole)
    ]
    return removal(cases, reference=reference)


def _federation(result: CellResult) -> Federation:
    return Federation(
        targeted_recall=recall(result),
        roster=frozenset(result.admitted),
        liars=frozenset(result.liars) & frozenset(result.admitted),
    )


def _damage_of(found: Removal) -> str:
    return "-" if found.damage is None else f"{100 * found.damage:.1f}"


def _percent(found: Removal) -> str:
    return "-" if found.share is None else f"{found.share:.0%}"


HEAD = """# What poisoning does, and what the gate gives back

Written by `make evidence`, from nothing but the code and the records; another run on the same
machine gives the same numbers. Modes are paired: poison is made once per plant and seed, initial
weights and shuffles are the same in every mode, and what differs is who takes part with which rows.
Liars spend half of their training windows on the attacks they want overlooked (a quarter of a
shard's rows, drawn anew by each seed); no gate and no proof reaches that weighting. Alarm
thresholds come from clean validation rows alone. Intervals are bootstrap intervals over seeds,
widened for their number; *beyond chance* means that the interval leaves zero out. With this many
intervals on one page some will do so by chance.

Gates: *ranges* knows min, max and step of each channel and allows 1 % of rows; *paper* is the
paper's wide rules and its 1 % policy; *hardened* is ours. A *projected* replay is moved onto the
rules of the very gate it faces, by a certified least-squares projection that also spends the 1 % of
rows that may violate; actuators stay as they were, and checks that are no rule (readings that stand
twice, how often a pump switches) are not dodged. *Feasible* liars dodge these too, and optimise the
poison inside the rules. *Attest-clean* liars show a clean shard and train on the replay: the gate
judges telemetry, and nothing binds the update to it."""
