"""`sluice demo`: what Sluice does, shown on an embedded simulated plant."""

from pathlib import Path
from typing import Annotated

import typer

from sluice.cli.console import Json, Quiet, emit, out, working
from sluice.errors import SettingError
from sluice.plants import simulate
from sluice.reports.record_page import write_record_page
from sluice.telemetry import summarise

__all__ = ["demo"]


def demo(
    out_dir: Annotated[Path, typer.Option("--out", help="Folder for the report.")] = Path("demo"),
    fast: Annotated[bool, typer.Option("--fast", help="A shorter record.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Another seed, another plant.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Simulate a water treatment plant under attack, inspect its record and draw it.

    Example: [bold]sluice demo --out demo[/bold]
    """
    try:
        out_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SettingError(f"cannot make the folder {out_dir}: {error.strerror}") from None
    report = out_dir / "report.html"
    with working("simulating a treatment plant with SWaT's tags", quiet=quiet or json):
        record = simulate("treatment", seed=seed, days=0.25 if fast else 1.0, attacks=True)
        summary = summarise(record)
    with working(f"drawing {report}", quiet=quiet or json):
        write_record_page(record, summary, report)
    if json:
        emit({"rows": summary.rows, "attacks": len(summary.attack_segments), "report": str(report)})
        return
    out.print(
        f"A treatment plant of {len(record.channels)} channels ran for {summary.rows:,} s; "
        f"{len(summary.attack_segments)} attacks took {summary.attack_rows:,} s of it."
    )
    for number, run in enumerate(summary.attack_segments, start=1):
        out.print(f"  attack {number:2}  {run.start} to {run.end}")
    out.print(f"Every channel is drawn in {report}")
