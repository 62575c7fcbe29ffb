"""Templates name the points that plants of one kind share, and map a plant's tags to them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
