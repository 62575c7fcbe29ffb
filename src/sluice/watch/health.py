"""The health of a watch: what came in, how fast, how late, and how the sinks do."""

import time
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass

from sluice.watch.intake import RowCounts
from sluice.watch.rows import clock
from sluice.watch.sinks import SinkHealth
from sluice.watch.sources import SourceState

__all__ = ["Health", "Pulse"]

SILENT_STRIDES, SILENT_S = 10, 30.0
SPEED_OVER_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """How a watch does at one moment."""

    state: str  # ok, silent (no rows for long), connection lost, starting or over
    source: str
    rows_per_s: float  # over the last minute
    judged_ms: float  # longest time from taking rows to keeping their alarms, last minute
    lag_s: float | None  # between the last row's time and now, if the plant's clock is UTC
    silent_s: float | None  # since the last row came in
    counts: RowCounts
    unreadable: int  # lines or messages
    open_alarms: int
    raised: int  # since the start of this process
    dropped_events: int  # because too many waited for a sink
    sinks: tuple[SinkHealth, ...]
    borrowed: tuple[str, ...] = ()  # what other plants lend

    def payload(self) -> dict[str, object]:
        """Return it as JSON shows it."""
        counted = asdict(self.counts)
        last = counted.pop("last")
        return {
            **{k: v for k, v in asdict(self).items() if k not in ("counts", "sinks")},
            **counted,
            "last_row": None if last is None else clock(last),
            "sinks": [asdict(sink) for sink in self.sinks],
            "borrowed": list(self.borrowed),
        }


class Pulse:
    """Measures speed, delay and silence by the computer's clock."""

    def __init__(self, *, stride_s: float, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._silent_after = max(SILENT_STRIDES * stride_s, SILENT_S)
        self._monotonic = monotonic
        self._began = monotonic()
        self._last: float | None = None
        self._steps: deque[tuple[float, int, float]] = deque()

    def count(self, rows: int, took_s: float) -> None:
        """Note that rows were judged."""
        now = self._monotonic()
        if rows:
            self._last = now
            self._steps.append((now, rows, took_s))
        while self._steps and now - self._steps[0][0] > SPEED_OVER_S:
            self._steps.popleft()

    @property
    def rows_per_s(self) -> float:
        """Rows a second over the last minute."""
        now = self._monotonic()
        over = min(SPEED_OVER_S, max(now - self._began, 1e-3))
        return sum(rows for at, rows, _ in self._steps if now - at <= SPEED_OVER_S) / over

    @property
    def judged_ms(self) -> float:
        """The longest step of the last minute, in milliseconds."""
        return 1e3 * max((took for _, _, took in self._steps), default=0.0)

    @property
    def silent_s(self) -> float | None:
        """Seconds since the last row came in; None before the first one."""
        return None if self._last is None else self._monotonic() - self._last

    def state(self, source: SourceState) -> str:
        """Return the state in one word or two."""
        if source in (SourceState.LOST, SourceState.OVER, SourceState.STARTING):
            return source.value
        since = self._monotonic() - (self._began if self._last is None else self._last)
        if since > self._silent_after:
            return "silent"
        return "starting" if self._last is None else "ok"
