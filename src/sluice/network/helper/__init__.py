"""The helper: a second aggregator of hidden sums, as a server of its own, and its client."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
