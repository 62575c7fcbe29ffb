"""Fits and scores that are computed once: honest members send the same under every attack."""

from collections.abc import Mapping
from hashlib import sha256
from typing import Any, ClassVar, Self

import numpy as np

from sluice.arrays import Floats
from sluice.detector import SUMMED, DetectorKind, Model, SummedDetector
from sluice.telemetry import Windows

__all__ = ["Remembered", "RememberedModel"]


class RememberedModel:
    """A model that scores the same windows once: every attack is measured on the same record."""

    kind: ClassVar[str] = DetectorKind.MOMENTS.value

    def __init__(self, model: Model) -> None:
        self._model, self.width = model, model.width
        self._scores: dict[bytes, Floats] = {}

    def scores(self, windows: Windows) -> Floats:
        """Return one score per window."""
        parts = (windows.starts, windows.rows)
        key = sha256(b"".join(np.ascontiguousarray(part).tobytes() for part in parts)).digest()
        if key not in self._scores:
            self._scores[key] = self._model.scores(windows)
        return self._scores[key]

    def blame(self, windows: Windows) -> Floats:
        """Return each channel's share of each window's score."""
        return self._model.blame(windows)

    def tensors(self) -> dict[str, Any]:
        """Return the arrays of the model."""
        return self._model.tensors()

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Any]) -> Self:
        """Build the model from its arrays."""
        return cls(SUMMED[cls.kind].model.from_tensors(tensors))


class Remembered:
    """A kind of detector that fits each statistic once: honest members send the same every time."""

    def __init__(self, kind: SummedDetector) -> None:
        self._kind, self.model = kind, kind.model
        self._fitted: dict[int, tuple[Any, Model]] = {}

    def summarise(self, windows: Windows) -> Any:
        """Return the sums of the windows."""
        return self._kind.summarise(windows)

    def fit(self, total: Any, clean: Windows) -> Model:
        """Return the model of a statistic; the receiver's clean windows are always the same."""
        if id(total) not in self._fitted:
            self._fitted[id(total)] = total, RememberedModel(self._kind.fit(total, clean))
        return self._fitted[id(total)][1]
