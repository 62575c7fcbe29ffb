"""The progress of a running grid: a live view on a terminal, plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from sluice.lab.results import Counts, WorkClaim

__all__ = ["LabView"]

LINE_EVERY_S = 30.0
_progress = Console(stderr=True, highlight=False)


class _Pace:
    """Rate and remaining time, from the federations finished since this run began."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._before: int | None = None

    def describe(self, counts: Counts) -> str:
        ended = counts.done + counts.failed
        if self._before is None:
            self._before = ended
        done, passed = ended - self._before, time.monotonic() - self._begun
        if not done:
            return "no federation finished yet"
        rate = done / passed
        left = (counts.works - ended) / rate
        return f"{60 * rate:.1f} per minute, {_duration(left)} left"


class LabView:
    """Shows counts, pace and the running federations."""

    def __init__(self, describe: Callable[[WorkClaim], str], *, quiet: bool) -> None:
        self._describe, self._quiet, self._pace = describe, quiet, _Pace()
        self._live = None if quiet or not sys.stderr.isatty() else Live(console=_progress)
        self._printed_at = -LINE_EVERY_S
        self._printed_ended: int | None = None

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live:
            self._live.stop()

    def seen(self, counts: Counts, at_work: Sequence[WorkClaim]) -> None:
        """Show the progress."""
        pace = self._pace.describe(counts)
        if self._live:
            self._live.update(self._view(counts, at_work, pace))
        elif not self._quiet:
            self._print_line(counts, pace)

    def _print_line(self, counts: Counts, pace: str) -> None:
        ended = counts.done + counts.failed
        step = max(1, counts.works // 20)
        due = time.monotonic() - self._printed_at >= LINE_EVERY_S
        if ended == self._printed_ended or not (
            due or counts.over or ended // step != (self._printed_ended or 0) // step
        ):
            return
        self._printed_ended, self._printed_at = ended, time.monotonic()
        failed = f", {counts.failed} failed" if counts.failed else ""
        _progress.print(
            f"federations: {ended} of {counts.works}{failed}; cells: {counts.cells_done} of "
            f"{counts.cells}; {pace}"
        )

    def _view(self, counts: Counts, at_work: Sequence[WorkClaim], pace: str) -> Group:
        ended = counts.done + counts.failed
        row = Table.grid(padding=(0, 2))
        row.add_row(
            ProgressBar(total=counts.works, completed=ended, width=30),
            f"{ended} of {counts.works} federations",
            f"{counts.cells_done} of {counts.cells} cells",
            Text(f"{counts.failed} failed", style="red" if counts.failed else "dim"),
            Text(pace, style="dim"),
        )
        lines = [Text(f"  {self._describe(claim)}", style="dim") for claim in at_work]
        return Group(row, *lines)


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 90 * 60:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"
