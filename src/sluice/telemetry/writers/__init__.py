"""Writers put a record into a file of a known make, whole or not at all."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
