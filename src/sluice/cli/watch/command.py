"""`sluice watch`: judge a plant's rows as they come, and raise alarms."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sluice.cli.console import Json, Quiet, working
from sluice.cli.options import (
    Every,
    FillWith,
    FormatName,
    PlantPath,
    SelfContained,
    SkipSeconds,
    open_record,
    refuse_overwriting,
    refuse_without_page,
)
from sluice.cli.paths import WatchedPath, reads_file, writes_file
from sluice.cli.watch.request import WatchRequest
from sluice.errors import SettingError

if TYPE_CHECKING:
    from sluice.watch import Subject
    from sluice.watch.sinks import Sink

__all__ = ["watch"]

DETECTION = "How alarms are raised"
LIVE = "Live sources"


def watch(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A file or folder that grows, - for stdin, mqtt://HOST:PORT/TOPIC, or "
            "opc.tcp://HOST:PORT; with --replay, a record.",
            click_type=WatchedPath(),
        ),
    ],
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            help="A trained detector (.safetensors).",
            click_type=reads_file("a detector's file"),
        ),
    ] = None,
    rules_path: Annotated[
        Path | None,
        typer.Option(
            "--rules", help="The plant's rules file.", click_type=reads_file("a rules file")
        ),
    ] = None,
    replay: Annotated[
        bool, typer.Option("--replay", help="Judge a whole record, as history, and stop.")
    ] = False,
    pace: Annotated[
        float | None,
        typer.Option(min=0.1, help="Rows a second with --replay; default: as fast as possible."),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(help="Write an HTML timeline of the alarms.", click_type=writes_file()),
    ] = None,
    self_contained: SelfContained = False,
    page: Annotated[
        str | None,
        typer.Option(help="Address of the timeline in alarms; default: the path of --html."),
    ] = None,
    sink: Annotated[
        list[str] | None,
        typer.Option(
            help="Where events go: jsonl:FILE, syslog+udp://HOST:PORT (also +tcp, +unix), "
            "https://HOST/PATH, mqtt://HOST:PORT/TOPIC; repeatable.",
        ),
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(
            help="SQLite file that survives restarts: no alarm is lost or raised twice.",
            click_type=writes_file(),
        ),
    ] = None,
    health: Annotated[
        Path | None,
        typer.Option(help="Write the watch's own health as JSON.", click_type=writes_file()),
    ] = None,
    heartbeat: Annotated[
        float, typer.Option(min=0.1, help="Seconds between health reports.")
    ] = 60.0,
    raise_rows: Annotated[
        int,
        typer.Option(
            min=1, help="Rows that must break a rule, of 2n-1 in a row.", rich_help_panel=DETECTION
        ),
    ] = 3,
    raise_windows: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Windows that must score above the threshold, of 2n-1 in a row; default: 1 if the "
            "threshold is set by false alarms a week, else 3.",
            rich_help_panel=DETECTION,
        ),
    ] = None,
    clear_rows: Annotated[
        int,
        typer.Option(
            min=1, help="Rows without a sign that end an alarm.", rich_help_panel=DETECTION
        ),
    ] = 10,
    most_per_hour: Annotated[
        int,
        typer.Option(
            min=1, help="Alarms sent in an hour; others are recorded.", rich_help_panel=DETECTION
        ),
    ] = 12,
    from_end: Annotated[
        bool,
        typer.Option(
            "--from-end", help="Leave out rows that are already in the files.", rich_help_panel=LIVE
        ),
    ] = False,
    stop_when_idle: Annotated[
        float | None,
        typer.Option(
            min=0.1, help="Stop after so many seconds without a row.", rich_help_panel=LIVE
        ),
    ] = None,
    nodes: Annotated[
        Path | None,
        typer.Option(
            help="TOML file with the OPC UA node of each tag; default: found by name.",
            click_type=reads_file("a list of nodes"),
            rich_help_panel=LIVE,
        ),
    ] = None,
    max_age: Annotated[
        float | None,
        typer.Option(
            min=0.001,
            help="Seconds after which a reading of one tag is missing (MQTT, OPC UA).",
            rich_help_panel=LIVE,
        ),
    ] = None,
    plant: PlantPath = None,
    format_: FormatName = None,
    fill: FillWith = None,
    skip: SkipSeconds = 0.0,
    every: Every = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Watch a plant: judge each row by rules and detector, and raise alarms.

    An alarm has an id, its first and last row, a severity, the rules and tags to blame, and a
    sentence that says what to check. With --json, each alarm is one line on stdout. With --replay,
    it is printed when it has ended, and the last line is a summary.

    Example: [bold]sluice watch export.csv --model model.safetensors --rules rules.json
    --state watch.db --sink jsonl:alarms.jsonl[/bold]
    """
    from sluice.watch import WatchSettings

    request = WatchRequest(
        source=source, page=page or (str(html) if html else ""), html=html, state=state,
        health=health, heartbeat_s=heartbeat, self_contained=self_contained, plant=plant,
        format_name=format_, nodes=nodes, max_age_s=max_age, from_end=from_end,
        idle_s=stop_when_idle, json=json, quiet=quiet or json, pace=pace,
    )  # fmt: skip
    _refuse(request, replay=replay, thinned=bool(skip) or every != 1 or fill is not None)
    for written in filter(None, (html, state, health)):
        refuse_overwriting(written, model, rules_path, plant)
    settings = WatchSettings(
        raise_rows=raise_rows,
        raise_windows=raise_windows,
        clear_rows=clear_rows,
        most_per_hour=most_per_hour,
    )
    subject = _subject(rules_path, model, plant)
    if not request.quiet:
        _tell_borrowed(subject)
    with _one_core():
        if replay:
            from sluice.cli.watch.replay import replayed

            with working(f"reading {source}", quiet=request.quiet):
                record = open_record(
                    Path(source), plant=plant, format_name=format_, fill=fill, skip_s=skip,
                    every=every,
                )  # fmt: skip
            replayed(record, subject, settings, request, _sinks(sink))
        else:
            from sluice.cli.watch.live import watched

            watched(subject, settings, request, _sinks(sink))


