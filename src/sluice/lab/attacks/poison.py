"""A malicious client's poison: the record it shows, the one it trains on, and the planted rows.

The gate counts each row of a batch once; training may use a row more often. A client that resamples
its windows can take half of them from a hundredth of its rows. A client that shows another shard is
judged by that shard (`shown` is not `trained`).
"""

from dataclasses import dataclass, replace

import numpy as np

from sluice.arrays import Bools, frozen
from sluice.errors import SettingError
from sluice.lab.attacks.data_attack import DataAttack, InTurn
from sluice.lab.attacks.fabrications import RegimeSplicing
from sluice.telemetry import Record, Windows

__all__ = ["EXPOSURE", "Poison", "exposed", "moves_rows"]

EXPOSURE = 0.5
"""The paper's malicious clients draw half of their training windows from replayed attacks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Poison:
    """A malicious client's telemetry; without an exposure, each window is trained on once."""

    shown: Record  # what the gate judges
    trained: Record  # what windows are cut from
    planted: Bools  # rows of `trained` that hold the attack to be learnt as normal
    exposure: float | None = None  # share of training windows that touch a planted row

    def __post_init__(self) -> None:
        if self.planted.shape != (len(self.trained),):
            raise SettingError(
                f"record {self.trained.name!r} has {len(self.trained)} rows; planted marks "
                f"{len(self.planted)}"
            )
        if self.exposure is not None:
            _require_share(self.exposure)
        object.__setattr__(self, "planted", frozen(self.planted))

    def fabricated(self, attack: DataAttack, *, seed: int) -> "Poison":
        """Also fabricate the whole shard; planted rows stay where they are.

        If another record is shown than the trained one, the shown one stays unchanged.
        """
        if moves_rows(attack):
            raise SettingError(
                "splicing moves planted rows among the others; splice the shard first, then plant"
            )
        trained = attack(self.trained, seed=seed)
        shown = trained if self.shown is self.trained else self.shown
        return replace(self, shown=shown, trained=trained)

    def windows(self, cut: Windows, *, rng: np.random.Generator) -> Windows:
        """Return the training windows, given all windows of the trained record.

        Without an exposure each window counts once, and `rng` is not used.
        """
        if self.exposure is None:
            return cut
        return exposed(cut, self.planted, self.exposure, rng=rng)


def exposed(windows: Windows, planted: Bools, share: float, *, rng: np.random.Generator) -> Windows:
    """Draw as many windows as there are, a share of them from those that touch planted rows.

    Both parts are drawn with replacement and shuffled, in the order of the paper's implementation:
    planted windows, other windows, shuffle.
    """
    _require_share(share)
    if planted.shape != (len(windows.rows),):
        raise SettingError(
            f"the windows are cut from {len(windows.rows)} rows; planted marks {len(planted)}"
        )
    touching = windows.touching(planted)
    wanted = int(share * len(windows))
    parts = ((np.flatnonzero(touching), wanted), (np.flatnonzero(~touching), len(windows) - wanted))
    for candidates, count in parts:
        if count and not len(candidates):
            raise SettingError(
                f"{touching.sum()} of {len(windows)} windows touch a planted row; an exposure of "
                f"{share:g} cannot be drawn from them"
            )
    drawn = np.concatenate(
        [rng.choice(candidates, count) for candidates, count in parts if len(candidates)]
    )
    return windows.take(rng.permutation(drawn))


def _require_share(share: float) -> None:
    if not 0 < share <= 1:
        raise SettingError(f"an exposure is a share of windows above 0, at most 1; got {share}")


def moves_rows(attack: DataAttack) -> bool:
    """Return whether an attack reorders whole rows, so that `planted` would mark wrong rows."""
    if isinstance(attack, InTurn):
        return any(moves_rows(one) for one in attack.attacks)
    return isinstance(attack, RegimeSplicing)
