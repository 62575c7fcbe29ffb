"""The figures of a federation in the text format that Prometheus reads."""

from collections.abc import Iterator, Mapping

from sluice.reports.dashboard.quality import RoundQuality
from sluice.reports.dashboard.snapshot import Snapshot

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
    if found.history:
        seconds = found.history[-1].seconds
        yield from _gauge("sluice_round_seconds", "How long the last round took.", seconds)
    if found.quality:
        yield from _quality(found.quality[-1])
    yield from _by_plant(
        "sluice_plant_takes_part",
        "1 where a plant is attested and asked.",
        {plant.name: int(plant.takes_part) for plant in found.plants},
    )
    yield from _by_plant(
        "sluice_plant_failed_rounds",
        "Rounds in a row without a plant.",
        {plant.name: plant.failed for plant in found.plants},
    )
    yield from _by_plant(
        "sluice_plant_malformed_total",
        "Answers of a plant that made no sense.",
        {plant.name: plant.malformed for plant in found.plants},
        kind="counter",
    )
    yield from _by_plant(
        "sluice_plant_prove_seconds",
        "From the question to the proof, on the mean.",
        {plant.name: plant.prove_s for plant in found.plants},
    )
    yield from _by_plant(
        "sluice_plant_verify_seconds",
        "Verifying a plant's proof, on the mean.",
        {plant.name: plant.verify_s for plant in found.plants},
    )
    yield from _by_plant(
        "sluice_plant_log_seen",
        "Entries of the log that a plant has countersigned.",
        {plant.name: plant.seen for plant in found.plants},
    )


def _quality(last: RoundQuality) -> Iterator[str]:
    yield from _gauge("sluice_model_error", "Mean error on the clean reference.", last.error)
    yield from _gauge("sluice_model_threshold", "Above it a window alarms.", last.threshold)
    if last.auc_pr is not None:
        yield from _gauge("sluice_model_auc_pr", "On the labelled record.", last.auc_pr)
    if last.recall is not None:
        yield from _gauge("sluice_model_recall", "On the labelled record.", last.recall)


def _by_plant(
    name: str, what: str, values: Mapping[str, float | None], *, kind: str = "gauge"
) -> Iterator[str]:
    # Plants' names are letters, digits, '-', '_' and '.': nothing in a label needs escaping.
    yield f"# HELP {name} {what}"
    yield f"# TYPE {name} {kind}"
    for plant, value in values.items():
        if value is not None:
            yield f'{name}{{plant="{plant}"}} {value}'


def _gauge(name: str, what: str, value: float) -> tuple[str, str, str]:
    return f"# HELP {name} {what}", f"# TYPE {name} gauge", f"{name} {value}"
