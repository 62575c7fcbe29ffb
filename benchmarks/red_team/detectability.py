"""Ask which slow noise a test would notice that knows more than a gate, and write a page.

Each level is explained by all other channels, by rows before and after, and by the hour and the
weekday, on blocks that the model has not seen. What is left is the level's rest, and noise hides in
it.
"""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.stats import norm

from benchmarks.evidence.study import batadal
from benchmarks.red_team.attempts import SMALL
from sluice.arrays import Floats
from sluice.files import atomically
from sluice.invariants.mining import TARGET
from sluice.seeding import stream
from sluice.telemetry import Record, Role

AROUND = (-2, -1, 0, 1, 2)  # rows of the other channels, for a reading
STEPS_AROUND = (-3, -2, -1, 0, 1, 2, 3)  # the same, for the change from one reading to the next
BLOCKS = 10
RIDGE = 1e-3
MEMORY = 0.95  # of the noise, from row to row, as the attack has it
SIZES = (0.1, 0.3)  # of the noise, in standard deviations of the channel
SMOOTHED = 9  # frequencies over which a spectrum is averaged
DRAWS = 6  # of the noise, for each batch
LEAST_BATCHES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Noticed:
    """The share of batches with slow noise in a channel that the best of two tests notices."""

    name: str
    size: float
    gaussian: float  # if the rest were Gaussian and its spectrum known
    measured: float


