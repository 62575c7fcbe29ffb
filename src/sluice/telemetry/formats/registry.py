"""The formats that are recognised by their content, in the order in which they are tried."""

from sluice.plugins import Registry
from sluice.telemetry.formats.batadal import BATADAL
from sluice.telemetry.formats.format import Format
from sluice.telemetry.formats.hai import HAI
from sluice.telemetry.formats.ipal import IPAL
from sluice.telemetry.formats.swat import SWAT
from sluice.telemetry.formats.wadi import WADI
from sluice.telemetry.formats.wdt import WDT

__all__ = ["FORMATS"]

FORMATS: Registry[Format] = Registry(
    {known.name: known for known in (SWAT, WADI, BATADAL, HAI, WDT, IPAL)},
    group="sluice.formats",
    reserved=("plain",),
)
