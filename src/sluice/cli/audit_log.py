"""`sluice audit-log`: verify a federation's log, offline and by anyone."""

from pathlib import Path
from typing import Annotated

import typer

from sluice.attestation.log import read_log
from sluice.cli.console import Json, emit, out
from sluice.cli.coordinator import told_removals, told_waivers, waiver_line

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
    head, exempt = ledger.head("coordinator"), ledger.exemptions
    unproven = [
        {"plant": each.client, "ground": "waiver" if each.waiver else "shadow"}
        for each in exempt.excused
    ]
    if json:
        emit(
            {
                "verified": True,
                "federation": ledger.opened.federation,
                "entries": ledger.size,
                "rounds": ledger.rounds.last,
                "rounds_counted": ledger.rounds.counted,
                "clients": list(ledger.clients),
                "gate": "in shadow" if exempt.shadow else "enforced",
                "unproven": unproven,
                "waivers": told_waivers(ledger),
                "removed": told_removals(ledger),
                "head": head.last,
            }
        )
    else:
        out.print(
            f"{log}: {ledger.size} entries of {ledger.opened.federation!r}, "
            f"{ledger.rounds.last} rounds; its head is {head.last}",
            markup=False,
        )
        if exempt.shadow:
            out.print("The gate is in shadow: it keeps nobody out.")
        for batch in unproven:
            out.print(f"without a proof, by {batch['ground']}: {batch['plant']}", markup=False)
        for waiver in told_waivers(ledger):
            out.print(waiver_line(waiver), markup=False)
        for gone in told_removals(ledger):
            out.print(
                f"removed: {gone['plant']}, from round {gone['from_round']} on; back to the model "
                f"after round {gone['model_of_round']}",
                markup=False,
            )
