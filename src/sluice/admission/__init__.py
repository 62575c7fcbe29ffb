"""Admission judges a client's batch against its plant's rules and returns a verdict."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
