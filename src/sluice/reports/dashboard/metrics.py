"""The figures of a federation in the text format of Prometheus."""

from collections.abc import Iterator, Mapping

from sluice.reports.dashboard.quality import RoundQuality
from sluice.reports.dashboard.snapshot import Snapshot

__all__ = ["exposition"]


def exposition(snapshot: Snapshot) -> str:
    """Return the figures, one per line."""
    return "\n".join(_lines(snapshot)) + "\n"


def _lines(snapshot: Snapshot) -> Iterator[str]:
    yield from _gauge("sluice_round", "The last round that was opened.", snapshot.round)
    yield from _gauge("sluice_rounds", "Number of rounds in the terms.", snapshot.rounds)
    yield from _gauge(
        "sluice_rounds_progress",
        "Which of these runs, or was the last to end; rounds given up do not count.",
        snapshot.progress,
    )
    yield from _gauge("sluice_log_entries", "Number of log entries.", snapshot.entries)
    yield from _gauge("sluice_log_verifies", "1 if the log verifies.", int(not snapshot.fault))
    yield from _gauge(
        "sluice_history", "1 if batches may be of any age (--history).", int(snapshot.any_age)
    )
    last = snapshot.history[-1].members if snapshot.history else ()
    yield from _gauge("sluice_members", "Plants in the last finished round.", len(last))
    if snapshot.history:
        seconds = snapshot.history[-1].seconds
        yield from _gauge("sluice_round_seconds", "Duration of the last round.", seconds)
    if snapshot.quality:
        yield from _quality(snapshot.quality[-1])
    yield from _by_plant(
        "sluice_plant_takes_part",
        "1 if a plant is attested and was not left out of the last round.",
        {plant.name: int(plant.takes_part) for plant in snapshot.plants},
    )
    yield from _by_plant(
        "sluice_plant_absent_rounds",
        "Recent rounds in which a plant gave no valid answer in time.",
        {plant.name: plant.absences for plant in snapshot.plants},
    )
    yield from _by_plant(
        "sluice_plant_malformed_total",
        "Malformed answers of a plant.",
        {plant.name: plant.malformed for plant in snapshot.plants},
        kind="counter",
    )
    yield from _by_plant(
        "sluice_plant_prove_seconds",
        "Mean time from the question to the proof.",
        {plant.name: plant.prove_s for plant in snapshot.plants},
    )
    yield from _by_plant(
        "sluice_plant_verify_seconds",
        "Mean time to verify a plant's proof.",
        {plant.name: plant.verify_s for plant in snapshot.plants},
    )
    yield from _by_plant(
        "sluice_plant_log_seen",
        "Log entries that a plant has countersigned.",
        {plant.name: plant.seen for plant in snapshot.plants},
    )


def _quality(last: RoundQuality) -> Iterator[str]:
    yield from _gauge("sluice_model_error", "Mean error on the clean reference.", last.error)
    yield from _gauge(
        "sluice_model_threshold", "Score above which a window raises an alarm.", last.threshold
    )
    if last.auc_pr is not None:
        yield from _gauge("sluice_model_auc_pr", "AUC-PR on the labelled record.", last.auc_pr)
    if last.recall is not None:
        yield from _gauge("sluice_model_recall", "Recall on the labelled record.", last.recall)


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
