"""Aggregation combines the updates of a round into one and reports each client's influence."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
