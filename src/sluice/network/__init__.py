"""The network carries a federation's messages between sites, on Flower, behind a proxy."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
