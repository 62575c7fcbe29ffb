"""The state of a watch in SQLite: what was judged, every alarm, and what each sink still needs.

One transaction holds the rows that were judged, the position of the source behind them and the
events that they caused. A process that is killed continues from its last transaction: it judges no
row twice and forgets no event. From time to time the judge's memory is saved and the rows before it
are removed.
"""

import json
import sqlite3
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from sluice.errors import SettingError
from sluice.files import private_file
from sluice.watch.rows import StreamRows

__all__ = ["Outgoing", "Saved", "Store", "StoredAlarm"]

SCHEMA = 1
MOST_WAITING = 10_000
"""Events that wait for one sink; the oldest ones are dropped, and counted."""

TABLES = """
CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS memory (one INTEGER PRIMARY KEY CHECK (one = 1), rows BLOB, text TEXT);
CREATE TABLE IF NOT EXISTS journal (n INTEGER PRIMARY KEY, times BLOB, shape TEXT, readings BLOB);
CREATE TABLE IF NOT EXISTS alarms (id TEXT PRIMARY KEY, start INTEGER, content TEXT);
CREATE TABLE IF NOT EXISTS events (
  n INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT UNIQUE, alarm TEXT, content TEXT, made REAL);
CREATE TABLE IF NOT EXISTS waiting (sink TEXT, n INTEGER, PRIMARY KEY (sink, n));
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Saved:
    """The judge's memory, and the rows that it has judged since."""

    rows: bytes
    text: str
    journal: tuple[StreamRows, ...]
    position: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outgoing:
    """An event that a sink still needs."""

    number: int
    key: str
    alarm: str  # its id
    content: str  # JSON


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAlarm:
    """An alarm as it is now."""

    id: str
    start: int
    content: str  # JSON


