"""How many malicious clients a rule guards against: a number, or a share of those present."""

from dataclasses import dataclass
from math import floor

from sluice.errors import SettingError

__all__ = ["Allowance", "AllowedShare", "allowed", "check_allowance"]


@dataclass(frozen=True, slots=True)
class AllowedShare:
    """A share of the updates present, rounded down; the number shrinks when a gate refuses some.

    `AllowedShare(0.3)` is 3 of the paper's 10 clients, and 2 of the 7 that its gate admits.
    """

    of: float

    def __post_init__(self) -> None:
        if not 0 <= self.of < 1:
            raise SettingError(f"a share of the clients must lie in [0, 1), got {self.of}")

    def among(self, clients: int) -> int:
        """Return the number of clients that the share allows."""
        return floor(self.of * clients + 1e-9)  # 0.29 of 100 is 29 despite float rounding


Allowance = int | AllowedShare


def check_allowance(f: Allowance, rule: str) -> None:
    """Refuse an allowance that no number of clients could satisfy."""
    if isinstance(f, int) and f < 0:
        raise SettingError(f"{rule} guards against f >= 0 clients, got f = {f}")


def allowed(f: Allowance, clients: int, rule: str) -> int:
    """Return f for this number of updates, which must be larger than f."""
    count = f.among(clients) if isinstance(f, AllowedShare) else f
    if clients <= count:
        raise SettingError(
            f"{rule} guards against f = {count} clients but got {clients} updates; it needs more "
            "than f; lower f, or give it as an AllowedShare of the clients present"
        )
    return count
