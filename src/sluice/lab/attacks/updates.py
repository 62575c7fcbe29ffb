"""Attacks on updates: a malicious client sends another vector in place of its trained update.

    sign-flip    its own update with the opposite sign
    scaling      its own update times a factor
    free-rider   noise in place of training
    min-max      as far against the others' mean as their own spread hides
    alie         a little off the mean in every weight, within the others' spread

The attacks know all updates of the round that were trained as agreed (`honest`), which makes them
the strongest adversary. A round that leaves nothing to attack (no direction, no spread) is an
error: an attack that changes nothing would be counted as one that succeeded.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from types import MappingProxyType
from typing import Protocol

import numpy as np

from sluice.aggregation import Vector
from sluice.arrays import Floats
from sluice.errors import SettingError
from sluice.seeding import stream

__all__ = [
    "ALIE",
    "UPDATE_ATTACKS",
    "FreeRider",
    "MinMax",
    "Scaling",
    "SignFlip",
    "SmallestMajority",
    "UpdateAttack",
]


class UpdateAttack(Protocol):
    """Turns a client's own update and the honest updates into the vector it sends."""

    def __call__(self, own: Vector, honest: Sequence[Vector], *, seed: int) -> Floats:
        """Return the vector to send; the same seed gives the same vector.

        Clients with the same seed draw the same noise: give each client and round its own seed.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SignFlip:
    """Send the trained update with the opposite sign."""

    def __call__(self, own: Vector, honest: Sequence[Vector], *, seed: int) -> Floats:  # noqa: ARG002 - as every attack
        """Return the negative of the client's update; the seed is not used."""
        return -_double(own)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaling:
    """Send the trained update times a factor."""

    factor: float = 10.0

    def __post_init__(self) -> None:
        if not np.isfinite(self.factor) or self.factor == 1:
            raise SettingError(f"an update is scaled by a factor other than 1, got {self.factor}")

    def __call__(self, own: Vector, honest: Sequence[Vector], *, seed: int) -> Floats:  # noqa: ARG002 - as every attack
        """Return the client's update times the factor; the seed is not used."""
        return self.factor * _double(own)


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeRider:
    """Send noise that is small compared with the honest updates.

    The paper's code reseeds its noise at each call, so that all free riders send the same vector in
    every round; `reseeded` does that.
    """

    share: float = 0.01  # of the standard deviation over all honest entries
    reseeded: bool = False

    def __post_init__(self) -> None:
        if not (np.isfinite(self.share) and self.share > 0):
            raise SettingError(
                f"a free rider's noise is a share above 0 of the honest spread, got {self.share}"
            )

    def __call__(self, own: Vector, honest: Sequence[Vector], *, seed: int) -> Floats:
        """Return noise of the update's size."""
        spread = float(_side_by_side(own, honest, least=1).std())
        if spread == 0:
            raise SettingError(
                "all honest entries are equal; a free rider needs a spread to hide in"
            )
        random = np.random.default_rng(0) if self.reseeded else stream(seed, "free-rider")
        return random.normal(0.0, self.share * spread, size=np.asarray(own).size)


