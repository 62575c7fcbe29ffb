"""The SQLite file under a store: its schema, its transactions, and its troubles in one sentence."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sluice.errors import ResultsError

__all__ = ["SCHEMA", "TABLES", "connected", "sentenced", "transaction"]

SCHEMA = 1

TABLES = """
CREATE TABLE facts (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE works (
    id TEXT PRIMARY KEY,
    at INTEGER NOT NULL UNIQUE,
    layout TEXT NOT NULL,
    rule TEXT NOT NULL,
    settings TEXT NOT NULL,
    state TEXT NOT NULL DEFAULT 'waiting'
        CHECK (state IN ('waiting', 'running', 'done', 'failed')),
    owner TEXT,
    lease_until REAL,
    attempts INTEGER NOT NULL DEFAULT 0,
    reason TEXT,
    result TEXT,
    federation TEXT,
    made_by TEXT,
    recalled INTEGER,
    wall_s REAL,
    ended REAL,
    CHECK ((state = 'running') = (owner IS NOT NULL)),
    CHECK ((state = 'done') = (result IS NOT NULL)),
    CHECK ((state = 'failed') = (reason IS NOT NULL))
) STRICT;
CREATE TABLE cells (
    at INTEGER PRIMARY KEY,
    asked TEXT NOT NULL,
    work TEXT NOT NULL REFERENCES works (id)
) STRICT;
CREATE TABLE federations (
    key TEXT PRIMARY KEY,
    layout TEXT NOT NULL,
    rule TEXT NOT NULL,
    score TEXT NOT NULL
) STRICT;
CREATE INDEX works_by_state ON works (state, at);
CREATE INDEX cells_by_work ON cells (work);
"""


def connected(path: Path, *, patience_s: float, read_only: bool = False) -> sqlite3.Connection:
    """Open the file; every statement is its own transaction unless one is begun."""
    mode = "ro" if read_only else "rwc"
    with sentenced(path):
        opened = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=patience_s,
            isolation_level=None,
        )
        if not read_only:
            opened.execute("PRAGMA journal_mode = WAL")
        opened.execute("PRAGMA synchronous = FULL")
        opened.execute("PRAGMA foreign_keys = ON")
    return opened


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Do everything or nothing; nobody else writes meanwhile."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # A full disk rolls back by itself, and then there is nothing to roll back.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def sentenced(path: Path) -> Iterator[None]:
    """Turn what SQLite complains of into one sentence with a remedy."""
    try:
        yield
    except sqlite3.Error as error:
        raise ResultsError(_sentence(path, error)) from error


def _sentence(path: Path, error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    go_on = f"then go on with 'sluice lab resume {path.parent}'"
    match code:
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
            return f"the disk that holds {path} is full or fails; make room, {go_on}"
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return f"{path} is locked by another program; close that, {go_on}"
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return f"{path} cannot be opened or written; look at its folder's permissions"
        case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
            return f"{path} is damaged or no results of Sluice; run the grid into a new folder"
        case _:
            return f"{path} cannot be used: {error}"
