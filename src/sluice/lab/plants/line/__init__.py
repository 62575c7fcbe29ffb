"""The `line` plant: three tanks and four pumps in a row, with exact physics.

    source -> PU1 -> T1 -> PU2 -> T2 -> PU3 -> T3 -> PU4 -> demand

One row is one minute. A flow reading is the mean flow of the minute that ends at its row, and it is
the flow that moved the water: pump unsteadiness is in the true flow, only levels carry metering
noise. Each tank balance is therefore exact up to the noise of its two level readings. Pump i
(1 to 3) fills tank i between two set-points and follows its command two rows late; PU4 follows the
demand. A dry tank limits the flow of the pump behind it. A full tank spills, which no meter shows.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
