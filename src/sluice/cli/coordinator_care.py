"""`sluice coordinator status | remove | export-log`: look after a federation."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from sluice.attestation.log import read_log
from sluice.cli.console import Json, emit, out, table
from sluice.cli.coordinator import Folder, app
from sluice.errors import SettingError

__all__ = ["app"]


@app.command()
def status(folder: Folder, json: Json = False) -> None:
    """Say where the federation stands: the round, and each plant's part in it.

    Example: [bold]sluice coordinator status water[/bold]
    """
    from sluice.network.site import Site  # noqa: PLC0415
    from sluice.network.store import Member, Store  # noqa: PLC0415

    def state(member: Member) -> str:
        if member.removed:
            return "removed"
        if member.suspended:
            return "suspended"
        return "attested" if member.attestation else f"left out at step {member.step or '4'}"

    site = Site(folder)
    ledger, store = read_log(site.log), Store(site.base)
    members, counts = store.members(), store.counts()
    store.close()
    standing = ledger.rounds.standing
    if json:
        emit(
            {
                "federation": ledger.opened.federation,
                "round": ledger.rounds.last,
                "rounds": site.terms.rounds,
                "finished": standing is not None and standing.aggregated,
                "entries": ledger.size,
                "plants": [
                    {"plant": m.name, "state": state(m), "failed": m.failed, "seen": m.seen}
                    for m in members
                ],
            }
        )
        return
    out.print(f"round {ledger.rounds.last} of {site.terms.rounds}, {ledger.size} log entries")
    drawn = table("", "plant", "state", "rounds failed in a row", "malformed", "log seen")
    for m in members:
        malformed = counts.get((m.name, "malformed"), 0)
        drawn.add_row(m.name, state(m), str(m.failed), str(malformed), str(m.seen))
    out.print(drawn)


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
    from sluice.network.removing import go_back  # noqa: PLC0415

    back = go_back(folder, plant, before=from_, at=datetime.now(UTC))
    if json:
        emit({"plant": plant, "model_of_round": back.model_of, "rounds_given_up": back.given_up})
    else:
        out.print(
            f"{plant} is removed; the next round starts from the model of round {back.model_of}",
            markup=False,
        )


@app.command(name="export-log")
def export_log(
    folder: Folder,
    out_path: Annotated[Path, typer.Option("--out", help="The file to write.")],
    json: Json = False,
) -> None:
    """Verify the log from its first entry on and write a copy for others to verify.

    Example: [bold]sluice coordinator export-log water --out log.jsonl[/bold]
    """
    from sluice.files import atomically  # noqa: PLC0415
    from sluice.network.site import Site  # noqa: PLC0415

    path = Site(folder).log
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
