"""The SQLite file of a store: its schema, its transactions and its error messages."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sluice.errors import ResultsError

__all__ = ["SCHEMA", "TABLES", "connected", "readable_errors", "transaction"]

SCHEMA = 2
LONGEST = 16 << 20
"""Bytes of the longest value."""
STRANGE = "SELECT count(*) FROM sqlite_schema WHERE type IN ('view', 'trigger')"

TABLES = """
CREATE TABLE facts (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT;
CREATE TABLE works (
    id TEXT PRIMARY KEY,
    at INTEGER NOT NULL UNIQUE,
    layout TEXT NOT NULL,
    rule TEXT NOT NULL,
    settings TEXT NOT NULL,
    known INTEGER NOT NULL DEFAULT 0, -- its federation was trained elsewhere: done first
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
    score TEXT NOT NULL,
    made_by TEXT NOT NULL,
    wall_s REAL NOT NULL,
    ended REAL NOT NULL
) STRICT;
CREATE INDEX works_by_state ON works (state, at);
CREATE INDEX cells_by_work ON cells (work);
"""


def connected(path: Path, *, patience_s: float, read_only: bool = False) -> sqlite3.Connection:
    """Open the file; each statement is a transaction unless `transaction` starts one."""
    mode = "ro" if read_only else "rwc"
    with readable_errors(path):
        connection = sqlite3.connect(
            f"{path.absolute().as_uri()}?mode={mode}",
            uri=True,
            timeout=patience_s,
            isolation_level=None,
        )
        if not read_only:
            connection.execute("PRAGMA journal_mode = WAL")
        connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
        if connection.execute(STRANGE).fetchone()[0]:
            raise ResultsError(
                f"{path} has views or triggers, which run code of the file; expected tables alone: "
                "fetch it again, or run the grid into a new folder"
            )
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA foreign_keys = ON")
    return connection


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit all statements or none; other connections cannot write meanwhile."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite rolls back by itself when the disk is full; a second rollback would fail.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


@contextmanager
def readable_errors(path: Path) -> Iterator[None]:
    """Turn an SQLite error into a `ResultsError` with a remedy."""
    try:
        yield
    except sqlite3.Error as error:
        raise ResultsError(_sentence(path, error)) from error


def _sentence(path: Path, error: sqlite3.Error) -> str:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    resume = f"then continue with 'sluice lab resume {path.parent}'"
    match code:
        case sqlite3.SQLITE_FULL | sqlite3.SQLITE_IOERR:
            return f"the disk that holds {path} is full or fails; free some space, {resume}"
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return f"{path} is locked by another program; close that program, {resume}"
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            return f"{path} cannot be opened or written; check the permissions of its folder"
        case sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_CORRUPT:
            return (
                f"{path} is damaged or not a results file of Sluice; run the grid into a new folder"
            )
        case _:
            return f"{path} cannot be used: {error}"
