"""The kinds of detector that clients learn together from sums, by name.

The autoencoder is trained in rounds and is not one of them. Every other kind is learned from sums
over windows: each client summarises its own windows, the summaries are added, and the model is a
function of the total.
"""

from collections.abc import Mapping
from typing import Any, Protocol, Self, final

from sluice.detector.model import DetectorKind, Model
from sluice.detector.subspace import Moments, Subspace, fit_subspace
from sluice.errors import SettingError
from sluice.plugins import Registry
from sluice.telemetry import Windows

__all__ = ["SUMMED", "SummedDetector", "WindowSums", "demand_detector", "detector_names"]


class WindowSums(Protocol):
    """Sums over windows; two of them add up to the summary of both sets of windows."""

    @property
    def count(self) -> int:
        """How many windows were summed."""
        ...

    def __add__(self, other: Self) -> Self:
        """Return the summary of both."""
        ...


class SummedDetector(Protocol):
    """A kind of detector that is learned from sums over windows."""

    @property
    def model(self) -> type[Model]:
        """The model's class, by which a saved one is loaded."""
        ...

    def summarise(self, windows: Windows) -> Any:
        """Return the `WindowSums` of one client's windows."""
        ...

    def fit(self, total: Any, clean: Windows) -> Model:
        """Return the model of a summary; `clean` are windows that were not summed."""
        ...


@final
class SubspaceDetector:
    """Principal components of windows: the summary is their count, sum and second moments."""

    model: type[Model] = Subspace

    def summarise(self, windows: Windows) -> Moments:
        """Return the moments of the windows."""
        return Moments.of(windows)

    def fit(self, total: Moments, clean: Windows) -> Model:
        """Return the subspace that the moments span."""
        return fit_subspace(total, clean)


_BUILT_IN: Mapping[str, SummedDetector] = {DetectorKind.SUBSPACE.value: SubspaceDetector()}
SUMMED: Registry[SummedDetector] = Registry(
    _BUILT_IN, group="sluice.detectors", reserved=(DetectorKind.AUTOENCODER.value,)
)


def detector_names() -> tuple[str, ...]:
    """Return the names that settings and model files may give."""
    return (DetectorKind.AUTOENCODER.value, *SUMMED)


def demand_detector(name: str) -> None:
    """Refuse a kind of detector that does not exist."""
    if name not in detector_names():
        raise SettingError(f"unknown detector {name!r}; known are {', '.join(detector_names())}")
