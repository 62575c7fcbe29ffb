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

from sluice.dashboard.metrics import exposition
from sluice.dashboard.snapshot import take

__all__ = ["serve"]

LOOK_S = 2.0
HEADERS = {
    "Content-Security-Policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; "
    "script-src 'self' 'unsafe-inline'; img-src 'self' data:",
    "X-Content-Type-Options": "nosniff",
}


def serve(folder: Path) -> FastAPI:
    """Return the web application of one federation's folder; it changes nothing there."""
    app = FastAPI(title="Sluice", docs_url=None, redoc_url=None, openapi_url=None)
    pages = Environment(
        loader=FileSystemLoader(Path(__file__).with_name("templates")),
        autoescape=select_autoescape(),
    )

    @app.get("/")
    def page() -> Response:
        text = pages.get_template("federation.html").render(found=take(folder))
        return HTMLResponse(text, headers=HEADERS)

    @app.get("/metrics")
    def metrics() -> Response:
        return PlainTextResponse(exposition(take(folder)))

    @app.get("/assets/plotly.js")
    def plot() -> Response:
        return Response(plotly.offline.get_plotlyjs(), media_type="text/javascript")

    @app.get("/events")
    async def events() -> Response:
        return StreamingResponse(_changes(folder), media_type="text/event-stream")

    return app


async def _changes(folder: Path) -> AsyncIterator[str]:
    """Tell whenever the log has grown or the store has changed."""
    last = ""
    while True:
        now = await asyncio.to_thread(_state, folder)
        if now != last:
            yield f"data: {now}\n\n"
            last = now
        await asyncio.sleep(LOOK_S)


def _state(folder: Path) -> str:
    told = [
        f"{path.name} {path.stat().st_size} {path.stat().st_mtime_ns}"
        for path in (folder / "log.jsonl", folder / "store.sqlite", folder / "store.sqlite-wal")
        if path.exists()
    ]
    return hashlib.sha256("\n".join(told).encode()).hexdigest()[:16]