@dataclass(frozen=True, slots=True, kw_only=True)
class MinMax:
    """Go against the honest mean, no farther from honest updates than these are from each other.

    Shejwalkar and Houmansadr (NDSS 2021), in the direction opposite to the mean. The distance is
    doubled from `start` until it is too far, then bisected; all malicious clients send one vector.
    """

    start: float = 5.0
    doublings: int = 20
    bisections: int = 20

    def __post_init__(self) -> None:
        if not (self.start > 0 and self.doublings >= 1 and self.bisections >= 1):
            raise SettingError(
                "min-max searches from a distance above 0 with at least 1 doubling and 1 "
                f"bisection, got {self.start}, {self.doublings} and {self.bisections}"
            )

    def __call__(self, own: Vector, honest: Sequence[Vector], *, seed: int) -> Floats:  # noqa: ARG002 - as every attack
        """Return the farthest vector that is still hidden; the seed is not used."""
        others = _side_by_side(own, honest, least=2)
        mean = others.mean(axis=0)
        length = float(np.linalg.norm(mean))
        widest = max(float(np.linalg.norm(others - one, axis=1).max()) for one in others)
        if length == 0 or widest == 0:
            raise SettingError(
                f"the honest updates' mean has length {length} and they lie {widest} apart at "
                "most; min-max needs a direction to go against and a spread to hide in"
            )
        against: Floats = -mean / length
        sent: Floats = mean + self._farthest(others, mean, against, widest) * against
        return sent

    def _farthest(self, others: Floats, mean: Floats, against: Floats, widest: float) -> float:
        def hidden(distance: float) -> bool:
            apart = np.linalg.norm(others - (mean + distance * against), axis=1)
            return bool(apart.max() <= widest)

        near, far = 0.0, self.start
        for _ in range(self.doublings):
            if not hidden(far):
                break
            near, far = far, 2 * far
        for _ in range(self.bisections):
            middle = (near + far) / 2
            near, far = (middle, far) if hidden(middle) else (near, middle)
        return near


@dataclass(frozen=True, slots=True, kw_only=True)
class SmallestMajority:
    """The deviation at which malicious clients and the honest clients beyond it are a majority.

    With n clients, m of them malicious, s = floor(n/2 + 1) - m honest ones are needed for a
    majority, and the deviation is the normal quantile of (n - m - s)/(n - m).
    """

    malicious: int

    def __post_init__(self) -> None:
        if self.malicious < 1:
            raise SettingError(f"at least 1 client must be malicious, got {self.malicious}")

    def deviation(self, honest: int) -> float:
        """Return z for this number of honest clients."""
        needed = (honest + self.malicious) // 2 + 1 - self.malicious
        share = (honest - needed) / honest
        if not 0.5 < share < 1:
            raise SettingError(
                f"{self.malicious} malicious clients of {honest + self.malicious} leave no "
                "deviation to hide in: they are a majority already, or too few to matter; fix z "
                "instead"
            )
        return NormalDist().inv_cdf(share)


@dataclass(frozen=True, slots=True, kw_only=True)
class ALIE:
    """Send the honest mean less z standard deviations in every weight ("a little is enough").

    Baruch, Baruch and Goldberg (NeurIPS 2019). The paper's code fixes z = 1.5.
    """

    z: float | SmallestMajority = SmallestMajority(malicious=3)

    def __post_init__(self) -> None:
        if not isinstance(self.z, SmallestMajority) and not (np.isfinite(self.z) and self.z > 0):
            raise SettingError(f"ALIE deviates by z > 0 standard deviations, got {self.z}")

    def __call__(self, own: Vector, honest: Sequence[Vector], *, seed: int) -> Floats:  # noqa: ARG002 - as every attack
        """Return the shifted mean; the seed is not used."""
        others = _side_by_side(own, honest, least=2)
        spread = others.std(axis=0)
        if not spread.any():
            raise SettingError("all honest updates are equal; ALIE needs a spread to hide in")
        z = self.z.deviation(len(others)) if isinstance(self.z, SmallestMajority) else self.z
        return np.asarray(others.mean(axis=0) - z * spread, dtype=np.float64)


UPDATE_ATTACKS: Mapping[str, UpdateAttack] = MappingProxyType(
    {
        "sign-flip": SignFlip(),
        "scaling": Scaling(),
        "free-rider": FreeRider(),
        "min-max": MinMax(),
        "alie": ALIE(),
    }
)
"""The attacks on updates by command-line name."""


def _double(vector: Vector) -> Floats:
    return np.asarray(vector, dtype=np.float64)


def _side_by_side(own: Vector, honest: Sequence[Vector], *, least: int) -> Floats:
    if len(honest) < least:
        raise SettingError(f"the attack reads at least {least} honest updates, got {len(honest)}")
    shape = np.asarray(own).shape
    if any(np.asarray(vector).shape != shape for vector in honest):
        raise SettingError(f"an honest update does not have the shape {shape} of the client's own")
    return np.stack([_double(vector) for vector in honest])
