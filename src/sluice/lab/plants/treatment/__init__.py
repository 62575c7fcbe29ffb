"""A simulated six-stage treatment plant with SWaT's 51 tags, for users without SWaT's data."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
