"""A sealed statistic: what is public about sums that stay hidden, fixed before weights are drawn.

It holds the header of the statistic and two hiding commitments, one to the coordinator's share of
the sums and one to the helper's. docs/explanation/hidden-sums.md has the protocol.
"""

import struct
from dataclasses import dataclass

from sluice.detector import MomentSettings, trapezoid
from sluice.errors import SettingError

__all__ = ["SealedStatistic"]

MAGIC = b"sluice-sealed-01"
LAYOUT = struct.Struct("<16s32sQQQ32s32s")


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedStatistic:
    """The header of a statistic, and commitments to its two shares."""

    settings: MomentSettings
    rows: int  # of the batch
    coordinator: bytes  # the commitment to the coordinator's share
    helper: bytes  # the commitment to the helper's share

    def canonical(self) -> bytes:
        """Return the one encoding."""
        windows = self.rows - self.settings.lags + 1
        if windows < 1:
            raise SettingError(f"{self.rows:,} rows have no statistic")
        return LAYOUT.pack(
            MAGIC,
            bytes.fromhex(self.settings.digest),
            windows,
            int(trapezoid(windows).sum()),
            self.settings.lags,
            self.coordinator,
            self.helper,
        )

    @classmethod
    def from_canonical(
        cls, content: bytes, settings: MomentSettings, *, rows: int
    ) -> "SealedStatistic":
        """Read the sealed statistic of so many rows; refuse any other bytes."""
        if len(content) != LAYOUT.size:
            raise SettingError(
                f"a sealed statistic has {LAYOUT.size} bytes, this one has {len(content):,}"
            )
        *_, coordinator, helper = LAYOUT.unpack(content)
        sealed = cls(settings=settings, rows=rows, coordinator=coordinator, helper=helper)
        if sealed.canonical() != content:
            raise SettingError(
                f"the sealed statistic is not that of {rows:,} rows under the settings "
                f"{settings.digest[:12]}..."
            )
        return sealed
