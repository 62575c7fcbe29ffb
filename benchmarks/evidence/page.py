"""The evidence page: the answers first, then their tables."""

from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean

from benchmarks.evidence.answers import answers
from benchmarks.evidence.runs import (
    FIGURES,
    BySeed,
    Runs,
    grounds,
    honest_refused,
    malicious_admitted,
    points,
    recall,
    spread,
)
from benchmarks.evidence.store import StoredCell
from benchmarks.evidence.study import ADAPTIVE, DESCENT, GATES, NON_ADAPTIVE, RULES, TWO_RULES
from sluice.evaluation import Federation, Reference, Removal, RemovalCase, removal
from sluice.lab.trials import CellResult

PROJECTED = {"replay": "projected replay"}


def page(cells: Mapping[str, Sequence[StoredCell]]) -> str:
    """Write the page."""
    parts = [HEAD]
    for study, of_study in cells.items():
        runs = Runs(study, of_study)
        parts += [f"\n## {study}\n", *_study(runs)]
    return "\n".join(parts).rstrip("\n") + "\n"


def _study(runs: Runs) -> Iterator[str]:
    first = runs.cells[0].result
    clients = len(first.admitted) + len(first.refused)
    yield (
        f"{clients} plants, {len(first.liars)} of them malicious, {runs.seeds} seeds, 25 rounds of "
        f"2 epochs, {DESCENT.batch} windows per training step.\n"
    )
    yield from answers(runs)
    yield from _references(runs)
    yield from _damage(runs)
    yield from _admitted(runs)
    yield from _given_back(runs)
    yield from _ranges(runs)
    yield from _removal(runs)


