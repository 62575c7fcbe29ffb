"""Aggregation turns the updates of a round into one, and says who had how much part in it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
