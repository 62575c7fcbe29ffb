"""The sampled system proves rows drawn after the commitment, with Groth16."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
