"""Readings parsed once: a Parquet file per content and loader version, in the user's cache."""

import contextlib
import hashlib
import io
import json
import os
from dataclasses import asdict
from pathlib import Path

import numpy as np
import polars as pl
from platformdirs import user_cache_path

from sluice.errors import SettingError
from sluice.files import atomically
from sluice.telemetry.formats import Format
from sluice.telemetry.record import Note
from sluice.telemetry.source import Container, Source
from sluice.telemetry.table import Table

__all__ = ["cached_load"]

WORTH_CACHING_BYTES = 16 << 20
LAYOUT_VERSION = 1
TIME, LABEL = "\x1ftime", "\x1flabel"  # no plant names a channel so
NOTES = "sluice.notes"


def cached_load(format_: Format, source: Source) -> Table:
    """Load a source, from the cache where it has been parsed before and parsing takes long."""
    slow = source.container is Container.EXCEL or source.size >= WORTH_CACHING_BYTES
    if not slow or source.container is Container.PARQUET:
        return format_.load(source)
    kept = _folder() / f"{_key(format_, source)}.parquet"
    if kept.exists():
        # A file broken off by a full disk is no reason to fail: it is parsed again and replaced.
        with contextlib.suppress(pl.exceptions.PolarsError, OSError, ValueError, KeyError):
            return _read(kept, format_)
    table = format_.load(source)
    with contextlib.suppress(OSError, SettingError):  # a full home must not stop a reading
        _write(kept, table)
    return table


def _folder() -> Path:
    told = os.environ.get("SLUICE_CACHE")
    return Path(told) if told else user_cache_path("sluice") / "records"


def _key(format_: Format, source: Source) -> str:
    # Companions (an attack sheet beside the record) change what is loaded, so they are in the key.
    parts = (LAYOUT_VERSION, format_.name, format_.version, source.digest, source.companions_digest)
    return hashlib.blake2b(repr(parts).encode(), digest_size=20).hexdigest()


def _read(kept: Path, format_: Format) -> Table:
    data = kept.read_bytes()
    frame = pl.read_parquet(io.BytesIO(data))
    notes = json.loads(pl.read_parquet_metadata(io.BytesIO(data))[NOTES])
    return Table(
        format=format_.name,
        frame=frame.drop(TIME, LABEL),
        times=frame[TIME].to_numpy(),
        labels=frame[LABEL].to_numpy(),
        notes=tuple(Note(**note) for note in notes),
    )


def _write(kept: Path, table: Table) -> None:
    frame = table.frame.with_columns(
        pl.Series(TIME, table.times.astype("datetime64[us]")),
        pl.Series(LABEL, table.labels.astype(np.int8)),
    )
    notes = json.dumps([asdict(note) for note in table.notes])
    kept.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    with atomically(kept) as draft:
        frame.write_parquet(draft, compression="lz4", metadata={NOTES: notes})
