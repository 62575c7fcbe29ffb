"""Loaders, one module per make of record; the first that recognises a file reads it."""

from sluice.telemetry.formats.batadal import BATADAL
from sluice.telemetry.formats.format import Fill, Format
from sluice.telemetry.formats.hai import HAI
from sluice.telemetry.formats.ipal import IPAL
from sluice.telemetry.formats.plain import plain
from sluice.telemetry.formats.swat import SWAT
from sluice.telemetry.formats.wadi import WADI
from sluice.telemetry.formats.wdt import WDT

__all__ = ["FORMATS", "Fill", "Format", "plain"]

FORMATS: tuple[Format, ...] = (SWAT, WADI, BATADAL, HAI, WDT, IPAL)
