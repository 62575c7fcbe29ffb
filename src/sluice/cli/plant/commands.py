"""`sluice plant`: join a federation, check the plant's data, take part, show the plant's state."""

import logging
import signal
import sys
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from sluice.cli.attest import warn_if_unsafe
from sluice.cli.console import (
    Json,
    Quiet,
    emit,
    objection_payloads,
    out,
    reason_payload,
    show_objections,
    working,
)
from sluice.cli.options import PlantPath, open_record, range_of
from sluice.cli.paths import (
    reads_file,
    reads_folder,
    reads_record,
    writes_file,
    writes_folder,
)
from sluice.cli.plant.borrowing import borrow
from sluice.cli.plant.disclosure import (
    disclosure_of,
    lending_of,
    show_disclosure,
    show_lending,
)
from sluice.cli.plant.gain import clean_rows, gain_of, show_gain, show_simulated
from sluice.cli.plant.mapping import map_
from sluice.cli.plant.voting import thresholds_in_words, vote_payload
from sluice.errors import SettingError
from sluice.files import demand_room, read_bounded, read_text
from sluice.invariants import LARGEST_RULES, load_rules
from sluice.plugins import load_one

if TYPE_CHECKING:
    from sluice.attestation.log import StatisticTerms
    from sluice.detector import Detector

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True, help="Take part in a federation between sites: a plant's commands."
)

app.command(name="map")(map_)
app.command(name="borrow")(borrow)

Folder = Annotated[
    Path,
    typer.Argument(
        metavar="FOLDER", help="The plant's folder.", click_type=reads_folder("a plant's folder")
    ),
]
RevealRows = Annotated[
    bool,
    typer.Option(
        "--reveal-rows", help="Consent to system unsafe, which shows every row to everyone."
    ),
]


@app.command()
def join(
    invitation: Annotated[
        Path,
        typer.Argument(
            help="The coordinator's invitation.", click_type=reads_file("an invitation")
        ),
    ],
    record: Annotated[
        Path,
        typer.Option(
            help="The plant's record; it never leaves the plant.", click_type=reads_record()
        ),
    ],
    rules: Annotated[
        Path,
        typer.Option(help="The plant's own rules file.", click_type=reads_file("a rules file")),
    ],
    out_path: Annotated[
        Path,
        typer.Option("--out", help="The plant's folder to create.", click_type=writes_folder()),
    ],
    rows: Annotated[str | None, typer.Option(help="Train only on rows A:B; B is excluded.")] = None,
    every: Annotated[int, typer.Option(min=1, help="Keep every n-th row.")] = 1,
    plant_file: PlantPath = None,
    reveal_rows: RevealRows = False,
    json: Json = False,
) -> None:
    """Accept an invitation: make keys, derive the circuit, write request.json.

    Example: [bold]sluice plant join north.invitation --record n.parquet --rules rules.json
    --out north[/bold]
    """
    from sluice.admission import demand_measurable
    from sluice.network import Invitation, TrainingRows, read_document
    from sluice.network.plant import PlantFolder

    document = read_document(Invitation, invitation, private=True)
    terms = document.terms
    warn_if_unsafe(terms.system)
    loaded = open_record(record, plant=plant_file, every=every)
    terms.demand_points(loaded.channels, plant=document.plant)
    start, stop = range_of(rows, loaded, option="--rows") if rows else (0, len(loaded))
    share = TrainingRows(
        record=str(record.resolve()),
        start=start,
        stop=stop,
        every=every,
        plant=str(plant_file.resolve()) if plant_file else None,
    )
    accepted = load_rules(rules)
    demand_measurable(loaded, accepted)
    plant = PlantFolder.create(
        out_path,
        document,
        accepted,
        read_text(rules, "rules file", largest=LARGEST_RULES),
        share,
        at=datetime.now(UTC),
        reveal_rows=reveal_rows,
    )
    request = plant.folder / "request.json"
    if json:
        emit({"plant": document.plant, "federation": terms.federation, "request": str(request)})
    else:
        out.print(f"{request}: send it to the coordinator; it contains a secret", markup=False)
        if terms.statistic is not None:
            out.print(terms.statistic.sentence, markup=False)


