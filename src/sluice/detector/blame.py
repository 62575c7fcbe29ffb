"""The tags and rules behind an alarm, worst first."""

from dataclasses import dataclass

import numpy as np

from sluice.arrays import Floats

__all__ = ["Blame", "tags_to_blame"]

MOST_NAMES = 5
SHARE = 0.1  # of a window's score: tags with less are not named beside the worst


@dataclass(frozen=True, slots=True, kw_only=True)
class Blame:
    """Why a window is an alarm: tags by the model, rules by the physics; each worst first."""

    tags: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    rules_first: bool = False  # the rules are more surprised than the model

    @property
    def names(self) -> tuple[str, ...]:
        """Tags and rules together, worst first."""
        return (*self.rules, *self.tags) if self.rules_first else (*self.tags, *self.rules)


def tags_to_blame(shares: Floats, names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """Return, per window, the channels with the largest shares, worst first; at least one."""
    order = np.argsort(-shares, axis=1, kind="stable")[:, :MOST_NAMES]
    return tuple(
        tuple(
            names[at]
            for place, at in enumerate(places)
            if own[at] > 0 and (place == 0 or own[at] >= SHARE)
        )
        for own, places in zip(shares, order, strict=True)
    )
