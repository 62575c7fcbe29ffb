"""`sluice audit-log`: verify a federation's log offline, with public information only."""

from pathlib import Path
from typing import Annotated

import typer

from sluice.attestation.log import demand_log, read_log
from sluice.cli.console import Json, emit, out
from sluice.cli.coordinator import removal_payloads, waiver_line, waiver_payloads

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Verify the hash-chained log of a federation.")


@app.callback()
def _top() -> None:
    """Keep `verify` a subcommand although it is the only one; Typer would merge it otherwise."""


@app.command()
def verify(
    log: Annotated[Path, typer.Argument(metavar="LOG", help="The log's file.")],
    json: Json = False,
) -> None:
    """Verify every entry of a log: the hash chain, the signatures and the order of the steps.

    Example: [bold]sluice audit-log verify log.jsonl[/bold]
    """
    demand_log(log)
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
                "waivers": waiver_payloads(ledger),
                "removed": removal_payloads(ledger),
                "head": head.last,
            }
        )
    else:
        out.print(
            f"{log}: {ledger.size} entries of {ledger.opened.federation!r}, "
            f"{ledger.rounds.last} rounds; the head is {head.last}",
            markup=False,
        )
        if exempt.shadow:
            out.print("The gate is in shadow: it logs refusals and does not enforce them.")
        for batch in unproven:
            out.print(f"admitted without proof ({batch['ground']}): {batch['plant']}", markup=False)
        for waiver in waiver_payloads(ledger):
            out.print(waiver_line(waiver), markup=False)
        for removal in removal_payloads(ledger):
            out.print(
                f"removed: {removal['plant']}, from round {removal['from_round']}; training "
                f"continued from the model after round {removal['model_of_round']}",
                markup=False,
            )
