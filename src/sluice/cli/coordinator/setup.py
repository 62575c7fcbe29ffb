"""`sluice coordinator`: found a federation, invite plants, run its rounds, look after it."""

import signal
import sys
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from sluice.attestation.systems import SystemName
from sluice.cli.attest import warn_if_unsafe
from sluice.cli.console import Json, Quiet, emit, out, working
from sluice.cli.options import open_record, range_of

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="A federation between sites: the coordinator's side.")

Folder = Annotated[Path, typer.Argument(metavar="FOLDER", help="The coordinator's folder.")]
NoProxy = Annotated[
    bool, typer.Option("--no-proxy", help="nginx is run by somebody else, as proxy/ says.")
]
Wait = Annotated[float, typer.Option(min=0, help="Seconds to wait for plants to come.")]
Shadow = Annotated[
    bool | None,
    typer.Option(
        "--shadow/--enforce",
        help="Only log whom the gate would keep out, or keep them out. Neither: as before.",
    ),
]


@app.command()
def init(
    folder: Folder,
    reference: Annotated[Path, typer.Option(help="A clean record of the coordinator's own.")],
    name: Annotated[str, typer.Option(help="The federation's name.")] = "federation",
    rows: Annotated[str | None, typer.Option(help="Take rows A:B of it only.")] = None,
    every: Annotated[int, typer.Option(min=1, help="Keep every n-th row.")] = 1,
    host: Annotated[str, typer.Option(help="Where plants reach this machine.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65_535, help="The proxy's port.")] = 8_443,
    link_port: Annotated[
        int, typer.Option(min=1, max=65_535, help="Flower's port, on loopback.")
    ] = 8_000,
    policy: Annotated[str, typer.Option(help="paper, hardened or a policy file.")] = "hardened",
    system: Annotated[SystemName, typer.Option(help="full; unsafe shows every row.")] = (
        SystemName.FULL
    ),
    largest: Annotated[int, typer.Option(min=1, help="The largest batch, in rows.")] = 8_192,
    rule: Annotated[str, typer.Option(help="How updates are joined.")] = "fedavg",
    rounds: Annotated[int, typer.Option(min=1)] = 10,
    epochs: Annotated[int, typer.Option(min=1, help="Of each plant in each round.")] = 2,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    deadline: Annotated[float, typer.Option(min=1, help="Seconds for each phase.")] = 900,
    suspend_after: Annotated[int, typer.Option(min=1, help="Rounds failed in a row.")] = 5,
    json: Json = False,
) -> None:
    """Begin a federation: keys, certificates, log, store and the proxy's configuration.

    Example: [bold]sluice coordinator init water --reference line.parquet --rows 0:8640[/bold]
    """
    from sluice.admission import read_policy, write_policy
    from sluice.detector import Descent
    from sluice.network import TrainingRows
    from sluice.network.coordinator import FederationPlan, found_federation

    warn_if_unsafe(system)
    record = open_record(reference, every=every)
    start, stop = range_of(rows, record, option="--rows") if rows else (0, len(record))
    drafted = folder.with_name(f".{folder.name}.policy.toml")
    write_policy(read_policy(policy), drafted)
    try:
        plan = FederationPlan(
            federation=name,
            host=host,
            port=port,
            link_port=link_port,
            reference=TrainingRows(
                record=str(reference.resolve()), start=start, stop=stop, every=every
            ),
            policy=drafted.read_text(encoding="utf-8"),
            system=system,
            rows_max=largest,
            rule=rule,
            rounds=rounds,
            seed=seed,
            descent=Descent(epochs=epochs),
            batch_deadline_s=deadline,
            round_deadline_s=deadline,
            suspend_after=suspend_after,
        )
        site = found_federation(folder, plan, at=datetime.now(UTC))
    finally:
        drafted.unlink(missing_ok=True)
    if json:
        emit({"federation": name, "folder": str(folder), "coordinator": site.terms.coordinator})
    else:
        out.print(
            f"{folder}: federation {name!r} is founded. Move private/approver.key to who approves "
            "rules, and invite plants with 'sluice coordinator invite'.",
            markup=False,
        )


@app.command()
def invite(
    folder: Folder,
    plant: Annotated[str, typer.Argument(help="The plant's name.")],
    out_path: Annotated[Path, typer.Option("--out", help="The invitation's file.")],
    json: Json = False,
) -> None:
    """Write an invitation for one plant. It holds a secret and serves once.

    Example: [bold]sluice coordinator invite water north --out north.invitation[/bold]
    """
    from sluice.network import write_document
    from sluice.network.coordinator import CoordinatorFolder

    invitation = CoordinatorFolder(folder).invite(plant, at=datetime.now(UTC))
    write_document(invitation, out_path, private=True)
    if json:
        emit({"plant": plant, "invitation": str(out_path)})
    else:
        out.print(f"{out_path}: hand it to {plant} by a way you trust", markup=False)


@app.command(name="import")
def import_(
    folder: Folder,
    file: Annotated[Path, typer.Argument(help="A plant's request.json or exported attestation.")],
    json: Json = False,
) -> None:
    """Take in what a plant sent as a file: its request to join, or an attestation.

    Example: [bold]sluice coordinator import water north/request.json[/bold]
    """
    from sluice.network.coordinator import take_in

    taken = take_in(folder, file, at=datetime.now(UTC))
    if json:
        emit({"plant": taken.plant, "taken": taken.what})
    else:
        out.print(f"{taken.plant}: {taken.what}", markup=False)


@app.command()
def run(
    folder: Folder,
    shadow: Shadow = None,
    no_proxy: NoProxy = False,
    wait: Wait = 60,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Run the federation: Flower on loopback, the proxy before it, rounds to the agreed number.

    It refuses to run while Flower's control interface can be reached from outside. A federation
    that was stopped or killed goes on where it was.

    In shadow, plants that cannot prove their batch take part; log and status name the step at which
    they would have been refused. Whoever breaks the protocol is kept out all the same. The log says
    from which entry on the gate is in shadow, and it stays so until a run with --enforce.

    Example: [bold]sluice coordinator run water --shadow[/bold]
    """
    from sluice.detector import save_detector
    from sluice.network.coordinator import (
        CoordinatorFolder,
        CoordinatorStore,
        coordinator_service,
        detector,
        hosted,
        wait_for_plants,
    )

    signal.signal(signal.SIGTERM, _stop)
    site = CoordinatorFolder(folder)
    terms, store = site.terms, CoordinatorStore(site.base)
    say = _Teller(quiet=quiet or json)
    say(f"starting Flower and the proxy at {terms.host}:{terms.port}")
    with site.alone(), hosted(site, store, proxy=not no_proxy) as wire:
        say("the control interface is out of reach; waiting for plants")
        present = wait_for_plants(wire, store, seconds=wait)
        say(f"{len(present)} plants are there: {', '.join(sorted(present)) or 'none'}")
        held = coordinator_service(
            site, store, wire, clock=lambda: datetime.now(UTC), shadow=shadow
        )
        done = held.run(
            rounds=terms.rounds,
            on_round=lambda after: say(
                f"round {after.round} of {terms.rounds}: {', '.join(after.admitted)}"
            ),
        )
    with working("setting the threshold", quiet=quiet or json):
        save_detector(detector(site, done), folder / "model.safetensors")
    if json:
        emit(
            {
                "rounds": done.round,
                "admitted": list(done.admitted),
                "refused": {c: list(done.decisions[c].reasons) for c in done.refused},
                "unproven": {
                    c: list(done.decisions[c].reasons)
                    for c in done.admitted
                    if done.decisions[c].reasons
                },
                "model": str(folder / "model.safetensors"),
            }
        )
    else:
        out.print(f"{folder}: {done.round} rounds done, model.safetensors", markup=False)
    store.close()


@app.command()
def resume(
    folder: Folder,
    reinstate: Annotated[
        list[str] | None, typer.Option(help="End the suspension of this plant; may be repeated.")
    ] = None,
    shadow: Shadow = None,
    no_proxy: NoProxy = False,
    wait: Wait = 60,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Go on with a federation that was stopped, after putting a torn end of its log aside.

    Example: [bold]sluice coordinator resume water --reinstate north[/bold]
    """
    from sluice.attestation.log import mend
    from sluice.network.coordinator import CoordinatorFolder, CoordinatorStore

    site = CoordinatorFolder(folder)
    torn = mend(site.log)
    if torn is not None:
        typer.echo(f"sluice: the log ended in a torn line; it is in {torn}", err=True)
    store = CoordinatorStore(site.base)
    for plant in reinstate or []:
        store.reinstate(plant)
    store.close()
    run(folder, shadow=shadow, no_proxy=no_proxy, wait=wait, json=json, quiet=quiet)


class _Teller:
    """Tells on stderr what goes on."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def __call__(self, what: str) -> None:
        if not self._quiet:
            typer.echo(f"sluice: {what}", err=True)


def _stop(*_: object) -> NoReturn:
    sys.exit(0)
