"""`sluice coordinator`: show and maintain a federation."""

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sluice.attestation.log import Ledger, copy_log
from sluice.attestation.messages import instant
from sluice.cli.console import Json, emit, out, table, warn
from sluice.cli.coordinator.setup import Folder, app
from sluice.cli.coordinator.waivers import interval_of, waiver_line, waiver_payloads
from sluice.cli.log_terms import print_log_terms
from sluice.cli.paths import reads_file, writes_file
from sluice.errors import RefusedError, SettingError, VerificationError
from sluice.files import atomically, read_bounded

if TYPE_CHECKING:
    from collections.abc import Sequence

    from sluice.network.coordinator import Member

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
        plant_state,
        refused_calls,
        round_in_words,
    )

    site = CoordinatorFolder(folder)
    ledger, store = site.ledger(), CoordinatorStore(site.base)
    members, counts = store.members(), store.counts()
    store.close()
    refused = refused_calls(site)
    ending = ending_certificates(site, at=datetime.now(UTC))
    standing = ledger.rounds.standing
    gate = "in shadow" if ledger.exemptions.shadow(at=instant(datetime.now(UTC))) else "enforced"
    waivers, statistic = waiver_payloads(ledger), ledger.opened.statistic
    if json:
        emit(
            {
                "federation": ledger.opened.federation,
                "round": ledger.rounds.last,
                "rounds": site.terms.rounds,
                "rounds_counted": ledger.rounds.counted,
                "gate": gate,
                "history": ledger.terms.history,
                "approvals": ledger.terms.approvals,
                "bound": ledger.bound is not None,
                "statistic": statistic and statistic.sentence,
                "groups": list(ledger.groups.sentences) if ledger.grouped else None,
                "waivers": waivers,
                "finished": standing is not None and standing.ended,
                "entries": ledger.size,
                "plants": [
                    {
                        "plant": member.name,
                        "state": member.state,
                        "word": plant_state(member, ledger).word.value,
                        "detail": plant_state(member, ledger).detail,
                        "failed": member.absences,
                        "absences": member.absences,
                        "seen": member.seen,
                        "copied": member.copied,
                        "attested_until": _attested_until(ledger, member),
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
    progress = _progress(ledger, site.terms.rounds, members)
    out.print(f"{progress}, {ledger.size} log entries; the gate is {gate}")
    if standing is not None and standing.aggregated:
        out.print(round_in_words(ledger, rounds=site.terms.rounds), markup=False)
    print_log_terms(ledger)
    columns = (
        "plant",
        "state",
        "absent rounds",
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
            plant_state(member, ledger).sentence,
            *(str(count) for count in (member.absences, malformed, calls, member.seen)),
        )
    out.print(plants)
    for member in members:
        if member.copied:
            out.print(
                f"Two processes answer as {member.name}: its folder was copied. Ask its operator.",
                markup=False,
            )
        for reason, count in sorted(refused.get(member.name, {}).items()):
            out.print(f"{member.name}: {count} calls refused ({reason})", markup=False)
    for waiver in waivers:
        out.print(waiver_line(waiver), markup=False)
    for each in ending:
        warn(
            f"the certificate of {each.whose} ends on {each.ends:%Y-%m-%d}; replace it: "
            f"{each.command}"
        )


def _progress(ledger: Ledger, rounds: int, members: "Sequence[Member]") -> str:
    """Return how far the federation is, in words."""
    last = ledger.rounds.last
    if ledger.opened.statistic is None:
        return f"{ledger.rounds.counted} of {rounds} rounds done (the last is round {last})"
    shared = sum(member.shared is not None for member in members)
    return f"the statistics of {shared} plants are in the model (the last round is {last})"


def _attested_until(ledger: Ledger, member: "Member") -> str | None:
    """Return the log time until which a plant's attestation holds, if it takes part by a proof."""
    if member.attestation is None or member.excuse is not None:
        return None
    try:
        commit = ledger.attested_commit(member.name, member.attestation, step="4")
    except VerificationError:
        return None
    return ledger.attested_until(commit.commitment)


@app.command()
def remove(
    folder: Folder,
    plant: Annotated[str, typer.Argument(help="The compromised plant.")],
    from_: Annotated[
        int | None,
        typer.Option(
            "--from",
            min=1,
            help="The first round that may be compromised; for detectors trained in rounds.",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Remove a plant and return to the model before a round; the log keeps discarded rounds.

    With the detector moments, no round is discarded: the plant's statistic is taken out, and the
    detector is made again from the others. Plants get it when the coordinator runs again.

    Example: [bold]sluice coordinator remove water north --from 7[/bold]
    """
    from sluice.network.coordinator import go_back

    if from_ is None:
        _take_out(folder, plant, json=json)
        return
    back = go_back(folder, plant, before=from_, at=datetime.now(UTC))
    if json:
        emit({"plant": plant, "model_of_round": back.model_of, "rounds_given_up": back.given_up})
    else:
        out.print(
            f"{plant} is removed; the next round starts from the model after round {back.model_of}",
            markup=False,
        )


def _take_out(folder: Path, plant: str, *, json: bool) -> None:
    """Take a plant's statistic out of the model, and write the coordinator's detector again."""
    from sluice.detector import save_detector
    from sluice.network.coordinator import CoordinatorFolder, detector, take_out

    taken = take_out(folder, plant, at=datetime.now(UTC))
    path, problem = folder / "model.safetensors", None
    try:
        save_detector(detector(CoordinatorFolder(folder), taken.checkpoint), path)
    except (SettingError, RefusedError) as error:
        path.unlink(missing_ok=True)  # it counts a vote of the removed plant
        problem = str(error)
    if json:
        emit(
            {
                "plant": plant,
                "members": list(taken.members),
                "rounds_given_up": 0,
                "model": None if problem else str(path),
            }
        )
        return
    out.print(
        f"{plant} is removed and its statistic is taken out; {len(taken.members)} plants vote: "
        f"{', '.join(taken.members) or 'none'}. Run the coordinator to hand out the new model.",
        markup=False,
    )
    if problem:
        warn(f"the plants that are left give no detector: {problem}")


@app.command()
def abandon(folder: Folder, json: Json = False) -> None:
    """End the round in progress; the federation continues with the model it was opened on.

    Stop the coordinator first. The log records the abandoned round, and it does not count as one of
    the federation's rounds.

    Example: [bold]sluice coordinator abandon water[/bold]
    """
    from sluice.network.coordinator import abandon as end_round

    ended = end_round(folder, at=datetime.now(UTC))
    if json:
        emit({"round": ended.round, "model": ended.model})
    else:
        out.print(
            f"round {ended.round} is abandoned; the next round starts from the same model as it "
            f"did ({ended.model[:12]}...)",
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
    out_path: Annotated[
        Path,
        typer.Option(
            "--out", help="The waiver to write, for approvers to sign.", click_type=writes_file()
        ),
    ] = Path("waiver.json"),
    json: Json = False,
) -> None:
    """Write a waiver: batches of a plant from a maintenance window need no proof.

    The waiver replaces step 4 (the proof) only, and only for batches within the window. It takes
    effect when it is imported with the approvals that the federation needs, and it ends when it
    expires.

    Example: [bold]sluice coordinator waive water north --from 2026-04-01T08:00 --to
    2026-04-02T18:00 --reason "tank 2 is being painted" --out waiver.json[/bold]
    """
    from sluice.attestation.messages import WAIVERS, content_digest
    from sluice.network.coordinator import WaivedInterval, waiver_for

    window = WaivedInterval(
        plant=plant,
        interval=interval_of(start, end),
        expires=datetime.now(UTC) + timedelta(days=days),
        reason=reason,
    )
    waiver = waiver_for(folder, window)
    _write_order(out_path, WAIVERS.write(waiver))
    if json:
        emit({"plant": plant, "waiver": content_digest(waiver), "file": str(out_path)})
    else:
        _show_order(out_path)


@app.command()
def shadow(
    folder: Folder,
    reason: Annotated[str, typer.Option(help="Why; every reader of the log can see it.")],
    days: Annotated[float, typer.Option(min=0, help="Days until the gate is enforced again.")] = 14,
    out_path: Annotated[
        Path,
        typer.Option(
            "--out", help="The order to write, for approvers to sign.", click_type=writes_file()
        ),
    ] = Path("shadow.json"),
    json: Json = False,
) -> None:
    """Write a shadow order: for some days the gate logs refusals without enforcing them.

    It takes effect when it is imported with the approvals that the federation needs.

    Example: [bold]sluice coordinator shadow water --days 14 --reason "first two weeks"
    --out shadow.json[/bold]
    """
    from sluice.attestation.messages import SHADOW_ORDERS
    from sluice.network.coordinator import shadow_order_for

    until = datetime.now(UTC) + timedelta(days=days)
    order = shadow_order_for(folder, until=until, reason=reason)
    _write_order(out_path, SHADOW_ORDERS.write(order))
    if json:
        emit({"until": order.until, "file": str(out_path)})
    else:
        _show_order(out_path)


@app.command(name="new-key")
def new_key(folder: Folder, json: Json = False) -> None:
    """Replace the coordinator's signing key; the log tells plants, which follow by themselves.

    Stop the coordinator first.

    Example: [bold]sluice coordinator new-key water[/bold]
    """
    from sluice.network.coordinator import CoordinatorFolder

    site = CoordinatorFolder(folder)
    with site.alone():
        public = site.rotate_key(at=datetime.now(UTC))
    if json:
        emit({"coordinator": public})
    else:
        out.print(f"the coordinator signs with key {public[:12]}... from now on", markup=False)


@app.command()
def recover(
    folder: Folder,
    log: Annotated[
        list[Path] | None,
        typer.Option(
            help="A plant's copy of the log ('sluice plant export-log'); repeatable.",
            click_type=reads_file("a log"),
        ),
    ] = None,
    recovery: Annotated[
        Path | None,
        typer.Option(
            help="The recovery to which plants have consented.", click_type=reads_file("a recovery")
        ),
    ] = None,
    consent: Annotated[
        list[Path] | None,
        typer.Option(
            help="A plant's consent ('sluice plant consent'); may be repeated.",
            click_type=reads_file("a consent"),
        ),
    ] = None,
    out_path: Annotated[
        Path,
        typer.Option(
            "--out",
            help="The recovery to write, for plants to consent to.",
            click_type=writes_file(),
        ),
    ] = Path("recovery.json"),
    json: Json = False,
) -> None:
    """Continue after the coordinator's folder was restored from an older backup.

    First give plants' copies of the log: missing entries are taken from the longest, and a recovery
    is written that names the rounds whose models are lost. Then give that recovery and the consents
    of more than half of the plants.

    Example: [bold]sluice coordinator recover water --log north-log.jsonl --out
    recovery.json[/bold]
    """
    from sluice.attestation.messages import CONSENTS, RECOVERIES
    from sluice.network.coordinator import complete_recovery, prepare_recovery

    if recovery is None:
        found = prepare_recovery(folder, log or [])
        _write_order(out_path, RECOVERIES.write(found))
        if json:
            emit(
                {
                    "recovery": str(out_path),
                    "lost_since_round": found.since,
                    "model_of_round": found.model_of,
                    "entries": found.size,
                }
            )
        else:
            out.print(
                f"{out_path}: models since round {found.since} are lost; training would continue "
                f"from round {found.model_of}. Plants consent with 'sluice plant consent'.",
                markup=False,
            )
        return
    consents = [read_bounded(path, "consent", largest=CONSENTS.largest) for path in consent or []]
    wanted = RECOVERIES.read(read_bounded(recovery, "recovery", largest=RECOVERIES.largest))
    round_ = complete_recovery(folder, wanted, consents, at=datetime.now(UTC))
    if json:
        emit({"model_of_round": round_})
    else:
        out.print(f"the next round starts from the model after round {round_}")


def _write_order(path: Path, raw: bytes) -> None:
    if path.exists():
        raise SettingError(f"{path} exists; choose another file")
    with atomically(path) as draft:
        draft.write_bytes(raw)


def _show_order(path: Path) -> None:
    out.print(
        f"{path}: approvers sign it with 'sluice rules approve'; then import it with 'sluice "
        "coordinator import --approval'",
        markup=False,
    )


@app.command(name="readmit", hidden=True)  # the old name, kept for one release
@app.command()
def reinstate(
    folder: Folder,
    plant: Annotated[str, typer.Argument(help="The suspended plant.")],
    json: Json = False,
) -> None:
    """End a plant's suspension and clear its absences; it takes part from the next round.

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
        Path | None,
        typer.Option(
            "--out", help="The file with the plant's new certificate.", click_type=writes_file()
        ),
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
    out_path: Annotated[
        Path, typer.Option("--out", help="The file to write.", click_type=writes_file())
    ],
    json: Json = False,
) -> None:
    """Verify the whole log and write a copy, with its signed head, that others can verify.

    Example: [bold]sluice coordinator export-log water --out log.jsonl[/bold]
    """
    from sluice.network.coordinator import CoordinatorFolder

    entries = copy_log(CoordinatorFolder(folder).log, out_path)
    if json:
        emit({"entries": entries, "log": str(out_path)})
    else:
        out.print(f"{out_path}: {entries} entries, verified", markup=False)
