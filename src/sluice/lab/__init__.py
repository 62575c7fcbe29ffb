"""The lab simulates plants, attacks gates and measures defences; the runtime never imports it.

from sluice import lab

clean = lab.simulate("line", seed=0, days=20)
rolled = lab.attack(clean, "channel-roll", seed=0)
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
