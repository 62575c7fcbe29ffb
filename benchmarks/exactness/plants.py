"""Random plants with rules of every kind, and rows that mostly keep them."""

from dataclasses import dataclass, replace

import numpy as np

from benchmarks.exactness.own_limits import own_limits
from benchmarks.exactness.sketch import Sketch, Tank, draw_sketch, some_of
from sluice.arrays import Bools, Floats, Ints
from sluice.invariants import (
    Balance,
    Bound,
    Coupling,
    Encoding,
    Invariant,
    Profile,
    Rate,
    Relation,
    RuleSet,
    Window,
    encode,
)
from sluice.telemetry import Channel, Record, Role

__all__ = ["ROWS", "Plant", "Rows", "draw_plant"]

ROWS = range(8, 65)  # of a batch

START = np.datetime64("2024-03-01T00:00:00", "us")
STRIDE = np.timedelta64(5, "s")
JUMP = np.timedelta64(600, "s")
WINDOWS = (2, 3, 4, 5, 7, 8, 12, 16, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """A batch as registers and codes: all that an adversary may choose."""

    registers: Ints  # rows x registers
    codes: Floats  # rows x actuators; NaN where missing
    missing: Bools  # rows x registers
    jumps: Bools  # rows: a time jump before it

    @property
    def count(self) -> int:
        """Number of rows."""
        return len(self.registers)

    def copy(self) -> "Rows":
        """Return a copy that may be changed."""
        return replace(
            self,
            registers=self.registers.copy(),
            codes=self.codes.copy(),
            missing=self.missing.copy(),
            jumps=self.jumps.copy(),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """Rules without clean facts yet, and two stretches of rows made under them."""

    rules: RuleSet
    encoding: Encoding
    actuators: tuple[Channel, ...]
    rows: Rows
    other: Rows

    def record(self, rows: Rows) -> Record:
        """Return rows as a plant's record: readings in the middle of their registers."""
        columns = [
            np.where(rows.missing[:, at], np.nan, each.low + each.step * rows.registers[:, at])
            for at, each in enumerate(self.encoding.registers)
        ]
        columns += [rows.codes[:, at] for at in range(len(self.actuators))]
        columns.append(np.arange(rows.count) % 7.0)  # a channel without a span
        return Record(
            name="drawn",
            channels=self.rules.channels,
            values=np.column_stack(columns),
            times=START + np.arange(rows.count) * STRIDE + np.cumsum(rows.jumps) * JUMP,
            stride_s=5.0,
            labels=np.zeros(rows.count, np.int8),
        )

    def register(self, channel: str) -> int:
        """Return the column of a channel's register."""
        return [register.channel for register in self.encoding.registers].index(channel)

    def actuator(self, channel: str) -> int:
        """Return the column of an actuator."""
        return [actuator.name for actuator in self.actuators].index(channel)


def draw_plant(rng: np.random.Generator, *, rows: range = ROWS) -> Plant:
    """Draw channels, couplings and tanks, run the plant, and complete its rules."""
    sketch = draw_sketch(rng)
    count = int(rng.integers(rows.start, rows.stop))
    codes, flows = _run(rng, sketch, count)
    constants = {
        tank.level: -float(_inflow(sketch, tank, codes, flows).mean()) for tank in sketch.tanks
    }
    values = _values(rng, sketch, codes, flows, constants)
    rules = RuleSet(
        plant="drawn",
        profile=Profile.HARDENED,
        stride_s=5.0,
        channels=(*sketch.measured, *sketch.actuators, Channel(name="X", role=Role.OTHER)),
        invariants=some_of(
            rng,
            (
                *sketch.couplings,
                *_balances(rng, sketch, constants, count),
                *_ranges(rng, sketch, values),
                *own_limits(rng, sketch, values, codes),
            ),
        ),
    )
    encoding = encode(rules)
    again = _run(rng, sketch, count)
    return Plant(
        rules=rules,
        encoding=encoding,
        actuators=sketch.actuators,
        rows=_rows(encoding, values, codes),
        other=_rows(encoding, _values(rng, sketch, *again, constants), again[0]),
    )


def _run(rng: np.random.Generator, sketch: Sketch, count: int) -> tuple[Floats, Floats]:
    """Switch the actuators and derive the flows."""
    codes = np.empty((count, len(sketch.actuators)))
    for at, actuator in enumerate(sketch.actuators):
        assert actuator.codes is not None
        every = sorted(actuator.codes.legal)
        codes[:, at] = actuator.codes.off
        for _ in range(rng.integers(0, 4)):
            first = int(rng.integers(0, count))
            last = first + int(rng.integers(1, max(2, count // 2)))
            codes[first:last, at] = rng.choice(every)
    flows = np.empty((count, len(sketch.of(Role.FLOW))))
    for at, flow in enumerate(sketch.of(Role.FLOW)):
        assert flow.span is not None
        flows[:, at] = flow.span.high * (0.5 + np.cumsum(rng.normal(0, 0.01, count)))
    for rule in sketch.couplings:
        assert isinstance(rule.relation, Coupling)
        flow_at = [flow.name for flow in sketch.of(Role.FLOW)].index(rule.relation.flow)
        names = [actuator.name for actuator in sketch.actuators]
        shown = codes[:, names.index(rule.relation.actuator)]
        flows[:, flow_at] = rng.uniform(0, rule.relation.nominal, count)
        flows[shown == rule.relation.off, flow_at] = 0.0
        for state in rule.relation.states:
            flows[shown == state.code, flow_at] = state.nominal
        flows[:, flow_at] += np.clip(rng.normal(0, 0.3, count), -0.9, 0.9) * rule.tolerance
    return codes, flows


def _inflow(sketch: Sketch, tank: Tank, codes: Floats, flows: Floats) -> Floats:
    total = np.zeros(len(flows))
    for term in tank.terms:
        if term.on:
            at = [actuator.name for actuator in sketch.actuators].index(term.channel)
            total += term.coefficient * np.isin(codes[:, at], term.on)
        else:
            at = [flow.name for flow in sketch.of(Role.FLOW)].index(term.channel)
            total += term.coefficient * flows[:, at]
    if tank.averaged:
        total[1:] = (total[1:] + total[:-1]) / 2
    return total


def _values(
    rng: np.random.Generator,
    sketch: Sketch,
    codes: Floats,
    flows: Floats,
    constants: dict[str, float],
) -> Floats:
    """Integrate the levels; qualities are random walks."""
    columns = []
    for tank, level in zip(sketch.tanks, sketch.of(Role.LEVEL), strict=True):
        assert level.span is not None
        moved = np.cumsum(_inflow(sketch, tank, codes, flows) + constants[tank.level])
        noise = np.clip(rng.normal(0, 0.5, len(flows)), -1, 1) * tank.noise
        columns.append((level.span.low + level.span.high) / 2 + moved + noise)
    columns += list(flows.T)
    for quality in sketch.of(Role.QUALITY):
        assert quality.span is not None
        wandered = np.cumsum(rng.normal(0, 0.004, len(flows)))
        columns.append(quality.span.high * (0.5 + wandered))
    return np.column_stack(columns)


def _balances(
    rng: np.random.Generator, sketch: Sketch, constants: dict[str, float], count: int
) -> list[Invariant]:
    """Return balances, and windows that have an anchor in so many rows."""
    rules = []
    fitting = [rows for rows in WINDOWS if rows < count]
    for tank in sketch.tanks:
        windows = rng.choice(fitting, size=rng.integers(0, 4), replace=False)
        if rng.random() < 0.85 or not (sketch.couplings or len(windows)):
            relation: Relation = Balance(
                name=f"d{tank.level}",
                level=tank.level,
                terms=tank.terms,
                constant=constants[tank.level],
                averaged=tank.averaged,
            )
            rules.append(Invariant(relation=relation, tolerance=tank.noise * rng.uniform(1, 6)))
        for rows in windows:
            relation = Window(
                name=f"d{tank.level}/{rows}",
                level=tank.level,
                terms=tank.terms,
                constant=constants[tank.level],
                rows=int(rows),
                averaged=tank.averaged,
            )
            rules.append(Invariant(relation=relation, tolerance=tank.noise * rng.uniform(1, 5)))
    return rules


def _ranges(rng: np.random.Generator, sketch: Sketch, values: Floats) -> list[Invariant]:
    """Return bounds and rates, some of them exactly at the rows' extremes."""
    rules = []
    for at, channel in enumerate(sketch.measured):
        assert channel.span is not None
        readings, width = values[:, at], channel.span.high - channel.span.low
        if rng.random() < 0.6:
            room = width * float(rng.choice([0.0, 0.001, 0.1, 0.9]))
            relation: Relation = Bound(
                name=f"{channel.name} in range",
                channel=channel.name,
                low=float(readings.min()) - room,
                high=float(readings.max()) + room,
            )
            rules.append(Invariant(relation=relation, tolerance=0.01 * width))
        if channel.role is not Role.FLOW and rng.random() < 0.7:
            largest = float(np.abs(np.diff(readings)).max())
            tolerance = largest * rng.uniform(0.9, 3) + width * 1e-5
            relation = Rate(name=f"{channel.name} rate", channel=channel.name)
            huge = rng.random() < 0.02  # a tolerance beyond all registers
            rules.append(Invariant(relation=relation, tolerance=1e6 * width if huge else tolerance))
    return rules


def _rows(encoding: Encoding, values: Floats, codes: Floats) -> Rows:
    registers = np.column_stack(
        [register.quantise(values[:, at]) for at, register in enumerate(encoding.registers)]
    )
    return Rows(
        registers=registers,
        codes=codes.copy(),
        missing=np.zeros(registers.shape, bool),
        jumps=np.zeros(len(registers), bool),
    )
