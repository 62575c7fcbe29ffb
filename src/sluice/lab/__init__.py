"""The lab puts plants, liars, gates and rules together and measures what comes of it."""

from sluice.lab.modes import MODES, Adversary, Mode, Roster
from sluice.lab.scenario import Scenario, Setup, scenario

__all__ = ["MODES", "Adversary", "Mode", "Roster", "Scenario", "Setup", "scenario"]