def _refuse(request: WatchRequest, *, replay: bool, thinned: bool) -> None:
    """Refuse options that contradict each other."""
    refuse_without_page(request.html, self_contained=request.self_contained, option="--html PAGE")
    address = request.source == "-" or "://" in request.source
    if replay and address:
        raise SettingError(
            f"--replay judges a record, and {request.source!r} is none; name a file or a folder"
        )
    if replay and request.state is not None:
        raise SettingError(
            "--replay begins from the start each time and keeps no state; drop --state"
        )
    if not replay and request.pace is not None:
        raise SettingError("--pace is about history; add --replay, or drop it")
    if not replay and thinned:
        raise SettingError(
            "--fill, --skip-seconds and --every are about history; add --replay, or train the "
            "model and mine the rules at the stride of the source"
        )
    if request.nodes is not None and not request.source.startswith("opc.tcp://"):
        raise SettingError("--nodes is about OPC UA; drop it, or give opc.tcp://HOST:PORT")


def _subject(rules_path: Path | None, model: Path | None, plant: Path | None) -> "Subject":
    from sluice.detector import load_detector
    from sluice.invariants import load_rules
    from sluice.telemetry import read_plant_file
    from sluice.watch import subject_of

    rules = load_rules(rules_path, provisional=True) if rules_path else None
    points = None
    if rules is not None and rules.provisional and plant is not None:
        declared = read_plant_file(plant)
        if declared.points:
            points = {
                each.point.name if each.point else tag for tag, each in declared.channels.items()
            }
    return subject_of(rules, load_detector(model) if model else None, points=points)


def _tell_borrowed(subject: "Subject") -> None:
    """Tell on stderr what is borrowed, and which borrowed limits this plant cannot use."""
    if subject.borrowed:
        typer.echo(
            f"sluice: borrowed from other plants: {', '.join(subject.borrowed)}; replace them when "
            "this plant has more clean rows",
            err=True,
        )
    if subject.lacking:
        typer.echo(
            f"sluice: this plant has no {', '.join(subject.lacking)}: the provisional limits of "
            "these points are left out",
            err=True,
        )


def _sinks(addresses: list[str] | None) -> "tuple[Sink, ...]":
    from sluice.watch.sinks import opened_sink

    repeated = {each for each in addresses or () if (addresses or []).count(each) > 1}
    if repeated:
        raise SettingError(f"--sink {min(repeated)!r} is given twice; give it once")
    return tuple(opened_sink(address) for address in addresses or ())


@contextmanager
def _one_core() -> Iterator[None]:
    """Use one thread for products of small matrices; more threads only wait for each other."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(limits=1):
        yield
