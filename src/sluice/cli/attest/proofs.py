"""Key folders and proofs, as `sluice attest` and `sluice check --prove` share them."""

import resource
import sys
from pathlib import Path

import typer

from sluice.attestation.protocol import KeyFolder
from sluice.attestation.systems import SystemName
from sluice.cli.console import working
from sluice.cli.options import open_record, range_of
from sluice.errors import SettingError
from sluice.telemetry import Fill, Record

__all__ = [
    "PUBLIC",
    "open_keys",
    "peak_mb",
    "read_batch",
    "read_bounded",
    "warn_if_unsafe",
]

PUBLIC = (
    "What it shows: that the batch keeps the rules, its number of rows and the time it covers; the "
    "rules and the policy are public too."
)


def open_keys(path: Path) -> KeyFolder:
    """Open a key folder whose circuit is the one this version derives."""
    folder = KeyFolder.open(path)
    warn_if_unsafe(folder.system.name)
    folder.demand_same_circuit()
    return folder


def read_batch(
    path: Path,
    rows: str | None,
    *,
    plant: Path | None,
    format_: str | None,
    fill: Fill | None,
    skip: float,
    every: int,
    quiet: bool,
) -> Record:
    """Read the rows of a record that the options of a command name."""
    with working(f"reading {path}", quiet=quiet):
        record = open_record(
            path, plant=plant, format_name=format_, fill=fill, skip_s=skip, every=every
        )
        return record.rows(*range_of(rows, record, option="--rows")) if rows else record


def read_bounded(path: Path, most: int) -> bytes:
    """Read a document, and no more of it than shows that it is too long."""
    try:
        with path.open("rb") as opened:
            return opened.read(most + 1)
    except OSError as error:
        raise SettingError(f"{path} cannot be read: {error.strerror}") from None


def warn_if_unsafe(system: str) -> None:
    """Say aloud, whatever was asked to be quiet, that a system hides nothing."""
    if system == SystemName.UNSAFE:
        typer.echo(
            "sluice: WARNING: system 'unsafe' HIDES NOTHING: its proof shows every reading that "
            "the rules look at. It is for tests; use --system full.",
            err=True,
        )


def peak_mb() -> float:
    """Return the most memory this process, or one it waited for, has held."""
    unit = 1 if sys.platform == "darwin" else 1_024
    whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(who).ru_maxrss for who in whose) * unit / 1e6
