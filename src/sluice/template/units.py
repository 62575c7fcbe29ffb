"""Units that water plants use, and how a reading in one becomes a reading in another."""

from dataclasses import dataclass

from sluice.errors import PlantFileError

__all__ = ["Conversion", "conversion", "same_dimension"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversion:
    """An affine conversion: the new reading is `factor` times the old one, plus `offset`."""

    factor: float
    offset: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unit:
    dimension: str
    factor: float  # of one unit, in the dimension's own unit
    offset: float = 0.0  # of the zero, in the dimension's own unit


_FOOT_M = 0.3048
_GALLON_M3 = 3.785411784e-3
_POUND_PER_SQUARE_INCH_KPA = 6.894757293168

_UNITS = {
    "length": {"m": 1.0, "cm": 0.01, "mm": 0.001, "ft": _FOOT_M, "in": _FOOT_M / 12},
    "flow": {
        "m3/h": 1 / 3600,
        "m3/s": 1.0,
        "m3/d": 1 / 86_400,
        "l/s": 1e-3,
        "l/min": 1e-3 / 60,
        "l/h": 1e-3 / 3600,
        "gpm": _GALLON_M3 / 60,
        "mgd": _GALLON_M3 * 1e6 / 86_400,
    },
    "pressure": {
        "kpa": 1.0,
        "pa": 1e-3,
        "mpa": 1e3,
        "bar": 100.0,
        "mbar": 0.1,
        "psi": _POUND_PER_SQUARE_INCH_KPA,
        "mh2o": 9.80665,
    },
    "conductivity": {"us/cm": 1.0, "ms/cm": 1e3, "ms/m": 10.0},
    "voltage": {"mv": 1.0, "v": 1e3},
    "acidity": {"ph": 1.0},
    "concentration": {"mg/l": 1.0, "ppm": 1.0, "g/m3": 1.0, "ug/l": 1e-3},
    "turbidity": {"ntu": 1.0, "fnu": 1.0},
    "speed": {"rpm": 1.0, "1/min": 1.0, "hz": 60.0},
    "share": {"%": 1.0},
}
_TABLE = {
    name: _Unit(dimension=dimension, factor=factor)
    for dimension, units in _UNITS.items()
    for name, factor in units.items()
}
_TABLE["degc"] = _Unit(dimension="temperature", factor=1.0)
_TABLE["degf"] = _Unit(dimension="temperature", factor=5 / 9, offset=-160 / 9)
_TABLE["k"] = _Unit(dimension="temperature", factor=1.0, offset=-273.15)


def _known(unit: str) -> _Unit | None:
    plain = unit.strip().lower().replace("³", "3").replace("µ", "u").replace("μ", "u")
    plain = plain.replace("°", "deg").replace("m^3", "m3").replace(" ", "")
    plain = {"cmh": "m3/h", "lps": "l/s", "lpm": "l/min", "m3h": "m3/h"}.get(plain, plain)
    return _TABLE.get(plain)


def same_dimension(first: str, second: str) -> bool | None:
    """Return whether one unit converts to the other; None if one of them is not known."""
    if first == second and first:
        return True
    one, two = _known(first), _known(second)
    if one is None or two is None:
        return None
    return one.dimension == two.dimension


def conversion(from_: str, to: str) -> Conversion:
    """Return the conversion between two units; refuse units of other dimensions."""
    if from_ == to:
        return Conversion(factor=1.0)
    one, two = _known(from_), _known(to)
    if one is None or two is None or one.dimension != two.dimension:
        unknown = from_ if one is None else to
        why = (
            f"{from_!r} measures {one.dimension} and {to!r} {two.dimension}"
            if one and two
            else f"{unknown!r} is not a known unit"
        )
        raise PlantFileError(
            f"a reading in {from_!r} cannot become one in {to!r}: {why}; declare the unit of the "
            "channel in the plant file"
        )
    return Conversion(factor=one.factor / two.factor, offset=(one.offset - two.offset) / two.factor)
