"""Audits measure how well a gate separates honest from fabricated telemetry."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
