"""A grid and its results in words, and as the JSON that scripts read."""

from sluice.cli import out
from sluice.lab.grids import GridPlan, work_from_json
from sluice.lab.results import GridState, ResultStore, WorkClaim, stored_cells

__all__ = ["describe", "payload", "plan_payload", "tell", "tell_plan"]

MOST_REASONS = 10


def describe(claim: WorkClaim) -> str:
    """Say what is under way."""
    work = work_from_json(claim.settings)
    layout = work.layout
    told = (
        layout.record.name,
        work.rule,
        work.mode,
        *([f"under {work.attack}"] if work.attack else []),
        *([f"by {work.invariants}"] if work.invariants else []),
        f"seed {layout.seed}",
    )
    return ", ".join(told)


def plan_payload(found: GridPlan) -> dict[str, object]:
    """Return a plan as JSON."""
    return {
        "grid": found.name,
        "cells": len(found.cells),
        "federations": len(found.works),
        "avoided": found.avoided,
        "stand_ins": list(found.stand_ins),
    }


def tell_plan(found: GridPlan) -> None:
    """Print what a plan comes down to."""
    share = found.avoided / len(found.cells)
    out.print(
        f"[bold]{found.name}[/bold]: {len(found.cells):,} cells come down to "
        f"{len(found.works):,} federations; {found.avoided:,} ({share:.0%}) need none of their own"
    )


def payload(store: ResultStore) -> dict[str, object]:
    """Return how far a grid is as JSON."""
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


def tell(store: ResultStore) -> None:
    """Print how far a grid is and what failed."""
    counts = store.counts()
    facts = store.facts()
    out.print(
        f"[bold]{facts.name}[/bold]: {counts.cells_done:,} of {counts.cells:,} cells done; "
        f"federations: {counts.done:,} done (of which {counts.recalled:,} turned out equal to one "
        f"that had run), {counts.failed:,} failed, {counts.running:,} running, "
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
