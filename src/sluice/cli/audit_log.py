"""`sluice audit-log`: verify a federation's log offline, with public information only."""

from pathlib import Path
from typing import Annotated

import typer

from sluice.attestation.log import (
    COORDINATOR,
    compare_logs,
    demand_head,
    demand_log,
    read_head,
    read_log,
)
from sluice.cli.console import Json, emit, out
from sluice.cli.coordinator import removal_payloads, sign_offs, waiver_line, waiver_payloads
from sluice.cli.log_terms import print_log_terms
from sluice.cli.paths import reads_file

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Verify the hash-chained log of a federation.")

LogPath = Annotated[
    Path, typer.Argument(metavar="LOG", help="A log's file.", click_type=reads_file("a log"))
]


@app.command()
def verify(
    log: LogPath,
    head: Annotated[
        Path | None,
        typer.Option(
            help="A signed head that the log must contain: a head file, or another copy of the "
            "log.",
            click_type=reads_file("a signed head or a log"),
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Verify every entry of a log: the hash chain, the signatures and the order of the steps.

    The last line of a log is the coordinator's signed head, so that missing and forged entries are
    found. With --head, the log must also contain what another party has seen.

    Example: [bold]sluice audit-log verify log.jsonl[/bold]
    """
    demand_log(log)
    ledger = read_log(log)
    if head is not None:
        demand_head(log, ledger, read_head(head))
    last, exempt = ledger.head(COORDINATOR).last, ledger.exemptions
    shadow = exempt.shadow(at=ledger.time)
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
                "gate": "in shadow" if shadow else "enforced",
                "history": ledger.terms.history,
                "bound": ledger.bound is not None,
                "groups": {each.name: list(each.members) for each in ledger.groups.in_force},
                "signed_off": sign_offs(ledger),
                "unproven": unproven,
                "waivers": waiver_payloads(ledger),
                "removed": removal_payloads(ledger),
                "head": last,
            }
        )
    else:
        out.print(
            f"{log}: {ledger.size} entries of {ledger.opened.federation!r}, "
            f"{ledger.rounds.last} rounds; the head is {last}",
            markup=False,
        )
        print_log_terms(ledger)
        for signed in sign_offs(ledger):
            out.print(
                f"{signed['plant']}: {signed['operator']} signed off statistic "
                f"{signed['statistic'][:12]}",
                markup=False,
            )
        if shadow:
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


@app.command()
def compare(one: LogPath, other: LogPath, json: Json = False) -> None:
    """Verify two copies of a log and check that one continues the other; exit 3 if they part.

    Two copies that part are both signed by the coordinator: it has shown different logs.

    Example: [bold]sluice audit-log compare north-log.jsonl south-log.jsonl[/bold]
    """
    for path in (one, other):
        demand_log(path)
    shared = compare_logs(one, other)
    if json:
        emit({"same": True, "shared_entries": shared})
    else:
        out.print(f"the first {shared} entries are the same, and none differ")
