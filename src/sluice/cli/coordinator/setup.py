"""`sluice coordinator`: create a federation, invite plants, run its rounds."""

import signal
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from sluice.attestation.systems import SystemName
from sluice.cli.attest import warn_if_unsafe
from sluice.cli.console import Json, Quiet, emit, out, warn, working
from sluice.cli.coordinator.template import export_statistics, provisional, template
from sluice.cli.options import PlantPath, open_record, range_of
from sluice.cli.paths import (
    PolicyPath,
    coordinators_folder,
    reads_file,
    reads_record,
    writes_file,
    writes_folder,
)
from sluice.errors import SettingError
from sluice.files import demand_room

if TYPE_CHECKING:
    from sluice.attestation.messages import HelperCard, StatisticLimits

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True, help="Run a federation between sites: the coordinator's commands."
)

app.command(name="template")(template)
app.command(name="provisional")(provisional)
app.command(name="export-statistics")(export_statistics)

ROUNDS, EPOCHS = 10, 2

Folder = Annotated[
    Path,
    typer.Argument(
        metavar="FOLDER",
        help="The coordinator's folder.",
        click_type=coordinators_folder(),
    ),
]
NewFolder = Annotated[
    Path,
    typer.Argument(metavar="FOLDER", help="The coordinator's folder.", click_type=writes_folder()),
]
NoProxy = Annotated[
    bool,
    typer.Option("--no-proxy", help="Do not start nginx; you run it with the files in proxy/."),
]
Wait = Annotated[float, typer.Option(min=0, help="Seconds to wait for plants to connect.")]
Shadow = Annotated[
    bool | None,
    typer.Option(
        "--shadow/--enforce",
        help="Log refusals without enforcing them, or enforce them. Default: unchanged.",
    ),
]


