"""What commands print: results on stdout, progress and notes on stderr."""

import difflib
import json
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from sluice.errors import SettingError

if TYPE_CHECKING:
    from sluice.admission import Reason

__all__ = [
    "Json",
    "Quiet",
    "counted",
    "emit",
    "known",
    "out",
    "reason_payload",
    "table",
    "warn",
    "working",
]

Json = Annotated[bool, typer.Option("--json", help="Print one JSON object and nothing else.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="No progress on stderr.")]


class _Pipe(Console):
    """A console whose reader may go away (head, less): that is no fault of the command's."""

    def on_broken_pipe(self) -> None:
        """Leave quietly; there is nobody left to tell."""
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise SystemExit(0)


out = _Pipe(highlight=False, soft_wrap=True)
_progress = Console(stderr=True, highlight=False)


def warn(what: str) -> None:
    """Say on stderr, loudly, what nobody must overlook; --quiet and --json do not silence it."""
    _progress.print(f"WARNING: {what}", style="bold red", markup=False, soft_wrap=True)


@contextmanager
def working(what: str, *, quiet: bool) -> Iterator[None]:
    """Show that something is under way: a spinner on a terminal, one plain line elsewhere."""
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
    """Give a function to call at each step: a bar on a terminal, a line each tenth elsewhere."""
    done = 0

    def tell() -> None:
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
        yield tell


def known(option: str, name: str, names: Iterable[str]) -> None:
    """Refuse a name that is not known, with the nearest one that is."""
    names = tuple(names)
    if name not in names:
        near = difflib.get_close_matches(name, names, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise SettingError(f"unknown {option} {name!r}; known are {', '.join(names)}{hint}")


def emit(payload: Mapping[str, object]) -> None:
    """Print a JSON object; NaN and infinities are no JSON and would be a bug."""
    sys.stdout.write(json.dumps(payload, allow_nan=False, ensure_ascii=False) + "\n")


def reason_payload(reason: "Reason") -> dict[str, object]:
    """Return a reason as `--json` prints it."""
    return {
        "kind": reason.kind.value,
        "rule": reason.rule or None,
        "found": reason.found,
        "allowed": reason.allowed,
        "sentence": reason.sentence,
    }


def table(title: str, *columns: str) -> Table:
    """Return an empty table in the house style."""
    drawn = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in columns:
        drawn.add_column(column, overflow="fold")
    return drawn
