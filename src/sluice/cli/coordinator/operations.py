"""`sluice coordinator`: show and maintain a federation."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from sluice.attestation.log import read_log
from sluice.cli.console import Json, emit, out, table, warn
from sluice.cli.coordinator.setup import Folder, app
from sluice.cli.coordinator.waivers import interval_of, waiver_line, waiver_payloads
from sluice.errors import SettingError

__all__ = ["app"]


@app.command()
def status(folder: Folder, json: Json = False) -> None:
    """Show the federation: its round, its gate, each plant's state, certificates that end soon.

    Example: [bold]sluice coordinator status water[/bold]
    """
    from sluice.network.coordinator import (
        CoordinatorFolder,
        CoordinatorStore,
        ending_certificates,
        refused_calls,
    )

    site = CoordinatorFolder(folder)
    ledger, store = read_log(site.log), CoordinatorStore(site.base)
    members, counts = store.members(), store.counts()
    store.close()
    refused = refused_calls(site)
    ending = ending_certificates(site, at=datetime.now(UTC))
    standing = ledger.rounds.standing
    gate = "in shadow" if ledger.exemptions.shadow else "enforced"
    waivers = waiver_payloads(ledger)
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
                    {
                        "plant": member.name,
                        "state": member.state,
                        "failed": member.failed,
                        "seen": member.seen,
                        "refused_calls": refused.get(member.name, {}),
                    }
                    for member in members
                ],
                "certificates_ending": [
                    {"whose": each.whose, "ends": each.ends.isoformat(), "command": each.command}
                    for each in ending
                ],
            }
        )
        return
    out.print(
        f"{ledger.rounds.counted} of {site.terms.rounds} rounds done (the last is round "
        f"{ledger.rounds.last}), {ledger.size} log entries; the gate is {gate}"
    )
    columns = (
        "plant",
        "state",
        "failed rounds in a row",
        "malformed messages",
        "refused calls",
        "log entries seen",
    )
    plants = table("", *columns)
    for member in members:
        malformed = counts.get((member.name, "malformed"), 0)
        calls = sum(refused.get(member.name, {}).values())
        plants.add_row(
            member.name,
            member.state,
            *(str(count) for count in (member.failed, malformed, calls, member.seen)),
        )
    out.print(plants)
    for member in members:
        for reason, count in sorted(refused.get(member.name, {}).items()):
            out.print(f"{member.name}: {count} calls refused ({reason})", markup=False)
    for waiver in waivers:
        out.print(waiver_line(waiver), markup=False)
    for each in ending:
        warn(
            f"the certificate of {each.whose} ends on {each.ends:%Y-%m-%d}; replace it: "
            f"{each.command}"
        )


@app.command()
def remove(
    folder: Folder,
    plant: Annotated[str, typer.Argument(help="The compromised plant.")],
    from_: Annotated[
        int, typer.Option("--from", min=1, help="The first round that may be compromised.")
    ],
    json: Json = False,
) -> None:
    """Remove a plant and return to the model before a round; the log keeps discarded rounds.

    Example: [bold]sluice coordinator remove water north --from 7[/bold]
    """
    from sluice.network.coordinator import go_back

    back = go_back(folder, plant, before=from_, at=datetime.now(UTC))
    if json:
        emit({"plant": plant, "model_of_round": back.model_of, "rounds_given_up": back.given_up})
    else:
        out.print(
            f"{plant} is removed; the next round starts from the model after round {back.model_of}",
            markup=False,
        )


@app.command()
def waive(
    folder: Folder,
    plant: Annotated[str, typer.Argument(help="The plant under maintenance.")],
    start: Annotated[
        str, typer.Option("--from", help="Start of the window on the plant's clock, ISO 8601.")
    ],
    end: Annotated[
        str, typer.Option("--to", help="End of the window on the plant's clock, ISO 8601.")
    ],
    reason: Annotated[str, typer.Option(help="Why; every reader of the log can see it.")],
    days: Annotated[float, typer.Option(min=0, help="Days until the waiver expires.")] = 30,
    json: Json = False,
) -> None:
    """Admit a plant's batches from a maintenance window without a proof.

    The waiver replaces step 4 (the proof) only, and only for batches within the window. It is
    signed and logged, and it ends when it expires.

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
    waiver = grant(folder, window, at=now)
    if json:
        emit({"plant": plant, "waiver": waiver})
    else:
        out.print(f"waiver {waiver[:12]} for {plant} is in the log", markup=False)


