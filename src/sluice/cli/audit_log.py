"""`sluice audit-log`: verify a federation's log, offline and by anyone."""

from pathlib import Path
from typing import Annotated

import typer

from sluice.attestation.log import read_log
from sluice.cli.console import Json, emit, out

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="The hash-chained log of a federation.")


@app.callback()
def _top() -> None:
    """Keep `verify` a word of its own, though it is the only one so far."""


@app.command()
def verify(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The log's file.")],
    json: Json = False,
) -> None:
    """Check every entry: the chain of hashes, each signature, each step in its order.

    Example: [bold]sluice audit-log verify log.jsonl[/bold]
    """
    ledger = read_log(log)
    head = ledger.head("coordinator")
    if json:
        emit(
            {
                "verified": True,
                "federation": ledger.opened.federation,
                "entries": ledger.size,
                "rounds": ledger.rounds.last,
                "clients": list(ledger.clients),
                "head": head.last,
            }
        )
    else:
        out.print(
            f"{log}: {ledger.size} entries of {ledger.opened.federation!r}, "
            f"{ledger.rounds.last} rounds; its head is {head.last}",
            markup=False,
        )
