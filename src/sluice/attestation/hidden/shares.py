"""Sharing a statistic: two shares that say nothing alone, and a commitment to each.

R is uniform, and Y = C + R in the field. The coordinator holds Y, the helper the seed of R. The
masks of the circuit are shared the same way. Both shares are committed to before the weights of the
form are drawn.
"""

from dataclasses import dataclass, field

from sluice.attestation.hidden.elements import (
    ORDER,
    REPETITIONS,
    Draw,
    Elements,
    Shape,
    added,
    element_bytes,
    expand,
    negated,
    read_elements,
    vector_of,
)
from sluice.attestation.packing import digest
from sluice.attestation.systems.full import SealedStatistic
from sluice.detector import MomentStatistic
from sluice.errors import SettingError

__all__ = ["SHARING_BYTES", "CoordinatorShare", "HelperShare", "SharedSums", "share_sums"]

KEY_BYTES = 32
SHARING_BYTES = 2 * KEY_BYTES
"""How many random bytes sharing takes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HelperShare:
    """The helper's share: one seed, from which R and its part of the masks follow."""

    seed: bytes = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.seed) != KEY_BYTES:
            raise SettingError(f"a helper's share has {KEY_BYTES} bytes, not {len(self.seed)}")

    @property
    def commitment(self) -> bytes:
        """The commitment that a sealed statistic holds."""
        return digest("hidden helper share", self.seed)

    def sums(self, shape: Shape) -> Elements:
        """Return R."""
        return expand(self.seed, "sums", shape.size)

    @property
    def masks(self) -> Elements:
        """Its part of the circuit's masks."""
        return expand(self.seed, "masks", REPETITIONS)

    def answer(self, shape: Shape, draw: Draw) -> tuple[int, ...]:
        """Return what the helper publishes: its part of the masks less the form of R."""
        forms = draw.forms(shape, self.sums(shape))
        pairs = zip(self.masks.tolist(), forms, strict=True)
        return tuple((mask - form) % ORDER for mask, form in pairs)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CoordinatorShare:
    """The coordinator's share: Y, the rest of the masks, and a key that hides the commitment."""

    key: bytes = field(repr=False)
    masks: Elements = field(repr=False)
    sums: Elements = field(repr=False)

    def __post_init__(self) -> None:
        if len(self.key) != KEY_BYTES or self.masks.shape != (REPETITIONS,):
            raise SettingError(
                f"a coordinator's share begins with {KEY_BYTES} bytes and {REPETITIONS} masks"
            )

    @property
    def commitment(self) -> bytes:
        """The commitment that a sealed statistic holds.

        The helper knows R. A hash of Y alone would let it test guesses of the sums.
        """
        return digest(
            "hidden coordinator share",
            self.key,
            element_bytes(self.masks),
            element_bytes(self.sums),
        )

    def expected(self, shape: Shape, draw: Draw, totals: tuple[int, ...]) -> tuple[int, ...]:
        """Return what the helper must have published, if the totals of the proof are right."""
        forms = draw.forms(shape, self.sums)
        parts = zip(totals, self.masks.tolist(), forms, strict=True)
        return tuple((total - mask - form) % ORDER for total, mask, form in parts)

    def canonical(self) -> bytes:
        """Return the one encoding."""
        return self.key + element_bytes(self.masks) + element_bytes(self.sums)

    @classmethod
    def from_canonical(cls, content: bytes, shape: Shape) -> "CoordinatorShare":
        """Read a share of this shape; refuse any other bytes."""
        expected = KEY_BYTES + 8 * (REPETITIONS + shape.size)
        if len(content) != expected:
            raise SettingError(
                f"a coordinator's share has {expected:,} bytes, this one has {len(content):,}"
            )
        try:
            values = read_elements(content[KEY_BYTES:])
        except ValueError as error:
            raise SettingError(f"the coordinator's share cannot be read: {error}") from None
        return cls(key=content[:KEY_BYTES], masks=values[:REPETITIONS], sums=values[REPETITIONS:])


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedSums:
    """A statistic in shares, and what is public about it."""

    sealed: SealedStatistic
    coordinator: CoordinatorShare
    helper: HelperShare


def share_sums(
    statistic: MomentStatistic, masks: tuple[int, ...], *, rows: int, entropy: bytes
) -> SharedSums:
    """Share the statistic of a batch of so many rows, and the masks that its salt gives.

    `entropy` is 64 bytes that no other batch was shared with.
    """
    if len(entropy) != SHARING_BYTES:
        raise SettingError(f"sharing takes {SHARING_BYTES} random bytes, not {len(entropy)}")
    shape = Shape.of(statistic.settings)
    helper = HelperShare(seed=entropy[:KEY_BYTES])
    coordinator = CoordinatorShare(
        key=entropy[KEY_BYTES:],
        masks=added(read_elements(element_bytes(masks)), negated(helper.masks)),
        sums=added(vector_of(statistic), helper.sums(shape)),
    )
    sealed = SealedStatistic(
        settings=statistic.settings,
        rows=rows,
        coordinator=coordinator.commitment,
        helper=helper.commitment,
    )
    return SharedSums(sealed=sealed, coordinator=coordinator, helper=helper)
