from .catalogue import PLANTS, Plant, simulate

__all__ = ["PLANTS", "Plant", "simulate"]
