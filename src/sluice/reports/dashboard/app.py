"""The page of a federation: each view reads the folder, and the page updates when it changes.

Everything is on this machine; the page loads no scripts, fonts or pictures from elsewhere.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from fastapi import FastAPI
from fastapi.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse

from sluice.network.coordinator import CoordinatorFolder
from sluice.reports import asset, plotly_source, rendered_main
from sluice.reports.dashboard.access import LOOPBACK, Guard, demand_hosts
from sluice.reports.dashboard.federation_page import federation_page
from sluice.reports.dashboard.metrics import exposition
from sluice.reports.dashboard.quality import ModelEvaluator
from sluice.reports.dashboard.snapshot import FollowedLog, take
from sluice.telemetry import Record

__all__ = ["serve"]

LOOK_S = 1.0
HERE = Path(__file__).parent
HEADERS = {
    # Plotly sets styles by itself; scripts come from this server, and none is inline.
    "Content-Security-Policy": "default-src 'none'; connect-src 'self'; script-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


def serve(
    folder: Path,
    labelled: Record | None = None,
    *,
    hosts: Sequence[str] = LOOPBACK,
    token: str | None = None,
) -> FastAPI:
    """Return the web application of one federation's folder; it only reads the folder.

    With a labelled record, the model of each round is also measured on it as a detector. Requests
    must name one of `hosts`, and carry the token if there is one.
    """
    app = FastAPI(title="Sluice", docs_url=None, redoc_url=None, openapi_url=None)
    app.add_middleware(Guard, hosts=demand_hosts(hosts), token=token)
    site = CoordinatorFolder(folder)
    evaluator, log = ModelEvaluator(site, labelled), FollowedLog(site)

    def rendered(template: str) -> Response:
        state = _state(folder, evaluator)
        snapshot = take(folder, evaluator, log)
        text = rendered_main(federation_page(snapshot), template=template, state=state)
        return HTMLResponse(text, headers=HEADERS)

    @app.get("/")
    def page() -> Response:
        return rendered("live.html.j2")

    @app.get("/now")
    def now() -> Response:
        return rendered("now.html.j2")

    @app.get("/metrics")
    def metrics() -> Response:
        return PlainTextResponse(exposition(take(folder, evaluator, log)))

    @app.get("/assets/plotly.js")
    def plot() -> Response:
        return Response(plotly_source(), media_type="text/javascript")

    @app.get("/assets/page.js")
    def script() -> Response:
        return Response(asset("page.js"), media_type="text/javascript")

    @app.get("/assets/live.js")
    def live() -> Response:
        return Response(
            (HERE / "assets" / "live.js").read_text("utf-8"), media_type="text/javascript"
        )

    @app.get("/assets/page.css")
    def style() -> Response:
        return Response(asset("page.css"), media_type="text/css")

    @app.get("/events")
    async def events() -> Response:
        stream = _changes(folder, evaluator)
        return StreamingResponse(stream, media_type="text/event-stream", headers=HEADERS)

    return app


async def _changes(folder: Path, evaluator: ModelEvaluator) -> AsyncIterator[str]:
    """Yield an event when the log has grown, the store has changed or a round was measured."""
    last = ""
    while True:
        now = await asyncio.to_thread(_state, folder, evaluator)
        if now != last:
            yield f"data: {now}\n\n"
            last = now
        await asyncio.sleep(LOOK_S)


def _state(folder: Path, evaluator: ModelEvaluator) -> str:
    parts = [
        f"{path.name} {path.stat().st_size} {path.stat().st_mtime_ns}"
        for path in (folder / "log.jsonl", folder / "store.sqlite", folder / "store.sqlite-wal")
        if path.exists()
    ]
    parts.append(f"measured {evaluator.rounds}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]
