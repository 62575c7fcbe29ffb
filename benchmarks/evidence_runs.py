"""The cells of one plant, compared seed by seed, and how figures are written."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import TypeAlias

from evidence_store import Kept

from sluice.evaluation import Pair, PairedDifference, Unit, paired_difference
from sluice.lab.cell import CellResult

BOOTSTRAP_SEED = 0

BySeed: TypeAlias = Mapping[int, CellResult]


@dataclass(frozen=True, slots=True)
class Runs:
    """The cells of one plant, found by mode, rule, attack and gate."""

    study: str
    kept: Sequence[Kept]

    @property
    def seeds(self) -> int:
        """How many seeds were run."""
        return len({one.result.seed for one in self.kept})

    def of(self, mode: str, rule: str, attack: str | None = None, gate: str = "") -> BySeed:
        """Return one kind of cell, seed by seed."""
        wanted = (gate, mode, rule, attack)
        return {
            one.result.seed: one.result
            for one in self.kept
            if (one.gate, one.result.mode, one.result.rule, one.result.attack) == wanted
        }

    def unit(self, seed: int) -> Unit:
        """Name what runs of one seed share."""
        return Unit(seed=seed, record=self.study, targets="drawn by seed")

    def difference(
        self, runs: BySeed, against: BySeed, figure: Callable[[CellResult], float]
    ) -> PairedDifference:
        """Return how far two kinds of cells differ in a figure, over seeds."""
        pairs = [
            Pair(unit=self.unit(seed), recall=figure(runs[seed]), against=figure(against[seed]))
            for seed in sorted(runs)
        ]
        return paired_difference(pairs, seed=BOOTSTRAP_SEED)


def recall(result: CellResult) -> float:
    """Targeted recall at the alarm threshold."""
    found = result.score.targeted_recall
    assert found is not None, "every target set has windows"
    return found


def precision(result: CellResult) -> float:
    """Average precision of targeted against normal windows, which needs no threshold."""
    found = result.score.targeted_auc_pr
    assert found is not None, "every target set has windows"
    return found


FIGURES = (("targeted recall", recall), ("targeted average precision", precision))


def let_in(results: BySeed) -> tuple[int, int]:
    """Return how many liars were admitted, of how many that came."""
    came = sum(len(result.liars) for result in results.values())
    return sum(result.liars_admitted for result in results.values()), came


def turned_away(results: BySeed) -> tuple[int, int]:
    """Return how many faithful plants were refused, of how many that came."""
    faithful = [
        client in result.refused
        for result in results.values()
        for client in (*result.admitted, *result.refused)
        if client not in result.liars
    ]
    return sum(faithful), len(faithful)


def grounds(results: BySeed) -> Counter[str]:
    """Count the grounds on which liars were refused; one refusal may have several."""
    return Counter(
        ground
        for result in results.values()
        for liar in result.liars
        for ground in {_ground(reason) for reason in result.refused.get(liar, ())}
    )


GROUNDS = {
    "break a rule": "rows that break rules",
    "beyond what any plant does": "severe rows",
    "in transition": "too many transitions",
    "twice, digit by digit": "readings that stand twice",
    "do not balance": "windows that do not balance",
    "moves by less than": "a level that stands still",
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
