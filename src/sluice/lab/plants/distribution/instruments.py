"""Which instruments a control room has on a network, and how they read."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from sluice.arrays import Floats
from sluice.lab.plants.distribution.model import Model
from sluice.seeding import stream
from sluice.telemetry import Channel, Codes, Role, Span

__all__ = ["Meter", "Quantity", "actuators", "channels", "instruments", "read"]

PRESSURE_GAUGES = 12
RANGES = (1.0, 2.0, 5.0, 10.0)  # instruments are sold in these steps of each decade

UNIT = {Role.LEVEL: "m", Role.FLOW: "L/s", Role.PRESSURE: "m", Role.ACTUATOR: ""}
DECIMALS = {Role.LEVEL: 3, Role.FLOW: 2, Role.PRESSURE: 2}  # of a reading
LEVEL_NOISE_M, PRESSURE_NOISE_M = 0.001, 0.02
FLOW_NOISE = 0.002  # of the reading, so that a stopped pump reads zero


class Quantity(Enum):
    """What the solver computes at an element."""

    HEAD = "head"  # m, of a node
    FLOW = "flow"  # L/s, of a link, in its own direction
    STATUS = "status"  # 0 closed, 1 open or regulating


@dataclass(frozen=True, slots=True, kw_only=True)
class Meter:
    """One instrument: reads `sign` times the quantity above a datum."""

    name: str
    role: Role
    element: str
    quantity: Quantity
    sign: float = 1.0
    datum_m: float = 0.0
    top_m: float | None = None  # of a tank
    reverses: bool = False  # of a flow


def actuators(model: Model) -> tuple[str, ...]:
    """Return the links an operator switches: pumps, throttling valves and controlled links.

    Pressure-reducing and similar valves regulate themselves and are not connected to the PLC.
    """
    controlled = {
        action.target()[0].name
        for _, control in model.controls()
        for action in control.actions()
        if action.target()[0].name in model.link_name_list
    }
    throttles = [name for name, valve in model.valves() if valve.valve_type in {"TCV", "FCV"}]
    switched = controlled.union(throttles, model.pump_name_list)
    order = [*model.pump_name_list, *model.valve_name_list, *model.pipe_name_list]
    return tuple(name for name in order if name in switched)


def instruments(model: Model, *, meter_tank_pipes: bool) -> tuple[Meter, ...]:
    """Return level gauges, flow meters and states of actuators, pressure gauges, tank-pipe meters.

    An actuator's flow counts in the link's own direction (from its start to its end node), a tank
    pipe's flow into the tank; a pipe between two tanks counts into the one it ends at.
    """
    switched = actuators(model)
    meters = [
        Meter(
            name=f"L_{name}",
            role=Role.LEVEL,
            element=name,
            quantity=Quantity.HEAD,
            datum_m=tank.elevation,
            top_m=tank.max_level,
        )
        for name, tank in model.tanks()
    ]
    for name in switched:
        meters.append(_flow_meter(name, reverses=name not in model.pump_name_list))
        meters.append(
            Meter(name=f"S_{name}", role=Role.ACTUATOR, element=name, quantity=Quantity.STATUS)
        )
    meters += [
        Meter(
            name=f"P_{name}",
            role=Role.PRESSURE,
            element=name,
            quantity=Quantity.HEAD,
            datum_m=model.get_node(name).elevation,
        )
        for name in _gauged_junctions(model, switched)
    ]
    if meter_tank_pipes:
        signs = {
            pipe: 1.0 if model.get_link(pipe).end_node_name in model.tank_name_list else -1.0
            for tank in model.tank_name_list
            for pipe in model.get_links_for_node(tank)
            if pipe not in switched
        }
        meters += [_flow_meter(pipe, sign=sign, reverses=True) for pipe, sign in signs.items()]
    return tuple(meters)


def _flow_meter(link: str, *, sign: float = 1.0, reverses: bool) -> Meter:
    return Meter(
        name=f"F_{link}",
        role=Role.FLOW,
        element=link,
        quantity=Quantity.FLOW,
        sign=sign,
        reverses=reverses,
    )


def _gauged_junctions(model: Model, switched: tuple[str, ...]) -> list[str]:
    """Return the junctions on both sides of the actuators, then others spread over the network.

    Parallel pumps are listed together, so that spreading the gauges reaches every station.
    """
    links = [model.get_link(name) for name in _spread(switched, PRESSURE_GAUGES // 2)]
    ends = dict.fromkeys(
        node for link in links for node in (link.start_node_name, link.end_node_name)
    )
    junctions = model.junction_name_list
    gauged = [node for node in ends if node in set(junctions)]
    others = [node for node in junctions if node not in gauged]
    return gauged + _spread(others, PRESSURE_GAUGES - len(gauged))


def _spread(names: Sequence[str], count: int) -> list[str]:
    """Return up to `count` of the names, evenly spaced."""
    count = min(count, len(names))
    return [names[place * len(names) // count] for place in range(count)]


def channels(meters: tuple[Meter, ...], clean: Floats) -> tuple[Channel, ...]:
    """Describe the instruments, with ranges of at least 1.5 times the peak of normal operation."""
    peaks = np.abs(clean).max(axis=0)
    flows = [peak for meter, peak in zip(meters, peaks, strict=True) if meter.role is Role.FLOW]
    largest_flow = max(flows, default=0.0)
    described = []
    for meter, peak in zip(meters, peaks, strict=True):
        high = _range_above(1.5 * peak)
        if meter.role is Role.FLOW and peak == 0:  # a pump that never ran still has a meter
            high = _range_above(1.5 * largest_flow)
        if meter.top_m is not None:
            high = round(1.1 * meter.top_m, 2)
        discrete = meter.role.discrete
        described.append(
            Channel(
                name=meter.name,
                role=meter.role,
                unit=UNIT[meter.role],
                codes=Codes(off=0, on=(1,)) if discrete else None,
                span=None if discrete else Span(low=-high if meter.reverses else 0.0, high=high),
                why="EPANET network",
            )
        )
    return tuple(described)


def _range_above(peak: float) -> float:
    """Return the smallest instrument range that shows the peak."""
    decade = 10.0 ** np.floor(np.log10(max(peak, 0.1)))
    return float(next(decade * step for step in RANGES if peak <= decade * step))


def read(true: Floats, described: tuple[Channel, ...], *, seed: int) -> Floats:
    """Return what the instruments show: with noise, clipped to their span, rounded."""
    shown = np.empty_like(true, order="F")
    for column, channel in enumerate(described):
        values = true[:, column]
        if channel.span is not None:
            noise = stream(seed, "network", "instrument", channel.name).normal(size=len(values))
            match channel.role:
                case Role.FLOW:
                    values = values * (1 + FLOW_NOISE * noise)
                case Role.LEVEL:
                    values = values + LEVEL_NOISE_M * noise
                case _:
                    values = values + PRESSURE_NOISE_M * noise
            values = np.clip(values, channel.span.low, channel.span.high)
            values = np.round(values, DECIMALS[channel.role]) + 0.0  # no negative zeros
        shown[:, column] = values
    return shown
