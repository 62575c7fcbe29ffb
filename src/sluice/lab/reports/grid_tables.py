"""The tables of a grid, each figure beside what the paper published of it."""

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
    """Return the mean targeted recall of every mode, and what the reference recorded."""
    found = groups(cells)
    modes = [mode for mode in MODES if any(mode in group.cells for group in found)]
    columns = [*NAMES, Column(name="seeds", digits=0)]
    for mode in modes:
        columns += [Column(name=mode, digits=3), Column(name="paper", digits=3)]
        columns.append(Column(name="difference", digits=3))
    rows = []
    for group in found:
        row: list[Value] = [*_names(group), max(len(seeds) for seeds in group.cells.values())]
        for mode in modes:
            ours, theirs = of_mode(group, mode), _recorded(group, mode)
            row += [ours, theirs, difference(ours, theirs)]
        rows.append(tuple(row))
    return ReportTable(
        slug="recall",
        title="Recall on the attacks the liars would hide",
        sentence="Share of the targeted attack windows that raise an alarm, mean over seeds; "
        "beside it what the reference's results files hold, where they hold it.",
        columns=tuple(columns),
        rows=tuple(rows),
        finding=_farthest(rows, len(NAMES) + 1, modes),
    )


def removal_table(cells: Sequence[StoredCell]) -> ReportTable | None:
    """Return the paper's removal table with what it rests on."""
    rows = [_removal_row(group) for group in groups(cells) if "naive" in group.cells]
    kept = tuple(row for row in rows if row is not None)
    if not kept:
        return None
    return ReportTable(
        slug="removal",
        title="How much of the damage is removed",
        sentence="Damage is the targeted recall that the naive attack takes, in points; removed is "
        "the share of it that projection and gate give back (equation 7), over the seeds with at "
        "least one point of damage. 'By construction' counts those where the gate left exactly "
        "the clients of the reference. The last columns are gated minus naive over all seeds, "
        "with a 95 % interval: where it spans zero, nothing is shown.",
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
        rows=kept,
        finding=_beyond_chance(kept),
    )


def dial_table(cells: Sequence[StoredCell]) -> ReportTable | None:
    """Return what the gate removes under each rule set, where a grid compares several."""
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
        sentence="Which share of the naive attack's damage the gate removes under each rule set "
        "(equation 7, over seeds with at least a point of damage), and how many more points of "
        "targeted recall the gated federation has than the naive one, over all seeds, with a 95 % "
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
    """Return the cells that could not run, and why."""
    failed = [cell for cell in cells if cell.state is GridState.FAILED]
    if not failed:
        return None
    return ReportTable(
        slug="failures",
        title=f"{len(failed)} cells that could not run",
        sentence="They are missing from every figure above.",
        columns=(Column(name="cell"), Column(name="why")),
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
    """Say in how many lines the interval in the last two columns leaves zero out."""
    intervals = [(row[-2], row[-1]) for row in rows]
    known = [(a, b) for a, b in intervals if isinstance(a, float) and isinstance(b, float)]
    if not known:
        return "One seed gives no interval: nothing is shown beyond chance."
    better, worse = sum(low > 0 for low, _ in known), sum(high < 0 for _, high in known)
    return (
        f"The gate gives recall back beyond chance in {better} of {len(known)} lines and takes "
        f"some in {worse}; in the others nothing is shown."
    )


def _farthest(rows: Sequence[tuple[Value, ...]], first: int, modes: Sequence[str]) -> str:
    """Say which figure is farthest from the recorded one."""
    apart = [
        (abs(gap), f"{mode}, {row[2]}, {row[3]} on {row[0]}")
        for row in rows
        for at, mode in enumerate(modes)
        if isinstance(gap := row[first + 3 * at + 2], float)
    ]
    if not apart:
        return "The reference recorded none of these."
    most, where = max(apart)
    near = sum(gap <= NEAR for gap, _ in apart)
    return (
        f"Of {len(apart)} figures that the reference recorded {near} agree within {NEAR:g}; "
        f"farthest is {where}, by {most:.3f}."
    )


def _removal_row(group: Group) -> tuple[Value, ...] | None:
    gate, projection = removal_of(group, "gated"), removal_of(group, "physics-aware")
    told = gate or projection
    if told is None:
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
        told.reference.value,
        f"{len(told.informative)} of {told.units}",
        len(gate.by_construction) if gate else None,
        _percent(told.damage),
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
    """Return ours minus theirs, where there are both."""
    return None if ours is None or theirs is None else ours - theirs


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