def noticed(record: Record, level: str, size: float, *, rows: int) -> Noticed:
    """Test batches of one length for noise in a level, by its readings and by their changes."""
    spread = record.values.std(axis=0)
    scaled = (record.values - record.values.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    at = record.index(level)
    own, others = scaled[:, at], np.delete(scaled, at, 1)
    by_reading = _rest(own, _features(record, others, AROUND))
    changes = np.diff(own, prepend=own[0])
    by_change = _rest(changes, _features(record, others, STEPS_AROUND))
    tests = [
        _power(by_reading, size, rows=rows, changes=False, name=level),
        _power(by_change, size, rows=rows, changes=True, name=level),
    ]
    return Noticed(
        name=level,
        size=size,
        gaussian=max(gaussian for gaussian, _ in tests),
        measured=max(measured for _, measured in tests),
    )


def _features(record: Record, others: Floats, around: Sequence[int]) -> Floats:
    hours = record.times.astype("datetime64[h]").astype(int) % 24
    days = record.times.astype("datetime64[D]").astype(int) % 7
    parts = [np.ones((len(record), 1)), np.eye(24)[hours][:, 1:], np.eye(7)[days][:, 1:]]
    return np.hstack([*parts, *(np.roll(others, back, axis=0) for back in around)])


def _rest(shown: Floats, features: Floats) -> Floats:
    """Return what a model leaves that was fitted to the other blocks."""
    rest = np.empty_like(shown)
    edges = np.linspace(0, len(shown), BLOCKS + 1).astype(int)
    blocks = [slice(start, stop) for start, stop in pairwise(edges)]
    squares = [features[block].T @ features[block] for block in blocks]
    products = [features[block].T @ shown[block] for block in blocks]
    for at, block in enumerate(blocks):
        square = np.sum(squares, axis=0) - squares[at]
        square += RIDGE * len(shown) * np.eye(len(square))
        weights = np.linalg.solve(square, np.sum(products, axis=0) - products[at])
        rest[block] = shown[block] - features[block] @ weights
    return rest


def _power(
    rest: Floats, size: float, *, rows: int, changes: bool, name: str
) -> tuple[float, float]:
    """Return the share of noisy batches found at the target of honest refusals: bound, measured.

    The test compares the spectrum of a batch's rest with that of clean rests and of clean rests
    with noise, by the likelihood ratio of Whittle. The limit is that of log-normal statistics of
    clean batches; the spectrum of a batch's test is that of batches that share no row with it.
    """
    window = np.hanning(rows)
    window /= np.sqrt(np.mean(window**2))
    batches = sliding_window_view(rest, rows)[:: rows // 4]
    if len(batches) < LEAST_BATCHES:
        raise SystemExit(f"{name}: {len(rest):,} rows hold too few batches of {rows:,}")
    shown = np.abs(np.fft.rfft(batches * window)) ** 2 / rows
    added = _noise_spectrum(size, shown.shape[1], rows, changes=changes)
    ratio = added / _smooth(shown.mean(axis=0))
    deflection = float(np.sqrt(rows / 2 * np.mean(ratio**2)))
    rng = stream(0, "detectability", name)
    clean, noisy = [], []
    for at, batch in enumerate(batches):
        apart = np.abs(np.arange(len(batches)) - at) >= 4  # quarters of a batch
        usual = _smooth(shown[apart].mean(axis=0))
        weights = 1 / usual - 1 / (usual + added)
        clean.append(np.log(shown[at] @ weights))
        for _ in range(DRAWS):
            noise = size * _noise(rows + 1, rng)
            spoilt = batch + (np.diff(noise) if changes else noise[1:])
            noisy.append(np.log((np.abs(np.fft.rfft(spoilt * window)) ** 2 / rows) @ weights))
    reach = float(norm.isf(TARGET))
    limit = float(np.mean(clean) + reach * np.std(clean, ddof=1))
    return float(norm.sf(reach - deflection)), float(np.mean(np.array(noisy) > limit))


def _noise_spectrum(size: float, count: int, rows: int, *, changes: bool) -> Floats:
    turn = np.exp(-2j * np.pi * np.arange(count) / rows)
    spectrum = size**2 * (1 - MEMORY**2) / np.abs(1 - MEMORY * turn) ** 2
    return np.asarray(spectrum * np.abs(1 - turn) ** 2 if changes else spectrum)


def _noise(rows: int, rng: np.random.Generator) -> Floats:
    shocks = rng.normal(size=rows)
    noise = shocks.copy()
    for row in range(1, rows):
        noise[row] = MEMORY * noise[row - 1] + np.sqrt(1 - MEMORY**2) * shocks[row]
    return noise


def _smooth(spectrum: Floats) -> Floats:
    ends = np.pad(spectrum, SMOOTHED // 2, mode="reflect")
    return np.convolve(ends, np.full(SMOOTHED, 1 / SMOOTHED), mode="valid")


def page(found: Sequence[Noticed], rows: int) -> str:
    """Return the page as Markdown."""
    return "\n".join(_lines(found, rows)) + "\n"


def _lines(found: Sequence[Noticed], rows: int) -> Iterator[str]:
    yield f"""# Which slow noise could be noticed

Written by `python -m benchmarks detectability`. The attack `ar-noise` of
[the red team](../explanation/red-team.md) adds noise to each level, as much as the gate admits; its
memory from row to row is {MEMORY:g}. A row counts as touched if a channel is changed by more than
{SMALL:g} of its standard deviation. So one level in which noise of this size is not noticed is
enough for the attack.

This page asks what a test would notice that knows more than a gate: a linear model of the level, of
all other channels as they truly were in up to {max(AROUND)} rows before and after (of the step to
the next reading: {max(STEPS_AROUND)}), of the hour and of the weekday. It is fitted to nine tenths
of the clean year of BATADAL and explains the other tenth. The test is the likelihood ratio of the
spectrum of what the model leaves unexplained, with and without the noise, in batches of {rows:,}
hours, at a limit that refuses {TARGET:.1%} of clean batches. Of a test of readings and one of
steps, the better counts.

*Gaussian* is the share of noisy batches that are noticed if what is unexplained were Gaussian and
its spectrum were known. *Measured* is the share noticed of clean batches with added noise. A
relation that is not linear, or that reaches further back, could notice more.

| level | {" | ".join(f"{size:g} sd: Gaussian | measured" for size in SIZES)} |
|---{"|---|---" * len(SIZES)}|"""
    for name in dict.fromkeys(each.name for each in found):
        cells = [
            f"{each.gaussian:.0%} | {each.measured:.0%}" for each in found if each.name == name
        ]
        yield f"| {name} | {' | '.join(cells)} |"


def main() -> None:
    """Measure, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="file to write the page to")
    parser.add_argument("--rows", type=int, default=876, help="of a batch: a shard of BATADAL")
    arguments = parser.parse_args()
    clean = batadal().clean
    found = [
        noticed(clean, level.name, size, rows=arguments.rows)
        for level in clean.of_role(Role.LEVEL)
        for size in SIZES
    ]
    with atomically(arguments.out) as draft:
        draft.write_text(page(found, arguments.rows), encoding="utf-8")


if __name__ == "__main__":
    main()
