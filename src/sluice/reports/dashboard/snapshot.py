"""The state of a federation at one moment, read from its folder only."""

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sluice.attestation.log import (
    COORDINATOR,
    ENTRIES,
    ClientExcluded,
    Entry,
    Ledger,
    ModelAggregated,
    RoundOpened,
    Standing,
    chained_lines,
    lines_of,
)
from sluice.errors import SluiceError
from sluice.network.coordinator import (
    CoordinatorFolder,
    CoordinatorStore,
    Member,
    PlantState,
    PlantWord,
    plant_state,
    round_progress,
)
from sluice.reports.dashboard.quality import ModelEvaluator, RoundQuality

__all__ = ["ROUNDS_SHOWN", "FollowedLog", "PlantRow", "RoundRow", "Snapshot", "take"]

KINDS = (b'"kind":"round opened"', b'"kind":"excluded"', b'"kind":"aggregated"')
"""The entries that a round's row is made of."""
OPENED = KINDS[0]
PIECE_BYTES = 4 * 1024 * 1024
PIECE_ENTRIES = 1_024
ROUNDS_SHOWN = 200
"""The page has this many rounds, the last ones: reading them is quick, however long the log is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRow:
    """One finished round: the plants that took part, and the step at which others were left out."""

    round: int
    model: str
    members: tuple[str, ...]
    excluded: tuple[tuple[str, str], ...]
    seconds: float


class FollowedLog:
    """A log that is verified step by step: each view verifies only the entries since the last one.

    The first view begins after the coordinator's signed snapshot, if there is one. Of the rounds
    before it, only the last are read; their entries are chained to the snapshot by their hashes.
    """

    def __init__(self, site: CoordinatorFolder) -> None:
        self._site = site
        self._path = site.log
        self._lock = threading.Lock()
        self._begin()

    def _begin(self) -> None:
        self._reader = self._site.reader()
        ledger = self._reader.ledger
        self.trusted = ledger.size  # entries of the snapshot, which are not verified again
        self._last = ledger.head(COORDINATOR).last if ledger.size else ""
        self._read = 0  # entries of which the rounds are known
        self._opened = ""
        self._excluded: list[tuple[str, str]] = []
        self._rounds: list[RoundRow] = []

    def follow(self) -> tuple[Ledger, tuple[RoundRow, ...]]:
        """Verify new entries; return what the log says, and its last finished rounds."""
        with self._lock:
            try:
                ledger = self._reader.catch_up()
                if self._read < self.trusted:
                    self._recall()
            except SluiceError:
                self._begin()  # an operator may put the right file back
                raise
            while self._read < ledger.size:
                lines = lines_of(
                    self._path, start=self._read, stop=ledger.size, largest=PIECE_BYTES
                )
                if not lines:
                    break
                self._note_all(lines)
                self._read += len(lines)
            return ledger, tuple(self._rounds)

    def _recall(self) -> None:
        """Read the last rounds of the snapshot, backwards from its last entry."""
        stop, last, opened = self.trusted, self._last, 0
        pieces: list[tuple[bytes, ...]] = []
        while stop and opened <= ROUNDS_SHOWN:
            lines, last = chained_lines(self._path, stop=stop, last=last, most=PIECE_ENTRIES)
            pieces.append(tuple(line for line in lines if any(kind in line for kind in KINDS)))
            opened += sum(OPENED in line for line in pieces[-1])
            stop -= len(lines)
        for piece in reversed(pieces):
            self._note_all(piece)
        self._read = self.trusted

    def _note_all(self, lines: Iterable[bytes]) -> None:
        for line in lines:
            if any(kind in line for kind in KINDS):
                self._note(ENTRIES.read(line))
        del self._rounds[:-ROUNDS_SHOWN]

    def _note(self, entry: Entry) -> None:
        match entry.body:
            case RoundOpened():
                self._opened, self._excluded = entry.time, []
            case ClientExcluded(client=client, step=step):
                self._excluded.append((client, step))
            case ModelAggregated(round=number, model=model, clients=clients) if self._opened:
                lasted = datetime.fromisoformat(entry.time) - datetime.fromisoformat(self._opened)
                row = RoundRow(
                    round=number,
                    model=model,
                    members=clients,
                    excluded=tuple(self._excluded),
                    seconds=lasted.total_seconds(),
                )
                self._rounds.append(row)
            case _:
                pass


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantRow:
    """One plant and its state; for a refusal only the step."""

    name: str
    state: PlantState
    takes_part: bool
    absences: int
    malformed: int
    prove_s: float | None  # from the question to the proof, with the transfer
    verify_s: float | None
    train_s: float | None  # from the question to the token, with the transfer
    seen: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The whole federation."""

    federation: str
    gate: str
    any_age: bool  # batches may be of any time in the past (--history)
    round: int  # the log's number of the last round that was opened
    progress: int  # which of the agreed rounds this is: rounds that were given up do not count
    rounds: int  # agreed in the terms
    phase: str
    until: str  # the deadline of the phase; empty if it has none
    entries: int
    trusted: int  # entries that the coordinator verified earlier, by its signed snapshot
    head: str
    fault: str  # why the log does not verify; empty if it does
    plants: tuple[PlantRow, ...]
    history: tuple[RoundRow, ...]
    quality: tuple[RoundQuality, ...]
    statistic: str = ""  # whether statistics are bound, and how much they cover; empty without


