"""The tables of a grid, with the paper's published figures beside ours."""

from collections.abc import Sequence

from sluice.lab.reports.grid_measures import Group, groups, of_mode, removal_of, saved_by
from sluice.lab.reports.published import printed_removal, recorded_recall
from sluice.lab.reports.tables import Column, ReportTable, Value
from sluice.lab.results import GridState, StoredCell

__all__ = [
    "NAMES",
    "dial_table",
    "difference",
    "failure_table",
    "recall_table",
    "removal_table",
]

MODES = ("clean", "honest-only", "naive", "physics-aware", "gated", "local-only", "centralised")
NEAR = 0.02  # a difference of two points of recall
NAMES = (
    Column(name="record"),
    Column(name="rule set"),
    Column(name="attack"),
    Column(name="rule"),
)


def recall_table(cells: Sequence[StoredCell]) -> ReportTable:
    """Return the mean targeted recall of every mode, and the reference's figure."""
    grouped = groups(cells)
    modes = [mode for mode in MODES if any(mode in group.cells for group in grouped)]
    columns = [*NAMES, Column(name="seeds", digits=0)]
    for mode in modes:
        columns += [Column(name=mode, digits=3), Column(name="paper", digits=3)]
        columns.append(Column(name="difference", digits=3))
    rows = []
    for group in grouped:
        row: list[Value] = [*_names(group), max(len(seeds) for seeds in group.cells.values())]
        for mode in modes:
            ours, theirs = of_mode(group, mode), _recorded(group, mode)
            row += [ours, theirs, difference(ours, theirs)]
        rows.append(tuple(row))
    return ReportTable(
        slug="recall",
        title="Recall on the targeted attacks",
        sentence="The table shows the share of the windows of targeted attacks that raise an "
        "alarm, as a mean over seeds. The columns 'paper' contain the figures in the results files "
        "of the paper's code.",
        columns=tuple(columns),
        rows=tuple(rows),
        finding=_recall_finding(rows, len(NAMES) + 1, modes),
    )


def removal_table(cells: Sequence[StoredCell]) -> ReportTable | None:
    """Return the paper's removal table, with the number of seeds behind each figure."""
    rows = [_removal_row(group) for group in groups(cells) if "naive" in group.cells]
    known = tuple(row for row in rows if row is not None)
    if not known:
        return None
    return ReportTable(
        slug="removal",
        title="How much of the damage is removed",
        sentence="Damage is the targeted recall lost to the naive attack, in points. Removed is "
        "the share of the damage that projection or the gate restores (equation 7 of the paper), "
        "over the seeds with at least one point of damage. 'By construction' counts the seeds "
        "where the gate admits exactly the clients that take part in the mode of the column "
        "'reference'. The last columns are recall in gated minus recall in naive over all seeds, "
        "with a 95 % interval: if the interval contains zero, no effect is shown.",
        columns=(
            *NAMES,
            Column(name="reference"),
            Column(name="informative seeds"),
            Column(name="by construction", digits=0),
            Column(name="damage", digits=1),
            Column(name="paper", digits=1),
            Column(name="projection removes %", digits=0),
            Column(name="paper", digits=0),
            Column(name="gate removes %", digits=0),
            Column(name="paper", digits=0),
            Column(name="difference", digits=0),
            Column(name="gated - naive", digits=1),
            Column(name="from", digits=1),
            Column(name="to", digits=1),
        ),
        rows=known,
        finding=_beyond_chance(known),
    )


def dial_table(cells: Sequence[StoredCell]) -> ReportTable | None:
    """Return the damage that the gate removes under each rule set, if a grid compares several."""
    sets: dict[tuple[str, str, str], dict[str, Group]] = {}
    for group in groups(cells):
        if "gated" in group.cells:
            line = group.line
            sets.setdefault((line.plant, line.attack, line.rule), {})[line.invariants] = group
    rows = [
        _dial_row(group) for by_set in sets.values() if len(by_set) > 1 for group in by_set.values()
    ]
    if not rows:
        return None
    return ReportTable(
        slug="dial",
        title="The coverage dial",
        sentence="Share of the naive attack's damage that the gate removes under each rule set "
        "(equation 7, over seeds with at least one point of damage), and the targeted recall of "
        "the gated federation minus that of the naive one, in points over all seeds, with a 95 % "
        "interval.",
        columns=(
            *NAMES,
            Column(name="informative seeds"),
            Column(name="gate removes %", digits=0),
            Column(name="paper", digits=0),
            Column(name="difference", digits=0),
            Column(name="gated - naive", digits=1),
            Column(name="from", digits=1),
            Column(name="to", digits=1),
        ),
        rows=tuple(rows),
        finding=_beyond_chance(rows),
    )


