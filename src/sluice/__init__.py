"""Sluice: physics-attested federated learning for critical water infrastructure."""

__all__ = ["__version__"]

__version__ = "0.1.0"
