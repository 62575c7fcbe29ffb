"""A detector on a stream of rows: each row ends a window, which is scored at once."""

from collections.abc import Iterator
from functools import partial

import numpy as np

from sluice.arrays import Floats
from sluice.detector import Detector, RateThreshold
from sluice.telemetry import Channel, Record, Role, Windows, windows
from sluice.watch.settings import WatchSettings
from sluice.watch.signals import CauseKind, Signal
from sluice.watch.trailing import RecentRows
from sluice.watch.words import say_score

__all__ = ["ByDetector"]

SEVERE_RATIO = 4.0  # times the threshold
QUANTILE_WINDOWS = 3
MOST_TAGS = 3
ENOUGH_SHARE = 0.6  # of a score; further tags are not named


class ByDetector:
    """Judges rows by a calibrated detector."""

    def __init__(self, detector: Detector, names: tuple[str, ...], settings: WatchSettings) -> None:
        self.detector = detector
        scaler = detector.framing.scaler
        column = {name: at for at, name in enumerate(names)}
        self._columns = [column[name] for name in scaler.names]
        self._channels = tuple(Channel(name=name, role=Role.OTHER) for name in scaler.names)
        # A quantile of single windows is exceeded often; a rate of events is what was asked for.
        usual = 1 if isinstance(detector.threshold, RateThreshold) else QUANTILE_WINDOWS
        needed = usual if settings.raise_windows is None else settings.raise_windows
        self._cause = settings.cause(
            CauseKind.DETECTOR, "", stride_s=detector.framing.stride_s, needed=needed
        )

    @property
    def context(self) -> int:
        """How many rows before a row its window has."""
        return self.detector.framing.window_rows - 1

    def take(self, stretch: RecentRows) -> Iterator[Signal]:
        """Return the windows that end in the new rows and score above the threshold."""
        short = stretch.last(self.context)
        framing, threshold = self.detector.framing, self.detector.threshold
        record = Record(
            name="stream",
            channels=self._channels,
            values=short.raw[:, self._columns],
            times=short.times.view("datetime64[us]"),
            stride_s=framing.stride_s,
            labels=np.zeros(len(short), np.int8),
        )
        cut = windows(record, framing.scaler, length=framing.window_rows)
        cut = cut.take(cut.starts + framing.window_rows > short.fresh)
        if not len(cut):
            return
        scores = self.detector.model.scores(cut)
        above = np.flatnonzero(threshold.alarms(scores))
        if not above.size:
            return
        alarmed = cut.take(above)
        shares = self._blame(alarmed)
        limit = max(threshold.score, np.finfo(np.float64).tiny)
        for score, start, share in zip(scores[above], alarmed.starts, shares, strict=True):
            tags, parts = self._tags(share)
            ratio = float(score / limit)
            yield Signal(
                time=int(short.times[int(start) + framing.window_rows - 1]),
                cause=self._cause,
                tags=tags,
                size=ratio,
                severe=ratio > SEVERE_RATIO,
                say=partial(say_score, ratio, tags, parts),
            )

    def _blame(self, alarmed: Windows) -> Floats:
        blame = getattr(self.detector.model, "blame", None)
        if blame is not None:
            return np.asarray(blame(alarmed), np.float64)
        # A model of a plug-in that cannot tell: how far each channel is from its clean mean.
        away = alarmed.matrix().astype(np.float64).reshape(len(alarmed), alarmed.length, -1) ** 2
        mean = away.mean(axis=1)
        return np.asarray(mean / np.maximum(mean.sum(axis=1, keepdims=True), 1e-12))

    def _tags(self, share: Floats) -> tuple[tuple[str, ...], tuple[float, ...]]:
        names = self.detector.framing.scaler.names
        order = np.argsort(-share, kind="stable")[:MOST_TAGS]
        enough = np.cumsum(share[order]) - share[order] < ENOUGH_SHARE
        chosen = [at for at in order[enough].tolist() if share[at] > 0]
        return tuple(names[at] for at in chosen), tuple(float(share[at]) for at in chosen)
