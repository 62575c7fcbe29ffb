"""The `network:NAME` plants: water networks solved by EPANET and read as a control room would."""

from sluice.plants.network.attacks import AttackKind
from sluice.plants.network.model import BUNDLED
from sluice.plants.network.plant import simulate

__all__ = ["BUNDLED", "AttackKind", "simulate"]
