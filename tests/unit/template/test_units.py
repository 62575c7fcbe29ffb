"""Units convert by their definitions, and units of other dimensions are refused."""

import pytest

from sluice.errors import PlantFileError
from sluice.template import conversion, same_dimension


@pytest.mark.parametrize(
    ("from_", "to", "reading", "converted"),
    [
        ("mm", "m", 1500.0, 1.5),
        ("m3/h", "l/s", 3.6, 1.0),
        ("bar", "kPa", 2.0, 200.0),
        ("psi", "kPa", 1.0, 6.894757293168),
        ("gpm", "l/min", 1.0, 3.785411784),
        ("degC", "degF", 100.0, 212.0),
        ("K", "°C", 273.15, 0.0),
        ("m³/h", "m3/h", 2.0, 2.0),
        ("parrots", "parrots", 2.0, 2.0),
    ],
)
def test_readings_convert(from_: str, to: str, reading: float, converted: float) -> None:
    change = conversion(from_, to)
    assert change.factor * reading + change.offset == pytest.approx(converted, abs=1e-9)


def test_units_of_other_dimensions_do_not_convert() -> None:
    with pytest.raises(PlantFileError, match="'m' measures length and 'kPa' pressure"):
        conversion("m", "kPa")
    assert same_dimension("m", "kPa") is False


def test_an_unknown_unit_does_not_convert() -> None:
    with pytest.raises(PlantFileError, match="'furlong' is not a known unit"):
        conversion("furlong", "m")
    with pytest.raises(PlantFileError, match="'furlong' is not a known unit"):
        conversion("m", "furlong")
    assert same_dimension("furlong", "m") is None
    assert same_dimension("", "") is None
