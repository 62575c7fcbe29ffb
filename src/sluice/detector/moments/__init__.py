"""Moments turn a plant's rows into lagged sums that can be added, and the sums into a detector."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
