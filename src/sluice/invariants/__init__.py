"""Invariants are relations mined from clean records, with the tolerances calibrated for them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
