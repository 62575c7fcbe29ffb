"""The command line: each command is a thin layer over one function of the Python API."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
