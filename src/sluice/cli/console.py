"""What commands print: results on stdout, progress and notes on stderr."""

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

__all__ = ["Json", "Quiet", "emit", "out", "table", "working"]

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


def emit(payload: Mapping[str, object]) -> None:
    """Print a JSON object; NaN and infinities are no JSON and would be a bug."""
    sys.stdout.write(json.dumps(payload, allow_nan=False, ensure_ascii=False) + "\n")


def table(title: str, *columns: str) -> Table:
    """Return an empty table in the house style."""
    drawn = Table(title=title, title_justify="left", title_style="bold", box=None, pad_edge=False)
    for column in columns:
        drawn.add_column(column, overflow="fold")
    return drawn
