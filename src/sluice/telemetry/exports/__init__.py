"""Exports of historians: text dialects, clocks, cells, wide and long tables, and resampling."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
