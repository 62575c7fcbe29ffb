"""`sluice coordinator status | remove | export-log`: look after a federation."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from sluice.attestation.log import read_log
from sluice.cli.console import Json, emit, out, table
from sluice.cli.coordinator.setup import Folder, app
from sluice.cli.coordinator.waivers import interval_of, told_waivers, waiver_line
from sluice.errors import SettingError

__all__ = ["app"]


@app.command()
def status(folder: Folder, json: Json = False) -> None:
    """Say where the federation stands: the round, and each plant's part in it.

    Example: [bold]sluice coordinator status water[/bold]
    """
    from sluice.network.coordinator import CoordinatorFolder, CoordinatorStore

    site = CoordinatorFolder(folder)
    ledger, store = read_log(site.log), CoordinatorStore(site.base)
    members, counts = store.members(), store.counts()
    store.close()
    standing = ledger.rounds.standing
    gate = "in shadow" if ledger.exemptions.shadow else "enforced"
    waivers = told_waivers(ledger)
    if json:
        emit(
            {
                "federation": ledger.opened.federation,
                "round": ledger.rounds.last,
                "rounds": site.terms.rounds,
                "rounds_counted": ledger.rounds.counted,
                "gate": gate,
                "waivers": waivers,
                "finished": standing is not None and standing.aggregated,
                "entries": ledger.size,
                "plants": [
                    {"plant": m.name, "state": m.state, "failed": m.failed, "seen": m.seen}
                    for m in members
                ],
            }
        )
        return
    out.print(
        f"{ledger.rounds.counted} of {site.terms.rounds} rounds done (the last is round "
        f"{ledger.rounds.last}), {ledger.size} log entries; the gate is {gate}"
    )
    drawn = table("", "plant", "state", "rounds failed in a row", "malformed", "log seen")
    for m in members:
        malformed = counts.get((m.name, "malformed"), 0)
        drawn.add_row(m.name, m.state, str(m.failed), str(malformed), str(m.seen))
    out.print(drawn)
    for waiver in waivers:
        out.print(waiver_line(waiver), markup=False)


@app.command()
def remove(
    folder: Folder,
    plant: Annotated[str, typer.Argument(help="The plant found compromised.")],
    from_: Annotated[int, typer.Option("--from", min=1, help="The first round in doubt.")],
    json: Json = False,
) -> None:
    """Go back to before a round and on without a plant; the log keeps the rounds given up.

    Example: [bold]sluice coordinator remove water north --from 7[/bold]
    """
    from sluice.network.coordinator import go_back

    back = go_back(folder, plant, before=from_, at=datetime.now(UTC))
    if json:
        emit({"plant": plant, "model_of_round": back.model_of, "rounds_given_up": back.given_up})
    else:
        out.print(
            f"{plant} is removed; the next round starts from the model of round {back.model_of}",
            markup=False,
        )


@app.command()
def waive(
    folder: Folder,
    plant: Annotated[str, typer.Argument(help="The plant under maintenance.")],
    start: Annotated[str, typer.Option("--from", help="On the plant's own clock, ISO 8601.")],
    end: Annotated[str, typer.Option("--to", help="The window's end, likewise.")],
    reason: Annotated[str, typer.Option(help="Why; everyone who reads the log reads it.")],
    days: Annotated[float, typer.Option(min=0, help="It expires after so many days.")] = 30,
    json: Json = False,
) -> None:
    """Let a plant's batches of a maintenance window take part without a proof.

    It waives step 4, the physics, for batches that lie within the window, and nothing else. Signed
    and in the log, until it expires.

    Example: [bold]sluice coordinator waive water north --from 2026-04-01T08:00 --to
    2026-04-02T18:00 --reason "tank 2 is being painted"[/bold]
    """
    from sluice.network.coordinator import WaivedInterval
    from sluice.network.coordinator import waive as grant

    now = datetime.now(UTC)
    window = WaivedInterval(
        plant=plant,
        interval=interval_of(start, end),
        expires=now + timedelta(days=days),
        reason=reason,
    )
    named = grant(folder, window, at=now)
    if json:
        emit({"plant": plant, "waiver": named})
    else:
        out.print(f"waiver {named[:12]} for {plant} is in the log", markup=False)


@app.command()
def readmit(
    folder: Folder,
    plant: Annotated[str, typer.Argument(help="A plant that was suspended.")],
    json: Json = False,
) -> None:
    """End a plant's suspension; a federation that runs asks it again from the next round on.

    Example: [bold]sluice coordinator readmit water north[/bold]
    """
    from sluice.network.coordinator import CoordinatorFolder, CoordinatorStore

    store = CoordinatorStore(CoordinatorFolder(folder).base)
    try:
        store.reinstate(plant)
    finally:
        store.close()
    if json:
        emit({"plant": plant})
    else:
        out.print(f"{plant} is asked again from the next round on", markup=False)


@app.command(name="export-log")
def export_log(
    folder: Folder,
    out_path: Annotated[Path, typer.Option("--out", help="The file to write.")],
    json: Json = False,
) -> None:
    """Verify the log from its first entry on and write a copy for others to verify.

    Example: [bold]sluice coordinator export-log water --out log.jsonl[/bold]
    """
    from sluice.files import atomically
    from sluice.network.coordinator import CoordinatorFolder

    path = CoordinatorFolder(folder).log
    if out_path.exists() and out_path.samefile(path):
        raise SettingError(f"{out_path} is the log itself; write somewhere else")
    raw = path.read_bytes()
    with atomically(out_path) as draft:
        draft.write_bytes(raw)
        entries = read_log(draft).size
    if json:
        emit({"entries": entries, "log": str(out_path)})
    else:
        out.print(f"{out_path}: {entries} entries, verified", markup=False)
