"""`sluice plant`: join a federation, check one's own data, take part, look at one's own state."""

import logging
import signal
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from sluice.cli.attest import warn_if_unsafe
from sluice.cli.console import Json, Quiet, emit, out, reason_payload, working
from sluice.cli.options import open_record, range_of
from sluice.cli.plant.gain import gain_of, show_gain, show_simulated
from sluice.invariants import load_rules
from sluice.plugins import load_one

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="A federation between sites: a plant's side.")

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The plant's folder.")]


@app.command()
def join(
    invitation: Annotated[Path, typer.Argument(help="What the coordinator sent.")],
    record: Annotated[Path, typer.Option(help="The plant's record; it never leaves the plant.")],
    rules: Annotated[Path, typer.Option(help="The plant's own rules file.")],
    out_path: Annotated[Path, typer.Option("--out", help="The plant's folder to make.")],
    rows: Annotated[str | None, typer.Option(help="Train on rows A:B only.")] = None,
    every: Annotated[int, typer.Option(min=1, help="Keep every n-th row.")] = 1,
    json: Json = False,
) -> None:
    """Answer an invitation: make keys, derive the circuit, write request.json.

    Example: [bold]sluice plant join north.invitation --record n.parquet --rules rules.json
    --out north[/bold]
    """
    from sluice.network import Invitation, TrainingRows, read_document
    from sluice.network.plant import PlantFolder

    told = read_document(Invitation, invitation, private=True)
    warn_if_unsafe(told.terms.system)
    found = open_record(record, every=every)
    start, stop = range_of(rows, found, option="--rows") if rows else (0, len(found))
    share = TrainingRows(record=str(record.resolve()), start=start, stop=stop, every=every)
    text = rules.read_text(encoding="utf-8")
    held = PlantFolder.create(out_path, told, load_rules(rules), text, share)
    request = held.folder / "request.json"
    if json:
        emit({"plant": told.plant, "federation": told.terms.federation, "request": str(request)})
    else:
        out.print(f"{request}: send it back to the coordinator; it holds a secret", markup=False)


