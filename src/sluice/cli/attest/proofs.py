"""Helpers of the `sluice attest` commands: open key folders, read batches and documents."""

import re
import resource
import sys
from dataclasses import replace
from pathlib import Path

import typer

from sluice.attestation.protocol import KeyFolder
from sluice.attestation.systems import System, SystemName
from sluice.attestation.systems.full import Full
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
    "within_memory",
]

PUBLIC = (
    "Public: that the batch satisfies the rules, its number of rows, the time it covers, the rules "
    "and the policy."
)


def open_keys(path: Path) -> KeyFolder:
    """Open a key folder; refuse it if this version derives another circuit."""
    folder = KeyFolder.open(path)
    warn_if_unsafe(folder.system.name)
    folder.demand_same_circuit()
    return folder


def within_memory(system: System, memory: str | None) -> System:
    """Return the system with a limit on the prover's memory, if one is given."""
    if memory is None:
        return system
    if not isinstance(system, Full):
        raise SettingError(f"--memory is for the system 'full', not for {system.name!r}")
    found = re.fullmatch(r"(\d+)\s*(MB|GB)", memory.strip(), re.IGNORECASE)
    if not found:
        raise SettingError(f"--memory is a number of MB or GB, such as 512MB, not {memory!r}")
    unit = {"MB": 10**6, "GB": 10**9}[found[2].upper()]
    return replace(system, memory=int(found[1]) * unit)


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
    """Read the rows of a record that a command's options select."""
    with working(f"reading {path}", quiet=quiet):
        record = open_record(
            path, plant=plant, format_name=format_, fill=fill, skip_s=skip, every=every
        )
        return record.rows(*range_of(rows, record, option="--rows")) if rows else record


def read_bounded(path: Path, most: int) -> bytes:
    """Read at most `most` + 1 bytes of a document; the last one shows that it is too long."""
    try:
        with path.open("rb") as opened:
            return opened.read(most + 1)
    except OSError as error:
        raise SettingError(f"{path} cannot be read: {error.strerror}") from None


def warn_if_unsafe(system: str) -> None:
    """Warn on stderr, even with --quiet, that the unsafe system reveals every reading."""
    if system == SystemName.UNSAFE:
        typer.echo(
            "sluice: WARNING: system 'unsafe' HIDES NOTHING: its proof reveals every reading that "
            "the rules use. It is for tests only; use --system full.",
            err=True,
        )


def peak_mb() -> float:
    """Return the peak memory in MB of this process or of a child it has waited for."""
    unit = 1 if sys.platform == "darwin" else 1_024
    processes = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return max(resource.getrusage(process).ru_maxrss for process in processes) * unit / 1e6
