"""A grid and its results in words and as JSON."""

from sluice.cli import out
from sluice.lab.grids import GridPlan, work_from_json
from sluice.lab.results import GridState, ResultStore, WorkClaim, stored_cells

__all__ = ["describe", "payload", "plan_payload", "show_plan", "show_status"]

MOST_REASONS = 10


def describe(claim: WorkClaim) -> str:
    """Describe a running federation in one line."""
    work = work_from_json(claim.settings)
    layout = work.layout
    parts = (
        layout.record.name,
        work.rule,
        work.mode,
        *([f"attack {work.attack}"] if work.attack else []),
        *([f"rules {work.invariants}"] if work.invariants else []),
        f"seed {layout.seed}",
    )
    return ", ".join(parts)


def plan_payload(plan: GridPlan) -> dict[str, object]:
    """Return a plan as JSON."""
    return {
        "grid": plan.name,
        "cells": len(plan.cells),
        "federations": len(plan.works),
        "avoided": plan.avoided,
        "stand_ins": list(plan.stand_ins),
    }


def show_plan(plan: GridPlan) -> None:
    """Print the number of cells and of federations."""
    share = plan.avoided / len(plan.cells)
    out.print(
        f"[bold]{plan.name}[/bold]: {len(plan.cells):,} cells need {len(plan.works):,} "
        f"federations; {plan.avoided:,} cells ({share:.0%}) reuse the federation of another cell"
    )


def payload(store: ResultStore) -> dict[str, object]:
    """Return the progress of a grid as JSON."""
    counts = store.counts()
    facts = store.facts()
    return {
        "grid": facts.name,
        "cells": counts.cells,
        "cells_done": counts.cells_done,
        "federations": counts.works,
        "done": counts.done,
        "failed": counts.failed,
        "running": counts.running,
        "waiting": counts.waiting,
        "recalled": counts.recalled,
        "stand_ins": list(facts.stand_ins),
        "failures": [
            {"cell": str(cell.asked), "reason": cell.reason}
            for cell in stored_cells(store)
            if cell.state is GridState.FAILED
        ],
        "results": str(store.folder),
    }


def show_status(store: ResultStore) -> None:
    """Print the progress of a grid and its failures."""
    counts = store.counts()
    facts = store.facts()
    out.print(
        f"[bold]{facts.name}[/bold]: {counts.cells_done:,} of {counts.cells:,} cells done; "
        f"federations: {counts.done:,} done ({counts.recalled:,} of them equal to an earlier one "
        f"and not run again), {counts.failed:,} failed, {counts.running:,} running, "
        f"{counts.waiting:,} waiting"
    )
    for note in facts.stand_ins:
        out.print(note, markup=False)
    reasons: dict[str, list[str]] = {}
    for cell in stored_cells(store):
        if cell.state is GridState.FAILED:
            reasons.setdefault(cell.reason or "", []).append(str(cell.asked))
    for reason, cells in list(reasons.items())[:MOST_REASONS]:
        more = f" (and {len(cells) - 1} more cells)" if len(cells) > 1 else ""
        out.print(f"failed: {cells[0]}{more}: {reason}", markup=False)
