"""The coordinator's state in SQLite: plants, invitations, checkpoints, updates and events.

The log records what happened. The store holds what the coordinator needs to continue, and what must
not be in a log. The log has authority over the store: at the start of a run, the store's last
checkpoint must be the model that the log names.
"""

import hashlib
import sqlite3
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sluice.attestation.messages import instant
from sluice.errors import RefusedError, SettingError
from sluice.federation import Checkpoint, CheckpointFile
from sluice.files import private_file

__all__ = ["SHADOW", "CoordinatorStore", "IssuedCertificate", "Member"]

BATCH_ASKS = 3
"""How often in a row a plant that trains is asked for the new batch that it has announced."""

WINDOW = 4
"""A plant's absences count for this many times `suspend_after` rounds."""

SHADOW = "shadow"
"""The excuse of a plant that takes part without a proof because the gate is in shadow mode."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """A plant that has joined."""

    name: str
    node_key: bytes
    rules: str  # the rules file's text
    absences: int  # recent rounds in which it gave no valid answer in time, in some phase
    suspended: bool
    removed: bool
    seen: int  # log entries that it has verified
    step: str | None  # the step at which its batch was last refused
    attestation: str | None  # the attestation under which it takes part
    excuse: str | None  # why it needs no proof: SHADOW, or a waiver's digest
    renews: bool  # it announced a new batch to attest
    unanswered: int  # how often in a row it was asked for that batch and did not deliver
    copied: bool  # two processes answer as this plant
    model_of: int  # the round after which it was handed the model; 0 if never
    shared: str | None = None  # the attestation whose statistic is in the model
    proving: int = 0  # the last round in which it had time left for the batch it was asked for

    @property
    def active(self) -> bool:
        """Whether the coordinator sends it questions."""
        return not (self.suspended or self.removed)

    @property
    def state(self) -> str:
        """Its state in words, for operators; for a refusal only the step."""
        if not self.active:
            return "removed" if self.removed else "suspended"
        if self.attestation is None:
            return f"left out at step {self.step or '4'}"
        if self.excuse is None:
            late = self.renews and self.unanswered >= BATCH_ASKS
            return "attested; its new batch did not arrive" if late else "attested"
        if self.excuse == SHADOW:
            return "in shadow: would have been refused at step 4"
        return f"by waiver {self.excuse[:12]}, without a proof"


@dataclass(frozen=True, slots=True, kw_only=True)
class IssuedCertificate:
    """A certificate that was issued to a plant."""

    serial: str
    plant: str
    authority: str  # the name of the authority that issued it
    ends: datetime
    revoked: bool = False


SCHEMA = """
CREATE TABLE IF NOT EXISTS invitations (
    digest TEXT PRIMARY KEY, plant TEXT NOT NULL, made TEXT NOT NULL, used TEXT,
    expires TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS plants (
    name TEXT PRIMARY KEY, node_key BLOB NOT NULL, rules TEXT NOT NULL, joined TEXT NOT NULL,
    suspended TEXT, removed TEXT,
    seen INTEGER NOT NULL DEFAULT 0, step TEXT, attestation TEXT,
    excuse TEXT, renews INTEGER NOT NULL DEFAULT 0, unanswered INTEGER NOT NULL DEFAULT 0,
    instance TEXT, earlier TEXT, copied INTEGER NOT NULL DEFAULT 0,
    model_of INTEGER NOT NULL DEFAULT 0, shared TEXT, batch_asked TEXT,
    proving INTEGER NOT NULL DEFAULT 0);
CREATE TABLE IF NOT EXISTS absences (
    plant TEXT NOT NULL, round INTEGER NOT NULL, PRIMARY KEY (plant, round));
CREATE TABLE IF NOT EXISTS checkpoints (
    round INTEGER PRIMARY KEY, content BLOB NOT NULL, model TEXT NOT NULL, made TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS updates (
    round INTEGER, plant TEXT, content BLOB NOT NULL, PRIMARY KEY (round, plant));
CREATE TABLE IF NOT EXISTS statistics (
    plant TEXT, attestation TEXT, content BLOB NOT NULL, PRIMARY KEY (plant, attestation));
CREATE TABLE IF NOT EXISTS events (
    number INTEGER PRIMARY KEY, made TEXT NOT NULL, round INTEGER NOT NULL,
    plant TEXT NOT NULL, kind TEXT NOT NULL, seconds REAL);
CREATE TABLE IF NOT EXISTS certificates (
    serial TEXT PRIMARY KEY, plant TEXT NOT NULL, authority TEXT NOT NULL, made TEXT NOT NULL,
    ends TEXT NOT NULL, revoked TEXT);
"""


COLUMNS = (
    ("excuse", "TEXT"),
    ("renews", "INTEGER NOT NULL DEFAULT 0"),
    ("unanswered", "INTEGER NOT NULL DEFAULT 0"),
    ("instance", "TEXT"),
    ("earlier", "TEXT"),
    ("copied", "INTEGER NOT NULL DEFAULT 0"),
    ("model_of", "INTEGER NOT NULL DEFAULT 0"),
    ("shared", "TEXT"),
    ("batch_asked", "TEXT"),
    ("proving", "INTEGER NOT NULL DEFAULT 0"),
)
"""Columns that the `plants` table of an earlier version lacks."""


class CoordinatorStore:
    """One federation's state. Each change is on disk when its call returns.

    Opened read-only, it can be read while a coordinator writes to it.
    """

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        try:
            if read_only:
                where = f"{path.resolve().as_uri()}?mode=ro"
                self._base = sqlite3.connect(where, uri=True, isolation_level=None)
                return
            private_file(path)
            self._base = sqlite3.connect(path, isolation_level=None)
            self._base.execute("PRAGMA journal_mode = WAL")
            self._base.execute("PRAGMA synchronous = FULL")
            self._base.executescript(SCHEMA)
            self._add_columns()
        except (OSError, sqlite3.Error) as error:
            raise SettingError(
                f"the store {path} cannot be opened ({error}); check its path and permissions, and "
                "free disk space if the disk is full"
            ) from None

    def close(self) -> None:
        """Close the database."""
        self._base.close()

    # -- invitations --------------------------------------------------------------------------

    def invite(self, plant: str, secret: str, *, at: datetime, expires: datetime) -> None:
        """Store an invitation by the hash of its secret; older unused ones become invalid."""
        with self._changing() as base:
            base.execute("DELETE FROM invitations WHERE plant = ? AND used IS NULL", (plant,))
            base.execute(
                "UPDATE certificates SET revoked = ? WHERE plant = ? AND revoked IS NULL "
                "AND plant NOT IN (SELECT name FROM plants)",
                (instant(at), plant),
            )
            base.execute(
                "INSERT INTO invitations VALUES (?, ?, ?, NULL, ?)",
                (_digest(secret), plant, instant(at), instant(expires)),
            )

    def invited(self, plant: str, secret: str, *, at: datetime) -> None:
        """Raise unless this plant holds an invitation that is unused and has not expired."""
        row = self._base.execute(
            "SELECT plant, used, expires FROM invitations WHERE digest = ?", (_digest(secret),)
        ).fetchone()
        if row is None or row[0] != plant:
            raise RefusedError(
                f"{plant!r} has no valid invitation with this secret; make a new one with "
                "'sluice coordinator invite'"
            )
        if row[1] is not None:
            raise RefusedError(
                f"the invitation of {plant!r} was used on {row[1]} and is valid once only; make a "
                "new one with 'sluice coordinator invite'"
            )
        if instant(at) > row[2]:
            raise RefusedError(
                f"the invitation of {plant!r} expired on {row[2]}; make a new one with 'sluice "
                "coordinator invite'"
            )

    def join(self, plant: str, secret: str, *, node_key: bytes, rules: str, at: datetime) -> None:
        """Add a plant, mark its invitation as used, and revoke certificates from before it."""
        with self._changing() as base:
            base.execute(
                "UPDATE invitations SET used = ? WHERE digest = ?", (instant(at), _digest(secret))
            )
            base.execute(
                "INSERT INTO plants (name, node_key, rules, joined) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (name) DO UPDATE SET node_key = excluded.node_key, "
                "rules = excluded.rules",
                (plant, node_key, rules, instant(at)),
            )
            base.execute(
                "UPDATE certificates SET revoked = ? WHERE plant = ? AND revoked IS NULL "
                "AND made < (SELECT made FROM invitations WHERE digest = ?)",
                (instant(at), plant, _digest(secret)),
            )

    # -- plants -------------------------------------------------------------------------------

    def members(self) -> tuple[Member, ...]:
        """Return the plants that have joined, by name."""
        rows = self._base.execute(
            "SELECT name, node_key, rules, (SELECT COUNT(*) FROM absences WHERE plant = name), "
            "suspended, removed, seen, step, attestation, excuse, renews, unanswered, copied, "
            "model_of, shared, proving FROM plants ORDER BY name"
        )
        return tuple(
            Member(
                name=row[0],
                node_key=row[1],
                rules=row[2],
                absences=row[3],
                suspended=row[4] is not None,
                removed=row[5] is not None,
                seen=row[6],
                step=row[7],
                attestation=row[8],
                excuse=row[9],
                renews=bool(row[10]),
                unanswered=row[11],
                copied=bool(row[12]),
                model_of=row[13],
                shared=row[14],
                proving=row[15],
            )
            for row in rows
        )

    def admitted(
        self,
        plant: str,
        attestation: str,
        *,
        excuse: str | None = None,
        statistic: bytes | None = None,
    ) -> None:
        """Record a plant's attestation, its excuse if it has no proof, and its bound statistic."""
        if statistic is not None:
            with self._changing() as base:
                base.execute(
                    "INSERT OR REPLACE INTO statistics VALUES (?, ?, ?)",
                    (plant, attestation, statistic),
                )
        self._set(
            plant,
            "attestation = ?, excuse = ?, step = NULL, renews = 0, unanswered = 0, "
            "batch_asked = NULL",
            attestation,
            excuse,
        )

    def statistic(self, plant: str, attestation: str) -> bytes | None:
        """Return the statistic that a plant's attestation binds, as it was verified."""
        row = self._base.execute(
            "SELECT content FROM statistics WHERE plant = ? AND attestation = ?",
            (plant, attestation),
        ).fetchone()
        return row[0] if row else None

    def refused(self, plant: str, step: str) -> None:
        """Record the step at which a plant's batch was refused."""
        self._set(plant, "step = ?, attestation = NULL, excuse = NULL, renews = 0", step)

    def renews(self, plant: str, *, renews: bool) -> None:
        """Record whether a plant has a new batch to attest."""
        change = "renews = ?" if renews else "renews = ?, unanswered = 0"
        self._set(plant, change, int(renews))

    def took_model(self, plant: str, round_: int) -> None:
        """Record that a plant has saved the model after a round."""
        self._set(plant, "model_of = ?", round_)

    def shared(self, plant: str, attestation: str | None) -> None:
        """Record whose statistic the model holds, by its attestation; None: no statistic.

        Statistics of earlier batches of the plant are deleted then.
        """
        self._set(plant, "shared = ?", attestation)
        if attestation is not None:
            with self._changing() as base:
                base.execute(
                    "DELETE FROM statistics WHERE plant = ? AND attestation NOT IN "
                    "(SELECT attestation FROM plants WHERE name = ? UNION SELECT ?)",
                    (plant, plant, attestation),
                )

    def recall_models(self) -> None:
        """Record that no plant holds the current model: it changed without a round."""
        with self._changing() as base:
            base.execute("UPDATE plants SET model_of = 0")

    def asked_for_batch(self, plant: str, *, at: datetime) -> datetime:
        """Record that a plant is asked for a batch; return since when.

        Only a batch that is admitted ends this, or the end of a suspension. A plant that sends a
        wrong batch, or takes back the announcement of one, gets no further time.
        """
        self._set(plant, "batch_asked = COALESCE(batch_asked, ?)", instant(at))
        row = self._base.execute(
            "SELECT batch_asked FROM plants WHERE name = ?", (plant,)
        ).fetchone()
        return datetime.fromisoformat(row[0])

    def proves(self, plant: str, round_: int) -> None:
        """Record that in a round a plant had time left for the batch it was asked for."""
        self._set(plant, "proving = ?", round_)

    def unanswered(self, plant: str) -> None:
        """Count a question for a plant's new batch that it did not answer with a batch."""
        self._set(plant, "unanswered = unanswered + ?", 1)

    def seen(self, plant: str, size: int) -> None:
        """Record how many log entries a plant has verified."""
        self._set(plant, "seen = ?", size)

    def answered_by(self, plant: str, instance: str) -> bool:
        """Record which process answered for a plant; return whether two of them take turns.

        A process that answers again after another one did is a second one beside it. A process
        that never answered before is a restart.
        """
        row = self._base.execute(
            "SELECT instance, earlier, copied FROM plants WHERE name = ?", (plant,)
        ).fetchone()
        if row is None or instance == row[0]:
            return row is not None and bool(row[2])
        copied = bool(instance == row[1])
        self._set(plant, "instance = ?, earlier = ?, copied = ?", instance, row[0], int(copied))
        return copied

    def absent(self, plant: str, round_: int) -> None:
        """Record that a plant gave no valid answer in time, in some phase of a round."""
        with self._changing() as base:
            base.execute("INSERT OR IGNORE INTO absences VALUES (?, ?)", (plant, round_))

    def suspend(self, round_: int, *, after: int, at: datetime) -> None:
        """Suspend plants that were absent in `after` of the last `4 * after` rounds.

        Older absences are deleted. Single rounds with an answer therefore clear nothing.
        """
        with self._changing() as base:
            base.execute("DELETE FROM absences WHERE round <= ?", (round_ - WINDOW * after,))
            base.execute(
                "UPDATE plants SET suspended = ? WHERE suspended IS NULL AND removed IS NULL "
                "AND (SELECT COUNT(*) FROM absences WHERE plant = name) >= ?",
                (instant(at), after),
            )

    def reinstate(self, plant: str) -> None:
        """End a suspension and clear the plant's absences."""
        if plant in {each.name for each in self.members() if not each.suspended}:
            raise SettingError(
                f"plant {plant!r} is not suspended, so there is no suspension to end; 'sluice "
                "coordinator status' shows each plant's state"
            )
        with self._changing() as base:  # first: killed in between, the same call completes it
            base.execute("DELETE FROM absences WHERE plant = ?", (plant,))
        self._set(plant, "suspended = NULL, batch_asked = NULL, unanswered = ?", 0)

    def remove(self, plant: str, *, at: datetime) -> None:
        """Remove a plant for good; it gets no more questions, and its certificates are revoked."""
        self._set(plant, "attestation = NULL, shared = NULL, removed = ?", instant(at))
        with self._changing() as base:
            base.execute("DELETE FROM statistics WHERE plant = ?", (plant,))
        self.revoke(plant, at=at)

    # -- certificates -------------------------------------------------------------------------

    def issued(self, certificate: IssuedCertificate, *, at: datetime) -> None:
        """Record a certificate before it leaves the coordinator."""
        with self._changing() as base:
            base.execute(
                "INSERT INTO certificates VALUES (?, ?, ?, ?, ?, NULL)",
                (
                    certificate.serial,
                    certificate.plant,
                    certificate.authority,
                    instant(at),
                    certificate.ends.isoformat(),
                ),
            )

    def revoke(self, plant: str, *, at: datetime, except_newest: bool = False) -> None:
        """Revoke the certificates of a plant, or all but the one that was issued last."""
        with self._changing() as base:
            base.execute(
                "UPDATE certificates SET revoked = ? WHERE plant = ? AND revoked IS NULL "
                "AND (? = 0 OR rowid < (SELECT MAX(rowid) FROM certificates WHERE plant = ?))",
                (instant(at), plant, int(except_newest), plant),
            )

    def certificates(self) -> tuple[IssuedCertificate, ...]:
        """Return all certificates of plants, in the order in which they were issued."""
        rows = self._base.execute(
            "SELECT serial, plant, authority, ends, revoked FROM certificates ORDER BY rowid"
        )
        return tuple(
            IssuedCertificate(
                serial=row[0],
                plant=row[1],
                authority=row[2],
                ends=datetime.fromisoformat(row[3]),
                revoked=row[4] is not None,
            )
            for row in rows
        )

    # -- checkpoints --------------------------------------------------------------------------

    def keep(self, checkpoint: Checkpoint, model: str, *, federation: str, at: datetime) -> None:
        """Save the checkpoint of a round, in place of an earlier one of the same round."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "checkpoint"
            CheckpointFile(path=path, fingerprint=federation).keep(checkpoint)
            content = path.read_bytes()
        with self._changing() as base:
            base.execute(
                "INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?)",
                (checkpoint.round, content, model, instant(at)),
            )

    def last(self, *, federation: str, before: int | None = None) -> Checkpoint | None:
        """Return the last checkpoint, or the last one before a round; None if there is none."""
        row = self._base.execute(
            "SELECT content FROM checkpoints WHERE round < ? ORDER BY round DESC LIMIT 1",
            (1 << 60 if before is None else before,),
        ).fetchone()
        if row is None:
            return None
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "checkpoint"
            path.write_bytes(row[0])
            return CheckpointFile(path=path, fingerprint=federation).load()

    def keep_update(self, plant: str, round_: int, update: bytes) -> None:
        """Save a pledged update before the log records it; delete those of past rounds."""
        with self._changing() as base:
            base.execute("DELETE FROM updates WHERE round < ?", (round_,))
            base.execute("INSERT OR REPLACE INTO updates VALUES (?, ?, ?)", (round_, plant, update))

    def updates(self, round_: int) -> dict[str, bytes]:
        """Return the saved updates of a round, by plant; they survive a restart."""
        rows = self._base.execute("SELECT plant, content FROM updates WHERE round = ?", (round_,))
        return dict(rows.fetchall())

    def prune(self, round_: int, *, keep: int) -> None:
        """Delete checkpoints, updates and events of rounds that are `keep` rounds old or more."""
        before = round_ - keep
        with self._changing() as base:
            for kind in ("checkpoints", "updates", "events"):
                base.execute(f"DELETE FROM {kind} WHERE round <= ?", (before,))  # noqa: S608

    # -- events -------------------------------------------------------------------------------

    def note(
        self, kind: str, *, plant: str, round_: int, at: datetime, seconds: float | None = None
    ) -> None:
        """Record an event for operators: an answer, a refusal, a malformed message."""
        with self._changing() as base:
            base.execute(
                "INSERT INTO events (made, round, plant, kind, seconds) VALUES (?, ?, ?, ?, ?)",
                (instant(at), round_, plant, kind, seconds),
            )

    def counts(self) -> dict[tuple[str, str], int]:
        """Return the number of events of each plant and kind."""
        rows = self._base.execute("SELECT plant, kind, COUNT(*) FROM events GROUP BY plant, kind")
        return {(plant, kind): count for plant, kind, count in rows}

    def mean_seconds(self, kind: str) -> dict[str, float]:
        """Return the mean duration of one kind of event, by plant."""
        rows = self._base.execute(
            "SELECT plant, AVG(seconds) FROM events WHERE kind = ? GROUP BY plant", (kind,)
        )
        return {plant: seconds for plant, seconds in rows if seconds is not None}

    def _set(self, plant: str, change: str, *values: object) -> None:
        # `change` is one of the literals above; values go as parameters.
        with self._changing() as base:
            cursor = base.execute(
                f"UPDATE plants SET {change} WHERE name = ?",  # noqa: S608
                (*values, plant),
            )
        if cursor.rowcount != 1:
            raise SettingError(
                f"plant {plant!r} has not joined; 'sluice coordinator status' lists those that have"
            )

    def _add_columns(self) -> None:
        existing = {row[1] for row in self._base.execute("PRAGMA table_info(plants)")}
        for name, kind in COLUMNS:
            if name not in existing:
                self._base.execute(f"ALTER TABLE plants ADD COLUMN {name} {kind}")

    @contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        """Yield the database inside a transaction; roll all changes back on an error."""
        try:
            self._base.execute("BEGIN IMMEDIATE")
            try:
                yield self._base
                self._base.execute("COMMIT")
            except BaseException:
                if self._base.in_transaction:
                    self._base.execute("ROLLBACK")
                raise
        except sqlite3.Error as error:
            raise SettingError(
                f"the store cannot be written ({error}); nothing was changed: free disk space and "
                "run 'sluice coordinator resume'"
            ) from None


def _digest(secret: str) -> str:
    return hashlib.sha256(bytes.fromhex(secret)).hexdigest()
