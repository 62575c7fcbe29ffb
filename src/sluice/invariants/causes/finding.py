"""What may have changed in a plant, judged from a record and its rules."""

from collections.abc import Iterator
from dataclasses import replace

from sluice.invariants.causes.blocks import Blocks
from sluice.invariants.causes.cause import Cause, CauseKind
from sluice.invariants.causes.pumps import Delivered, pumps
from sluice.invariants.causes.set_points import MovedSetPoint, set_points
from sluice.invariants.causes.tanks import Metered, Unmetered, tanks
from sluice.invariants.ruleset import RuleSet
from sluice.invariants.words import amount, number
from sluice.telemetry import Record

__all__ = ["causes"]

LITRES_PER_HOUR = {
    "l/s": 3_600.0,
    "l/min": 60.0,
    "l/h": 1.0,
    "m3/h": 1_000.0,
    "m³/h": 1_000.0,
    "m3/s": 3.6e6,
    "m³/s": 3.6e6,
    "m3/d": 1_000.0 / 24,
    "lps": 3_600.0,
    "cmh": 1_000.0,
    "gpm": 227.1247,
    "mgd": 157_725.5,
}
HALF = 0.5  # two measures of one change agree if they differ by less than this share


def causes(rules: RuleSet, record: Record) -> tuple[Cause, ...]:
    """Return the changes that a record shows against the rules of its plant.

    Every change must last until the end of the record. A record that is too short, or of another
    stride than the rules, shows none. Rules that read a channel which the record lacks are left
    out. An empty tuple does not mean that nothing changed: it means that no change is certain.
    """
    scales = Blocks.of(record)
    if not scales or record.stride_s != rules.stride_s:
        return ()
    names = set(record.names)
    readable = tuple(r for r in rules.invariants if names.issuperset(r.relation.channels))
    rules = replace(rules, invariants=readable)
    balances = list(tanks(rules, record, scales))
    delivered = list(pumps(rules, record, scales[0]))
    meters = [found for found in balances if isinstance(found, Metered)]
    said: list[Cause] = []
    for found in balances:
        if isinstance(found, Unmetered):
            said.append(_unmetered(found, record))
    for flow in dict.fromkeys(found.flow for found in meters):
        said.append(_meter([found for found in meters if found.flow == flow], record))
    for pump in delivered:
        if not any(_same_change(pump, meter) for meter in meters):
            said.append(_pump(pump, rules, record))
    said += _set_points(record)
    return tuple(said)


def _same_change(pump: Delivered, meter: Metered) -> bool:
    """Whether a flow that is not nominal is the reading of a meter that drifts."""
    pumped, metered = pump.factor - 1, meter.factor - 1
    return pump.flow == meter.flow and abs(pumped - metered) < HALF * max(abs(pumped), abs(metered))


def _unmetered(found: Unmetered, record: Record) -> Cause:
    row, since = found.first, _time(record, found.first)
    size, unit = _flow(found, record)
    verb, what, kind = (
        ("loses", "a leak, or a level sensor that drifts down", CauseKind.LEAK)
        if found.per_row < 0
        else (
            "gains",
            "an inflow without a meter, or a level sensor that drifts up",
            CauseKind.INFLOW,
        )
    )
    return Cause(
        kind=kind,
        subject=found.level,
        size=size,
        unit=unit,
        since_row=row,
        since=since,
        sentence=f"{found.level} {verb} about {_rounded(size, unit)} beyond its meters "
        f"{_when(row, since, record)}: {what}{_or_meter(found.or_meter)}",
    )


def _or_meter(meter: Metered | None) -> str:
    if meter is None:
        return ""
    way = "low" if meter.factor < 1 else "high"
    return f"; or {meter.flow} reads about {abs(meter.factor - 1):.0%} too {way}"


def _flow(found: Unmetered, record: Record) -> tuple[float, str]:
    """Return the lost or gained flow in litres an hour where the units are known."""
    if found.flow is not None:
        litres = LITRES_PER_HOUR.get(found.flow_unit.lower())
        if litres is not None:
            return abs(found.flow) * litres, "L/h"
        if found.flow_unit:
            return abs(found.flow), found.flow_unit
    level_unit = record.channel(found.level).unit
    return abs(
        found.per_row
    ) * 3_600 / record.stride_s, f"{level_unit}/h" if level_unit else "per h"


def _meter(found: list[Metered], record: Record) -> Cause:
    flow = found[0].flow
    factor = sum(one.factor for one in found) / len(found)
    row = min(one.first for one in found)
    since = _time(record, row)
    levels = " and ".join(dict.fromkeys(one.level for one in found))
    way = "low" if factor < 1 else "high"
    show = "more" if factor < 1 else "less"
    verb = "show" if len(found) > 1 else "shows"
    return Cause(
        kind=CauseKind.METER,
        subject=flow,
        size=factor - 1,
        unit="",
        since_row=row,
        since=since,
        sentence=f"{flow} reads about {abs(factor - 1):.0%} too {way} {_when(row, since, record)}: "
        f"a meter that drifts ({levels} {verb} {show} water than it counts)",
    )


def _pump(found: Delivered, rules: RuleSet, record: Record) -> Cause:
    row, since = found.first, _time(record, found.first)
    unit = rules.channel(found.flow).unit
    more = found.factor > 1
    what = (
        "a new pump or impeller, or a higher speed"
        if more
        else "wear, a clogged strainer, or a valve that does not open fully"
    )
    return Cause(
        kind=CauseKind.PUMP,
        subject=found.actuator,
        size=found.factor - 1,
        unit="",
        since_row=row,
        since=since,
        sentence=f"{found.actuator} delivers about {abs(found.factor - 1):.0%} "
        f"{'more' if more else 'less'} than its {amount(found.nominal, unit)} "
        f"{_when(row, since, record)}: {what}; or {found.flow} drifts",
    )


def _set_points(record: Record) -> Iterator[Cause]:
    for found in set_points(record):
        yield _set_point(found, record)


def _set_point(found: MovedSetPoint, record: Record) -> Cause:
    unit = record.channel(found.level).unit
    since = _time(record, found.row)
    verb = "starts" if found.on else "stops"
    return Cause(
        kind=CauseKind.SET_POINT,
        subject=found.actuator,
        size=found.after,
        unit=unit,
        since_row=found.row,
        since=since,
        sentence=f"{found.actuator} {verb} at {amount(found.after, unit)} of {found.level}, before "
        f"at {amount(found.before, unit)}, {_when(found.row, since, record)}: a changed set-point",
    )


def _time(record: Record, row: int) -> str:
    return str(record.times[row].astype("datetime64[m]")).replace("T", " ")


def _when(row: int, since: str, record: Record) -> str:
    if row == 0:
        return "from the first row on"
    day = int(row * record.stride_s // 86_400) + 1
    return f"since about {since} (day {day})"


def _rounded(size: float, unit: str) -> str:
    return f"{number(float(f'{size:.2g}'))} {unit}"
