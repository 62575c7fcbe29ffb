"""The random layout of a plant: channels, couplings, and tanks with their inflows and outflows."""

from dataclasses import dataclass

import numpy as np

from sluice.invariants import ActuatorState, Coupling, Invariant, Term, Transition
from sluice.telemetry import Channel, Codes, Role, Span

__all__ = ["Sketch", "Tank", "draw_sketch", "some_of"]

CODES = (
    Codes(off=0, on=(1,)),
    Codes(off=1, on=(2,), moving=(0,)),
    Codes(off=1, on=(2, 3), moving=(0,)),
    Codes(off=0, on=(1, 2, 3)),
    Codes(off=5, on=(9, -2), moving=(7, 6)),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tank:
    """A level, and the flows and pumps that change it."""

    level: str
    terms: tuple[Term, ...]
    averaged: bool
    noise: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Sketch:
    """A plant's layout without rows: channels, couplings, tanks without their constants."""

    measured: tuple[Channel, ...]
    actuators: tuple[Channel, ...]
    couplings: tuple[Invariant, ...]
    tanks: tuple[Tank, ...]

    def of(self, role: Role) -> tuple[Channel, ...]:
        """Return the measured channels of a role."""
        return tuple(channel for channel in self.measured if channel.role is role)


def draw_sketch(rng: np.random.Generator) -> Sketch:
    """Draw a random layout."""
    flows = [
        Channel(name=f"F{at}", role=Role.FLOW, span=_span(rng, rng.choice([0.0, 0.05, 0.4])))
        for at in range(rng.integers(1, 4))
    ]
    levels = [
        Channel(name=f"L{at}", role=Role.LEVEL, span=_span(rng, rng.choice([0.0, 0.3])))
        for at in range(rng.integers(1, 3))
    ]
    quality = [
        Channel(name=f"Q{at}", role=Role.QUALITY, span=_span(rng, 0.0))
        for at in range(rng.integers(0, 3))
    ]
    names = [
        *(f"A{at}" for at in range(len(flows))),
        *(f"P{at}" for at in range(rng.integers(0, 3))),
    ]
    actuators = tuple(
        Channel(name=name, role=Role.ACTUATOR, codes=CODES[rng.integers(len(CODES))])
        for name in [*names, "U"]
    )
    pumps = tuple(actuator for actuator in actuators if actuator.name.startswith("P"))
    couplings = tuple(
        _coupling(rng, flow, actuator, pumps)
        for flow, actuator in zip(flows, actuators, strict=False)
        if rng.random() < 0.85
    )
    tanks = tuple(_tank(rng, level, flows, actuators[:-1]) for level in levels)
    return Sketch(
        measured=(*levels, *flows, *quality),
        actuators=actuators,
        couplings=couplings,
        tanks=tanks,
    )


def _span(rng: np.random.Generator, below: float) -> Span:
    width = 10 ** rng.uniform(-2, 4)
    return Span(low=-below * width, high=width)


def _coupling(
    rng: np.random.Generator, flow: Channel, actuator: Channel, pumps: tuple[Channel, ...]
) -> Invariant:
    assert flow.span is not None
    assert actuator.codes is not None
    on = list(actuator.codes.on)
    if len(on) > 1 and rng.random() < 0.2:
        on = on[1:]  # the coupling does not know every code that is on
    states = tuple(
        ActuatorState(code=code, nominal=float(rng.uniform(0.2, 0.85)) * flow.span.high)
        for code in on
    )
    most = max(state.nominal for state in states)
    quantum = (flow.span.high - flow.span.low) / 58_000  # about a register
    tolerance = most * 10 ** rng.uniform(-3, -0.5)
    return Invariant(
        relation=Coupling(
            name=f"{actuator.name}~{flow.name}",
            actuator=actuator.name,
            flow=flow.name,
            off=actuator.codes.off,
            states=states,
            settle=int(rng.integers(0, 6)),
            transition=Transition.ENVELOPE,
            standby=tuple(
                (pump.name, pump.codes.off)
                for pump in pumps
                if pump.codes is not None and rng.random() < 0.5
            ),
        ),
        tolerance=float(0.3 * quantum if rng.random() < 0.02 else tolerance),
    )


def _tank(
    rng: np.random.Generator, level: Channel, flows: list[Channel], actuators: tuple[Channel, ...]
) -> Tank:
    assert level.span is not None
    width = level.span.high - level.span.low

    def share() -> float:
        return float(rng.choice([-1, 1]) * width * 10 ** rng.uniform(-3.3, -1.8))

    chosen = [flow for flow in flows if rng.random() < 0.7] or flows[:1]
    terms = [
        Term(channel=flow.name, coefficient=share() / flow.span.high)
        for flow in chosen
        if flow.span is not None
    ]
    if rng.random() < 0.5:
        actuator = actuators[rng.integers(len(actuators))]
        assert actuator.codes is not None
        terms.append(Term(channel=actuator.name, coefficient=share(), on=actuator.codes.on))
    return Tank(
        level=level.name,
        terms=tuple(terms),
        averaged=bool(rng.random() < 0.5),
        noise=float(width * 10 ** rng.uniform(-4.3, -3)),
    )


def some_of(rng: np.random.Generator, rules: tuple[Invariant, ...]) -> tuple[Invariant, ...]:
    """Return all rules or a few: if all rules read a channel, none of them decides alone."""
    few = tuple(rule for rule in rules if rng.random() < 0.25)
    return few if few and rng.random() < 0.6 else rules
