"""Loaders, one module per format; the first that recognises a file reads it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
