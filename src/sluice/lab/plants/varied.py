"""Varied sites: plants of one kind with other tags, units, sizes, sensors and set-points.

The first five sites of a seed are fixed in kind: site 1 has other tags only, sites 2 and 5 have
other units, site 3 lacks a flow meter, site 4 has one more analyser. Later sites draw each of
these.
"""

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np

from sluice.arrays import Floats
from sluice.errors import SettingError
from sluice.seeding import stream
from sluice.telemetry import Channel, Codes, Record, Role, Span

__all__ = ["SPREAD", "VARIED_PLANTS", "VariedSite", "varied_site"]

VARIED_PLANTS = ("line", "treatment")
LARGEST_SPREAD = 0.25
SPREAD = 0.15
LINE_SHIFT = 3.0  # the largest that `line` allows
MISSING = {"line": "F_PU2", "treatment": "FIT401"}
EXTRA = "an analyser that the other sites do not have"
LETTERS = {
    Role.LEVEL: "LT",
    Role.FLOW: "FT",
    Role.PRESSURE: "PT",
    Role.QUALITY: "AT",
    Role.ACTUATOR: "XS",
}
UNITS = {  # role and unit: another unit, and how many of it make one
    (Role.LEVEL, "mm"): ("m", 1e-3),
    (Role.LEVEL, "m"): ("cm", 100.0),
    (Role.FLOW, "m3/h"): ("l/s", 1 / 3.6),
    (Role.PRESSURE, "kPa"): ("bar", 0.01),
    (Role.QUALITY, "uS/cm"): ("mS/cm", 1e-3),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class VariedSite:
    """A site's record, and which tag of the reference plant each of its own tags is."""

    record: Record
    reference: Mapping[str, str]  # own tag: the reference's tag; an extra sensor has none


def varied_site(
    plant: str,
    site: int,
    *,
    seed: int,
    days: float | None = None,
    attacks: bool = False,
    spread: float = SPREAD,
) -> VariedSite:
    """Simulate a site, counted from 1, of a federation of plants that are alike but not equal."""
    if plant not in VARIED_PLANTS or site < 1:
        raise SettingError(
            f"varied sites are plants {' or '.join(VARIED_PLANTS)} and count from 1; got site "
            f"{site} of {plant!r}"
        )
    if not 0 <= spread <= LARGEST_SPREAD:
        raise SettingError(f"sites spread by 0 to {LARGEST_SPREAD:g}, got {spread:g}")
    rng = stream(seed, plant, "varied", site)
    record = _simulated(plant, site, rng, seed=seed, days=days, attacks=attacks, spread=spread)
    kinds = _kinds(site, rng)
    if "missing" in kinds:
        record = record.without(MISSING[plant])
    if "units" in kinds:
        record = _in_other_units(record)
    extra = "extra" in kinds
    if extra:
        record = _with_extra(record, deepcopy(rng))  # tags do not depend on the number of rows
    return _renamed(record, rng, extra=extra, name=f"{plant}-site-{site}")


def _simulated(
    plant: str,
    site: int,
    rng: np.random.Generator,
    *,
    seed: int,
    days: float | None,
    attacks: bool,
    spread: float,
) -> Record:
    own_seed = 1_000 * seed + site
    if plant == "line":
        from sluice.lab.plants.line import LineDesign, simulate  # noqa: PLC0415

        shift = float(rng.uniform(-1.0, 1.0)) * LINE_SHIFT * spread / LARGEST_SPREAD
        design = LineDesign(shift=shift)
        length = 30.0 if days is None else days
        return simulate(seed=own_seed, days=length, attacks=attacks, site=design)
    from sluice.lab.plants import treatment  # noqa: PLC0415

    built = treatment.TreatmentDesign.vary(rng, spread=spread, name=f"site-{site}")
    return treatment.simulate(seed=own_seed, days=days, attacks=attacks, site=built).record


def _kinds(site: int, rng: np.random.Generator) -> frozenset[str]:
    """Return how a site differs from the reference beside its size."""
    fixed: dict[int, set[str]] = {
        1: set(),
        2: {"units"},
        3: {"missing"},
        4: {"extra"},
        5: {"units"},
    }
    if site in fixed:
        return frozenset(fixed[site])
    drawn = rng.random(3) < 0.4
    return frozenset(
        kind for kind, yes in zip(("units", "missing", "extra"), drawn, strict=True) if yes
    )


def _in_other_units(record: Record) -> Record:
    """Return the record in other units, with actuators that count from 0 if they counted from 1."""
    values = np.array(record.values)
    channels = []
    for at, channel in enumerate(record.channels):
        other = UNITS.get((channel.role, channel.unit))
        if other is not None:
            unit, factor = other
            values[:, at] *= factor
            span = channel.span
            scaled = Span(low=span.low * factor, high=span.high * factor) if span else None
            channels.append(replace(channel, unit=unit, span=scaled))
        elif channel.codes == Codes(off=1, on=(2,)):
            values[:, at] -= 1
            channels.append(replace(channel, codes=Codes(off=0, on=(1,))))
        else:
            channels.append(channel)
    return replace(record, channels=tuple(channels), values=values)


def _with_extra(record: Record, rng: np.random.Generator) -> Record:
    turbidity = _slow_walk(len(record), rng)
    channel = Channel(
        name=EXTRA, role=Role.QUALITY, unit="NTU", span=Span(low=0, high=10), why=EXTRA
    )
    return replace(
        record,
        channels=(*record.channels, channel),
        values=np.column_stack((record.values, turbidity)),
    )


def _slow_walk(rows: int, rng: np.random.Generator) -> Floats:
    steps = rng.normal(0, 0.002, rows)
    walk = np.abs(1.5 + np.cumsum(steps) - np.linspace(0, 1, rows) * steps.sum())
    noisy: Floats = np.clip(walk + rng.normal(0, 0.01, rows), 0.0, 10.0)
    return noisy


def _renamed(record: Record, rng: np.random.Generator, *, extra: bool, name: str) -> VariedSite:
    """Give every channel another tag, and put the columns in another order."""
    numbers = rng.permutation(900)[: len(record.channels)] + 100
    tags = [
        f"{LETTERS[channel.role]}-{number}"
        for channel, number in zip(record.channels, numbers, strict=True)
    ]
    order = rng.permutation(len(tags))
    return VariedSite(
        record=replace(
            record,
            name=name,
            channels=tuple(replace(record.channels[at], name=tags[at]) for at in order),
            values=record.values[:, order],
        ),
        reference={
            tags[at]: record.channels[at].name
            for at in order
            if not (extra and record.channels[at].name == EXTRA)
        },
    )
