"""The gain over training alone, which `sluice plant check` measures and prints."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sluice.cli.console import counted, out, table
from sluice.cli.options import range_of
from sluice.errors import SettingError

if TYPE_CHECKING:
    from sluice.network import TrainingRows
    from sluice.network.plant import Gain, Own, PlantFolder, VoteGain
    from sluice.telemetry import Record

__all__ = ["UnknownGain", "clean_rows", "gain_of", "show_gain", "show_simulated"]


class GainFigures(Protocol):
    """The result of a simulated consortium: each figure by name, for plants alone and together."""

    clients: int
    rounds: int
    alone: Mapping[str, float]
    federation: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownGain:
    """The gain cannot be measured, for this reason."""

    reason: str


NO_MODEL = UnknownGain(
    reason="The plant has received no model from the federation yet, so the gain over training "
    "alone cannot be measured; --simulate shows the gain of a simulated consortium."
)


NO_ROWS = UnknownGain(
    reason="The plant trains on the last rows of its record, so no later rows are left to measure "
    "the gain over training alone; give --clean A:B, other rows of the record."
)
ASKED = 1.0  # false alarms a week, as 'sluice plant model' asks for by default


def gain_of(
    plant: "PlantFolder", *, clean: str | None, attacks: Path | None, quiet: bool
) -> "Gain | VoteGain | UnknownGain":
    """Compare the federation's last model with one made of the plant's rows alone."""
    from sluice.network.plant import last_model, last_statistics, measured_gain, measured_vote_gain

    terms = plant.invitation.terms
    if terms.statistic is not None:
        statistics = last_statistics(plant.folder, terms)
        if statistics is None or not statistics.shared.members:
            return NO_MODEL
        own = _own(plant, clean, attacks)
        if own is None:
            return NO_ROWS
        circuit = plant.keys.circuit
        return measured_vote_gain(
            terms, statistics, own, circuit=circuit, false_alarms_per_week=ASKED
        )
    received = last_model(plant.folder, count=terms.weights)
    if received is None:
        return NO_MODEL
    own = _own(plant, clean, attacks)
    if own is None:
        return NO_ROWS
    with counted("rounds alone", received.round, quiet=quiet) as tick:
        return measured_gain(terms, received, own, on_round=tick)


def _own(plant: "PlantFolder", clean: str | None, attacks: Path | None) -> "Own | None":
    """Return the plant's own rows; None if none are left to measure on."""
    from sluice.network.plant import Own

    share = plant.share
    measured_on = clean_rows(share, clean)
    if measured_on is None:
        return None
    return Own(
        plant=plant.invitation.plant,
        batch=share.read(),
        clean=measured_on,
        attacks=None if attacks is None else share.like(attacks),
    )


def clean_rows(share: "TrainingRows", clean: str | None) -> "Record | None":
    """Return rows that the plant does not train on: those named, or those after its own.

    None if it trains on the last rows of its record.
    """
    whole = share.whole()
    if clean is None and len(whole) == share.stop:
        return None
    start, stop = range_of(clean, whole, option="--clean") if clean else (share.stop, len(whole))
    if start < share.stop and share.start < stop:
        raise SettingError(
            f"rows {start}:{stop} overlap rows {share.start}:{share.stop}, which the plant trains "
            "on; give --clean other rows of its record"
        )
    return whole.rows(start, stop)


def show_gain(gain: "Gain | VoteGain | UnknownGain") -> None:
    """Print the figures of both models side by side, and what they do not show."""
    from sluice.network.plant import VoteGain

    if isinstance(gain, UnknownGain):
        out.print(gain.reason, markup=False)
        return
    if isinstance(gain, VoteGain):
        _show_vote(gain)
        return
    figures = table(
        f"\nAfter {gain.rounds} rounds, on {gain.windows:,} clean windows of this plant",
        "figure",
        "trained alone",
        "federation",
    )
    alone, joint = gain.alone, gain.federation
    figures.add_row("mean error of clean windows", f"{alone.error:.4g}", f"{joint.error:.4g}")
    figures.add_row(
        "false alarms per day",
        f"{alone.false_alarms_per_day:.2g}",
        f"{joint.false_alarms_per_day:.2g}",
    )
    if alone.recall is not None and joint.recall is not None:
        figures.add_row(
            f"recall on {gain.attacked:,} attack windows",
            f"{alone.recall:.3f}",
            f"{joint.recall:.3f}",
        )
    out.print(figures)
    if alone.recall is None:
        out.print(
            "Clean rows show how well a model fits, not which attacks it detects. To measure that, "
            "give --attacks, a record of this plant with labelled attacks.",
            markup=False,
        )


def _show_vote(gain: "VoteGain") -> None:
    """Print the figures of the plant's own detector and of the vote."""
    figures = table(
        f"\nFor {gain.asked:g} false alarms a week, on {gain.windows:,} clean windows of the plant",
        "figure",
        f"own {gain.days:.3g} days alone",
        f"vote of {gain.members} members",
    )
    alone, joint = gain.alone, gain.federation
    figures.add_row(
        "false alarms per week",
        f"{alone.false_alarms_per_week:.2g}",
        f"{joint.false_alarms_per_week:.2g}",
    )
    figures.add_row(
        "clean time in alarm", f"{alone.time_in_alarm:.2%}", f"{joint.time_in_alarm:.2%}"
    )
    if alone.recall is not None and joint.recall is not None:
        figures.add_row(
            f"recall on {gain.attacked:,} attack windows",
            f"{alone.recall:.3f}",
            f"{joint.recall:.3f}",
        )
    out.print(figures)
    if alone.recall is None:
        out.print(
            "Clean rows show false alarms, not which attacks are detected. To measure that, give "
            "--attacks, a record of this plant with labelled attacks.",
            markup=False,
        )


def show_simulated(gain: GainFigures) -> None:
    """Print the result of a simulated consortium."""
    figures = table(
        f"\n{gain.clients} simulated plants of one kind, {gain.rounds} rounds, none malicious",
        "figure",
        "each alone",
        "federation",
    )
    for name, alone in gain.alone.items():
        figures.add_row(name.replace("_", " "), f"{alone:.3g}", f"{gain.federation[name]:.3g}")
    out.print(figures)
    out.print("This is a simulation; the real gain depends on your plant and on who joins.")
