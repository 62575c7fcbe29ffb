"""Causes of drift in an engineer's words: leaks, drifting meters, changed set-points, new pumps."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