@app.command(name="readmit", hidden=True)  # the old name, kept for one release
@app.command()
def reinstate(
    folder: Folder,
    plant: Annotated[str, typer.Argument(help="The suspended plant.")],
    json: Json = False,
) -> None:
    """End a plant's suspension; the plant takes part again from the next round.

    The command also works while the federation runs.

    Example: [bold]sluice coordinator reinstate water north[/bold]
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
        out.print(f"{plant} takes part again from the next round", markup=False)


@app.command()
def rotate(
    folder: Folder,
    plant: Annotated[
        str | None, typer.Option(help="Replace this plant's certificate; needs --out.")
    ] = None,
    out_path: Annotated[
        Path | None, typer.Option("--out", help="The file with the plant's new certificate.")
    ] = None,
    revoke: Annotated[
        bool,
        typer.Option("--revoke", help="Refuse the plant's earlier certificates from now on."),
    ] = False,
    authority: Annotated[
        bool,
        typer.Option("--authority", help="Create another authority; the earlier stays trusted."),
    ] = False,
    retire: Annotated[
        bool, typer.Option("--retire", help="Stop trusting earlier authorities.")
    ] = False,
    json: Json = False,
) -> None:
    """Replace a certificate before it ends: the coordinator's own, or a plant's.

    Without options, the coordinator's certificate is replaced; a running proxy uses it at once, and
    Flower from the next start. With --plant, the file of --out is for the plant, which installs it
    with 'sluice plant rotate'. The file contains a key: send it over a channel that you trust.

    To replace the authority: --authority, then --plant for each plant, then no option, and when all
    plants have installed their files, --retire.

    Example: [bold]sluice coordinator rotate water --plant north --out north.certificate[/bold]
    """
    from sluice.network import write_document
    from sluice.network.coordinator import (
        reissue_authority,
        reissue_plant,
        reissue_server,
        retire_authorities,
    )

    chosen = [plant is not None, authority, retire]
    if sum(chosen) > 1 or (plant is None) != (out_path is None) or (revoke and plant is None):
        raise SettingError(
            "give one of --plant, --authority and --retire, or none; --plant needs --out, and "
            "--revoke needs --plant"
        )
    now = datetime.now(UTC)
    if plant is not None and out_path is not None:
        write_document(reissue_plant(folder, plant, at=now, revoke=revoke), out_path, private=True)
        done = f"{out_path}: send it to {plant} over a channel that you trust"
    elif authority:
        reissue_authority(folder, at=now)
        done = "another authority is created; now give each plant a certificate with --plant"
    elif retire:
        retire_authorities(folder, at=now)
        done = "earlier authorities are no longer trusted"
    else:
        ends = reissue_server(folder, at=now)
        done = f"the coordinator's certificate is replaced; the new one ends on {ends:%Y-%m-%d}"
    if json:
        emit({"plant": plant, "file": str(out_path) if out_path else None, "done": done})
    else:
        out.print(done, markup=False)


@app.command(name="export-log")
def export_log(
    folder: Folder,
    out_path: Annotated[Path, typer.Option("--out", help="The file to write.")],
    json: Json = False,
) -> None:
    """Verify the whole log and write a copy that others can verify.

    Example: [bold]sluice coordinator export-log water --out log.jsonl[/bold]
    """
    from sluice.files import atomically
    from sluice.network.coordinator import CoordinatorFolder

    path = CoordinatorFolder(folder).log
    if out_path.exists() and out_path.samefile(path):
        raise SettingError(f"{out_path} is the log itself; write another file")
    raw = path.read_bytes()
    with atomically(out_path) as draft:
        draft.write_bytes(raw)
        entries = read_log(draft).size
    if json:
        emit({"entries": entries, "log": str(out_path)})
    else:
        out.print(f"{out_path}: {entries} entries, verified", markup=False)
