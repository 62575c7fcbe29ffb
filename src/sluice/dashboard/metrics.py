"""The figures of a federation in the text format that Prometheus reads."""

from collections.abc import Iterator

from sluice.dashboard.snapshot import Snapshot

__all__ = ["exposition"]


def exposition(found: Snapshot) -> str:
    """Return the figures, one a line."""
    return "\n".join(_lines(found)) + "\n"


def _lines(found: Snapshot) -> Iterator[str]:
    yield from _gauge("sluice_round", "The last round that was opened.", found.round)
    yield from _gauge("sluice_rounds", "Rounds that were agreed on.", found.rounds)
    yield from _gauge("sluice_log_entries", "Entries of the log.", found.entries)
    yield from _gauge("sluice_log_verifies", "1 where the log verifies.", int(not found.fault))
    last = found.history[-1].members if found.history else ()
    yield from _gauge("sluice_members", "Plants in the last finished round.", len(last))
    yield "# HELP sluice_plant_failed_rounds Rounds in a row without a plant."
    yield "# TYPE sluice_plant_failed_rounds gauge"
    for plant in found.plants:
        yield f'sluice_plant_failed_rounds{{plant="{plant.name}"}} {plant.failed}'
    yield "# HELP sluice_plant_malformed_total Answers of a plant that made no sense."
    yield "# TYPE sluice_plant_malformed_total counter"
    for plant in found.plants:
        yield f'sluice_plant_malformed_total{{plant="{plant.name}"}} {plant.malformed}'


def _gauge(name: str, what: str, value: float) -> tuple[str, str, str]:
    return f"# HELP {name} {what}", f"# TYPE {name} gauge", f"{name} {value}"
