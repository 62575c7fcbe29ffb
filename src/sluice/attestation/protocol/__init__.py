"""The protocol moves plant, coordinator and verifier from commitment to verified proof."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
