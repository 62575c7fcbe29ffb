"""The last rows of a stream, as many as the rules and the detector look back."""

import io
from dataclasses import dataclass

import numpy as np

from sluice.arrays import Bools, Floats, Ints
from sluice.watch.rows import StreamRows, microseconds

__all__ = ["RecentRows", "Trailing"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RecentRows:
    """New rows and the rows before them, without a time jump between them."""

    times: Ints
    raw: Floats  # NaN where a reading is missing
    held: Floats  # a missing reading takes the last one of its channel
    fresh: int  # index of the first new row
    row: int  # how many rows the stream had before the first row of this stretch

    def __len__(self) -> int:
        return len(self.times)

    def last(self, context: int) -> "RecentRows":
        """Return the new rows with at most this many rows before them."""
        start = max(0, self.fresh - context)
        return RecentRows(
            times=self.times[start:],
            raw=self.raw[start:],
            held=self.held[start:],
            fresh=self.fresh - start,
            row=self.row + start,
        )

    def span(self, start: int, stop: int) -> "RecentRows":
        """Return rows start..stop-1, all of them new."""
        return RecentRows(
            times=self.times[start:stop],
            raw=self.raw[start:stop],
            held=self.held[start:stop],
            fresh=0,
            row=self.row + start,
        )


class Trailing:
    """Keeps the last `depth` rows, and the last reading of each channel."""

    def __init__(self, *, depth: int, channels: int, stride_s: float) -> None:
        self.depth = depth
        self.row = 0  # rows of the stream so far
        self._stride = microseconds(stride_s)
        self._times = np.empty(0, np.int64)
        self._raw = np.empty((0, channels))
        self._held = np.empty((0, channels))
        self._known = np.full(channels, np.nan)

    def segments(self, rows: StreamRows) -> list[RecentRows]:
        """Add rows; return them as stretches, one for each segment between time jumps."""
        if not len(rows):
            return []
        held = self._hold(rows.values)
        before = self._times[-1:]
        steps = np.diff(np.concatenate((before, rows.times)))
        jumps: Bools = np.abs(steps - self._stride) > self._stride / 2
        cuts = np.flatnonzero(jumps) + (0 if before.size else 1)
        edges = np.unique(np.concatenate(([0], cuts, [len(rows)]))).astype(np.int64)
        jumped = set(cuts.tolist())
        stretches = []
        for start, stop in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
            if start in jumped:
                self._forget()
            stretches.append(
                self._extended(rows.times[start:stop], rows.values[start:stop], held[start:stop])
            )
        return stretches

    def _extended(self, times: Ints, raw: Floats, held: Floats) -> RecentRows:
        kept = len(self._times)
        stretch = RecentRows(
            times=np.concatenate((self._times, times)),
            raw=np.concatenate((self._raw, raw)),
            held=np.concatenate((self._held, held)),
            fresh=kept,
            row=self.row - kept,
        )
        self.row += len(times)
        tail = slice(max(0, len(stretch) - max(self.depth, 1)), None)
        self._times, self._raw, self._held = (
            stretch.times[tail],
            stretch.raw[tail],
            stretch.held[tail],
        )
        return stretch

    def _forget(self) -> None:
        self._times, self._raw, self._held = self._times[:0], self._raw[:0], self._held[:0]

    def _hold(self, raw: Floats) -> Floats:
        if not np.isnan(raw).any():
            self._known = raw[-1].copy()
            return raw
        with_before = np.vstack((self._known, raw))
        there = ~np.isnan(with_before)
        at = np.where(there, np.arange(len(with_before))[:, None], 0)
        last = np.maximum.accumulate(at, axis=0)
        held = with_before[last, np.arange(raw.shape[1])][1:]
        self._known = held[-1].copy()
        return np.asarray(held, np.float64)

    # -- saving -------------------------------------------------------------------------------

    def saved(self) -> bytes:
        """Return the content as bytes."""
        buffer = io.BytesIO()
        np.savez(
            buffer,
            row=np.array(self.row),
            times=self._times,
            raw=self._raw,
            held=self._held,
            known=self._known,
        )
        return buffer.getvalue()

    def restore(self, content: bytes) -> None:
        """Take the content that `saved` returned."""
        with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
            self.row = int(arrays["row"])
            self._times, self._raw = arrays["times"], arrays["raw"]
            self._held, self._known = arrays["held"], arrays["known"]
