"""Proof systems commit to a batch, prove its verdict and verify the proof."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
