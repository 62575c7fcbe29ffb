"""The state of a federation at one moment, read from its folder only."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sluice.attestation.log import (
    ENTRIES,
    ClientExcluded,
    ModelAggregated,
    RoundOpened,
    Standing,
    read_log,
)
from sluice.errors import SluiceError
from sluice.network.coordinator import CoordinatorFolder, CoordinatorStore, Member
from sluice.reports.dashboard.quality import ModelEvaluator, RoundQuality
from sluice.reports.dashboard.step_names import plain

__all__ = ["PlantRow", "RoundRow", "Snapshot", "history", "take"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRow:
    """One finished round: the plants that took part, and the step at which others were left out."""

    round: int
    model: str
    members: tuple[str, ...]
    excluded: tuple[tuple[str, str], ...]
    seconds: float


def history(log: Path) -> tuple[RoundRow, ...]:
    """Read the finished rounds of a verified log."""
    excluded: list[tuple[str, str]] = []
    rows: list[RoundRow] = []
    opened = ""
    for line in log.read_bytes().splitlines():
        entry = ENTRIES.read(line)
        match entry.body:
            case RoundOpened():
                opened, excluded = entry.time, []
            case ClientExcluded(client=client, step=step):
                excluded.append((client, step))
            case ModelAggregated(round=number, model=model, clients=clients):
                lasted = datetime.fromisoformat(entry.time) - datetime.fromisoformat(opened)
                row = RoundRow(
                    round=number,
                    model=model,
                    members=clients,
                    excluded=tuple(excluded),
                    seconds=lasted.total_seconds(),
                )
                rows.append(row)
            case _:
                pass
    return tuple(rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantRow:
    """One plant and its state; for a refusal only the step."""

    name: str
    state: str
    why: str  # the step in words; empty if it takes part
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
    round: int
    rounds: int
    phase: str
    until: str  # the deadline of the phase; empty if it has none
    entries: int
    head: str
    fault: str  # why the log does not verify; empty if it does
    plants: tuple[PlantRow, ...]
    history: tuple[RoundRow, ...]
    quality: tuple[RoundQuality, ...]


def take(folder: Path, evaluator: ModelEvaluator | None = None) -> Snapshot:
    """Verify the log, read the store, and measure the rounds' models if an evaluator is given."""
    site = CoordinatorFolder(folder)
    terms = site.terms
    store = CoordinatorStore(site.base, read_only=True)
    try:
        plants = tuple(_plant(member, store) for member in store.members())
    finally:
        store.close()
    try:
        ledger, rounds = read_log(site.log), history(site.log)
    except SluiceError as error:
        return Snapshot(
            federation=terms.federation,
            gate=_gate(terms.system, shadow=False),
            round=0,
            rounds=terms.rounds,
            phase="the log does not verify",
            until="",
            entries=0,
            head="",
            fault=str(error),
            plants=plants,
            history=(),
            quality=(),
        )
    given_up = ledger.rounds.last - ledger.rounds.counted if ledger.rounds.between else 0
    phase, until = _phase(ledger.rounds.standing, last=terms.rounds + given_up)
    models = [(row.round, row.model) for row in rounds]
    return Snapshot(
        federation=terms.federation,
        gate=_gate(terms.system, shadow=ledger.exemptions.shadow(at=ledger.time)),
        round=ledger.rounds.last,
        rounds=terms.rounds,
        phase=phase,
        until=until,
        entries=ledger.size,
        head=ledger.head("coordinator").last,
        fault="",
        plants=plants,
        history=rounds,
        quality=evaluator.measured(models) if evaluator else (),
    )


def _gate(system: str, *, shadow: bool) -> str:
    how = "in the clear" if system == "unsafe" else "by zero-knowledge proof"
    return f"{how} ({system}){', in shadow mode: refusals are only logged' if shadow else ''}"


def _phase(standing: Standing | None, *, last: int) -> tuple[str, str]:
    if standing is None:
        return "not started", ""
    if standing.ended:
        return ("finished" if standing.opened.round >= last else "between rounds"), ""
    if standing.closed:
        return "collecting updates", ""
    return "collecting tokens", standing.opened.deadline


def _plant(member: Member, store: CoordinatorStore) -> PlantRow:
    left_out = member.active and member.attestation is None
    return PlantRow(
        name=member.name,
        state=member.state,
        why=plain(member.step or "4") if left_out else "",
        takes_part=member.active and member.attestation is not None,
        absences=member.absences,
        malformed=store.counts().get((member.name, "malformed"), 0),
        prove_s=store.mean_seconds("answered batch").get(member.name),
        verify_s=store.mean_seconds("verified").get(member.name),
        train_s=store.mean_seconds("answered token").get(member.name),
        seen=member.seen,
    )