def _references(runs: Runs) -> Iterator[str]:
    yield "### Benefit of joining a federation\n"
    yield "| | targeted recall | F1 | average precision | attacks detected | false alarms per day |"
    yield "|---|---|---|---|---|---|"
    for mode, words in (
        ("local-only", "each plant alone"),
        ("honest-only", "federation of the honest clients only"),
        ("clean", "federation of all clients, no attack"),
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
    yield "### Damage without a gate\n"
    yield (
        "The column *honest-only* is the mean (standard deviation) over seeds without the "
        "malicious clients. The other columns are the change in points when malicious clients take "
        "part without a gate, with a 95 % interval. Feasible poison is optimised within the "
        "hardened rules; attest-clean trains on the replay.\n"
    )
    for name, figure in FIGURES:
        yield f"| {name} | honest-only | {' | '.join(NON_ADAPTIVE)} | feasible | attest-clean |"
        yield "|---|---|" + "---|" * (len(NON_ADAPTIVE) + 2)
        for rule in RULES:
            reference = runs.of("honest-only", rule)
            attacked = [runs.of("naive", rule, attack) for attack in NON_ADAPTIVE]
            attacked += [
                runs.of("physics-aware", rule, attack, "hardened")
                for attack in ("feasible", "attest-clean")
            ]
            level = spread([figure(result) for result in reference.values()])
            changes = " | ".join(points(runs.difference(a, reference, figure)) for a in attacked)
            yield f"| {rule} | {level} | {changes} |"
        yield ""


def _admitted(runs: Runs) -> Iterator[str]:
    yield "### Admitted and refused batches\n"
    yield (
        "The table counts the batches of malicious clients that were admitted, over all seeds. It "
        "also gives the reasons for which the others were refused (with the number of clients; one "
        "refusal may have several reasons). The last column counts refused honest clients.\n"
    )
    yield "| gate | attack | admitted | refused for | honest refused |"
    yield "|---|---|---|---|---|"
    for gate in GATES:
        for attack in NON_ADAPTIVE:
            yield _admission_row(gate, attack, runs.of("guarded", "fedavg", attack, gate))
        for attack in ADAPTIVE:
            name = PROJECTED.get(attack, attack)
            yield _admission_row(gate, name, runs.of("gated", "fedavg", attack, gate))
    yield ""


def _admission_row(gate: str, attack: str, results: BySeed) -> str:
    counted = sorted(grounds(results).items(), key=lambda pair: (-pair[1], pair[0]))
    why = "; ".join(f"{ground} ({times})" for ground, times in counted)
    admitted, refused = (
        f"{n} of {of}" for n, of in (malicious_admitted(results), honest_refused(results))
    )
    return f"| {gate} | {attack} | {admitted} | {why or '-'} | {refused} |"


def _given_back(runs: Runs) -> Iterator[str]:
    yield "### Damage left and saved by the gate\n"
    yield (
        "The table shows changes in points of recall and of average precision. *Left* is the "
        "figure with the gate minus the figure in honest-only (the remaining damage). *Saved* is "
        "the figure with the gate minus the figure with the same poison and no gate. The column "
        "*rule* is the aggregation rule.\n"
    )
    yield "| gate | attack | rule | recall left | recall saved | precision left | precision saved |"
    yield "|---|---|---|---|---|---|---|"
    for gate in ("paper", "hardened"):
        for attack in NON_ADAPTIVE:
            for rule in RULES:
                behind = runs.of("guarded", rule, attack, gate)
                ungated = runs.of("naive", rule, attack)
                yield f"| {gate} | {attack} | {rule} | {_left_saved(runs, rule, behind, ungated)}"
        for attack in ADAPTIVE:
            for rule in TWO_RULES if (gate, attack) == ("paper", "feasible") else RULES:
                behind = runs.of("gated", rule, attack, gate)
                ungated = runs.of("physics-aware", rule, attack, gate)
                name = PROJECTED.get(attack, attack)
                yield f"| {gate} | {name} | {rule} | {_left_saved(runs, rule, behind, ungated)}"
    yield ""


def _left_saved(runs: Runs, rule: str, behind: BySeed, ungated: BySeed) -> str:
    changes = (
        points(runs.difference(behind, other, figure))
        for _, figure in FIGURES
        for other in (runs.of("honest-only", rule), ungated)
    )
    return f"{' | '.join(changes)} |"


def _ranges(runs: Runs) -> Iterator[str]:
    yield "### Physics rules compared with ranges alone\n"
    yield (
        "The malicious clients are the same, and adapt to the gate that judges them. The table "
        "shows the change in points with the gate, compared with the ranges gate. The column "
        "*rule* is the aggregation rule.\n"
    )
    yield "| gate | attack | rule | targeted recall | targeted average precision |"
    yield "|---|---|---|---|---|"
    for gate in ("paper", "hardened"):
        for attack in ("replay", "feasible"):
            for rule in TWO_RULES:
                behind = runs.of("gated", rule, attack, gate)
                alone = runs.of("gated", rule, attack, "ranges")
                changes = [points(runs.difference(behind, alone, figure)) for _, figure in FIGURES]
                name = PROJECTED.get(attack, attack)
                yield f"| {gate} | {name} | {rule} | {' | '.join(changes)} |"
    yield ""


def _removal(runs: Runs) -> Iterator[str]:
    yield "### Removal (equation 7), the paper's figure\n"
    yield (
        "The table shows which share of the naive replay's damage is removed when malicious "
        "clients project, over the seeds with at least one point of damage. These are the "
        "informative seeds (column n: informative seeds of all seeds). The column *rule* is the "
        "aggregation rule. *By construction* counts informative seeds on which the gate admitted "
        "no malicious client, so that gated and honest-only are the same federation.\n"
    )
    yield (
        "| rule | damage | n | projection alone | paper gate | hardened gate "
        "| by construction (paper, hardened) | hardened, relative to clean (n) |"
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
        malicious=frozenset(result.liars) & frozenset(result.admitted),
    )


def _damage_of(removed: Removal) -> str:
    return "-" if removed.damage is None else f"{100 * removed.damage:.1f}"


def _percent(removed: Removal) -> str:
    return "-" if removed.share is None else f"{removed.share:.0%}"


HEAD = """# Damage by poisoning, and how much the gate prevents

Written by `make evidence` (`python -m benchmarks evidence`). The page depends only on the code and
the records: another run on the same machine gives the same numbers. Modes are paired: poison is
made once per plant and seed, and initial weights and shuffles are the same in every mode. Modes
differ only in which clients take part and with which rows. Each malicious client wants to hide
attacks that take a quarter of a shard's rows; each seed draws these attacks separately. Half of the
client's training windows contain these attacks; no gate and no proof constrains this weighting.
Alarm thresholds come from clean validation rows alone. Intervals are bootstrap intervals over
seeds, widened for the small number of seeds. *Beyond chance* means that the interval does not
contain zero. With this many intervals on one page, some exclude zero by chance.

Gates: *ranges* checks minimum, maximum and step of each channel and allows 1 % of rows to violate;
*paper* uses the paper's rules (profile `paper-wide`) with the paper's 1 % policy; *hardened* uses
Sluice's default rules and policy. A *projected* replay is moved onto the rules of the gate that
judges it, by a certified least-squares projection that also uses the 1 % of rows that may violate.
The projection does not change actuators and ignores checks that are not rules (repeated readings,
how often a pump switches). *Feasible* clients also satisfy these checks and optimise the poison
within the rules. *Attest-clean* clients show a clean shard and train on the replay: the gate judges
telemetry, and nothing binds the update to this telemetry. On this page *aggregation rule* means a
rule that combines updates (fedavg, median and others), and *rules* without this word means rules of
physics."""
