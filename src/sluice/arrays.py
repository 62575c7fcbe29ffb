"""Array types and helpers that every package uses."""

from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["Bools", "Floats", "Ints", "Run", "Times", "frozen", "runs"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]
Times = NDArray[np.datetime64]

AnyArray = TypeVar("AnyArray", bound=NDArray[Any])


class Run(NamedTuple):
    """Consecutive rows, half open like a Python slice."""

    start: int
    stop: int

    @property
    def rows(self) -> int:
        """Number of rows."""
        return self.stop - self.start

    @property
    def slice(self) -> slice:
        """The same rows as a slice."""
        return slice(self.start, self.stop)


def runs(mask: Bools) -> tuple[Run, ...]:
    """Return the maximal runs of rows where the mask is true."""
    edges = np.flatnonzero(np.diff(mask.astype(np.int8), prepend=0, append=0))
    return tuple(
        Run(int(start), int(stop)) for start, stop in zip(edges[::2], edges[1::2], strict=True)
    )


def frozen(array: AnyArray) -> AnyArray:
    """Return a read-only view of the array."""
    view = array.view()
    view.flags.writeable = False
    return view
