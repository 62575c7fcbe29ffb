"""Hidden sums: a coordinator and a helper learn the sum of a group's statistics, and no more."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
