"""The dimensions of `line` plants, and the physical laws that follow from them."""

from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from sluice.arrays import Floats
from sluice.errors import SettingError

__all__ = [
    "PUMPS",
    "REFERENCE",
    "STEPS_PER_HOUR",
    "TANKS",
    "ExactRelation",
    "LineDesign",
    "LineTerm",
    "exact_relations",
]

TANKS = 3
PUMPS = 4
STEPS_PER_HOUR = 60  # flows are m3 per step in the process and m3/h in the record
LARGEST_SHIFT = 3.0  # pump sizes change by 36 %; a larger shift is another type of plant


@dataclass(frozen=True, slots=True, kw_only=True)
class LineDesign:
    """How one plant of this type differs from the reference plant (shift 0)."""

    shift: float = 0.0

    def __post_init__(self) -> None:
        if not abs(self.shift) <= LARGEST_SHIFT:
            raise SettingError(
                f"a site shift lies between -{LARGEST_SHIFT:g} and {LARGEST_SHIFT:g}, "
                f"got {self.shift:g}"
            )

    @property
    def areas_m2(self) -> Floats:
        """Floor area of T1, T2, T3."""
        return np.array((12.0, 15.0, 10.0)) * (1 + 0.10 * self.shift)

    @property
    def nominal_flows_m3h(self) -> Floats:
        """What PU1 to PU4 deliver when on; PU4 delivers this at full demand."""
        return np.array((2.20, 2.05, 1.95, 2.00)) * STEPS_PER_HOUR * (1 + 0.12 * self.shift)

    @property
    def start_below_m(self) -> Floats:
        """Level below which a tank starts its pump."""
        return np.array((2.0, 2.5, 1.8)) * (1 + 0.06 * self.shift)

    @property
    def stop_above_m(self) -> Floats:
        """Level above which a tank stops its pump."""
        return np.array((4.5, 5.0, 4.0)) * (1 + 0.06 * self.shift)


REFERENCE = LineDesign()


class LineTerm(NamedTuple):
    """One summand of a relation: a reading some rows back, times a coefficient."""

    channel: str
    rows_back: int
    coefficient: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactRelation:
    """A law the plant obeys by construction: the sum of its terms and its constant is zero.

    Plain data, because plants do not depend on the package that evaluates relations.
    """

    name: str
    kind: Literal["coupling", "balance"]
    terms: tuple[LineTerm, ...]
    constant: float = 0.0


def exact_relations(site: LineDesign = REFERENCE) -> tuple[ExactRelation, ...]:
    """Return the three tank balances and the couplings of PU1 to PU3.

    PU4 has no coupling: its flow follows the demand, which is not metered.
    """
    stages = range(1, TANKS + 1)
    balances = [_balance(stage, float(site.areas_m2[stage - 1])) for stage in stages]
    couplings = [_coupling(stage, float(site.nominal_flows_m3h[stage - 1])) for stage in stages]
    return (*balances, *couplings)


def _balance(tank: int, area_m2: float) -> ExactRelation:
    metres_per_m3h = 1 / (STEPS_PER_HOUR * area_m2)
    return ExactRelation(
        name=f"balance T{tank}",
        kind="balance",
        terms=(
            LineTerm(f"L_T{tank}", 0, 1.0),
            LineTerm(f"L_T{tank}", 1, -1.0),
            LineTerm(f"F_PU{tank}", 0, -metres_per_m3h),
            LineTerm(f"F_PU{tank + 1}", 0, metres_per_m3h),
        ),
    )


def _coupling(pump: int, nominal_m3h: float) -> ExactRelation:
    return ExactRelation(
        name=f"S_PU{pump}~F_PU{pump}",
        kind="coupling",
        terms=(LineTerm(f"F_PU{pump}", 0, 1.0), LineTerm(f"S_PU{pump}", 0, -nominal_m3h)),
    )
