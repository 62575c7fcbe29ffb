"""`sluice dashboard`: the web page and the metrics of a federation."""

from pathlib import Path
from typing import Annotated

import typer

from sluice.cli.options import open_record
from sluice.cli.paths import coordinators_folder, reads_record

__all__ = ["dashboard"]


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
        typer.Option(help="Address to listen on; there is no login, so keep it on loopback."),
    ] = "127.0.0.1",
    labelled: Annotated[
        Path | None,
        typer.Option(
            help="Measure each round's model on this labelled record.", click_type=reads_record()
        ),
    ] = None,
) -> None:
    """Serve a web page that shows a federation, and Prometheus metrics.

    The page is at / and the metrics are at /metrics. The command only reads the coordinator's
    folder.

    Example: [bold]sluice dashboard water[/bold]
    """
    import uvicorn

    from sluice.network import demand_free_port
    from sluice.reports.dashboard import serve

    demand_free_port(
        host, port, whose="the dashboard", remedy="give another --port, or end that process"
    )
    typer.echo(f"sluice: http://{host}:{port}/", err=True)
    record = open_record(labelled, every=1) if labelled else None
    uvicorn.run(serve(folder, record), host=host, port=port, log_level="warning", ws="none")
