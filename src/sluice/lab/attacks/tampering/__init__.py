"""Tampering: attacks on what a gate's rules do not read, each as strong as its gate admits."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
