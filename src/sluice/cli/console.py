"""Printing for commands: results on stdout, progress and notes on stderr."""

import difflib
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    SpinnerColumn,
    TaskID,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table

from sluice.errors import SettingError

if TYPE_CHECKING:
    from sluice.admission import Objection, Reason

__all__ = [
    "Json",
    "PartsBar",
    "Quiet",
    "counted",
    "emit",
    "known",
    "objection_payloads",
    "out",
    "reason_payload",
    "show_objections",
    "table",
    "warn",
    "working",
]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Do not print progress on stderr.")]


ACCEPTED = Path("accepted.json")  # the last accepted rules, where a command does not name them
PIPE_CLOSED = 141  # 128 + SIGPIPE


def drop_output() -> None:
    """Send the rest of stdout nowhere: its reader (head, less) has closed it."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Pipe(Console):
    """A console whose reader may close it. The command goes on and keeps its own exit code."""

    def on_broken_pipe(self) -> None:
        """Continue without output, so that a refused batch still exits with 3."""
        drop_output()


out = _Pipe(highlight=False, soft_wrap=True)
_progress = Console(stderr=True, highlight=False)


def warn(message: str) -> None:
    """Print a warning on stderr; --quiet and --json do not suppress it."""
    _progress.print(f"WARNING: {message}", style="bold red", markup=False, soft_wrap=True)


@contextmanager
def working(what: str, *, quiet: bool) -> Iterator[None]:
    """Show what the command is doing: a spinner on a terminal, one plain line elsewhere."""
    if quiet:
        yield
    elif sys.stderr.isatty():
        with _progress.status(what):
            yield
    else:
        _progress.print(f"{what} ...")
        yield


@contextmanager
def counted(what: str, total: int, *, quiet: bool) -> Iterator[Callable[[], None]]:
    """Yield a function to call after each step.

    It moves a progress bar on a terminal and prints a line after each tenth elsewhere.
    """
    done = 0

    def print_step() -> None:
        nonlocal done
        done += 1
        if done == total or done % max(1, total // 10) == 0:
            _progress.print(f"{what}: {done} of {total}")

    if quiet:
        yield lambda: None
    elif sys.stderr.isatty():
        with Progress(console=_progress, transient=True) as bar:
            task = bar.add_task(what, total=total)
            yield lambda: bar.advance(task)
    else:
        yield print_step


class PartsBar:
    """A progress bar for work in parts. Call it with the parts that are done and all parts.

    It shows an estimate as soon as a part was done while it was shown. Without a terminal it shows
    nothing but the line of `working`.
    """

    def __init__(self) -> None:
        self._bar: Progress | None = None
        self._task = TaskID(0)
        self._began: tuple[float, int] | None = None

    @contextmanager
    def shown(self, what: str, *, quiet: bool) -> Iterator[None]:
        """Show the bar on a terminal; elsewhere one plain line."""
        if quiet or not sys.stderr.isatty():
            with working(what, quiet=quiet):
                yield
            return
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.fields[left]}"),
        )
        with Progress(*columns, console=_progress, transient=True) as self._bar:
            self._task = self._bar.add_task(what, total=None, left="")
            yield

    def __call__(self, done: int, total: int) -> None:
        """Show how much is done; the rate is that since the first call."""
        now = time.monotonic()
        self._began = self._began or (now, done)
        since, before = self._began
        rate = (done - before) / max(now - since, 1e-9)
        left = f"about {_duration((total - done) / rate)} left" if rate > 0 and done < total else ""
        if self._bar is not None:
            self._bar.update(self._task, completed=done, total=total, left=left)


def _duration(seconds: float) -> str:
    """Return a rough duration in words."""
    if seconds < 90:
        return f"{seconds:.0f} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def known(option: str, name: str, names: Iterable[str]) -> None:
    """Raise SettingError for an unknown name; the message suggests the nearest known one."""
    names = tuple(names)
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise SettingError(f"unknown {option} {name!r}; known are {', '.join(names)}{hint}")


def emit(payload: Mapping[str, object]) -> None:
    """Print a JSON object; NaN and infinities are not JSON and raise ValueError."""
    try:
        sys.stdout.write(json.dumps(payload, allow_nan=False, ensure_ascii=False) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        drop_output()


def reason_payload(reason: "Reason") -> dict[str, object]:
    """Return a reason as `--json` prints it."""
    return {
        "kind": reason.kind.value,
        "rule": reason.rule or None,
        "found": reason.found,
        "allowed": reason.allowed,
        "sentence": reason.sentence,
    }


def objection_payloads(
    objections: "Sequence[Objection]", *, rules: Path, last: Path | None = None
) -> list[dict[str, object]]:
    """Return objections as `--json` prints them."""
    from sluice.admission import commands

    cures = commands(objections, rules=str(rules), last=str(last or ACCEPTED))
    return [
        {**asdict(objection), "sentence": objection.sentence, "command": cure}
        for objection, cure in zip(objections, cures, strict=True)
    ]


def show_objections(
    objections: "Sequence[Objection]", *, rules: Path, last: Path | None = None
) -> None:
    """Print every objection, and then the commands that cure them."""
    from sluice.admission import commands

    for objection in objections:
        out.print(f"  {objection.sentence}", markup=False)
    cures = commands(objections, rules=str(rules), last=str(last or ACCEPTED))
    out.print("fill in what is in capitals, and run:")
    for cure in dict.fromkeys(cures):
        out.print(f"  {cure}", markup=False)


def table(title: str, *columns: str) -> Table:
    """Return an empty table in the style that all commands share."""
    empty = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in columns:
        empty.add_column(column, overflow="fold")
    return empty