def failure_table(cells: Sequence[StoredCell]) -> ReportTable | None:
    """Return the failed cells with their reasons."""
    failed = [cell for cell in cells if cell.state is GridState.FAILED]
    if not failed:
        return None
    return ReportTable(
        slug="failures",
        title=f"{len(failed)} failed cells",
        sentence="They are missing from all tables and figures above.",
        columns=(Column(name="cell"), Column(name="reason")),
        rows=tuple((str(cell.asked), cell.reason) for cell in failed),
    )


def _dial_row(group: Group) -> tuple[Value, ...]:
    gate, saved, line = removal_of(group, "gated"), saved_by(group, "gated"), group.line
    printed = None
    if not line.stand_in:
        printed = printed_removal(line.record, line.invariants, line.attack, line.rule)
    ours = _percent(gate.share if gate else None)
    theirs = printed.gate_percent if printed else None
    return (
        *_names(group),
        f"{len(gate.informative)} of {gate.units}" if gate else None,
        ours,
        theirs,
        difference(ours, theirs),
        _percent(saved.mean if saved else None),
        _percent(saved.low if saved else None),
        _percent(saved.high if saved else None),
    )


def _beyond_chance(rows: Sequence[tuple[Value, ...]]) -> str:
    """State in how many lines the interval in the last two columns excludes zero."""
    intervals = [(row[-2], row[-1]) for row in rows]
    known = [(a, b) for a, b in intervals if isinstance(a, float) and isinstance(b, float)]
    if not known:
        return "One seed gives no interval: no effect is shown beyond chance."
    better, worse = sum(low > 0 for low, _ in known), sum(high < 0 for _, high in known)
    return (
        f"Beyond chance, the gate raises recall in {better} of {len(known)} lines and lowers it in "
        f"{worse}; in the other lines no effect is shown."
    )


def _recall_finding(rows: Sequence[tuple[Value, ...]], first: int, modes: Sequence[str]) -> str:
    """State how many figures agree with the recorded ones, and the largest difference."""
    gaps = [
        (abs(gap), f"{mode}, {row[2]}, {row[3]} on {row[0]}")
        for row in rows
        for at, mode in enumerate(modes)
        if isinstance(gap := row[first + 3 * at + 2], float)
    ]
    if not gaps:
        return "The paper's code recorded none of these figures."
    most, where = max(gaps)
    near = sum(gap <= NEAR for gap, _ in gaps)
    return (
        f"Of {len(gaps)} figures that the paper's code recorded, {near} agree within {NEAR:g}; the "
        f"largest difference is {most:.3f}, for {where}."
    )


def _removal_row(group: Group) -> tuple[Value, ...] | None:
    gate, projection = removal_of(group, "gated"), removal_of(group, "physics-aware")
    either = gate or projection
    if either is None:
        return None
    line = group.line
    printed = None
    if not line.stand_in:
        printed = printed_removal(line.record, line.invariants, line.attack, line.rule)
    saved = saved_by(group, "gated")
    ours = _percent(gate.share if gate else None)
    theirs = printed.gate_percent if printed else None
    return (
        *_names(group),
        either.reference.value,
        f"{len(either.informative)} of {either.units}",
        len(gate.by_construction) if gate else None,
        _percent(either.damage),
        printed.damage_points if printed else None,
        _percent(projection.share if projection else None),
        printed.projection_percent if printed else None,
        ours,
        theirs,
        difference(ours, theirs),
        _percent(saved.mean if saved else None),
        _percent(saved.low if saved else None),
        _percent(saved.high if saved else None),
    )


def _names(group: Group) -> tuple[str, str, str, str]:
    return group.line.plant, group.line.invariants, group.line.attack, group.line.rule


def _recorded(group: Group, mode: str) -> float | None:
    line = group.line
    if line.stand_in:
        return None
    return recorded_recall(line.record, line.invariants, line.attack, line.rule, mode)


def difference(ours: float | None, theirs: float | None) -> float | None:
    """Return ours minus theirs, or None if one is missing."""
    return None if ours is None or theirs is None else ours - theirs


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
