"""Tables of admission: batches that the gate admits, and updates that each rule accepts."""

from collections.abc import Sequence
from statistics import fmean

from sluice.lab.reports.grid_measures import Group, groups, saved_by, seeds_of, wilson
from sluice.lab.reports.grid_tables import NAMES, difference
from sluice.lab.reports.published import ADMITTED_AFTER_PROJECTION, PRINTED_DROP
from sluice.lab.reports.tables import Column, ReportTable, Value
from sluice.lab.results import StoredCell

__all__ = ["admission_table", "sweep_table"]


def admission_table(cells: Sequence[StoredCell]) -> ReportTable | None:
    """Return how many projected malicious batches and how many honest batches the gate admits."""
    rows: dict[tuple[str, ...], tuple[Value, ...]] = {}
    counts: list[tuple[int, int, int, int]] = []
    for group in groups(cells):
        gated = group.cells.get("gated", {})
        key = (group.line.plant, group.line.invariants, group.line.attack)
        if (
            not gated or key in rows
        ):  # the gate decides before the rule, so all rules give the same row
            continue
        results = [cell.result for cell in gated.values() if cell.result]
        malicious = sum(len(result.liars) for result in results)
        admitted = sum(result.liars_admitted for result in results)
        honest = sum(
            client not in result.liars
            for result in results
            for client in (*result.admitted, *result.refused)
        )
        refused = sum(client not in result.liars for result in results for client in result.refused)
        printed = None
        if group.line.attack == "replay" and not group.line.stand_in:
            printed = ADMITTED_AFTER_PROJECTION.get((group.line.record, group.line.invariants))
        low, high = wilson(admitted, malicious) if malicious else (None, None)
        rows[key] = (
            *key,
            len(results),
            f"{admitted} of {malicious}",
            low,
            high,
            f"{printed[0]} of {printed[1]}" if printed else None,
            difference(admitted / malicious, printed[0] / printed[1])
            if printed and malicious
            else None,
            (malicious - admitted) / len(results),
            f"{refused} of {honest}",
        )
        counts.append((admitted, malicious, refused, honest))
    if not rows:
        return None
    return ReportTable(
        slug="admission",
        title="Batches that the gate admits",
        sentence="The table counts batches of malicious clients, projected onto the rules, and "
        "batches of honest clients, over all seeds. The interval (95 %) and the difference are for "
        "the share of malicious batches admitted.",
        columns=(
            *NAMES[:3],
            Column(name="seeds", digits=0),
            Column(name="malicious batches admitted"),
            Column(name="from", digits=2),
            Column(name="to", digits=2),
            Column(name="paper"),
            Column(name="difference", digits=2),
            Column(name="malicious clients refused per federation", digits=1),
            Column(name="honest batches refused"),
        ),
        rows=tuple(rows.values()),
        finding=_admission_finding(counts),
    )


def sweep_table(cells: Sequence[StoredCell]) -> ReportTable | None:
    """Return the recall that each attack costs each rule, and how often the rule accepts it."""
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
        title="Recall lost to each attack under each aggregation rule",
        sentence="The table shows the points of targeted recall that are lost without a gate, "
        "compared with the clean federation, with a 95 % interval. It also shows the share of "
        "rounds in which the aggregation rule accepted the updates of malicious clients.",
        columns=(
            NAMES[0],
            NAMES[2],
            NAMES[3],
            Column(name="seeds", digits=0),
            Column(name="points lost", digits=1),
            Column(name="paper", digits=1),
            Column(name="difference", digits=1),
            Column(name="malicious updates accepted", digits=2),
            Column(name="lost from", digits=1),
            Column(name="to", digits=1),
        ),
        rows=tuple(rows.values()),
        finding=_sweep_finding(list(rows.values())),
    )


def _admission_finding(counts: Sequence[tuple[int, int, int, int]]) -> str:
    admitted, malicious, refused, honest = (sum(column) for column in zip(*counts, strict=True))
    return (
        f"In total, the gate admits {admitted} of {malicious} malicious batches and refuses "
        f"{refused} of {honest} honest batches."
    )


def _sweep_finding(rows: Sequence[tuple[Value, ...]]) -> str:
    lost = [(row[4], f"{row[1]} under {row[2]} on {row[0]}") for row in rows]
    known = [(points, where) for points, where in lost if isinstance(points, float)]
    if not known:
        return ""
    most, where = max(known)
    if most <= 0:
        return "No attack lowers recall."
    significant = sum(isinstance(row[-2], float) and row[-2] > 0 for row in rows)
    return (
        f"The largest loss is {most:.1f} points, by {where}; the loss is beyond chance in "
        f"{significant} of {len(rows)} lines."
    )


def _passed(group: Group) -> float | None:
    shares = [
        cell.result.score.passed.get(client, 0.0)
        for cell in group.cells["naive"].values()
        if cell.result
        for client in cell.result.liars
    ]
    return fmean(shares) if shares else None
