"""Cache of parsed readings in the user's cache folder: one Parquet file per content and loader."""

import contextlib
import hashlib
import io
import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from platformdirs import user_cache_path
from pydantic import TypeAdapter

from sluice.errors import SettingChoice, SettingError
from sluice.files import atomically, private_folder
from sluice.telemetry.formats import Format
from sluice.telemetry.plantfile import Declaration
from sluice.telemetry.record import Note
from sluice.telemetry.source import Container, Source
from sluice.telemetry.table import Table

__all__ = ["cached_load"]

WORTH_CACHING_BYTES = 16 << 20
LAYOUT_VERSION = 2
TIME, LABEL = "\x1ftime", "\x1flabel"  # no channel has such a name
READING = "sluice.reading"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reading:
    """What a table has beside its cells."""

    notes: tuple[Note, ...]
    declared: dict[str, Declaration]
    settings: tuple[SettingChoice, ...]
    utc: bool
    events: bool


_READINGS = TypeAdapter(_Reading)


def cached_load(format_: Format, source: Source) -> Table:
    """Load a source; if parsing is slow, use and fill the cache."""
    slow = source.container is Container.EXCEL or source.size >= WORTH_CACHING_BYTES
    if not slow or source.container is Container.PARQUET:
        return format_.load(source)
    cached = _folder() / f"{_key(format_, source)}.parquet"
    if cached.exists():
        # A damaged cache file (after a full disk) is not an error: parse again and replace it.
        with contextlib.suppress(pl.exceptions.PolarsError, OSError, ValueError, KeyError):
            return _read(cached, format_)
    table = format_.load(source)
    with contextlib.suppress(OSError, SettingError):  # a full disk must not stop a read
        _write(cached, table)
    return table


def _folder() -> Path:
    folder = os.environ.get("SLUICE_CACHE")
    return Path(folder) if folder else user_cache_path("sluice") / "records"


def _key(format_: Format, source: Source) -> str:
    # Companion files (such as an attack sheet) change what is loaded, so they are in the key.
    parts = (LAYOUT_VERSION, format_.name, format_.version, source.digest, source.companions_digest)
    return hashlib.blake2b(repr(parts).encode(), digest_size=20).hexdigest()


def _read(cached: Path, format_: Format) -> Table:
    data = cached.read_bytes()
    frame = pl.read_parquet(io.BytesIO(data))
    reading = _READINGS.validate_json(pl.read_parquet_metadata(io.BytesIO(data))[READING])
    return Table(
        format=format_.name,
        frame=frame.drop(TIME, LABEL),
        times=frame[TIME].to_numpy(),
        labels=frame[LABEL].to_numpy(),
        notes=reading.notes,
        declared=reading.declared,
        settings=reading.settings,
        utc=reading.utc,
        events=reading.events,
    )


def _write(cached: Path, table: Table) -> None:
    frame = table.frame.with_columns(
        pl.Series(TIME, table.times.astype("datetime64[us]")),
        pl.Series(LABEL, table.labels.astype(np.int8)),
    )
    reading = _Reading(
        notes=table.notes,
        declared=dict(table.declared),
        settings=table.settings,
        utc=table.utc,
        events=table.events,
    )
    private_folder(cached.parent)
    with atomically(cached, private=True) as draft:
        frame.write_parquet(
            draft, compression="lz4", metadata={READING: _READINGS.dump_json(reading).decode()}
        )
