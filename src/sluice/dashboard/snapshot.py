"""What a federation looks like at one moment, read from its folder and from nothing else."""

from dataclasses import dataclass
from pathlib import Path

from sluice.attestation.entries import ENTRIES, ClientExcluded, ModelAggregated
from sluice.attestation.log import read_log
from sluice.errors import SluiceError
from sluice.network.site import Site
from sluice.network.store import Member, Store

__all__ = ["PlantRow", "RoundRow", "Snapshot", "take"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlantRow:
    """One plant: its state, and of a refusal the step and no more."""

    name: str
    state: str
    failed: int
    malformed: int
    prove_s: float | None
    verify_s: float | None
    seen: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRow:
    """One finished round: who had a part in it, and who was left out at which step."""

    round: int
    members: tuple[str, ...]
    excluded: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The whole federation."""

    federation: str
    round: int
    rounds: int
    phase: str
    entries: int
    fault: str  # of the log; empty where it verifies
    plants: tuple[PlantRow, ...]
    history: tuple[RoundRow, ...]


def take(folder: Path) -> Snapshot:
    """Verify the log and read the store."""
    site = Site(folder)
    terms = site.terms
    store = Store(site.base, read_only=True)
    try:
        plants = tuple(_plant(member, store) for member in store.members())
    finally:
        store.close()
    try:
        ledger = read_log(site.log)
    except SluiceError as error:
        return Snapshot(
            federation=terms.federation,
            round=0,
            rounds=terms.rounds,
            phase="the log does not verify",
            entries=0,
            fault=str(error),
            plants=plants,
            history=(),
        )
    standing = ledger.rounds.standing
    phase = "not begun"
    if standing is not None:
        open_phase = "updates are revealed" if standing.closed else "tokens are taken"
        phase = "between rounds" if standing.aggregated else open_phase
    return Snapshot(
        federation=terms.federation,
        round=ledger.rounds.last,
        rounds=terms.rounds,
        phase=phase,
        entries=ledger.size,
        fault="",
        plants=plants,
        history=_history(site.log),
    )


def _plant(member: Member, store: Store) -> PlantRow:
    state = "attested" if member.attestation else f"left out at step {member.step or '4'}"
    if not member.active:
        state = "removed" if member.removed else "suspended"
    return PlantRow(
        name=member.name,
        state=state,
        failed=member.failed,
        malformed=store.counts().get((member.name, "malformed"), 0),
        prove_s=store.mean_seconds("answered batch").get(member.name),
        verify_s=store.mean_seconds("verified").get(member.name),
        seen=member.seen,
    )


def _history(log: Path) -> tuple[RoundRow, ...]:
    excluded: list[tuple[str, str]] = []
    found: list[RoundRow] = []
    for line in log.read_bytes().splitlines():
        match ENTRIES.read(line).body:
            case ClientExcluded(client=client, step=step):
                excluded.append((client, step))
            case ModelAggregated(round=number, clients=clients):
                row = RoundRow(round=number, members=clients, excluded=tuple(excluded))
                found.append(row)
                excluded = []
            case _:
                pass
    return tuple(found)
