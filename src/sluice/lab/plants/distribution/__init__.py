"""The `network:NAME` plants: water networks solved by EPANET and read as a control room would."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
