"""The tables of a grid, each figure beside what the paper published of it."""

from collections.abc import Sequence
from statistics import fmean

from sluice.reports.lab_measures import Group, groups, of_mode, removal_of, saved_by, seeds_of
from sluice.reports.published import (
    ADMITTED_AFTER_PROJECTION,
    PRINTED_DROP,
    printed_removal,
    recorded_recall,
)
from sluice.reports.tables import Column, Table, Value
from sluice.results.reading import State, StoredCell

__all__ = ["admission_table", "failure_table", "recall_table", "removal_table", "sweep_table"]

MODES = ("clean", "honest-only", "naive", "physics-aware", "gated", "local-only", "centralised")
NAMES = (
    Column(name="record"),
    Column(name="rule set"),
    Column(name="attack"),
    Column(name="rule"),
)


def recall_table(cells: Sequence[StoredCell]) -> Table:
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
            row += [ours, theirs, _difference(ours, theirs)]
        rows.append(tuple(row))
    return Table(
        slug="recall",
        title="Recall on the attacks the liars would hide",
        sentence="Share of the targeted attack windows that raise an alarm, mean over seeds; "
        "beside it what the reference's results files hold, where they hold it.",
        columns=tuple(columns),
        rows=tuple(rows),
    )


def removal_table(cells: Sequence[StoredCell]) -> Table | None:
    """Return the paper's removal table with what it rests on."""
    rows = [_removal_row(group) for group in groups(cells) if "naive" in group.cells]
    kept = tuple(row for row in rows if row is not None)
    if not kept:
        return None
    return Table(
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
    )


def admission_table(cells: Sequence[StoredCell]) -> Table | None:
    """Return how many liars' batches, once projected, and whose honest batches the gate lets in."""
    rows: dict[tuple[str, ...], tuple[Value, ...]] = {}
    for group in groups(cells):
        gated = group.cells.get("gated", {})
        key = (group.line.plant, group.line.invariants, group.line.attack)
        if not gated or key in rows:  # the gate decides before any rule does
            continue
        results = [cell.result for cell in gated.values() if cell.result]
        liars = sum(len(result.liars) for result in results)
        let_in = sum(result.liars_admitted for result in results)
        faithful = sum(
            client not in result.liars
            for result in results
            for client in (*result.admitted, *result.refused)
        )
        kept_out = sum(
            client not in result.liars for result in results for client in result.refused
        )
        printed = None
        if group.line.attack == "replay" and not group.line.stand_in:
            printed = ADMITTED_AFTER_PROJECTION.get((group.line.record, group.line.invariants))
        rows[key] = (
            *key,
            f"{let_in} of {liars}",
            f"{printed[0]} of {printed[1]}" if printed else None,
            (liars - let_in) / len(results),
            f"{kept_out} of {faithful}",
        )
    if not rows:
        return None
    return Table(
        slug="admission",
        title="Whom the gate lets in",
        sentence="Batches of liars who projected them onto the rules, and of plants that do as "
        "agreed, over all seeds.",
        columns=(
            *NAMES[:3],
            Column(name="liars' batches admitted"),
            Column(name="paper"),
            Column(name="liars kept out per federation", digits=1),
            Column(name="others refused"),
        ),
        rows=tuple(rows.values()),
    )


def sweep_table(cells: Sequence[StoredCell]) -> Table | None:
    """Return what each attack takes from each rule against the clean run, and whom it lets in."""
    clean = {
        (group.line.plant, group.line.rule): group
        for group in groups(cells)
        if "clean" in group.cells
    }
    rows: dict[tuple[str, str, str], tuple[Value, ...]] = {}
    for group in groups(cells):
        key = (group.line.plant, group.line.attack, group.line.rule)
        reference = clean.get((group.line.plant, group.line.rule))
        if reference is None or key in rows or "naive" not in group.cells:
            continue
        before, after = seeds_of(reference, "clean"), seeds_of(group, "naive")
        drops = [100 * (before[seed] - after[seed]) for seed in after if seed in before]
        printed = PRINTED_DROP.get((group.line.rule, group.line.attack))
        theirs = printed if group.line.record == "swat" and not group.line.stand_in else None
        drop = fmean(drops) if drops else None
        rows[key] = (*key, len(drops), drop, theirs, _difference(drop, theirs), _passed(group))
    if not rows:
        return None
    return Table(
        slug="sweep",
        title="What each attack takes from each rule",
        sentence="Points of targeted recall lost against the clean federation, without a gate, "
        "and the share of rounds in which the rule let the liars through.",
        columns=(
            NAMES[0],
            NAMES[2],
            NAMES[3],
            Column(name="seeds", digits=0),
            Column(name="points lost", digits=1),
            Column(name="paper", digits=1),
            Column(name="difference", digits=1),
            Column(name="liars let through", digits=2),
        ),
        rows=tuple(rows.values()),
    )


def failure_table(cells: Sequence[StoredCell]) -> Table | None:
    """Return the cells that could not run, and why."""
    failed = [cell for cell in cells if cell.state is State.FAILED]
    if not failed:
        return None
    return Table(
        slug="failures",
        title=f"{len(failed)} cells that could not run",
        sentence="They are missing from every figure above.",
        columns=(Column(name="cell"), Column(name="why")),
        rows=tuple((str(cell.asked), cell.reason) for cell in failed),
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
        _difference(ours, theirs),
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


def _passed(group: Group) -> float | None:
    shares = [
        cell.result.score.passed.get(liar, 0.0)
        for cell in group.cells["naive"].values()
        if cell.result
        for liar in cell.result.liars
    ]
    return fmean(shares) if shares else None


def _difference(ours: float | None, theirs: float | None) -> float | None:
    return None if ours is None or theirs is None else ours - theirs


def _percent(share: float | None) -> float | None:
    return None if share is None else 100 * share
