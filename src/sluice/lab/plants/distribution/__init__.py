"""The `network:NAME` plants: water networks solved by EPANET, as a control room reads them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
