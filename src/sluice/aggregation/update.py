"""The update of one client in one round, and a round's updates as a matrix."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sluice.arrays import Floats, frozen
from sluice.errors import SettingError

__all__ = ["Stack", "Update", "Vector", "checked_vector", "stacked"]

Vector = NDArray[np.floating[Any]]

LARGEST = float(np.finfo(np.float32).max)  # weights are sent as float32; its square fits in float64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Update:
    """One client's change of weights: its model after training minus the model it received."""

    client: str
    vector: Vector
    weight: float  # rows of the batch that the client was admitted with; never its own claim

    def __post_init__(self) -> None:
        if not self.client:
            raise SettingError("an update must name the client that sent it; got an empty name")
        if not (np.isfinite(self.weight) and self.weight > 0):
            raise SettingError(
                f"the update of client {self.client!r} has weight {self.weight}; expected more "
                "than 0; leave out a client that was not admitted"
            )
        owner = f"the update of client {self.client!r}"
        object.__setattr__(self, "vector", checked_vector(self.vector, owner))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stack:
    """A round's updates as the rows of a matrix, in the order of the clients' names.

    Rows are ordered only here, so the order in which updates arrive cannot change a rule's result,
    not even in its last bit.
    """

    clients: tuple[str, ...]
    matrix: Floats  # clients by weights
    weights: Floats

    def __len__(self) -> int:
        return len(self.clients)


def checked_vector(vector: Vector, owner: str, *, largest: float = LARGEST) -> Vector:
    """Return the vector read-only; an error names the fault and the owner.

    `largest` bounds the absolute value of each entry.
    """
    array = np.asarray(vector)
    if array.ndim != 1 or array.size == 0 or array.dtype.kind != "f":
        raise SettingError(
            f"{owner} is an array of {array.dtype} with shape {array.shape}; expected a flat, "
            "non-empty vector of floats"
        )
    # Written so that NaN counts as outside.
    outside = ~(np.abs(array) <= largest)
    if outside.any():
        at = int(np.flatnonzero(outside)[0])
        raise SettingError(
            f"{owner} has {int(outside.sum())} entries that are NaN, infinite or beyond "
            f"{largest:.6g}, the first at {at} ({array[at]}); refuse it before aggregating"
        )
    return frozen(array)


def stacked(updates: Sequence[Update]) -> Stack:
    """Stack a round's updates in double precision, ordered by client."""
    if not updates:
        raise SettingError("a round without updates cannot be aggregated; keep the last weights")
    ordered = sorted(updates, key=lambda update: update.client)
    for one, other in pairwise(ordered):
        if one.client == other.client:
            raise SettingError(f"client {one.client!r} sent two updates in one round; expected one")
        if one.vector.shape != other.vector.shape:
            raise SettingError(
                f"client {one.client!r} sent {one.vector.size} weights and client "
                f"{other.client!r} sent {other.vector.size}; all must train the same model"
            )
    return Stack(
        clients=tuple(update.client for update in ordered),
        matrix=np.stack([update.vector.astype(np.float64) for update in ordered]),
        weights=np.array([update.weight for update in ordered], dtype=np.float64),
    )
