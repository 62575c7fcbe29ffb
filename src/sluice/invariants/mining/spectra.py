"""Spectra: how much a channel's readings vary from row to row, over blocks."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sluice.arrays import Floats
from sluice.invariants.mining.tails import tail_of
from sluice.invariants.relations import Spectrum
from sluice.telemetry import Channel, Record, Role

__all__ = ["mine_spectra", "spectrum_of"]

BLOCKS = (32, 64, 128)  # rows; the shortest that tells smoothing from the plant is used
LEAST_BLOCKS = 24
WEAK = 0.12  # of the median: a lower limit below this does not notice a smoothed channel
SWITCHED = 0.5  # of the squared changes, on rows where one actuator switches: no noise floor
ROOM = 1.75  # times beyond the tail: a short batch may have no block outside


def mine_spectra(
    record: Record, channels: Sequence[Channel], blocks: Sequence[Record], *, share: float
) -> tuple[Spectrum, ...]:
    """Return a spectrum for each channel whose blocks are alike enough to notice smoothing.

    A channel that moves mostly when an actuator switches has none: its sums count switches, and a
    pump may run for longer than in any clean block.
    """
    found = []
    for channel in channels:
        if _switched(record, channel) > SWITCHED:
            continue
        for rows in BLOCKS:
            if len(record) < LEAST_BLOCKS * rows:
                break
            name = f"{channel.name} noise"
            empty = Spectrum(
                name=name,
                channel=channel.name,
                rows=rows,
                first_low=0.0,
                first_high=0.0,
                second_low=0.0,
                second_high=0.0,
            )
            _, second = _sums(empty, blocks)
            shown = np.concatenate(second)
            if not shown.size or not shown.min() > 0:
                continue
            spectrum = spectrum_of(empty, blocks, share=share)
            if spectrum and _tells(spectrum, float(np.median(shown))):
                found.append(spectrum)
                break
    return tuple(found)


def _switched(record: Record, channel: Channel) -> float:
    """Return the share of squared changes on rows where one actuator switches, at most."""
    changes = np.square(np.diff(record.column(channel.name)))
    total = float(np.nansum(changes))
    if not total > 0:
        return 0.0
    shares = [0.0]
    for actuator in record.of_role(Role.ACTUATOR):
        switched = np.diff(np.rint(record.column(actuator.name))) != 0
        shares.append(float(np.nansum(changes[switched])) / total)
    return max(shares)


def _tells(spectrum: Spectrum, usual: float) -> bool:
    return spectrum.second_low >= WEAK * usual and spectrum.second_high <= usual / WEAK**2


def spectrum_of(spectrum: Spectrum, blocks: Sequence[Record], *, share: float) -> Spectrum | None:
    """Return the spectrum with limits that a share of later rows is expected to break."""
    first, second = _sums(spectrum, blocks)
    if not sum(part.size for part in first) or min(part.min() for part in second if part.size) <= 0:
        return None
    room, per_block = ROOM, share * spectrum.rows / 4
    limits = [_limits(part, per_block) for part in (first, second)]
    return replace(
        spectrum,
        first_low=limits[0][0] / room,
        first_high=limits[0][1] * room,
        second_low=limits[1][0] / room,
        second_high=limits[1][1] * room,
    )


def _limits(sums: Sequence[Floats], share: float) -> tuple[float, float]:
    logs = [np.log(np.maximum(part, np.finfo(float).tiny)) for part in sums]
    high = tail_of(logs, apart=1).level(share)
    low = -tail_of([-part for part in logs], apart=1).level(share)
    every = np.concatenate(logs)
    return float(np.exp(min(low, every.min()))), float(np.exp(max(high, every.max())))


def _sums(spectrum: Spectrum, blocks: Sequence[Record]) -> tuple[list[Floats], list[Floats]]:
    """Return the sums over blocks that miss no reading and cross no time jump, half overlapping."""
    firsts, seconds = [], []
    for block in blocks:
        parts = []
        for run in block.segments:
            readings = block.column(spectrum.channel)[run.slice]
            parts += [
                readings[start : start + spectrum.rows]
                for start in range(0, run.rows - spectrum.rows + 1, spectrum.rows // 2)
            ]
        stacked = np.array(parts).reshape(len(parts), spectrum.rows)
        stacked = stacked[~np.isnan(stacked).any(axis=1)]
        firsts.append(np.square(np.diff(stacked, axis=1)).sum(axis=1))
        seconds.append(np.square(np.diff(stacked, n=2, axis=1)).sum(axis=1))
    return firsts, seconds
