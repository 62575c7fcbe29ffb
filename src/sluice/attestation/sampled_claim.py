"""How rows are drawn, and what a proof about drawn rows claims."""

from dataclasses import dataclass

from sluice import _attest
from sluice.errors import SettingError

__all__ = ["Claim", "Sampling"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How many rows are drawn, and how many of them may violate.

    The paper lets one of 32 violate, which excludes a clean plant about once in 67 rounds; with two
    it is about once in ten thousand, and batches that the paper finds are still found.
    """

    samples: int = 32
    violations: int = 2

    def __post_init__(self) -> None:
        if not 0 <= self.violations < self.samples:
            raise SettingError(
                f"{self.violations} of {self.samples} drawn rows may violate; say fewer"
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """The public inputs of a proof, recomputed by whoever verifies."""

    commitment: bytes
    rows: int
    drawn: tuple[int, ...]
    violations: int
    silent: tuple[int, ...]  # by coupling
    context: bytes

    @property
    def signals(self) -> tuple[int, ...]:
        """The field elements, in the circuit's order; the context is in two halves."""
        halves = (self.context[:16], self.context[16:])
        return (
            int.from_bytes(self.commitment, "big"),
            *self.drawn,
            self.violations,
            *self.silent,
            *(int.from_bytes(half, "big") for half in halves),
        )

    @property
    def core(self) -> _attest.SampledClaim:
        """The same as the core takes it."""
        return _attest.SampledClaim(
            self.rows, list(self.drawn), self.violations, list(self.silent), self.context
        )
