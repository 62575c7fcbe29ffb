"""Who is let in: by the gate, and by each rule where no gate stands at the door."""

from collections.abc import Sequence
from statistics import fmean

from sluice.lab.reports.grid_measures import Group, groups, saved_by, seeds_of, wilson
from sluice.lab.reports.grid_tables import NAMES, difference
from sluice.lab.reports.published import ADMITTED_AFTER_PROJECTION, PRINTED_DROP
from sluice.lab.reports.tables import Column, ReportTable, Value
from sluice.lab.results import StoredCell

__all__ = ["admission_table", "sweep_table"]


def admission_table(cells: Sequence[StoredCell]) -> ReportTable | None:
    """Return how many liars' batches, once projected, and whose honest batches the gate lets in."""
    rows: dict[tuple[str, ...], tuple[Value, ...]] = {}
    counts: list[tuple[int, int, int, int]] = []
    for group in groups(cells):
        gated = group.cells.get("gated", {})
        key = (group.line.plant, group.line.invariants, group.line.attack)
        if not gated or key in rows:  # the gate decides before any rule does
            continue
        results = [cell.result for cell in gated.values() if cell.result]
        liars = sum(len(result.liars) for result in results)
        let_in = sum(result.liars_admitted for result in results)
        honest = sum(
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
        low, high = wilson(let_in, liars) if liars else (None, None)
        rows[key] = (
            *key,
            len(results),
            f"{let_in} of {liars}",
            low,
            high,
            f"{printed[0]} of {printed[1]}" if printed else None,
            difference(let_in / liars, printed[0] / printed[1]) if printed and liars else None,
            (liars - let_in) / len(results),
            f"{kept_out} of {honest}",
        )
        counts.append((let_in, liars, kept_out, honest))
    if not rows:
        return None
    return ReportTable(
        slug="admission",
        title="Whom the gate lets in",
        sentence="Batches of liars who projected them onto the rules, and of plants that do as "
        "agreed, over all seeds; the interval (95 %) is of the share of liars' batches admitted, "
        "and so is the difference.",
        columns=(
            *NAMES[:3],
            Column(name="seeds", digits=0),
            Column(name="liars' batches admitted"),
            Column(name="from", digits=2),
            Column(name="to", digits=2),
            Column(name="paper"),
            Column(name="difference", digits=2),
            Column(name="liars kept out per federation", digits=1),
            Column(name="others refused"),
        ),
        rows=tuple(rows.values()),
        finding=_admitted(counts),
    )


def sweep_table(cells: Sequence[StoredCell]) -> ReportTable | None:
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
        saved = saved_by(group, "naive", against="clean", other=reference)
        printed = PRINTED_DROP.get((group.line.rule, group.line.attack))
        theirs = printed if group.line.record == "swat" and not group.line.stand_in else None
        drop = fmean(drops) if drops else None
        rows[key] = (
            *key,
            len(drops),
            drop,
            theirs,
            difference(drop, theirs),
            _passed(group),
            -100 * saved.high if saved else None,
            -100 * saved.low if saved else None,
        )
    if not rows:
        return None
    return ReportTable(
        slug="sweep",
        title="What each attack takes from each rule",
        sentence="Points of targeted recall lost against the clean federation, without a gate, "
        "with a 95 % interval, and the share of rounds in which the rule let the liars through.",
        columns=(
            NAMES[0],
            NAMES[2],
            NAMES[3],
            Column(name="seeds", digits=0),
            Column(name="points lost", digits=1),
            Column(name="paper", digits=1),
            Column(name="difference", digits=1),
            Column(name="liars let through", digits=2),
            Column(name="lost from", digits=1),
            Column(name="to", digits=1),
        ),
        rows=tuple(rows.values()),
        finding=_most_lost(list(rows.values())),
    )


def _admitted(counts: Sequence[tuple[int, int, int, int]]) -> str:
    let_in, liars, kept_out, honest = (sum(column) for column in zip(*counts, strict=True))
    return (
        f"In all, {let_in} of {liars} liars' batches got in, and {kept_out} of {honest} "
        "batches of others were refused."
    )


def _most_lost(rows: Sequence[tuple[Value, ...]]) -> str:
    lost = [(row[4], f"{row[1]} under {row[2]} on {row[0]}") for row in rows]
    known = [(points, where) for points, where in lost if isinstance(points, float)]
    if not known:
        return ""
    most, where = max(known)
    if most <= 0:
        return "Nothing is lost anywhere."
    beyond = sum(isinstance(row[-2], float) and row[-2] > 0 for row in rows)
    return (
        f"Most is lost to {where}: {most:.1f} points; beyond chance in {beyond} of {len(rows)} "
        "lines."
    )


def _passed(group: Group) -> float | None:
    shares = [
        cell.result.score.passed.get(liar, 0.0)
        for cell in group.cells["naive"].values()
        if cell.result
        for liar in cell.result.liars
    ]
    return fmean(shares) if shares else None
