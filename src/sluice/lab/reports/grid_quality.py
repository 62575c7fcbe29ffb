"""F1 and related measures; the paper reports them only for its simulator."""

from collections.abc import Callable, Mapping, Sequence
from statistics import fmean, stdev
from types import MappingProxyType

from sluice.lab.reports.grid_measures import Group, groups
from sluice.lab.reports.grid_tables import NAMES, difference
from sluice.lab.reports.tables import Column, ReportTable, Value
from sluice.lab.results import Score, StoredCell

__all__ = ["quality_table", "recorded_f1"]

# Mean F1 in the reference's results files, by record, attack, rule and mode.
_F1: Mapping[tuple[str, str, str, str], float] = MappingProxyType(
    {
        **{
            ("batadal", attack, rule, "clean"): 0.4696569920844326
            for attack in ("replay", "channel-roll")
            for rule in ("fedavg", "trimmed-mean", "fltrust")
        },
        ("batadal", "channel-roll", "fedavg", "naive"): 0.43318,
        ("swat", "replay", "fedavg", "clean"): 0.76718,  # mean of five seeds
        ("swat", "replay", "fedavg", "naive"): 0.77178,
        ("swat", "replay", "fedavg", "honest-only"): 0.76754,
        ("simulator", "channel-roll", "fedavg", "clean"): 0.55038,
        ("simulator", "channel-roll", "fedavg", "naive"): 0.22096,
        ("simulator", "channel-roll", "fedavg", "physics-aware"): 0.56154,
        ("simulator", "channel-roll", "trimmed-mean", "clean"): 0.54155,
        ("simulator", "channel-roll", "trimmed-mean", "naive"): 0.39978,
        ("simulator", "channel-roll", "trimmed-mean", "physics-aware"): 0.56370,
        ("simulator", "channel-roll", "fltrust", "clean"): 0.53332,
        ("simulator", "channel-roll", "fltrust", "naive"): 0.51115,
        ("simulator", "channel-roll", "fltrust", "physics-aware"): 0.48498,
        **{
            ("wadi", attack, rule, "clean"): f1
            for attack in ("replay", "channel-roll")
            for rule, f1 in (("fedavg", 0.2599), ("trimmed-mean", 0.2612), ("fltrust", 0.2602))
        },
    }
)
_PRECISION: Mapping[tuple[str, str], float] = MappingProxyType({("batadal", "clean"): 0.7739})


def quality_table(cells: Sequence[StoredCell]) -> ReportTable | None:
    """Return F1, precision and average precision of every mode over all attacks."""
    rows = [_row(group, mode) for group in groups(cells) for mode in group.cells]
    if not rows:
        return None
    return ReportTable(
        slug="quality",
        title="Detection quality over all attacks",
        sentence="The table shows F1 and precision at the alarm threshold, and average precision "
        "over all thresholds, as means over seeds. The columns 'paper' contain the figures in the "
        "results files of the paper's code. F1 can stay equal or rise while the detector misses "
        "the targeted attacks, so recall on these attacks is measured too.",
        columns=(
            *NAMES,
            Column(name="mode"),
            Column(name="seeds", digits=0),
            Column(name="F1", digits=3),
            Column(name="deviation", digits=3),
            Column(name="paper", digits=3),
            Column(name="difference", digits=3),
            Column(name="precision", digits=3),
            Column(name="paper", digits=3),
            Column(name="average precision", digits=3),
            Column(name="false alarms per day", digits=2),
        ),
        rows=tuple(rows),
        finding=_finding(rows),
    )


def recorded_f1(record: str, attack: str, rule: str, mode: str) -> float | None:
    """Return the mean F1 in the reference's results files, or None if it is not known."""
    return _F1.get((record, attack, rule, mode))


def _row(group: Group, mode: str) -> tuple[Value, ...]:
    line = group.line
    scores = [cell.result.score for cell in group.cells[mode].values() if cell.result]
    f1 = [score.f1 for score in scores]
    theirs = paper_precision = None
    if not line.stand_in:
        theirs = recorded_f1(line.record, line.attack, line.rule, mode)
        paper_precision = _PRECISION.get((line.record, mode))
    return (
        line.plant,
        line.invariants,
        line.attack,
        line.rule,
        mode,
        len(scores),
        fmean(f1),
        stdev(f1) if len(f1) > 1 else None,
        theirs,
        difference(fmean(f1), theirs),
        _mean(scores, lambda score: score.precision),
        paper_precision,
        _mean(scores, lambda score: score.auc_pr),
        _mean(scores, lambda score: score.false_alarms_per_day),
    )


def _mean(scores: Sequence[Score], figure: Callable[[Score], float | None]) -> float | None:
    known = [value for score in scores if (value := figure(score)) is not None]
    return fmean(known) if known else None


def _finding(rows: Sequence[tuple[Value, ...]]) -> str:
    gaps = [(abs(gap), f"{row[4]}, {row[2]}, {row[3]}") for row in rows if (gap := _gap(row))]
    if not gaps:
        return ""
    most, where = max(gaps)
    return f"The largest difference from the recorded F1 is {most:.3f}, for {where}."


def _gap(row: tuple[Value, ...]) -> float | None:
    return row[9] if isinstance(row[9], float) else None