class Store:
    """Keeps the state of one watch, in a file or only in memory."""

    def __init__(self, path: Path | None, *, identity: str) -> None:
        self.path = path
        self.dropped = 0
        self._lock = threading.Lock()
        if path is not None:
            private_file(path)
        try:
            self._base = sqlite3.connect(
                path or ":memory:", isolation_level=None, check_same_thread=False, timeout=1.0
            )
            self._prepare(identity)
        except sqlite3.Error as error:
            raise SettingError(self._refusal(error)) from None

    def _refusal(self, error: sqlite3.Error) -> str:
        if "locked" in str(error):
            return f"another 'sluice watch' uses the state {self.path}; end it, or give another one"
        return (
            f"the state {self.path} cannot be used: {error}; give another --state, or remove the "
            "file and lose the alarms in it"
        )

    def _prepare(self, identity: str) -> None:
        base = self._base
        if self.path is not None:
            base.execute("PRAGMA locking_mode = EXCLUSIVE")
            base.execute("PRAGMA journal_mode = WAL")
            base.execute("PRAGMA synchronous = NORMAL")
        base.execute("BEGIN IMMEDIATE")
        for statement in TABLES.split(";\n"):
            base.execute(statement)
        base.execute("INSERT OR IGNORE INTO meta VALUES ('schema', ?)", (str(SCHEMA),))
        base.execute("INSERT OR IGNORE INTO meta VALUES ('identity', ?)", (identity,))
        base.execute("COMMIT")
        schema, known = self.meta("schema"), self.meta("identity")
        if schema != str(SCHEMA):
            raise SettingError(
                f"the state {self.path} has schema {schema}; this Sluice writes {SCHEMA}; give "
                "another --state"
            )
        if known != identity:
            raise SettingError(
                f"the state {self.path} belongs to a watch with other rules, another model or "
                "other settings; give another --state for the new ones"
            )

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            try:
                self._base.execute("BEGIN IMMEDIATE")
                yield self._base
                self._base.execute("COMMIT")
            except sqlite3.Error as error:
                if self._base.in_transaction:
                    self._base.execute("ROLLBACK")
                raise SettingError(self._refusal(error)) from None

    def close(self) -> None:
        """Release the state for another process."""
        with self._lock:
            self._base.close()

    def meta(self, key: str) -> str:
        """Return a noted value; empty if there is none."""
        found = self._base.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        return str(found[0]) if found else ""

    # -- judging ------------------------------------------------------------------------------

    def load(self) -> Saved | None:
        """Return what an earlier process has left; None if this is the first one."""
        with self._lock:
            found = self._base.execute("SELECT rows, text FROM memory").fetchone()
            journal = tuple(
                _rows(times, shape, readings)
                for times, shape, readings in self._base.execute(
                    "SELECT times, shape, readings FROM journal ORDER BY n"
                )
            )
            position = self.meta("position")
        if found is None and not journal and not position:
            return None
        rows, text = found or (b"", "")
        return Saved(rows=rows, text=text, journal=journal, position=position)

    def commit(
        self, rows: StreamRows, events: list[tuple[Outgoing, StoredAlarm, tuple[str, ...]]]
    ) -> None:
        """Keep rows that were judged, where the source continues, and events for sinks."""
        with self._transaction() as base:
            if len(rows):
                base.execute(
                    "INSERT INTO journal (times, shape, readings) VALUES (?, ?, ?)",
                    (
                        rows.times.tobytes(),
                        json.dumps(rows.values.shape),
                        np.ascontiguousarray(rows.values).tobytes(),
                    ),
                )
            if rows.position:
                self._note(base, "position", rows.position)
            for event, alarm, sinks in events:
                self._add(base, event, alarm, sinks)

    def _note(self, base: sqlite3.Connection, key: str, value: str) -> None:
        base.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    def _add(
        self,
        base: sqlite3.Connection,
        event: Outgoing,
        alarm: StoredAlarm,
        sinks: tuple[str, ...],
    ) -> None:
        base.execute(
            "INSERT OR REPLACE INTO alarms VALUES (?, ?, ?)", (alarm.id, alarm.start, alarm.content)
        )
        added = base.execute(
            "INSERT OR IGNORE INTO events (key, alarm, content, made) VALUES (?, ?, ?, ?)",
            (event.key, event.alarm, event.content, time.time()),
        )
        if not added.rowcount:  # it was kept before the process was killed
            return
        for sink in sinks:
            base.execute("INSERT INTO waiting VALUES (?, ?)", (sink, added.lastrowid))
            (waiting,) = base.execute(
                "SELECT COUNT(*) FROM waiting WHERE sink = ?", (sink,)
            ).fetchone()
            if waiting > MOST_WAITING:
                base.execute(
                    "DELETE FROM waiting WHERE sink = ? AND n = "
                    "(SELECT MIN(n) FROM waiting WHERE sink = ?)",
                    (sink, sink),
                )
                self.dropped += 1

    def remember(self, rows: bytes, text: str) -> None:
        """Save the judge's memory; the rows before it are no longer needed."""
        with self._transaction() as base:
            base.execute("INSERT OR REPLACE INTO memory VALUES (1, ?, ?)", (rows, text))
            base.execute("DELETE FROM journal")

    # -- delivering ---------------------------------------------------------------------------

    def waiting(self, sink: str, most: int = 100) -> tuple[Outgoing, ...]:
        """Return the oldest events that a sink still needs."""
        with self._lock:
            found = self._base.execute(
                "SELECT e.n, e.key, e.alarm, e.content FROM waiting w JOIN events e ON e.n = w.n "
                "WHERE w.sink = ? ORDER BY e.n LIMIT ?",
                (sink, most),
            ).fetchall()
        return tuple(
            Outgoing(number=number, key=key, alarm=alarm, content=content)
            for number, key, alarm, content in found
        )

    def waits(self, sink: str) -> int:
        """Return how many events a sink still needs."""
        with self._lock:
            (count,) = self._base.execute(
                "SELECT COUNT(*) FROM waiting WHERE sink = ?", (sink,)
            ).fetchone()
        return int(count)

    def delivered(self, sink: str, number: int) -> None:
        """Note that a sink has an event."""
        with self._transaction() as base:
            base.execute("DELETE FROM waiting WHERE sink = ? AND n = ?", (sink, number))

    def alarms(self, most: int) -> tuple[StoredAlarm, ...]:
        """Return the last alarms, oldest first."""
        with self._lock:
            found = self._base.execute(
                "SELECT id, start, content FROM alarms ORDER BY start DESC, id DESC LIMIT ?",
                (most,),
            ).fetchall()
        return tuple(
            StoredAlarm(id=name, start=start, content=content)
            for name, start, content in reversed(found)
        )


def _rows(times: bytes, shape: str, readings: bytes) -> StreamRows:
    rows, columns = json.loads(shape)
    return StreamRows(
        times=np.frombuffer(times, np.int64),
        values=np.frombuffer(readings, np.float64).reshape(rows, columns),
    )
