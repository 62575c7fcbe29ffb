"""Evaluation measures how well a detector finds attacks, and what poisoning and defences change."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
