"""Telemetry turns plant files of any known make into a `Record`."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
