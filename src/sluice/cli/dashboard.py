"""`sluice dashboard`: the page and the figures of a running federation."""

from pathlib import Path
from typing import Annotated

import typer

from sluice.cli.options import open_record
from sluice.errors import SettingError

__all__ = ["dashboard"]


def dashboard(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="The coordinator's folder.")],
    port: Annotated[int, typer.Option(min=1, max=65_535)] = 8_080,
    host: Annotated[str, typer.Option(help="Loopback, unless you put a login before it.")] = (
        "127.0.0.1"
    ),
    labelled: Annotated[
        Path | None, typer.Option(help="Measure each round's model on this labelled record.")
    ] = None,
) -> None:
    """Show a federation as a web page, with its figures for Prometheus at /metrics.

    It reads the coordinator's folder and changes nothing.

    Example: [bold]sluice dashboard water[/bold]
    """
    import uvicorn

    from sluice.reports.dashboard import serve

    if not (folder / "terms.json").exists():
        raise SettingError(f"{folder} is no coordinator's folder; it has no terms.json")
    typer.echo(f"sluice: http://{host}:{port}/", err=True)
    record = open_record(labelled, every=1) if labelled else None
    uvicorn.run(serve(folder, record), host=host, port=port, log_level="warning", ws="none")
