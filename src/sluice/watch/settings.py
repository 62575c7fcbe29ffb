"""How soon a watch raises an alarm, how long it waits before it ends one, and how many it sends."""

from dataclasses import dataclass

from sluice.errors import SettingError
from sluice.watch.rows import microseconds
from sluice.watch.signals import Symptom, SymptomKind

__all__ = ["JITTER", "WatchSettings"]

JITTER = 1.25  # clocks of plants are not exact; a step of more than 1.5 strides is a time jump


@dataclass(frozen=True, slots=True, kw_only=True)
class WatchSettings:
    """The settings of hysteresis and rate limiting; rows are rows of the plant's stride."""

    raise_rows: int = 3  # of 2 x n - 1 consecutive rows must show a symptom
    raise_windows: int | None = None  # the same for the detector; None: as its threshold needs
    clear_rows: int = 10  # rows without a signal end an alarm; alarms closer than this are one
    most_per_hour: int = 12  # alarms that are sent, in any hour of the plant's clock

    def __post_init__(self) -> None:
        windows = 1 if self.raise_windows is None else self.raise_windows
        if min(self.raise_rows, windows, self.clear_rows, self.most_per_hour) < 1:
            raise SettingError(
                "a watch raises and ends alarms after at least 1 row, and sends at least 1 an "
                f"hour; got {self}"
            )

    def symptom(
        self, kind: SymptomKind, name: str, *, stride_s: float, needed: int | None = None
    ) -> Symptom:
        """Return a symptom that most of a few consecutive rows must show."""
        needed = self.raise_rows if needed is None else needed
        within = microseconds((2 * needed - 2) * stride_s * JITTER)
        return Symptom(kind=kind, name=name, needed=needed, within=within)
