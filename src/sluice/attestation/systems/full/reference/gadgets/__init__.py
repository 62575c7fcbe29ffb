"""The gadgets of the second verifier: groups of columns with the constraints on them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
