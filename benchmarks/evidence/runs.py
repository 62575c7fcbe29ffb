"""The cells of one plant, compared seed by seed, and the format of figures."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TypeAlias

from benchmarks.evidence.store import StoredCell
from sluice.evaluation import Pair, PairedDifference, Unit, paired_difference
from sluice.lab.trials import CellResult

BOOTSTRAP_SEED = 0

BySeed: TypeAlias = Mapping[int, CellResult]


@dataclass(frozen=True, slots=True)
class Runs:
    """The cells of one plant, selected by mode, rule, attack and gate."""

    study: str
    cells: Sequence[StoredCell]

    @property
    def seeds(self) -> int:
        """Number of seeds."""
        return len({cell.result.seed for cell in self.cells})

    def of(self, mode: str, rule: str, attack: str | None = None, gate: str = "") -> BySeed:
        """Return one kind of cell, seed by seed."""
        wanted = (gate, mode, rule, attack)
        return {
            cell.result.seed: cell.result
            for cell in self.cells
            if (cell.gate, cell.result.mode, cell.result.rule, cell.result.attack) == wanted
        }

    def unit(self, seed: int) -> Unit:
        """Return the statistical unit that the runs of one seed share."""
        return Unit(seed=seed, record=self.study, targets="drawn by seed")

    def difference(
        self, runs: BySeed, against: BySeed, figure: Callable[[CellResult], float]
    ) -> PairedDifference:
        """Return the paired difference of two kinds of cells in a figure, over seeds."""
        pairs = [
            Pair(unit=self.unit(seed), recall=figure(runs[seed]), against=figure(against[seed]))
            for seed in sorted(runs)
        ]
        return paired_difference(pairs, seed=BOOTSTRAP_SEED)


def recall(result: CellResult) -> float:
    """Targeted recall at the alarm threshold."""
    score = result.score.targeted_recall
    assert score is not None, "every target set has windows"
    return score


def precision(result: CellResult) -> float:
    """Average precision of targeted against normal windows, which needs no threshold."""
    score = result.score.targeted_auc_pr
    assert score is not None, "every target set has windows"
    return score


FIGURES = (("targeted recall", recall), ("targeted average precision", precision))


def malicious_admitted(results: BySeed) -> tuple[int, int]:
    """Return how many malicious clients were admitted, and of how many."""
    total = sum(len(result.liars) for result in results.values())
    return sum(result.liars_admitted for result in results.values()), total


def honest_refused(results: BySeed) -> tuple[int, int]:
    """Return how many honest clients were refused, and of how many."""
    refused = [
        client in result.refused
        for result in results.values()
        for client in (*result.admitted, *result.refused)
        if client not in result.liars
    ]
    return sum(refused), len(refused)


def grounds(results: BySeed) -> Counter[str]:
    """Count the reasons why malicious clients were refused; one refusal may have several."""
    return Counter(
        ground
        for result in results.values()
        for client in result.liars
        for ground in {_ground(reason) for reason in result.refused.get(client, ())}
    )


GROUNDS = {
    "break a rule": "rows that break rules",
    "further from a rule than any clean row": "severe rows",
    "beyond what any plant does": "severe rows",  # in results of release 0.1.0
    "in transition": "too many transitions",
    "repeats earlier readings": "readings that repeat",
    "shows the same readings twice": "readings that repeat",  # in results of release 0.1.0
    "do not balance": "windows that do not balance",
    "moves by only": "a level that stands still",
    "moves by less than": "a level that stands still",  # in results of release 0.1.0
    "time jumps": "time jumps",
}


def _ground(reason: str) -> str:
    return next((name for words, name in GROUNDS.items() if words in reason), reason)


def spread(values: Sequence[float]) -> str:
    """Write a mean with its standard deviation."""
    around = f" ({stdev(values):.3f})" if len(values) > 1 else ""
    return f"{fmean(values):.3f}{around}"


def points(change: PairedDifference) -> str:
    """Write a difference and its interval in points."""
    return f"{100 * change.mean:+.1f} ({100 * change.low:+.1f} to {100 * change.high:+.1f})"
