"""What `sluice plant check` says of the gain over training alone."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sluice.cli.console import counted, out, table
from sluice.cli.options import open_record, range_of
from sluice.errors import SettingError

if TYPE_CHECKING:
    from sluice.network.plant import Gain, PlantFolder

__all__ = ["UnknownGain", "gain_of", "show_gain", "show_simulated"]


class GainFigures(Protocol):
    """What a simulated consortium came to: each figure by name, alone and together."""

    clients: int
    rounds: int
    alone: Mapping[str, float]
    federation: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownGain:
    """The gain cannot be told, for a reason."""

    reason: str


NO_MODEL = UnknownGain(
    reason="No model of the federation has come here yet, so what you would gain over training "
    "alone cannot be told; --simulate shows what a simulated consortium gains."
)


def gain_of(
    held: "PlantFolder", *, clean: str | None, attacks: Path | None, quiet: bool
) -> "Gain | UnknownGain":
    """Hold the federation's model against one of the plant's own, where there is one."""
    from sluice.network.plant import Own, last_model, measured_gain

    terms, share = held.invitation.terms, held.share
    seen = last_model(held.folder, count=terms.weights)
    if seen is None:
        return NO_MODEL
    whole = share.whole()
    if clean is None and len(whole) == share.stop:
        return UnknownGain(
            reason="The plant trains on the last rows of its record; give --clean A:B, other rows "
            "of it, to be told what you gain over training alone."
        )
    start, stop = range_of(clean, whole, option="--clean") if clean else (share.stop, len(whole))
    if start < share.stop and share.start < stop:
        raise SettingError(
            f"rows {start}:{stop} overlap {share.start}:{share.stop}, which the plant trains on; "
            "give --clean other rows of its record"
        )
    attacked = None if attacks is None else open_record(attacks, every=share.every)
    with counted("rounds alone", seen.round, quiet=quiet) as tick:
        own = Own(
            plant=held.invitation.plant,
            batch=share.read(),
            clean=whole.rows(start, stop),
            attacks=attacked,
        )
        return measured_gain(terms, seen, own, on_round=tick)


def show_gain(gain: "Gain | UnknownGain") -> None:
    """Print both models side by side, and what the figures do not say."""
    if isinstance(gain, UnknownGain):
        out.print(gain.reason, markup=False)
        return
    drawn = table(
        f"\nAfter {gain.rounds} rounds, on {gain.windows:,} clean windows of your own",
        "figure",
        "trained alone",
        "federation",
    )
    alone, joint = gain.alone, gain.federation
    drawn.add_row("mean error of clean windows", f"{alone.error:.4g}", f"{joint.error:.4g}")
    drawn.add_row(
        "false alarms a day",
        f"{alone.false_alarms_per_day:.2g}",
        f"{joint.false_alarms_per_day:.2g}",
    )
    if alone.recall is not None and joint.recall is not None:
        drawn.add_row(
            f"recall on {gain.attacked:,} attack windows",
            f"{alone.recall:.3f}",
            f"{joint.recall:.3f}",
        )
    out.print(drawn)
    if alone.recall is None:
        out.print(
            "Clean rows show how well a model fits, not what it finds: a record of your own with "
            "labelled attacks (--attacks) would.",
            markup=False,
        )


def show_simulated(gain: GainFigures) -> None:
    """Print what a simulated consortium came to."""
    drawn = table(
        f"\n{gain.clients} simulated plants of one kind, {gain.rounds} rounds, none malicious",
        "figure",
        "each alone",
        "federation",
    )
    for name, alone in gain.alone.items():
        drawn.add_row(name.replace("_", " "), f"{alone:.3g}", f"{gain.federation[name]:.3g}")
    out.print(drawn)
    out.print("This is a simulation; your plant, and who joins, decide what you gain.")
