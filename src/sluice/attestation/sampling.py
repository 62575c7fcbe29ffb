"""Which rows are opened: drawn by a hash of commitment, nonce and context that nobody can steer.

The commitment is logged before the nonce is drawn, and the context holds both, so whoever commits
cannot choose the rows and whoever challenges cannot favour a plant after seeing its rows.
"""

import hashlib

from sluice.attestation.packing import digest, number
from sluice.errors import SettingError

__all__ = ["draw_rows"]

DRAW_BYTES = 8


def draw_rows(commitment: bytes, context: bytes, *, rows: int, samples: int) -> tuple[int, ...]:
    """Return distinct rows in 1..rows-1, each equally likely; row 0 has no row before it."""
    if not 1 <= samples < rows:
        raise SettingError(f"{samples} samples cannot be drawn from rows 1 to {rows - 1}")
    seed = digest("challenge", commitment, context)
    drawable = rows - 1
    even = (1 << 8 * DRAW_BYTES) // drawable * drawable  # beyond it some rows would be likelier
    drawn: dict[int, None] = {}
    counter = 0
    while len(drawn) < samples:
        block = hashlib.sha256(seed + number(counter)).digest()
        value = int.from_bytes(block[:DRAW_BYTES], "big")
        if value < even:
            drawn.setdefault(value % drawable + 1)
        counter += 1
    return tuple(drawn)
