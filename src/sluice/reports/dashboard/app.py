"""The page of a federation: read anew for each view, told when something has changed.

All it shows lies on this machine; the page asks nobody else for scripts, fonts or pictures.
"""

import asyncio
import hashlib
from collections.abc import AsyncIterator
from pathlib import Path

import plotly.offline
from fastapi import FastAPI
from fastapi.responses import HTMLResponse, PlainTextResponse, Response, StreamingResponse
from jinja2 import Environment, FileSystemLoader, select_autoescape

from sluice.network.coordinator import CoordinatorFolder
from sluice.reports.dashboard.metrics import exposition
from sluice.reports.dashboard.quality import Yardstick
from sluice.reports.dashboard.snapshot import take
from sluice.reports.dashboard.step_names import plain
from sluice.telemetry import Record

__all__ = ["serve"]

LOOK_S = 1.0
HERE = Path(__file__).parent
HEADERS = {
    # Plotly sets styles by itself; scripts come from here, and none stands in the page.
    "Content-Security-Policy": "default-src 'none'; connect-src 'self'; script-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src 'self' data:; frame-ancestors 'none'; "
    "base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}


def serve(folder: Path, labelled: Record | None = None) -> FastAPI:
    """Return the web application of one federation's folder; it changes nothing there.

    On a labelled record the model of each round is measured as a detector.
    """
    app = FastAPI(title="Sluice", docs_url=None, redoc_url=None, openapi_url=None)
    yardstick = Yardstick(CoordinatorFolder(folder), labelled)
    pages = Environment(loader=FileSystemLoader(HERE / "templates"), autoescape=select_autoescape())
    pages.filters["plain"] = plain

    def drawn(template: str) -> Response:
        state = _state(folder, yardstick)
        text = pages.get_template(template).render(found=take(folder, yardstick), state=state)
        return HTMLResponse(text, headers=HEADERS)

    @app.get("/")
    def page() -> Response:
        return drawn("federation.html")

    @app.get("/now")
    def now() -> Response:
        return drawn("now.html")

    @app.get("/metrics")
    def metrics() -> Response:
        return PlainTextResponse(exposition(take(folder, yardstick)))

    @app.get("/assets/plotly.js")
    def plot() -> Response:
        return Response(plotly.offline.get_plotlyjs(), media_type="text/javascript")

    @app.get("/assets/live.js")
    def live() -> Response:
        return Response(
            (HERE / "assets" / "live.js").read_text("utf-8"), media_type="text/javascript"
        )

    @app.get("/assets/page.css")
    def style() -> Response:
        return Response((HERE / "assets" / "page.css").read_text("utf-8"), media_type="text/css")

    @app.get("/events")
    async def events() -> Response:
        stream = _changes(folder, yardstick)
        return StreamingResponse(stream, media_type="text/event-stream", headers=HEADERS)

    return app


async def _changes(folder: Path, yardstick: Yardstick) -> AsyncIterator[str]:
    """Tell whenever the log has grown, the store has changed, or more rounds are measured."""
    last = ""
    while True:
        now = await asyncio.to_thread(_state, folder, yardstick)
        if now != last:
            yield f"data: {now}\n\n"
            last = now
        await asyncio.sleep(LOOK_S)


def _state(folder: Path, yardstick: Yardstick) -> str:
    told = [
        f"{path.name} {path.stat().st_size} {path.stat().st_mtime_ns}"
        for path in (folder / "log.jsonl", folder / "store.sqlite", folder / "store.sqlite-wal")
        if path.exists()
    ]
    told.append(f"measured {yardstick.rounds}")
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]
