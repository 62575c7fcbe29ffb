"""The rounds that are done, as the log tells them."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from sluice.attestation.entries import ENTRIES, ClientExcluded, ModelAggregated, RoundOpened

__all__ = ["RoundRow", "history"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundRow:
    """One finished round: who had a part in it, and who was left out at which step."""

    round: int
    model: str
    members: tuple[str, ...]
    excluded: tuple[tuple[str, str], ...]
    seconds: float


def history(log: Path) -> tuple[RoundRow, ...]:
    """Read the finished rounds of a log that was verified."""
    excluded: list[tuple[str, str]] = []
    found: list[RoundRow] = []
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
                found.append(row)
            case _:
                pass
    return tuple(found)