@app.command()
def check(
    folder: Folder,
    clean: Annotated[
        str | None,
        typer.Option(
            help="Clean rows A:B to compare models on; default: the rows after the training rows."
        ),
    ] = None,
    attacks: Annotated[
        Path | None,
        typer.Option(
            help="A record of this plant with labelled attacks.", click_type=reads_record()
        ),
    ] = None,
    approval: Annotated[
        list[Path] | None,
        typer.Option(
            help="An approver's approval of the rules (repeatable), to check it too.",
            click_type=reads_file("an approval"),
        ),
    ] = None,
    sign_off: Annotated[
        str | None,
        typer.Option(
            "--sign-off",
            help="Your name: you agree to share the statistic of these rows; the log keeps it.",
        ),
    ] = None,
    simulate: Annotated[
        bool,
        typer.Option(
            "--simulate", help="Also show the gain of a simulated consortium (takes a minute)."
        ),
    ] = False,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Check what the coordinator will check: the rules, their approvals, the rows and their time.

    Also shows what the plant gains over training alone: it compares the last model received from
    the federation with a model trained on this plant's rows only, on rows that the plant does not
    train on. Nothing is sent.

    If plants share statistics, it shows what the statistic of these rows tells. The plant sends the
    statistic only after an operator has signed it off with --sign-off NAME.

    Exit 0 if the plant would be admitted, 3 if not.

    Example: [bold]sluice plant check north --attacks north-attacks.csv[/bold]
    """
    from sluice.admission import judge
    from sluice.attestation.messages import APPROVALS
    from sluice.attestation.protocol import explanation
    from sluice.network.plant import PlantFolder, preview_import

    plant = PlantFolder(folder)
    keys, batch = plant.keys, plant.share.read()
    approvals = [
        read_bounded(path, "approval", largest=APPROVALS.largest) for path in approval or ()
    ]
    verdict = judge(batch, keys.circuit.rules, keys.circuit.policy)
    proven = verdict.admitted or plant.invitation.terms.binds is None
    disclosure = disclosure_of(plant, batch, sign_off=sign_off) if proven else None
    lending = lending_of(plant, batch) if verdict.admitted else None
    preview = preview_import(plant, batch, approvals=approvals, at=datetime.now(UTC))
    rules = folder / "keys" / "rules.json"
    windows = len(plant.invitation.terms.framing_on(batch.names).windows(batch))
    gain = gain_of(plant, clean=clean, attacks=attacks, quiet=quiet or json)
    simulated = None
    if simulate:
        with working("simulating a consortium and its plants alone", quiet=quiet or json):
            simulated = load_one("sluice.simulations", "gain")()
    if json:
        emit(
            {
                "admitted": verdict.admitted and preview.passes,
                "rows": len(batch),
                "windows": windows,
                "reasons": [reason_payload(reason) for reason in verdict.reasons],
                "registered": preview.registered,
                "objections": objection_payloads(preview.objections, rules=rules),
                "approvals_missing": preview.approvals_missing,
                "refused": preview.refused or None,
                "statistic": disclosure and asdict(disclosure),
                "lending": lending and asdict(lending),
                "gain": asdict(gain),
                "simulated": simulated
                and {"local-only": simulated.alone, "clean": simulated.federation},
            }
        )
    else:
        if not verdict.admitted:
            out.print(f"refused: {explanation(verdict)}", markup=False)
        elif preview.refused:
            out.print(f"refused: {preview.refused}", markup=False)
        else:
            out.print(f"admitted: {len(batch):,} rows, {windows:,} windows to train on")
        if preview.objections:
            found = len(preview.objections)
            out.print(f"the policy of the federation refuses the rules: {found} objections")
            show_objections(preview.objections, rules=rules)
        if preview.approvals_missing:
            out.print(
                f"to join, the rules need {preview.approvals_missing} more approvals of the "
                "federation's approvers ('sluice rules approve')"
            )
        if disclosure is not None:
            show_disclosure(disclosure)
        show_lending(lending)
        show_gain(gain)
        if simulated is not None:
            show_simulated(simulated)
    if not (verdict.admitted and preview.passes):
        raise typer.Exit(3)


@app.command()
def run(
    folder: Folder,
    for_: Annotated[
        float | None, typer.Option("--for", min=0, help="Stop after this many seconds.")
    ] = None,
    reveal_rows: RevealRows = False,
    quiet: Quiet = False,
) -> None:
    """Take part in the federation: prove the batch once, then train each round, until stopped.

    The command prints a line for each round: trained, sent, and whether the update was aggregated
    or the plant was left out, and why.

    The plant opens connections to the coordinator; nothing connects to the plant. No code that is
    received over the network is executed.

    Example: [bold]sluice plant run north[/bold]
    """
    from sluice.network.plant import PlantFolder, node_of, take_part

    signal.signal(signal.SIGTERM, _stop)
    logging.basicConfig(format="sluice: %(message)s", level=logging.WARNING)
    if not quiet:
        logging.getLogger("sluice.plant").setLevel(logging.INFO)
    plant = PlantFolder(folder)
    demand_room(folder)
    agent, node = plant.agent(reveal_rows=reveal_rows), node_of(plant)
    if not quiet:
        typer.echo(f"sluice: {agent.name} connects to {node.proxy}", err=True)
    take_part(node, agent, seconds=for_, over=lambda: agent.over)
    if agent.over and not quiet:
        typer.echo(
            f"sluice: the federation is over; 'sluice plant model {folder} --out "
            "model.safetensors' writes its detector",
            err=True,
        )


@app.command()
def model(
    folder: Folder,
    out_path: Annotated[
        Path,
        typer.Option(
            "--out", help="The detector to write (.safetensors).", click_type=writes_file()
        ),
    ],
    clean: Annotated[
        str | None,
        typer.Option(
            help="Clean rows A:B that set the threshold; default: the rows after the training rows."
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            help="A record of clean rows of this plant to use in place of its own.",
            click_type=reads_record(),
        ),
    ] = None,
    false_alarms: Annotated[
        float,
        typer.Option(
            "--false-alarms-per-week",
            help="False alarms a week that a vote and the plant's rules may raise together.",
        ),
    ] = 1.0,
    borrow_: Annotated[
        bool,
        typer.Option(
            "--borrow",
            help="Take the thresholds of the voters from the tails that members lend, while the "
            "plant has too few clean rows.",
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Write the federation's last model as a detector, with a threshold from this plant's rows.

    The threshold comes from clean rows that the plant does not train on. 'sluice score' uses the
    file. While the federation runs, the model is the one that the last round started from.

    With the detector moments, the file holds a vote of all members beside this plant's own rules.
    A plant with a few days of clean rows can --borrow thresholds. 'sluice model recalibrate'
    replaces them when more clean rows are there, and 'sluice model restore' goes back.

    Example: [bold]sluice plant model north --out model.safetensors[/bold]
    """
    from sluice.detector import VotedModel, save_detector
    from sluice.network.plant import (
        PlantFolder,
        last_model,
        last_statistics,
        shared_detector,
        shared_vote,
    )

    plant = PlantFolder(folder)
    terms, share = plant.invitation.terms, plant.share
    summed = terms.statistic is not None
    if borrow_ and not terms.lends:
        raise SettingError(
            f"members of {terms.federation!r} lend no thresholds (its first log entry does not say "
            "so); give more clean rows, or found a federation with --lend-thresholds"
        )
    shared = last_statistics(plant.folder, terms) if summed else None
    received = None if summed else last_model(plant.folder, count=terms.weights)
    if received is None and shared is None:
        when = "when all statistics are collected" if summed else "with the second round"
        raise SettingError(
            f"{folder} has received no model yet; it comes {when} ('sluice plant run')"
        )
    if record is not None:
        loaded = share.like(record)
        own = loaded.rows(*range_of(clean, loaded, option="--clean")) if clean else loaded
    elif (later := clean_rows(share, clean)) is not None:
        own = later
    else:
        raise SettingError(
            "the plant trains on the last rows of its record, so none are left to set the "
            "threshold; give --clean A:B, other rows of the record, or --record, another record"
        )
    if shared is not None:
        rules = plant.keys.circuit.rules
        detector = shared_vote(
            terms,
            shared,
            own,
            rules=rules,
            false_alarms_per_week=false_alarms,
            borrowed=borrow_,
            groups=plant.ledger().groups.in_force if terms.grouped else (),
        )
    else:
        assert received is not None
        detector = shared_detector(terms, received, plant.ledger(), own)
    save_detector(detector, out_path)
    training = detector.training
    if json:
        emit(
            {
                "model": str(out_path),
                "rounds": training.rounds,
                "members": training.clients,
                "hash": training.model,
                "threshold": detector.threshold.score,
                "clean_rows": len(own),
                **vote_payload(detector),
            }
        )
    elif isinstance(detector.model, VotedModel):
        voted = detector.model
        rules_too = ", and so is one of this plant's rules" if detector.fusion else ""
        replace_ = _until_own(detector) if borrow_ else ""
        out.print(
            f"{out_path}: {voted.needed} of {len(voted.members)} "
            f"{'groups' if terms.grouped else 'plants'}' votes are an alarm"
            f"{rules_too} (hash {str(training.model)[:12]}); "
            f"{thresholds_in_words(detector, len(own))}{replace_}",
            markup=False,
        )
    else:
        out.print(
            f"{out_path}: the model after {training.rounds} rounds with {training.clients} plants "
            f"in the last one (hash {str(training.model)[:12]}); the threshold is "
            f"{detector.threshold.score:.4g}, from {len(own):,} clean rows of this plant",
            markup=False,
        )


def _until_own(detector: "Detector") -> str:
    """Return what a vote with borrowed thresholds lacks, and how the thresholds are replaced."""
    without = (
        "" if detector.fusion else "; this plant's rules are left out, with too few clean rows"
    )
    return f"{without}. Replace them with 'sluice model recalibrate' when there are more clean rows"


@app.command()
def renew(
    folder: Folder,
    rows: Annotated[str, typer.Option(help="The new rows A:B to attest and train on.")],
    record: Annotated[
        Path | None,
        typer.Option(
            help="The record of these rows; default: the current one.", click_type=reads_record()
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Select new rows to train on; a running plant attests them after its next update.

    The new rows must not overlap in time with any batch committed before. The plant keeps its
    current batch until the coordinator accepts the new one.

    Example: [bold]sluice plant renew north --rows 9240:9840[/bold]
    """
    from sluice.network.plant import PlantFolder

    plant = PlantFolder(folder)
    last = plant.share
    path = Path(last.record) if record is None else record.resolve()
    start, stop = range_of(rows, last.like(path), option="--rows")
    plant.renew(replace(last, record=str(path), start=start, stop=stop))
    if json:
        emit({"plant": plant.invitation.plant, "rows": [start, stop]})
    else:
        out.print(
            f"rows {start}:{stop} of {path} will be attested after the next update", markup=False
        )


@app.command()
def rotate(
    folder: Folder,
    file: Annotated[
        Path,
        typer.Argument(
            help="The coordinator's file with the certificate.",
            click_type=reads_file("a certificate's file"),
        ),
    ],
    json: Json = False,
) -> None:
    """Install a new certificate that the coordinator has sent; start the plant again after it.

    The file also says which authorities the plant trusts from now on.

    Example: [bold]sluice plant rotate north north.certificate[/bold]
    """
    from sluice.network import PlantCertificate, read_document
    from sluice.network.plant import PlantFolder

    plant = PlantFolder(folder)
    plant.install(read_document(PlantCertificate, file, private=True))
    ends = plant.certificate_ends
    if json:
        emit({"plant": plant.invitation.plant, "certificate_ends": ends.isoformat()})
    else:
        out.print(
            f"the certificate is installed and ends on {ends:%Y-%m-%d}; start 'sluice plant run' "
            f"again, and delete {file}",
            markup=False,
        )


@app.command()
def status(folder: Folder, json: Json = False) -> None:
    """Show how many batches this plant attested, rounds it pledged and log entries it saw.

    Example: [bold]sluice plant status north[/bold]
    """
    from sluice.network.plant import PlantFolder

    plant = PlantFolder(folder)
    invitation, ledger = plant.invitation, plant.ledger()
    proofs = sorted((folder / "batches").glob("*/proof.json"))
    state = {
        "plant": invitation.plant,
        "federation": invitation.terms.federation,
        "batches": len(proofs),
        "rounds": plant.rounds_pledged(),
        "log_entries_seen": ledger.size,
        "attested_until": plant.attested_until(),
        "history": ledger.size > 0 and ledger.terms.history,
        **_statistic_payload(invitation.terms.statistic),
        **({"groups": list(ledger.groups.sentences)} if invitation.terms.grouped else {}),
        "certificate_ends": f"{plant.certificate_ends:%Y-%m-%d}",
    }
    if json:
        emit(state)
    else:
        for name, value in state.items():
            out.print(f"{name.replace('_', ' ')}: {value}", markup=False)


def _statistic_payload(statistic: "StatisticTerms | None") -> dict[str, object]:
    """Return how statistics are shared; nothing for a federation that trains in rounds."""
    return {} if statistic is None else {"statistic": statistic.sentence}


@app.command()
def export(
    folder: Folder,
    out_path: Annotated[
        Path, typer.Option("--out", help="The file to write.", click_type=writes_file())
    ],
    reveal_rows: RevealRows = False,
    json: Json = False,
) -> None:
    """Export the batch's attestation as a file, to carry it through a one-way gateway.

    Example: [bold]sluice plant export north --out north.attestation[/bold]
    """
    from sluice.network import ExportedAttestation, write_document
    from sluice.network.plant import PlantFolder

    agent = PlantFolder(folder).agent(reveal_rows=reveal_rows)
    batch = agent.attested_documents()
    document = ExportedAttestation(
        plant=agent.name,
        commit=batch.commit.decode(),
        proof=batch.proof.decode(),
        statistic=batch.statistic,
    )
    write_document(document, out_path)
    if json:
        emit({"plant": agent.name, "attestation": str(out_path)})
    else:
        out.print(
            f"{out_path}: import it at the coordinator with 'sluice coordinator import'",
            markup=False,
        )


@app.command(name="export-log")
def export_log(
    folder: Folder,
    out_path: Annotated[
        Path, typer.Option("--out", help="The file to write.", click_type=writes_file())
    ],
    json: Json = False,
) -> None:
    """Write this plant's verified copy of the log, to compare it with another plant's copy.

    Example: [bold]sluice plant export-log north --out north-log.jsonl[/bold]
    """
    from sluice.attestation.log import copy_log
    from sluice.network.plant import PlantFolder

    entries = copy_log(PlantFolder(folder).log, out_path)
    if json:
        emit({"entries": entries, "log": str(out_path)})
    else:
        out.print(
            f"{out_path}: {entries} entries; compare it with 'sluice audit-log compare'",
            markup=False,
        )


@app.command()
def consent(
    folder: Folder,
    recovery: Annotated[
        Path,
        typer.Argument(help="The coordinator's recovery.", click_type=reads_file("a recovery")),
    ],
    out_path: Annotated[
        Path, typer.Option("--out", help="The consent to write.", click_type=writes_file())
    ],
    json: Json = False,
) -> None:
    """Consent that a coordinator restored from a backup continues from an earlier model.

    The command checks the recovery against this plant's copy of the log and shows what is lost.

    Example: [bold]sluice plant consent north recovery.json --out north.consent[/bold]
    """
    from sluice.attestation.messages import CONSENTS, RECOVERIES
    from sluice.files import atomically, read_bounded
    from sluice.network.plant import PlantFolder

    wanted = RECOVERIES.read(read_bounded(recovery, "recovery", largest=RECOVERIES.largest))
    signed = PlantFolder(folder).consent(wanted)
    with atomically(out_path) as draft:
        draft.write_bytes(CONSENTS.write(signed))
    if json:
        emit({"consent": str(out_path), "lost_since_round": wanted.since})
    else:
        out.print(
            f"{out_path}: rounds from {wanted.since} on are given up; training continues from the "
            f"model after round {wanted.model_of}. Send it to the coordinator.",
            markup=False,
        )


@app.command(name="new-key")
def new_key(
    folder: Folder,
    out_path: Annotated[
        Path,
        typer.Option("--out", help="The signed replacement to write.", click_type=writes_file()),
    ],
    json: Json = False,
) -> None:
    """Make a new signing key; the plant uses it once the coordinator has imported the file.

    Example: [bold]sluice plant new-key north --out north.rotation[/bold]
    """
    from sluice.attestation.messages import ROTATIONS
    from sluice.files import atomically
    from sluice.network.plant import PlantFolder

    signed = PlantFolder(folder).rotate_key()
    with atomically(out_path) as draft:
        draft.write_bytes(ROTATIONS.write(signed))
    if json:
        emit({"rotation": str(out_path), "key": signed.rotation.new})
    else:
        out.print(
            f"{out_path}: import it at the coordinator with 'sluice coordinator import'",
            markup=False,
        )


def _stop(*_: object) -> NoReturn:
    sys.exit(0)
