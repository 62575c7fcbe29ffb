"""A watch of a live source, until it is over or a signal ends the process."""

import json as jsonlib
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import typer

from sluice.cli.console import emit, warn
from sluice.cli.watch.request import WatchRequest
from sluice.errors import SettingError
from sluice.files import atomically
from sluice.telemetry import PlantFile, read_plant_file
from sluice.watch import (
    Page,
    Store,
    Subject,
    Watch,
    WatchParts,
    WatchSettings,
    opened_source,
    store_identity,
    timeline_of_store,
    write_timeline,
)
from sluice.watch.sinks import Delivery, Sink
from sluice.watch.sources import RowSource, SourceState

__all__ = ["watched"]

WAIT_S = 0.25
DRAIN_S = 5.0


def watched(
    subject: Subject, settings: WatchSettings, request: WatchRequest, sinks: tuple[Sink, ...]
) -> None:
    """Judge what a source gives until it is over, idle for long, or a signal comes."""
    if request.state is None and not request.quiet:
        typer.echo("sluice: without --state, a restart begins from the start", err=True)
    store = Store(request.state, identity=store_identity(subject, settings))
    delivery = Delivery(store, sinks)
    watching = Watch(
        WatchParts(
            subject=subject,
            settings=settings,
            store=store,
            delivery=delivery,
            page=Page(address=request.page),
        )
    )
    try:
        source = _source(subject, request, watching)
        delivery.start()
        try:
            _run(watching, source, request)
        finally:
            watching.remember()
            source.close()
    finally:
        left = delivery.stop(within_s=DRAIN_S)
        store.close()
        if left:
            kept = "they wait in the state" if request.state else "they are lost without --state"
            warn(f"{left} events did not reach a sink; {kept}")


def _source(subject: Subject, request: WatchRequest, watching: Watch) -> RowSource:
    return opened_source(
        request.source,
        subject,
        plant=read_plant_file(request.plant) if request.plant else PlantFile(),
        format_name=request.format_name,
        position=watching.position,
        lasting=request.state is not None,
        from_end=request.from_end,
        nodes=request.nodes,
        max_age_s=request.max_age_s,
    )


def _run(watching: Watch, source: RowSource, request: WatchRequest) -> None:
    stopping = False

    def stop(*_: object) -> None:
        nonlocal stopping
        stopping = True

    before = signal.signal(signal.SIGTERM, stop)
    last_row = last_beat = time.monotonic()
    reporter = _Reporter(request)
    try:
        _print_new(watching, request)  # what a killed process has kept but not printed
        while not stopping:
            rows = watching.intake.counts.rows
            events = watching.step(source, wait_s=WAIT_S)
            now = time.monotonic()
            if watching.intake.counts.rows > rows:
                last_row = now
            if events:
                _print_new(watching, request)
                reporter.page(watching)
            if now - last_beat >= request.heartbeat_s:
                last_beat = now
                reporter.beat(watching, source)
            if source.state is SourceState.OVER:
                break
            if request.idle_s is not None and now - last_row >= request.idle_s:
                break
        reporter.beat(watching, source)
        reporter.page(watching)
    finally:
        signal.signal(signal.SIGTERM, before)


def _print_new(watching: Watch, request: WatchRequest) -> None:
    for event in watching.unprinted():
        alarm = jsonlib.loads(event.content)
        for only_in_events in ("event", "key", "plant", "at"):
            alarm.pop(only_in_events)
        if request.json:
            emit(alarm)
        else:
            line = (
                f"{alarm['start']} {alarm['severity'].upper()} {alarm['id']}: {alarm['sentence']}"
            )
            sys.stdout.write(line + "\n")
            sys.stdout.flush()


class _Reporter:
    """Writes the health file and the page; a full disk gives one warning and stops nothing."""

    def __init__(self, request: WatchRequest) -> None:
        self._request = request
        self._warned = False

    def beat(self, watching: Watch, source: RowSource) -> None:
        report = watching.health(source).payload()
        text = jsonlib.dumps({"event": "heartbeat", **report}, allow_nan=False, ensure_ascii=False)
        watching.parts.delivery.beat(text)
        if self._request.health is not None:
            with self._tolerating(), atomically(self._request.health) as draft:
                draft.write_text(text + "\n", encoding="utf-8")

    def page(self, watching: Watch) -> None:
        if self._request.html is not None:
            with self._tolerating():
                write_timeline(
                    timeline_of_store(watching),
                    self._request.html,
                    self_contained=self._request.self_contained,
                )

    @contextmanager
    def _tolerating(self) -> Iterator[None]:
        try:
            yield
        except SettingError as error:
            if not self._warned:
                warn(str(error))
            self._warned = True