@app.command()
def check(
    folder: Folder,
    clean: Annotated[
        str | None,
        typer.Option(help="Clean rows A:B to compare models on; those after its own unless given."),
    ] = None,
    attacks: Annotated[
        Path | None, typer.Option(help="A record of the plant's own with labelled attacks.")
    ] = None,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Show what a simulated consortium gains (a minute).")
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Say whether this plant's own rows would be admitted, why not, and what it would gain.

    The gain is over training alone: the federation's model as it came last beside one trained on
    this plant's rows only, both on rows that it does not train on. Nothing is sent.

    Example: [bold]sluice plant check north --attacks north-attacks.csv[/bold]
    """
    from sluice.admission import judge
    from sluice.attestation.protocol import explanation
    from sluice.network.plant import PlantFolder

    held = PlantFolder(folder)
    keys, batch = held.keys, held.share.read()
    verdict = judge(batch, keys.circuit.rules, keys.circuit.policy)
    windows = len(held.invitation.terms.framing.windows(batch))
    gain = gain_of(held, clean=clean, attacks=attacks, quiet=quiet or json)
    simulated = None
    if simulate:
        with working("simulating a consortium, and its plants alone", quiet=quiet or json):
            simulated = load_one("sluice.simulations", "gain")()
    if json:
        emit(
            {
                "admitted": verdict.admitted,
                "rows": len(batch),
                "windows": windows,
                "reasons": [reason_payload(reason) for reason in verdict.reasons],
                "gain": asdict(gain),
                "simulated": simulated
                and {"local-only": simulated.alone, "clean": simulated.federation},
            }
        )
    else:
        if verdict.admitted:
            out.print(f"admitted: {len(batch):,} rows, {windows:,} windows to train on")
        else:
            out.print(f"refused: {explanation(verdict)}", markup=False)
        show_gain(gain)
        if simulated is not None:
            show_simulated(simulated)
    if not verdict.admitted:
        raise typer.Exit(3)


@app.command()
def run(
    folder: Folder,
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Of the node, on loopback; 0: any.")
    ] = 0,
    for_: Annotated[
        float | None, typer.Option("--for", min=0, help="Stop after so many seconds.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Take part: prove the batch once, then train and answer, until stopped.

    The plant connects out to the coordinator; nothing connects in. No code that came over the
    network is run here.

    Example: [bold]sluice plant run north[/bold]
    """
    from sluice.network.plant import PlantFolder, node_of, take_part

    signal.signal(signal.SIGTERM, _stop)
    logging.basicConfig(format="sluice: %(message)s", level=logging.WARNING)
    held = PlantFolder(folder)
    agent, node = held.agent(), node_of(held, port=port)
    if not quiet:
        typer.echo(f"sluice: {agent.name} connects to {node.proxy}", err=True)
    take_part(node, agent, seconds=for_)


@app.command()
def renew(
    folder: Folder,
    rows: Annotated[str, typer.Option(help="Rows A:B to attest and train on from now on.")],
    record: Annotated[
        Path | None, typer.Option(help="Their record; the one it has unless given.")
    ] = None,
    json: Json = False,
) -> None:
    """Name other rows to train on; a plant that runs attests them before the next round.

    They must cover another time than any batch that was committed to. Until the coordinator has
    taken them, the plant goes on with the batch it has.

    Example: [bold]sluice plant renew north --rows 9240:9840[/bold]
    """
    from sluice.network.plant import PlantFolder

    held = PlantFolder(folder)
    last = held.share
    path = Path(last.record) if record is None else record.resolve()
    start, stop = range_of(rows, open_record(path, every=last.every), option="--rows")
    held.renew(replace(last, record=str(path), start=start, stop=stop))
    if json:
        emit({"plant": held.invitation.plant, "rows": [start, stop]})
    else:
        out.print(f"rows {start}:{stop} of {path} are attested before the next round", markup=False)


@app.command()
def status(folder: Folder, json: Json = False) -> None:
    """Say what this plant has attested and pledged, and how much of the log it has seen.

    Example: [bold]sluice plant status north[/bold]
    """
    from sluice.attestation.log import HEADS
    from sluice.network.plant import PlantFolder

    held = PlantFolder(folder)
    invitation = held.invitation
    proofs = sorted((folder / "batches").glob("*/proof.json"))
    pledged = sorted((folder / "rounds").glob("*.token"))
    head = folder / "head.json"
    seen = HEADS.read(head.read_bytes()).content.size if head.exists() else 0
    told = {
        "plant": invitation.plant,
        "federation": invitation.terms.federation,
        "batches": len(proofs),
        "rounds": len(pledged),
        "log_entries_seen": seen,
    }
    if json:
        emit(told)
    else:
        for name, value in told.items():
            out.print(f"{name}: {value}", markup=False)


@app.command()
def export(
    folder: Folder,
    out_path: Annotated[Path, typer.Option("--out", help="The file to write.")],
    json: Json = False,
) -> None:
    """Write the batch's attestation as a file, for a one-way gateway.

    Example: [bold]sluice plant export north --out north.attestation[/bold]
    """
    from sluice.network import ExportedAttestation, write_document
    from sluice.network.plant import PlantFolder

    agent = PlantFolder(folder).agent()
    batch = agent.attested_documents()
    document = ExportedAttestation(
        plant=agent.name, commit=batch.commit.decode(), proof=batch.proof.decode()
    )
    write_document(document, out_path)
    if json:
        emit({"plant": agent.name, "attestation": str(out_path)})
    else:
        out.print(f"{out_path}: carry it to 'sluice coordinator import'", markup=False)


def _stop(*_: object) -> NoReturn:
    sys.exit(0)