def _statistic(ledger: Ledger) -> str:
    """Return how statistics are shared, and in which groups; empty without statistics."""
    terms = ledger.opened.statistic
    if terms is None:
        return ""
    groups = ledger.groups.sentences if ledger.grouped else ()
    return f"{terms.sentence} {'; '.join(groups)}".strip()


def take(
    folder: Path, evaluator: ModelEvaluator | None = None, log: FollowedLog | None = None
) -> Snapshot:
    """Verify the log, read the store, and measure the rounds' models if an evaluator is given.

    With a log that is followed, only its new entries are verified.
    """
    site = CoordinatorFolder(folder)
    terms = site.terms
    log = log or FollowedLog(site)
    store = CoordinatorStore(site.base, read_only=True)
    try:
        ledger, rounds = log.follow()
        plants = tuple(_plant(member, store, ledger) for member in store.members())
    except SluiceError as error:
        plants = tuple(_plant(member, store, None) for member in store.members())
        return Snapshot(
            federation=terms.federation,
            gate=_gate(terms.system, shadow=False),
            any_age=False,
            round=0,
            progress=0,
            rounds=terms.rounds,
            phase="the log does not verify",
            until="",
            entries=0,
            trusted=0,
            head="",
            fault=str(error),
            plants=plants,
            history=(),
            quality=(),
        )
    finally:
        store.close()
    finished = ledger.rounds.counted >= terms.rounds
    phase, until = _phase(ledger.rounds.standing, finished=finished)
    models = [(row.round, row.model) for row in rounds]
    return Snapshot(
        federation=terms.federation,
        gate=_gate(terms.system, shadow=ledger.exemptions.shadow(at=ledger.time)),
        any_age=ledger.terms.history,
        statistic=_statistic(ledger),
        round=ledger.rounds.last,
        progress=round_progress(ledger),
        rounds=max(terms.rounds, round_progress(ledger)),
        phase=phase,
        until=until,
        entries=ledger.size,
        trusted=log.trusted,
        head=ledger.head("coordinator").last,
        fault="",
        plants=plants,
        history=rounds,
        quality=evaluator.measured(models) if evaluator else (),
    )


def _gate(system: str, *, shadow: bool) -> str:
    how = "in the clear" if system == "unsafe" else "by zero-knowledge proof"
    return f"{how} ({system}){', in shadow mode: refusals are only logged' if shadow else ''}"


def _phase(standing: Standing | None, *, finished: bool) -> tuple[str, str]:
    if standing is None:
        return "not started", ""
    if standing.ended:
        return ("finished" if finished else "between rounds"), ""
    if standing.closed:
        return "collecting updates", ""
    return "collecting tokens", standing.opened.deadline


def _plant(member: Member, store: CoordinatorStore, ledger: Ledger | None) -> PlantRow:
    """Return a plant's row; without a log that verifies, nothing is known about its state."""
    unknown = PlantState(word=PlantWord.WAITING, detail="the log does not verify")
    state = plant_state(member, ledger) if ledger else unknown
    return PlantRow(
        name=member.name,
        state=state,
        takes_part=state.takes_part,
        absences=member.absences,
        malformed=store.counts().get((member.name, "malformed"), 0),
        prove_s=store.mean_seconds("answered batch").get(member.name),
        verify_s=store.mean_seconds("verified").get(member.name),
        train_s=store.mean_seconds("answered token").get(member.name),
        seen=member.seen,
    )
