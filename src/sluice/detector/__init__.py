"""The detector learns clean windows and raises an alarm for windows that differ.

Only training imports jax and only export imports onnx: scoring a record needs neither.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
