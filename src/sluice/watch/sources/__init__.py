"""Where rows come from: records, streams of text, growing files, brokers and OPC UA servers."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
