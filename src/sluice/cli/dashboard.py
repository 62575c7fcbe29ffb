"""`sluice dashboard`: the web page and the metrics of a federation."""

from pathlib import Path
from typing import Annotated

import typer

from sluice.cli.console import warn
from sluice.cli.options import open_record
from sluice.cli.paths import coordinators_folder, reads_file, reads_record
from sluice.errors import SettingError
from sluice.files import read_bounded

__all__ = ["dashboard"]

SHORTEST_TOKEN = 16


def dashboard(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="FOLDER",
            help="The coordinator's folder.",
            click_type=coordinators_folder(),
        ),
    ],
    port: Annotated[int, typer.Option(min=1, max=65_535, help="Port to listen on.")] = 8_080,
    host: Annotated[
        str,
        typer.Option(help="Address to listen on; give --token-file if it is not loopback."),
    ] = "127.0.0.1",
    allow_host: Annotated[
        list[str] | None,
        typer.Option(
            help="A host name under which browsers may open the page, besides loopback and --host; "
            "repeatable."
        ),
    ] = None,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="A file of mode 0600 with the token that requests must carry.",
            click_type=reads_file("a token's file"),
        ),
    ] = None,
    labelled: Annotated[
        Path | None,
        typer.Option(
            help="Measure each round's model on this labelled record.", click_type=reads_record()
        ),
    ] = None,
) -> None:
    """Serve a web page that shows a federation, and Prometheus metrics.

    The page is at / and the metrics are at /metrics. The command only reads the coordinator's
    folder. With --token-file, open /?token=TOKEN once, or send the token as a bearer token.

    Example: [bold]sluice dashboard water[/bold]
    """
    import uvicorn

    from sluice.network import demand_free_port
    from sluice.reports.dashboard import LOOPBACK, serve

    token = _token(token_file) if token_file else None
    if token is None and host not in LOOPBACK:
        warn(f"everyone who reaches {host}:{port} can read the page; give --token-file")
    demand_free_port(
        host, port, whose="the dashboard", remedy="give another --port, or end that process"
    )
    record = open_record(labelled, every=1) if labelled else None
    app = serve(folder, record, hosts=(*LOOPBACK, host, *(allow_host or ())), token=token)
    shown = f"[{host}]" if ":" in host else host
    typer.echo(f"sluice: http://{shown}:{port}/", err=True)
    uvicorn.run(app, host=host, port=port, log_level="warning", ws="none")


def _token(path: Path) -> str:
    raw = read_bounded(path, "token's file", largest=1_024, private=True)
    text = raw.decode("ascii", errors="replace").strip()
    if len(text) < SHORTEST_TOKEN or not text.isascii() or not text.isprintable():
        raise SettingError(
            f"{path} must hold one token of at least {SHORTEST_TOKEN} printable characters, such "
            "as 'openssl rand -hex 32' prints"
        )
    return text
