"""Spectra: how much a channel's readings vary from row to row, over blocks."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.stats import t as student

from sluice.arrays import Floats
from sluice.invariants.relations import Spectrum
from sluice.telemetry import Channel, Record, Role

__all__ = ["mine_spectra", "spectrum_of"]

BLOCKS = (32, 64, 128, 192)  # rows; the shortest that tells smoothing from the plant is used
LEAST_BLOCKS = 12
SMOOTHED_ROWS = 3  # the weakest smoothing that a block should notice
TOLD = 0.9  # of the smoothed blocks should lie below the lower limit
WEAK = 0.12  # of the median: a lower limit below this does not notice a smoothed channel
SWITCHED = 0.5  # of the squared changes, on rows where one actuator switches: no noise floor
ROOM = 0.5  # beyond the tail, for the shortest block: a short batch may have no block outside


def mine_spectra(
    record: Record, channels: Sequence[Channel], blocks: Sequence[Record], *, share: float
) -> tuple[Spectrum, ...]:
    """Return a spectrum for each channel whose blocks are alike enough to notice smoothing.

    Its blocks are the shortest that notice the weakest smoothing, or those that come closest to it.

    A channel that moves mostly when an actuator switches has none: its sums count switches, and a
    pump may run for longer than in any clean block.
    """
    found = []
    for channel in channels:
        if _switched(record, channel) > SWITCHED:
            continue
        best: tuple[float, Spectrum] | None = None
        for rows in BLOCKS:
            if len(record) < LEAST_BLOCKS * rows:
                break
            empty = Spectrum(
                name=f"{channel.name} noise",
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
            if spectrum is None or not _tells(spectrum, float(np.median(shown))):
                continue
            above = spectrum.second_low / _smoothed(spectrum, blocks)
            if best is None or above > best[0]:
                best = (above, spectrum)
            if above > 1:
                break
        if best:
            found.append(best[1])
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


def _smoothed(spectrum: Spectrum, blocks: Sequence[Record]) -> float:
    """Return the sum below which most blocks lie whose readings are means over a few rows."""
    _, second = _sums(spectrum, blocks, smoothed=SMOOTHED_ROWS)
    return max(float(np.quantile(np.concatenate(second), TOLD)), np.finfo(float).tiny)


def spectrum_of(spectrum: Spectrum, blocks: Sequence[Record], *, share: float) -> Spectrum | None:
    """Return the spectrum with limits that a share of later rows is expected to break.

    A level that fills in some blocks and stands still in others has sums of changes in two groups,
    whose tail says little. So the limits of changes also keep to what is possible: in no block does
    it change faster than in the fastest clean row for all rows, and squared second differences sum
    to at most four times the squared first differences.
    """
    first, second = _sums(spectrum, blocks)
    if sum(part.size for part in first) < 2 or min(part.min() for part in second if part.size) <= 0:
        return None
    room = 1 + ROOM * float(np.sqrt(BLOCKS[0] / spectrum.rows))
    per_block = share * spectrum.rows / 4
    (low, high), (second_low, second_high) = (_limits(part, per_block) for part in (first, second))
    fastest = (spectrum.rows - 1) * _fastest(spectrum, blocks) ** 2
    return replace(
        spectrum,
        first_low=max(low, second_low / 4) / room,
        first_high=min(high, fastest) * room,
        second_low=second_low / room,
        second_high=second_high * room,
    )


def _fastest(spectrum: Spectrum, blocks: Sequence[Record]) -> float:
    """Return the largest change from one row to the next."""
    return max(
        float(np.nanmax(np.abs(np.diff(readings)), initial=0.0))
        for block in blocks
        for run in block.segments
        for readings in [block.column(spectrum.channel)[run.slice]]
    )


def _limits(sums: Sequence[Floats], share: float) -> tuple[float, float]:
    """Return limits of sums whose logarithms are nearly normal, as sums of many squares are.

    The limits also hold every clean block.
    """
    logs = np.log(np.maximum(np.concatenate(sums), np.finfo(float).tiny))
    reach = float(student.isf(share, logs.size - 1)) * float(logs.std(ddof=1))
    low = min(float(logs.mean()) - reach, float(logs.min()))
    high = max(float(logs.mean()) + reach, float(logs.max()))
    return float(np.exp(low)), float(np.exp(high))


def _sums(
    spectrum: Spectrum, blocks: Sequence[Record], *, smoothed: int = 1
) -> tuple[list[Floats], list[Floats]]:
    """Return the sums over blocks that miss no reading and cross no time jump, half overlapping.

    With `smoothed`, each reading is the mean of so many rows.
    """
    firsts, seconds = [], []
    for block in blocks:
        parts = []
        for run in block.segments:
            readings = block.column(spectrum.channel)[run.slice]
            if smoothed > 1 and run.rows >= smoothed:
                readings = np.convolve(readings, np.full(smoothed, 1 / smoothed), mode="valid")
            parts += [
                readings[start : start + spectrum.rows]
                for start in range(0, readings.size - spectrum.rows + 1, spectrum.rows // 2)
            ]
        stacked = np.array(parts).reshape(len(parts), spectrum.rows)
        stacked = stacked[~np.isnan(stacked).any(axis=1)]
        firsts.append(np.square(np.diff(stacked, axis=1)).sum(axis=1))
        seconds.append(np.square(np.diff(stacked, n=2, axis=1)).sum(axis=1))
    return firsts, seconds
