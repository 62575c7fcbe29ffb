"""Measures for a grid's report: cells grouped for comparison, and their differences."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from sluice.evaluation import (
    Federation,
    Pair,
    PairedDifference,
    Reference,
    Removal,
    RemovalCase,
    Unit,
    paired_difference,
    removal,
)
from sluice.lab.results import StoredCell

__all__ = ["Group", "Line", "groups", "of_mode", "removal_of", "saved_by", "seeds_of", "wilson"]

REFERENCES = (Reference.HONEST_ONLY, Reference.CLEAN)
BOOTSTRAP_SEED = 0
NORMAL_975 = 1.959963984540054


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Line:
    """A row of a report: the fields of a cell except mode and seed."""

    record: str
    stand_in: str
    clients: int
    invariants: str
    attack: str
    rule: str

    @property
    def plant(self) -> str:
        """The name of the record, with its substitute if it has one."""
        return f"{self.stand_in} for {self.record}" if self.stand_in else self.record


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The finished cells of a line, by mode and seed."""

    line: Line
    cells: Mapping[str, Mapping[int, StoredCell]]


def groups(cells: Iterable[StoredCell], *, study: str | None = None) -> tuple[Group, ...]:
    """Group the finished cells, in the order of the grid."""
    grouped: dict[Line, dict[str, dict[int, StoredCell]]] = {}
    for cell in cells:
        asked = cell.asked
        if cell.result is None or (study is not None and asked.study != study):
            continue
        line = Line(
            record=asked.record,
            stand_in=asked.stand_in or "",
            clients=asked.clients,
            invariants=asked.invariants or "",
            attack=asked.attack or "",
            rule=asked.rule,
        )
        grouped.setdefault(line, {}).setdefault(asked.mode, {})[asked.seed] = cell
    return tuple(Group(line=line, cells=modes) for line, modes in grouped.items())


def of_mode(group: Group, mode: str) -> float | None:
    """Return the mean targeted recall of a mode over its seeds."""
    recalls = seeds_of(group, mode).values()
    return fmean(recalls) if recalls else None


def seeds_of(group: Group, mode: str) -> Mapping[int, float]:
    """Return a mode's targeted recall by seed, for the seeds that have targets."""
    return {
        seed: recall
        for seed, cell in sorted(group.cells.get(mode, {}).items())
        if (recall := _recall(cell)) is not None
    }


def removal_of(group: Group, mode: str) -> Removal | None:
    """Return the paper's removal ratio against honest-only, or against clean if that is missing."""
    for reference in REFERENCES:
        shared = _shared(group, reference.value, "naive", mode)
        if shared:
            cases = [
                RemovalCase(
                    unit=_unit(group, seed),
                    reference=_federation(group, reference.value, seed),
                    naive=_federation(group, "naive", seed),
                    defended=_federation(group, mode, seed),
                )
                for seed in shared
            ]
            return removal(cases, reference=reference)
    return None


def saved_by(
    group: Group, mode: str, *, against: str = "naive", other: Group | None = None
) -> PairedDifference | None:
    """Return the gain in targeted recall of a mode, paired by seed, with its interval.

    The mode is compared with `against` in the same group, or in `other` if it is given.
    """
    recall, other_recall = seeds_of(group, mode), seeds_of(other or group, against)
    shared = sorted(set(recall) & set(other_recall))
    if len(shared) < 2:
        return None
    pairs = [
        Pair(unit=_unit(group, seed), recall=recall[seed], against=other_recall[seed])
        for seed in shared
    ]
    return paired_difference(pairs, seed=BOOTSTRAP_SEED)


def wilson(count: int, of: int) -> tuple[float, float]:
    """Return the 95 % interval of a counted share (Wilson, 1927)."""
    share, spread = count / of, NORMAL_975**2 / of
    centre = share + spread / 2
    reach = NORMAL_975 * math.sqrt(share * (1 - share) / of + spread / (4 * of))
    return max(0.0, (centre - reach) / (1 + spread)), min(1.0, (centre + reach) / (1 + spread))


def _shared(group: Group, *modes: str) -> Sequence[int]:
    return sorted(set.intersection(*(set(seeds_of(group, mode)) for mode in modes)))


def _unit(group: Group, seed: int) -> Unit:
    return Unit(seed=seed, record=group.line.plant, targets=f"drawn by seed {seed}")


def _federation(group: Group, mode: str, seed: int) -> Federation:
    cell = group.cells[mode][seed]
    assert cell.result is not None
    assert cell.result.score.targeted_recall is not None
    attacked = mode not in ("clean", "honest-only")
    admitted = frozenset(cell.result.admitted)
    return Federation(
        targeted_recall=cell.result.score.targeted_recall,
        roster=admitted,
        malicious=admitted & frozenset(cell.result.liars) if attacked else frozenset(),
    )


def _recall(cell: StoredCell) -> float | None:
    return cell.result.score.targeted_recall if cell.result else None
