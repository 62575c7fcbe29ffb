"""Random ties, constants, switch bands, spectra and means, fitted to the rows of a random plant."""

from collections.abc import Iterator

import numpy as np

from benchmarks.exactness.sketch import Sketch
from sluice.arrays import Floats
from sluice.invariants import (
    Constant,
    Invariant,
    Mean,
    Spectrum,
    SwitchBand,
    Term,
    Tie,
    block_sums,
    switch_rows,
)
from sluice.telemetry import Channel

__all__ = ["own_limits"]

BLOCKS = (3, 4, 5, 6, 8, 12)


def own_limits(
    rng: np.random.Generator, sketch: Sketch, values: Floats, codes: Floats
) -> list[Invariant]:
    """Return rules with limits close to what the rows show, some of them on the wrong side."""
    rules = []
    for at, channel in enumerate(sketch.measured):
        if rng.random() < 0.35:
            rules.append(_tie(rng, sketch, at, values, codes))
        if rng.random() < 0.15:
            readings = values[:, at]
            middle = float(np.median(readings))
            far = float(np.abs(readings - middle).max()) * rng.uniform(0.2, 1.2)
            rules.append(
                _rule(Constant(name=_named(channel), channel=channel.name, value=middle), far)
            )
        rules += _spectra(rng, channel, values[:, at])
        rules += _means(rng, channel, values[:, at])
    for at, actuator in enumerate(sketch.actuators):
        assert actuator.codes is not None
        if rng.random() < 0.2:
            shown = float(rng.choice([codes[0, at], *sorted(actuator.codes.legal)]))
            idle = Constant(name=_named(actuator), channel=actuator.name, value=shown)
            rules.append(_rule(idle, 0.5))
        rules += _bands(rng, sketch, actuator, values, codes[:, at])
    return rules


def _rule(relation: Constant | Mean | Spectrum | SwitchBand | Tie, tolerance: float) -> Invariant:
    return Invariant(relation=relation, tolerance=max(tolerance, 1e-9))


def _named(channel: Channel) -> str:
    return f"{channel.name} constant"


def _tie(
    rng: np.random.Generator, sketch: Sketch, at: int, values: Floats, codes: Floats
) -> Invariant:
    """Fit a channel to some of the others and to an actuator's state."""
    channel = sketch.measured[at]
    assert channel.span is not None
    others = [other for other in range(len(sketch.measured)) if other != at]
    chosen = [other for other in others if rng.random() < 0.5]
    columns: list[Floats] = [np.ones(len(values))]
    terms: list[tuple[str, tuple[int, ...]]] = []
    for other in chosen:
        columns.append(values[:, other])
        terms.append((sketch.measured[other].name, ()))
    if rng.random() < 0.6 or not chosen:
        pump = int(rng.integers(len(sketch.actuators)))
        actuator = sketch.actuators[pump]
        assert actuator.codes is not None
        columns.append(np.isin(codes[:, pump], actuator.codes.on).astype(np.float64))
        terms.append((actuator.name, actuator.codes.on))
    fitted = np.linalg.lstsq(np.column_stack(columns), values[:, at], rcond=1e-6)[0]
    misfit = float(np.abs(values[:, at] - np.column_stack(columns) @ fitted).max())
    width = channel.span.high - channel.span.low
    return _rule(
        Tie(
            name=f"{channel.name} tied",
            channel=channel.name,
            terms=tuple(
                Term(channel=name, coefficient=float(weight), on=on)
                for (name, on), weight in zip(terms, fitted[1:], strict=True)
            ),
            constant=float(fitted[0]),
        ),
        misfit * rng.uniform(0.6, 2.5) + 1e-4 * width,
    )


def _bands(
    rng: np.random.Generator, sketch: Sketch, actuator: Channel, values: Floats, codes: Floats
) -> Iterator[Invariant]:
    """Return bands around the readings at which an actuator switched; a few miss some of them."""
    assert actuator.codes is not None
    if rng.random() > 0.4:
        return
    at = int(rng.integers(len(sketch.measured)))
    channel, before = sketch.measured[at], bool(rng.random() < 0.5)
    assert channel.span is not None
    width = channel.span.high - channel.span.low
    went = switch_rows(np.isin(codes, actuator.codes.on), np.array([0]))
    limits = []
    for rows in went:
        found = values[np.flatnonzero(rows) - before, at]
        middle = float(found.mean()) if found.size else float(values[0, at])
        reach = float(np.ptp(found)) * rng.uniform(0, 1) if found.size else 0.0
        reach += width * float(rng.choice([0.0, 0.0004, 0.01, 0.6]))
        limits += [middle - reach, middle + reach]
    yield _rule(
        SwitchBand(
            name=f"{actuator.name}@{channel.name}",
            actuator=actuator.name,
            on=actuator.codes.on[: int(rng.integers(1, len(actuator.codes.on) + 1))],
            level=channel.name,
            before=before,
            on_low=limits[0],
            on_high=limits[1],
            off_low=limits[2],
            off_high=limits[3],
        ),
        width * 1e-5,
    )


def _means(rng: np.random.Generator, channel: Channel, readings: Floats) -> Iterator[Invariant]:
    """Return means around those that the rows show."""
    fitting = [rows for rows in BLOCKS if rows < len(readings)]
    for rows in rng.choice(fitting, size=rng.integers(0, 2), replace=False):
        means = np.convolve(readings, np.full(int(rows), 1 / rows), mode="valid")
        middle, spread = float(means.mean()), float(np.ptp(means))
        mean = Mean(
            name=f"{channel.name} mean {rows}", channel=channel.name, mean=middle, rows=int(rows)
        )
        yield _rule(mean, spread * rng.uniform(0.2, 0.7))


def _spectra(rng: np.random.Generator, channel: Channel, readings: Floats) -> Iterator[Invariant]:
    """Return spectra around the sums that the rows show; offsets collide as they like."""
    assert channel.span is not None
    fitting = [rows for rows in BLOCKS if rows <= len(readings)]
    for rows in rng.choice(fitting, size=rng.integers(0, 3), replace=False):
        block = int(rows)
        offset = int(rng.integers(0, min(block, len(readings) - block + 1)))
        step = (channel.span.high - channel.span.low) * 1.125 / 65_535
        sums = block_sums(np.rint(readings / step).astype(np.int64), block, offset)
        low, high = rng.choice([0.0, 0.5, 1.0, 1.02], 2), rng.choice([0.98, 1.0, 3.0, 1e9], 2)
        lows = [float(each.min()) * share for each, share in zip(sums, low, strict=True)]
        highs = [float(each.max()) * share for each, share in zip(sums, high, strict=True)]
        yield _rule(
            Spectrum(
                name=f"{channel.name} noise {block}+{offset}",
                channel=channel.name,
                rows=block,
                offset=offset,
                first_low=lows[0] * step**2,
                first_high=max(lows[0], highs[0]) * step**2,
                second_low=lows[1] * step**2,
                second_high=max(lows[1], highs[1]) * step**2,
            ),
            step**2,
        )
