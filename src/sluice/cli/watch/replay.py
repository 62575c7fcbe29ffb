"""A watch on history: a live view on a terminal, alarms as lines, and a summary."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from sluice.cli.console import emit, out, table, warn
from sluice.cli.watch.request import WatchRequest
from sluice.errors import SettingError
from sluice.telemetry import Record
from sluice.watch import (
    Alarm,
    EventKind,
    Page,
    ShownAlarm,
    Store,
    Subject,
    Timeline,
    Watch,
    WatchParts,
    WatchSettings,
    alarm_payload,
    attacks_found,
    clock,
    store_identity,
    write_timeline,
)
from sluice.watch.sinks import Delivery, Sink
from sluice.watch.sources import HistorySource, SourceState

__all__ = ["replayed"]

SHOWN = 8  # alarms in the live view
DRAIN_S = 5.0
STYLES = {"high": "bold red", "medium": "yellow", "low": "dim"}


@dataclass(slots=True, kw_only=True)
class _Outcome:
    """What a replay has found so far."""

    alarms: dict[str, Alarm] = field(default_factory=dict)  # by id, as each is now
    ended: list[Alarm] = field(default_factory=list)
    slowest_ms: float = 0.0
    seconds: float = 0.0


def replayed(
    record: Record,
    subject: Subject,
    settings: WatchSettings,
    request: WatchRequest,
    sinks: tuple[Sink, ...],
) -> None:
    """Judge a record as if it came live, and print what was found."""
    if abs(record.stride_s - subject.stride_s) > subject.stride_s * 1e-6:
        raise SettingError(
            f"record {record.name!r} has a row every {record.stride_s:g} s; the rules or the model "
            f"read one every {subject.stride_s:g} s: thin the record (--every), or train on its "
            "stride"
        )
    page = Page(address=request.page)
    store = Store(None, identity=store_identity(subject, settings))
    delivery = Delivery(store, sinks)
    parts = WatchParts(
        subject=subject, settings=settings, store=store, delivery=delivery, page=page
    )
    watching = Watch(parts)
    source = HistorySource(record, subject, pace=request.pace)
    delivery.start()
    outcome = _Outcome()
    try:
        with _view(record, request) as show:
            _run(watching, source, outcome, request, page, show)
    finally:
        left = delivery.stop(within_s=DRAIN_S)
        store.close()
        if left:
            warn(f"{left} events did not reach a sink")
    shown = tuple(ShownAlarm.of(alarm) for alarm in outcome.alarms.values())
    if request.html is not None:
        write_timeline(
            Timeline(plant=record.name, alarms=shown, counts=watching.intake.counts, record=record),
            request.html,
            self_contained=request.self_contained,
        )
    if request.json:
        emit({"summary": _summary(watching, outcome, record, shown)})
    else:
        _print_summary(watching, outcome, record, shown, request)


def _run(
    watching: Watch, source: HistorySource, outcome: _Outcome, request: WatchRequest, page: Page,
    show: "_Show",
) -> None:  # fmt: skip
    began = time.perf_counter()
    while True:
        over = source.state is SourceState.OVER
        events = watching.finish() if over else watching.step(source, wait_s=0.25)
        for event in events:
            outcome.alarms[event.alarm.id] = event.alarm
            if event.kind is EventKind.ENDED:
                outcome.ended.append(event.alarm)
                if request.json:
                    emit(alarm_payload(event.alarm, page))
                elif not show.live:
                    _print_alarm(event.alarm)
        show.update(watching, outcome, source)
        if over:
            break
    outcome.seconds = time.perf_counter() - began
    outcome.slowest_ms = watching.pulse.judged_ms


def _summary(
    watching: Watch, outcome: _Outcome, record: Record, shown: tuple[ShownAlarm, ...]
) -> dict[str, object]:
    counts = watching.intake.counts
    severities = [alarm.severity.value for alarm in outcome.alarms.values()]
    summary: dict[str, object] = {
        "rows": counts.rows,
        "alarms": len(outcome.alarms),
        **{name: severities.count(name) for name in ("high", "medium", "low")},
        "held_back": sum(not alarm.sent for alarm in outcome.alarms.values()),
        "first": clock(int(record.times[0].astype("datetime64[us]").astype(int))),
        "last": None if counts.last is None else clock(counts.last),
        "gaps": counts.gaps,
        "late": counts.late,
        "repeated": counts.repeated,
        "missing": counts.missing,
        "seconds": round(outcome.seconds, 3),
        "rows_per_s": round(counts.rows / max(outcome.seconds, 1e-9), 1),
        "judged_ms": round(outcome.slowest_ms, 3),
    }
    if watching.parts.subject.borrowed:
        summary["borrowed"] = list(watching.parts.subject.borrowed)
    if watching.parts.subject.lacking:
        summary["lacking"] = list(watching.parts.subject.lacking)
    if record.attack_segments:
        summary["attacks"] = len(record.attack_segments)
        summary["attacks_detected"] = attacks_found(record, shown)
    return summary


# -- printing ---------------------------------------------------------------------------------


def _print_alarm(alarm: Alarm) -> None:
    style = STYLES[alarm.severity]
    lasted = f"{_shown(alarm.start)} to {_shown(alarm.last)}"
    out.print(Text(f"{alarm.severity.value:<6} ", style=style) + Text(f"{lasted}  {alarm.id}"))
    out.print(f"       {alarm.sentence}", markup=False)


def _print_summary(
    watching: Watch,
    outcome: _Outcome,
    record: Record,
    shown: tuple[ShownAlarm, ...],
    request: WatchRequest,
) -> None:
    found = _summary(watching, outcome, record, shown)
    listed = table(f"\n{record.name}", "", "")
    listed.show_header = False
    rows = {
        "rows judged": f"{found['rows']:,} from {found['first']} to {found['last']}",
        "alarms": f"{found['alarms']:,} ({found['high']} high, {found['medium']} medium, "
        f"{found['low']} low)",
        "time jumps": f"{found['gaps']:,}",
        "missing readings": f"{found['missing']:,}",
        "speed": f"{found['rows_per_s']:,.0f} rows a second",
    }
    if "attacks" in found:
        rows["labelled attacks"] = (
            f"{found['attacks_detected']} of {found['attacks']} with an alarm"
        )
    for name, value in rows.items():
        listed.add_row(name, value)
    out.print(listed)
    if request.html is not None:
        out.print(f"The timeline is {request.html}", markup=False)
    if outcome.alarms:
        out.print("An alarm is evidence about telemetry; a fault and an attack look the same.")


def _shown(at: int) -> str:
    return clock(at).replace("T", " ")


# -- the live view ----------------------------------------------------------------------------


class _Show:
    """Shows nothing; alarms are printed as lines."""

    live = False

    def update(self, watching: Watch, outcome: _Outcome, source: HistorySource) -> None:
        """Show how far the replay is."""


class _LiveShow(_Show):
    """Redraws a view of the replay a few times a second."""

    live = True

    def __init__(self, view: Live, record: Record) -> None:
        self._view = view
        self._record = record

    def update(self, watching: Watch, outcome: _Outcome, source: HistorySource) -> None:
        """Show how far the replay is, and the last alarms."""
        self._view.update(_drawn(watching, outcome, source, self._record))


@contextmanager
def _view(record: Record, request: WatchRequest) -> Iterator[_Show]:
    if request.quiet or not sys.stdout.isatty():
        yield _Show()
        return
    console = Console(highlight=False)
    with Live(console=console, refresh_per_second=8) as view:
        yield _LiveShow(view, record)


def _drawn(watching: Watch, outcome: _Outcome, source: HistorySource, record: Record) -> Group:
    counts = watching.intake.counts
    now = "" if counts.last is None else _shown(counts.last)
    head = Text.assemble(
        (record.name, "bold"),
        f"  {now}   {counts.rows:,} of {len(record):,} rows   "
        f"{watching.pulse.rows_per_s:,.0f} rows/s   ",
        (f"{len(outcome.alarms):,} alarms", "bold"),
        (f", {len(watching.tracker.open)} last now", "red" if watching.tracker.open else "dim"),
    )
    listed = Table(box=None, pad_edge=False, expand=True)
    for name, width in (("severity", 8), ("from", 19), ("to", 19), ("tags", 24)):
        listed.add_column(name, width=width, overflow="ellipsis", no_wrap=True)
    listed.add_column("what to check", overflow="fold")
    for alarm in list(outcome.alarms.values())[-SHOWN:]:
        listed.add_row(
            Text(alarm.severity.value, style=STYLES[alarm.severity]),
            _shown(alarm.start),
            _shown(alarm.last) if alarm.ended else "lasts",
            ", ".join(alarm.tags[:3]),
            Text(alarm.sentence),
        )
    return Group(head, ProgressBar(total=len(record), completed=counts.rows), listed)
