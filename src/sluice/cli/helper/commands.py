"""`sluice helper`: create, run and inspect the second aggregator of hidden sums."""

import signal
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from sluice.cli.console import Json, Quiet, emit, out
from sluice.cli.paths import reads_file, reads_folder, writes_folder
from sluice.files import demand_room

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Run the second aggregator of hidden sums.")

Folder = Annotated[
    Path,
    typer.Argument(
        metavar="FOLDER",
        help="The helper's folder.",
        click_type=reads_folder("a helper's folder", holding="card.json"),
    ),
]


@app.command()
def init(
    folder: Annotated[
        Path,
        typer.Argument(metavar="FOLDER", help="The helper's folder.", click_type=writes_folder()),
    ],
    federation: Annotated[
        str, typer.Option(help="The name that the federation has or will have.")
    ] = "federation",
    host: Annotated[
        str, typer.Option(help="Name or address at which plants reach this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65_535, help="The helper's port.")] = 8_553,
    json: Json = False,
) -> None:
    """Create a helper for a federation: its key, its certificate and its card.

    Give its card.json to the coordinator, who founds the federation with it. The helper and the
    coordinator must not be run by one party. After the plants have joined, take the federation's
    log in with 'sluice helper accept'.

    Example: [bold]sluice helper init helper/ --federation water --host helper.example.org[/bold]
    """
    from sluice.network.helper import HelperFolder

    demand_room(folder)
    made = HelperFolder.create(folder, federation, host=host, port=port, at=datetime.now(UTC))
    card = made.card
    if json:
        emit({"federation": card.federation, "key": card.key, "card": str(folder / "card.json")})
    else:
        out.print(
            f"{folder}: helper of {card.federation} at {card.url}, key {card.key[:16]}...; give "
            f"{folder / 'card.json'} to the coordinator",
            markup=False,
        )


@app.command()
def accept(
    folder: Folder,
    log: Annotated[
        Path,
        typer.Option(help="A copy of the federation's log.", click_type=reads_file("a log")),
    ],
    json: Json = False,
) -> None:
    """Accept the members that a federation's log registers, and no others.

    Check that they are real plants: with invented members, a coordinator could learn the sums of
    one plant. Stop the helper, and accept a later log, when a plant has joined, was removed or has
    a new key, or when the coordinator has one.

    Example: [bold]sluice helper accept helper/ --log log.jsonl[/bold]
    """
    from sluice.network.helper import HelperFolder

    federation = HelperFolder(path=folder).accept_log(log, at=datetime.now(UTC))
    members = [member.client for member in federation.members]
    if json:
        emit({"federation": federation.name, "members": members})
    else:
        out.print(
            f"{folder}: accepts {len(members)} members of {federation.name}: {', '.join(members)}",
            markup=False,
        )


@app.command()
def run(folder: Folder, quiet: Quiet = False) -> None:
    """Run a helper until it is stopped. One that was killed continues from its log.

    Example: [bold]sluice helper run helper/[/bold]
    """
    from sluice.network.helper import HelperFolder, serve_helper

    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    made = HelperFolder(path=folder)
    made.demand_members()
    with serve_helper(made) as port:
        if not quiet:
            typer.echo(f"sluice: the helper listens at {made.card.host}:{port}", err=True)
        stopped.wait()


@app.command()
def show(folder: Folder, json: Json = False) -> None:
    """Verify a helper's log and show its epoch and groups.

    Example: [bold]sluice helper show helper/[/bold]
    """
    from sluice.attestation.hidden import HelperLedger
    from sluice.network.helper import HelperFolder

    made, ledger = HelperFolder(path=folder), HelperLedger()
    made.demand_members()
    ledger.read((made.state / "helper.log").read_bytes().split(b"\n")[:-1], made.card.key)
    groups = [
        {
            "members": list(members),
            "shared": [name for name in members if name in ledger.shares],
            "state": "released"
            if at in ledger.released
            else "retired"
            if at in ledger.retired
            else "open",
        }
        for at, members in enumerate(ledger.groups)
    ]
    epoch = ledger.epoch.epoch if ledger.epoch else None
    if json:
        emit({"entries": ledger.size, "epoch": epoch, "groups": groups})
        return
    out.print(
        f"{ledger.size} entries; epoch {epoch if epoch is not None else 'none'}", markup=False
    )
    for at, group in enumerate(groups):
        out.print(
            f"group {at}: {', '.join(group['members'])}: {group['state']}, "
            f"{len(group['shared'])} of {len(group['members'])} shared",
            markup=False,
        )
