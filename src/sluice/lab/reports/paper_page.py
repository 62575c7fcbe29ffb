"""The page of the paper's whole grid: every published table and figure, and where ours is."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from sluice.files import atomically
from sluice.lab.reports.grid_page import LabReport
from sluice.lab.reports.tables import as_markdown, without_empty_columns
from sluice.lab.results import StoredCell

__all__ = ["PUBLISHED", "Published", "write_paper_page"]

PAPER_CELLS = 1_120


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """A table or figure of the paper, and the table of the page that stands beside it."""

    what: str
    shows: str
    slug: str = ""  # of our table; empty: it is elsewhere, or there is nothing to measure
    note: str = ""


DRAWING = "a drawing, nothing is measured"
PUBLISHED = (
    Published(what="figure 1", shows="the idea", note=DRAWING),
    Published(what="table 1", shows="aggregation mechanisms", note="a list, nothing is measured"),
    Published(what="figure 2", shows="system and threats", note=DRAWING),
    Published(
        what="figure 3",
        shows="rules on SWaT's attacks 34 and 16",
        note="not shown: it needs SWaT's rows, which are licensed",
    ),
    Published(what="table 2", shows="kinds of attack", note="a list, nothing is measured"),
    Published(what="figure 4", shows="how a record is split", note=DRAWING),
    Published(what="table 3", shows="the grid and its cells", slug="grid"),
    Published(
        what="figure 5",
        shows="separation of honest from fabricated telemetry",
        slug="separation",
        note="the panel of HAI is not part of the grid",
    ),
    Published(
        what="figure 6",
        shows="recall lost, and updates admitted, by rule and attack",
        slug="sweep",
        note="the paper prints figures for FedAvg and Krum in its text; the others are a heat map",
    ),
    Published(what="figure 7", shows="SWaT's attacks by rule set", slug="coverage"),
    Published(what="table 4", shows="attacks that rules cover", slug="coverage"),
    Published(what="table 5", shows="batches that the gate admits", slug="admission"),
    Published(what="figure 8", shows="damage and its removal, wide set", slug="removal"),
    Published(what="figure 9", shows="the coverage dial", slug="dial"),
    Published(what="table 6", shows="cost of a proof at 32 sampled rows", slug="proofs"),
    Published(what="table 7", shows="damage and removal by rule", slug="removal"),
    Published(what="figure 10", shows="a round of the protocol", note=DRAWING),
    Published(
        what="table 8",
        shows="sampled rows: cost and soundness",
        note="[sampling](sampling.md)",
    ),
)


def write_paper_page(report: LabReport, path: Path) -> None:
    """Write the page of a results folder of the preset `paper`, whole or in part."""
    parts = [*_head(report), *_index(report), *_grid(report.cells)]
    for table in report.tables:
        sentence = f"{table.sentence} **{table.finding}**" if table.finding else table.sentence
        parts += [f"## {table.title}", sentence, as_markdown(without_empty_columns(table)).rstrip()]
    with atomically(path) as draft:
        draft.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def _head(report: LabReport) -> Iterator[str]:
    cells = report.cells
    done, failed = (sum(test) for test in zip(*map(_state, cells), strict=True))
    made_by = "; ".join(
        f"Sluice {maker.version}, code {maker.code[:12]}" for maker in report.makers
    )
    yield "# The paper's grid"
    whole = done == len(cells) == PAPER_CELLS
    state = "The grid is complete" if whole else "**The grid is not complete**"
    yield (
        f"Written by `make paper` from the results alone ({made_by}). {state}: **{done:,} of "
        f"{len(cells):,} cells are done**, {failed:,} failed. The paper's grid has "
        f"{PAPER_CELLS:,} cells. A line of a table has only the seeds that are done; its column "
        "*seeds* says how many."
    )
    yield _duration(cells)
    yield from _earlier(cells)
    yield (
        "Columns headed *paper* contain figures printed in the paper or taken from the results "
        "files of its code. A difference is our figure minus the paper's."
    )
    replaced = {c.asked.record: c.asked.stand_in for c in cells if c.asked.stand_in}
    for record, plant in replaced.items():
        yield (
            f"**The simulated plant `{plant}` stands in for {record}**, which was absent. The "
            "columns *paper* beside its lines are figures of the paper's own record. So a "
            "difference there compares two plants and says nothing about whether our code "
            "reproduces the paper's."
        )


def _state(cell: StoredCell) -> tuple[bool, bool]:
    return cell.result is not None, cell.result is None and bool(cell.reason)


def _duration(cells: Sequence[StoredCell]) -> str:
    """Say how long the federations took, those of earlier runs included."""
    done = [cell for cell in cells if cell.result]
    took = {c.federation: c.trained_s for c in done if c.trained_s is not None}
    ended = [cell.trained_at for cell in done if cell.trained_at is not None]
    if not took or not ended:
        return "No federation is done yet."
    first, last = (
        datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")
        for at in (min(ended), max(ended))
    )
    hours = sum(took.values()) / 3_600
    return (
        f"How long it took: {len(took):,} federations were trained, {hours:.1f} hours of workers "
        f"in total, {3_600 * hours / len(took):.0f} s each on average (wall time, beside other "
        f"work on the machine). The first ended at {first}, the last at {last}."
    )


def _earlier(cells: Sequence[StoredCell]) -> Iterator[str]:
    """Say which scores come from other code, and why they may stand beside those of this code."""
    trained = {
        c.federation: c.trained_by
        for c in cells
        if c.trained_by and c.made_by and c.trained_by.code != c.made_by.code
    }
    if trained:
        commits = sorted({maker.commit[:12] for maker in trained.values()})
        yield (
            f"Of these, {len(trained):,} federations were trained by earlier code (commits "
            f"{', '.join(commits)}) and their scores were taken over. This code mined the rules, "
            "made the poison and judged every batch again. It took over a score only if every "
            "client brings the same windows, if the detector is measured on the same rows, and if "
            "both versions of the code give the same figures for small federations of every "
            "aggregation rule and of every attack on updates."
        )


def _index(report: LabReport) -> Iterator[str]:
    titles = {table.slug: table.title for table in report.tables} | {"grid": "Cells"}
    lines = ["| the paper's | shows | ours |", "| --- | --- | --- |"]
    for item in PUBLISHED:
        ours = titles.get(item.slug, "not measured yet") if item.slug else ""
        lines.append(
            f"| {item.what} | {item.shows} | {'; '.join(filter(None, (ours, item.note)))} |"
        )
    yield "## Every published table and figure"
    yield "\n".join(lines)


def _grid(cells: Sequence[StoredCell]) -> Iterator[str]:
    planned = Counter(_plant(cell) for cell in cells)
    done = Counter(_plant(cell) for cell in cells if cell.result)
    lines = ["| record | cells done | cells |", "| --- | ---: | ---: |"]
    lines += [f"| {plant} | {done[plant]:,} | {count:,} |" for plant, count in planned.items()]
    yield "## Cells"
    yield "\n".join(lines)


def _plant(cell: StoredCell) -> str:
    asked = cell.asked
    return f"{asked.stand_in} for {asked.record}" if asked.stand_in else asked.record
