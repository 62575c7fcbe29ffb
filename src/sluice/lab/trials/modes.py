"""The table of modes: what malicious clients do, whether a gate judges, which clients take part."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

__all__ = ["MODES", "Adversary", "Mode", "Roster"]


class Adversary(StrEnum):
    """What the malicious clients of a scenario do."""

    NONE = "none"  # they take part like honest clients
    PLAIN = "plain"  # they attack without regard to the rules (non-adaptive)
    PROJECTED = "projected"  # they project their batch onto the rules before they show it


class Roster(StrEnum):
    """Which clients are invited."""

    ALL = "all"
    HONEST_ONLY = "without-liars"
    EACH_ALONE = "each-alone"  # one federation per plant, and the mean over plants
    POOLED = "pooled"  # one client that holds the rows of all clients


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """One row of the table of modes."""

    name: str
    adversary: Adversary
    gated: bool
    roster: Roster
    bound: bool = False  # clients share only the statistic that their proof binds to the batch

    @property
    def attacked(self) -> bool:
        """Whether malicious clients attack in this mode."""
        return self.adversary is not Adversary.NONE


MODES: Mapping[str, Mode] = MappingProxyType(
    {
        mode.name: mode
        for mode in (
            Mode(name="clean", adversary=Adversary.NONE, gated=False, roster=Roster.ALL),
            Mode(
                name="honest-only",
                adversary=Adversary.NONE,
                gated=False,
                roster=Roster.HONEST_ONLY,
            ),
            Mode(name="naive", adversary=Adversary.PLAIN, gated=False, roster=Roster.ALL),
            Mode(
                name="physics-aware", adversary=Adversary.PROJECTED, gated=False, roster=Roster.ALL
            ),
            Mode(name="gated", adversary=Adversary.PROJECTED, gated=True, roster=Roster.ALL),
            Mode(
                name="local-only", adversary=Adversary.NONE, gated=False, roster=Roster.EACH_ALONE
            ),
            Mode(name="centralised", adversary=Adversary.NONE, gated=False, roster=Roster.POOLED),
            Mode(
                name="bound",
                adversary=Adversary.PROJECTED,
                gated=True,
                roster=Roster.ALL,
                bound=True,
            ),
        )
    }
)
"""The paper's five modes, two references (each plant alone, all rows pooled), and `bound`.

In mode `bound`, malicious clients can also falsify the statistic; without an attack, all clients
are honest.
"""
