"""Plants are simulated records: realistic telemetry for everyone who has no licensed data."""

from sluice.plants.catalogue import PLANTS, Plant, simulate

__all__ = ["PLANTS", "Plant", "simulate"]
