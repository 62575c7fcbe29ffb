"""The formats that Sluice recognises by themselves, in the order in which they are tried."""

from sluice.telemetry.formats.batadal import BATADAL
from sluice.telemetry.formats.format import Format
from sluice.telemetry.formats.hai import HAI
from sluice.telemetry.formats.ipal import IPAL
from sluice.telemetry.formats.swat import SWAT
from sluice.telemetry.formats.wadi import WADI
from sluice.telemetry.formats.wdt import WDT

__all__ = ["FORMATS"]

FORMATS: tuple[Format, ...] = (SWAT, WADI, BATADAL, HAI, WDT, IPAL)
