"""Simulates the `line` plant and returns its record."""

import math

import numpy as np

from sluice.errors import SettingError
from sluice.lab.plants.line.attacks import schedule
from sluice.lab.plants.line.design import PUMPS, REFERENCE, TANKS, LineDesign
from sluice.lab.plants.line.process import BRIM_M, ROWS_PER_DAY, readings
from sluice.telemetry import Channel, Codes, Label, Record, Role, Span

__all__ = ["simulate"]

STRIDE_S = 60
START = np.datetime64("2024-01-01T00:00:00", "us")
WHY = "simulated plant 'line'"


def simulate(
    *, seed: int, days: float = 30.0, attacks: bool = False, site: LineDesign = REFERENCE
) -> Record:
    """Return a labelled record of the plant; its notes list the attacks, if any.

    The same seed gives the same demand and noise with and without attacks: the two records are
    equal until the first attack.
    """
    rows = round(days * ROWS_PER_DAY) if math.isfinite(days) else 0
    if rows < 2:
        raise SettingError(
            f"plant 'line' records at least 2 rows of {STRIDE_S} s, got {days:g} days"
        )
    planned = schedule(seed=seed, rows=rows) if attacks else ()
    labels = np.full(rows, Label.NORMAL, np.int8)
    for attack in planned:
        labels[attack.rows.slice] = Label.ATTACK
    return Record(
        name="line",
        channels=_channels(site),
        values=readings(seed=seed, rows=rows, site=site, attacks=planned),
        times=START + np.arange(rows) * np.timedelta64(STRIDE_S, "s"),
        stride_s=float(STRIDE_S),
        labels=labels,
        notes=tuple(attack.note for attack in planned),
    )


def _channels(site: LineDesign) -> tuple[Channel, ...]:
    level_span = Span(low=0.0, high=BRIM_M + 1)  # a spilling tank stays readable
    flow_spans = [Span(low=0.0, high=1.5 * float(flow)) for flow in site.nominal_flows_m3h]
    return (
        *(
            Channel(name=f"L_T{tank + 1}", role=Role.LEVEL, unit="m", span=level_span, why=WHY)
            for tank in range(TANKS)
        ),
        *(
            Channel(name=f"F_PU{pump + 1}", role=Role.FLOW, unit="m3/h", span=span, why=WHY)
            for pump, span in enumerate(flow_spans)
        ),
        *(
            Channel(
                name=f"S_PU{pump + 1}", role=Role.ACTUATOR, codes=Codes(off=0, on=(1,)), why=WHY
            )
            for pump in range(PUMPS)
        ),
    )