@app.command()
def init(
    folder: NewFolder,
    reference: Annotated[
        Path,
        typer.Option(
            help="The coordinator's own clean record; it sets scaling and threshold.",
            click_type=reads_record(),
        ),
    ],
    name: Annotated[str, typer.Option(help="The federation's name.")] = "federation",
    rows: Annotated[
        str | None, typer.Option(help="Use only rows A:B of --reference; B is excluded.")
    ] = None,
    every: Annotated[int, typer.Option(min=1, help="Keep every n-th row of --reference.")] = 1,
    plant_file: PlantPath = None,
    host: Annotated[
        str, typer.Option(help="Name or address at which plants reach this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65_535, help="The proxy's port.")] = 8_443,
    link_port: Annotated[
        int, typer.Option(min=1, max=65_535, help="Flower's port, on loopback.")
    ] = 8_000,
    filter_port: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=65_535,
            help="The filter's port, on loopback; default: the one after --link-port.",
        ),
    ] = None,
    policy: Annotated[
        str, typer.Option(help="paper, hardened or a policy file.", click_type=PolicyPath())
    ] = "hardened",
    system: Annotated[
        SystemName,
        typer.Option(help="Proof system; unsafe reveals every row and is for tests only."),
    ] = SystemName.FULL,
    largest: Annotated[int, typer.Option(min=1, help="Rows of the largest batch.")] = 8_192,
    detector: Annotated[
        str | None,
        typer.Option(
            help="moments (each plant shares its sums once), or autoencoder (trained in rounds). "
            "Default: moments; autoencoder if --rounds, --epochs or a --rule of updates is given."
        ),
    ] = None,
    rule: Annotated[
        str | None,
        typer.Option(
            help="Aggregation rule: with moments vote (default) or any-of-subsets; with "
            "autoencoder fedavg (default), median, krum and others."
        ),
    ] = None,
    malicious: Annotated[
        int,
        typer.Option(
            min=0,
            help="Members that a vote withstands; count owners and integrators, not keys.",
        ),
    ] = 1,
    rounds: Annotated[
        int | None,
        typer.Option(min=1, help="Number of rounds; default: 10, with moments always 1."),
    ] = None,
    epochs: Annotated[
        int | None, typer.Option(min=1, help="Local epochs per plant and round; default: 2.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Random seed.")] = 0,
    deadline: Annotated[
        float, typer.Option(min=1, help="Seconds that plants have for each phase.")
    ] = 900,
    suspend_after: Annotated[
        int,
        typer.Option(
            min=1, help="Suspend a plant that is absent in N of the last 4 N rounds.", metavar="N"
        ),
    ] = 5,
    history: Annotated[
        bool,
        typer.Option(
            "--history", help="Accept batches of any age; log and status pages show this."
        ),
    ] = False,
    batch_days: Annotated[
        int, typer.Option(min=1, help="A batch may end this many days before it is committed to.")
    ] = 30,
    attestation_days: Annotated[
        int, typer.Option(min=1, help="Days for which an attestation holds.")
    ] = 30,
    approver: Annotated[
        list[str] | None,
        typer.Option(help="An approver's public key or .pub file; may be repeated."),
    ] = None,
    approvals: Annotated[
        int, typer.Option(min=1, help="Approvals that rules, waivers and shadow orders need.")
    ] = 1,
    quorum: Annotated[
        float,
        typer.Option(help="Share of the asked plants after whose answers the grace begins."),
    ] = 0.5,
    grace: Annotated[
        float, typer.Option(help="Seconds that the other plants have after the quorum.")
    ] = 60,
    update_max: Annotated[
        float, typer.Option(help="Exclude an update with an entry larger than this.")
    ] = 10,
    members_min: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Plants that a round needs, at least, to be aggregated; default 3, with --groups "
            "as many as groups need.",
        ),
    ] = None,
    keep_rounds: Annotated[
        int, typer.Option(min=2, help="Rounds whose checkpoints and events are kept.")
    ] = 200,
    template_path: Annotated[
        Path | None,
        typer.Option(
            "--template",
            help="Template of the plants ('coordinator template'), which maps tags to points.",
            click_type=reads_file("a template"),
        ),
    ] = None,
    overlap_min: Annotated[
        float,
        typer.Option(
            help="Share of the points that a plant needs to join; only moments allow less than 1."
        ),
    ] = 1.0,
    bound: Annotated[
        bool,
        typer.Option(
            "--bound",
            help="Accept only statistics that a proof ties to the rows (with moments; needs system "
            "full).",
        ),
    ] = False,
    lend_thresholds: Annotated[
        bool,
        typer.Option(
            "--lend-thresholds",
            help="Members share the tail of their own scores too, so that a plant with few clean "
            "rows can borrow thresholds (with moments and vote).",
        ),
    ] = False,
    groups: Annotated[
        bool,
        typer.Option(
            "--groups",
            help="Plants share in groups: only the sum of a group is learnt (with --bound; needs "
            "--helper-card).",
        ),
    ] = False,
    helper: Annotated[
        str | None,
        typer.Option(metavar="URL", help="Where the helper is; it must be that of --helper-card."),
    ] = None,
    helper_card: Annotated[
        Path | None,
        typer.Option(
            help="The helper's card.json ('sluice helper init'); every plant trusts this helper.",
            click_type=reads_file("a helper's card"),
        ),
    ] = None,
    statistic_rows_min: Annotated[
        int | None,
        typer.Option(min=1, help="Rows that a shared statistic covers, at least; default 4096."),
    ] = None,
    statistic_span_min: Annotated[
        int | None,
        typer.Option(
            min=0, help="Seconds that a shared statistic covers, at least; default 86400."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Create a federation: keys, certificates, log, store and the proxy's configuration.

    Approvers make their keys with 'sluice rules key' and give you the public halves. Without
    --approver, a key is written beside the folder, for you to hand over.

    Example: [bold]sluice coordinator init water --reference line.parquet --rows 0:8640
    --approver approver.pub[/bold]
    """
    from sluice.admission import policy_text, read_policy
    from sluice.attestation.log import LogTerms
    from sluice.attestation.messages import SigningKey, members_needed
    from sluice.attestation.protocol import read_approver, save_approver
    from sluice.detector import Descent
    from sluice.network import MEMBERS_MIN, TrainingRows
    from sluice.network.coordinator import FederationPlan, found_federation
    from sluice.template import read_template

    detector = detector or _usual_detector(rule, trained=bool(rounds or epochs))
    limits = _limits(detector, statistic_rows_min, statistic_span_min)
    card = _helper_of(helper_card, helper, groups=groups)
    if members_min is None:
        members_min = members_needed(malicious) if groups else MEMBERS_MIN
    warn_if_unsafe(system)
    if folder.exists() and any(folder.iterdir()):
        raise SettingError(f"{folder} is not empty; name a new folder for the federation")
    handed_over = None if approver else folder.with_name(f"{folder.name}.approver.key")
    own = SigningKey.generate()  # used only without --approver
    approvers = [read_approver(each) for each in approver or []] or [own.public]
    if handed_over and handed_over.exists():
        raise SettingError(f"{handed_over} exists and may be in use; choose another folder's name")
    demand_room(folder)
    record = open_record(reference, plant=plant_file, every=every)
    start, stop = range_of(rows, record, option="--rows") if rows else (0, len(record))
    plan = FederationPlan(
        federation=name,
        host=host,
        port=port,
        link_port=link_port,
        filter_port=filter_port,
        reference=TrainingRows(
            record=str(reference.resolve()),
            start=start,
            stop=stop,
            every=every,
            plant=str(plant_file.resolve()) if plant_file else None,
        ),
        policy=policy_text(read_policy(policy)),
        system=system,
        rows_max=largest,
        detector=detector,
        rule=rule or ("vote" if detector == "moments" else "fedavg"),
        malicious=malicious,
        bound=bound,
        limits=limits,
        rounds=rounds or ROUNDS,
        seed=seed,
        descent=Descent(epochs=epochs or EPOCHS),
        batch_deadline_s=deadline,
        round_deadline_s=deadline,
        suspend_after=suspend_after,
        log=LogTerms(
            history=history,
            batch_days=batch_days,
            attestation_days=attestation_days,
            approvals=approvals,
            approvals_looser=max(2, approvals),
        ),
        approvers=tuple(approvers),
        quorum=quorum,
        grace_s=grace,
        update_max=update_max,
        members_min=members_min,
        keep_rounds=keep_rounds,
        template=read_template(template_path) if template_path else None,
        overlap_min=overlap_min,
        lends=lend_thresholds,
        helper=card,
    )
    if limits is not None and limits.lowered:
        warn(f"a statistic of few rows shows much of them: {limits.lowered}")
    site = found_federation(folder, plan, at=datetime.now(UTC))
    if handed_over:
        save_approver(own, handed_over)
    if json:
        emit(
            {
                "federation": name,
                "folder": str(folder),
                "coordinator": site.terms.coordinator,
                "approvers": approvers,
                "approver_key": str(handed_over) if handed_over else None,
                "history": history,
                "detector": detector,
                "rule": site.terms.rule,
                "bound": bound,
                "groups": groups,
                "helper": card and card.url,
                "statistic_rows_min": limits.rows_min if limits else None,
                "statistic_span_min": limits.span_min_s if limits else None,
            }
        )
        return
    out.print(f"{folder}: federation {name!r} is created", markup=False)
    shared = "each plant shares its sums once" if detector == "moments" else "trained in rounds"
    out.print(f"Detector: {detector} ({shared}), rule {site.terms.rule}", markup=False)
    if handed_over:
        out.print(
            f"{handed_over}: give this key to the person who approves rules, and delete it here",
            markup=False,
        )
    if history:
        out.print("It accepts batches of any age (--history).")
    if site.terms.statistic is not None:
        out.print(site.terms.statistic.sentence, markup=False)
    out.print("Invite plants with 'sluice coordinator invite'.")


def _usual_detector(rule: str | None, *, trained: bool) -> str:
    """Return what is shared if `--detector` is not given: sums, unless rounds are asked for."""
    from sluice.federation import VOTE_RULES

    updates = rule is not None and rule not in VOTE_RULES
    return "autoencoder" if trained or updates else "moments"


def _helper_of(card: Path | None, url: str | None, *, groups: bool) -> "HelperCard | None":
    """Return the helper of groups; None without groups."""
    from sluice.attestation.messages import CARDS
    from sluice.files import read_bounded

    if not groups:
        if card is not None or url is not None:
            raise SettingError("--helper and --helper-card are for --groups; omit them, or add it")
        return None
    if card is None:
        raise SettingError(
            "--groups needs a helper that another party runs; it makes its card with 'sluice "
            "helper init': give it with --helper-card"
        )
    read = CARDS.read(read_bounded(card, "helper's card", largest=CARDS.largest))
    if url is not None and url.rstrip("/") != read.url:
        raise SettingError(
            f"--helper is {url}, and the card {card} is of a helper at {read.url}; get the card of "
            "that helper"
        )
    return read


def _limits(
    detector: str, rows_min: int | None, span_min_s: int | None
) -> "StatisticLimits | None":
    """Return how much a shared statistic covers; None for a detector that shares none."""
    from sluice.attestation.messages import ROWS_MIN, SPAN_MIN_S, StatisticLimits

    if detector != "moments":
        if rows_min is not None or span_min_s is not None:
            raise SettingError(
                "--statistic-rows-min and --statistic-span-min are for --detector moments; omit "
                "them"
            )
        return None
    return StatisticLimits(
        rows_min=ROWS_MIN if rows_min is None else rows_min,
        span_min_s=SPAN_MIN_S if span_min_s is None else span_min_s,
    )


@app.command()
def invite(
    folder: Folder,
    plant: Annotated[str, typer.Argument(help="The plant's name.")],
    out_path: Annotated[
        Path, typer.Option("--out", help="The invitation's file.", click_type=writes_file())
    ],
    days: Annotated[float, typer.Option(min=0, help="Days until the invitation expires.")] = 14,
    json: Json = False,
) -> None:
    """Write an invitation for one plant, with its certificate; it expires and is valid once.

    Example: [bold]sluice coordinator invite water north --out north.invitation[/bold]
    """
    from sluice.network import write_document
    from sluice.network.coordinator import CoordinatorFolder

    if out_path.exists():
        raise SettingError(
            f"{out_path} exists and may be an invitation that a plant still needs; choose another "
            "file"
        )
    lasts = timedelta(days=days)
    invitation = CoordinatorFolder(folder).invite(plant, at=datetime.now(UTC), lasts=lasts)
    write_document(invitation, out_path, private=True)
    if json:
        emit({"plant": plant, "invitation": str(out_path), "expires": invitation.expires})
    else:
        out.print(f"{out_path}: send it to {plant} over a channel that you trust", markup=False)


@app.command(name="import")
def import_(
    folder: Folder,
    file: Annotated[
        Path,
        typer.Argument(
            help="A request.json, an exported attestation, a waiver, a shadow order or a new key.",
            click_type=reads_file("a file of the federation"),
        ),
    ],
    approval: Annotated[
        list[Path] | None,
        typer.Option(
            help="An approval of the file; may be repeated ('sluice rules approve').",
            click_type=reads_file("an approval"),
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Import a file: a plant's request to join, an exported attestation, or an approved order.

    Example: [bold]sluice coordinator import water north/request.json --approval
    approval.json[/bold]
    """
    from sluice.network.coordinator import take_in

    taken = take_in(folder, file, approvals=approval or [], at=datetime.now(UTC))
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
    """Run the federation: start Flower, the filter and the proxy, then train the agreed rounds.

    With the detector moments, plants whose attested batch is not in the model yet share their
    statistic, in one round. Run it again to take in plants that came later or have renewed.

    The command refuses to run while Flower's control interface can be reached from outside. A
    federation that was stopped or killed continues from its last state.

    With --shadow, plants that cannot prove their batch take part; log and status name the step at
    which they would be refused. A plant that breaks the protocol is still refused. Shadow needs an
    order that approvers have signed ('sluice coordinator shadow'); it ends when the order says so
    or with --enforce.

    Example: [bold]sluice coordinator run water --shadow[/bold]
    """
    from sluice.detector import save_detector
    from sluice.network.coordinator import (
        CoordinatorFolder,
        CoordinatorStore,
        coordinator_service,
        detector,
        hosted,
        round_in_words,
        wait_for_plants,
    )

    signal.signal(signal.SIGTERM, _stop)
    site = CoordinatorFolder(folder)
    demand_room(folder)
    terms, store = site.terms, CoordinatorStore(site.base)
    report = _Progress(quiet=quiet or json)
    report(f"starting Flower, the filter and the proxy at {terms.host}:{terms.port}")
    with site.alone(), hosted(site, store, proxy=not no_proxy) as wire:
        report("the control interface cannot be reached from outside; waiting for plants")
        connected = wait_for_plants(wire, store, seconds=wait)
        report(f"{len(connected)} plants are connected: {', '.join(sorted(connected)) or 'none'}")
        service = coordinator_service(
            site, store, wire, clock=lambda: datetime.now(UTC), shadow=shadow
        )
        done = service.run(
            rounds=terms.rounds,
            on_round=lambda _: report(
                round_in_words(service.transport.protocol.log.ledger, rounds=terms.rounds)
            ),
        )
    ledger = service.transport.protocol.log.ledger
    members = sorted(service.transport.sharing.in_model(done.parameters)) or list(
        ledger.rounds.members
    )
    with working("setting the threshold", quiet=quiet or json):
        save_detector(detector(site, done), folder / "model.safetensors")
    if json:
        emit(
            {
                "rounds": done.round,
                "rounds_counted": terms.rounds,
                "members": members,
                "groups": {each.name: list(each.members) for each in ledger.groups.in_force},
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
        done_so_far = (
            f"a vote of {len(members)} plants" if terms.statistic else f"{terms.rounds} rounds done"
        )
        if terms.grouped:
            voters = len(ledger.groups.in_force)
            done_so_far = f"a vote of {voters} groups of {len(members)} plants"
        out.print(f"{folder}: {done_so_far}, model.safetensors", markup=False)
    store.close()


@app.command()
def resume(
    folder: Folder,
    reinstate: Annotated[
        list[str] | None, typer.Option(help="End this plant's suspension; may be repeated.")
    ] = None,
    shadow: Shadow = None,
    no_proxy: NoProxy = False,
    wait: Wait = 60,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Continue a federation that was stopped; repair its log first if its last line is incomplete.

    The incomplete line is moved to a file of its own.

    Example: [bold]sluice coordinator resume water --reinstate north[/bold]
    """
    from sluice.attestation.log import mend
    from sluice.network.coordinator import CoordinatorFolder, CoordinatorStore

    site = CoordinatorFolder(folder)
    torn = mend(site.log, site.signing_key())
    if torn is not None:
        typer.echo(
            f"sluice: the last line of the log was incomplete; it was moved to {torn}", err=True
        )
    store = CoordinatorStore(site.base)
    try:
        for plant in reinstate or []:
            store.reinstate(plant)
    finally:
        store.close()
    run(folder, shadow=shadow, no_proxy=no_proxy, wait=wait, json=json, quiet=quiet)


class _Progress:
    """Prints progress on stderr, unless quiet."""

    def __init__(self, *, quiet: bool) -> None:
        self._quiet = quiet

    def __call__(self, message: str) -> None:
        if not self._quiet:
            typer.echo(f"sluice: {message}", err=True)


def _stop(*_: object) -> NoReturn:
    sys.exit(0)
