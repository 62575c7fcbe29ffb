"""The federation runs rounds: who may take part, what goes out, what comes back, what is kept."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
