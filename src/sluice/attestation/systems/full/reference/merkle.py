"""Merkle trees: many leaves opened at once.

A leaf is the hash of its rows, each with its salt after it. A node is the hash of its two
children. An opening of several leaves contains only the nodes that the leaves do not determine,
level by level from the leaves, from left to right.
"""

from collections.abc import Sequence

from sluice.attestation.systems.full.reference.hashes import blake3
from sluice.errors import VerificationError

__all__ = ["leaf_hash", "verify_openings"]


def leaf_hash(rows: Sequence[Sequence[int]], salts: Sequence[Sequence[int]]) -> bytes:
    """Hash the rows of a leaf."""
    values = [value for row, salt in zip(rows, salts, strict=True) for value in (*row, *salt)]
    return blake3(b"".join(value.to_bytes(8, "little") for value in values))


def verify_openings(
    root: bytes, depth: int, leaves: Sequence[tuple[int, bytes]], siblings: Sequence[bytes]
) -> None:
    """Check that a tree of this depth has these leaves at these places."""
    nodes: dict[int, bytes] = {}
    for place, leaf in leaves:
        if nodes.setdefault(place, leaf) != leaf:
            raise VerificationError("5.8", f"leaf {place} is opened twice, differently")
    left = iter(siblings)
    for _ in range(depth):
        parents: dict[int, bytes] = {}
        for place in sorted(nodes):
            if place // 2 not in parents:
                pair = [nodes.get(child) or next(left, None) for child in (place & ~1, place | 1)]
                if None in pair:
                    raise VerificationError("5.8", "an opening has too few nodes for its tree")
                parents[place // 2] = blake3(b"".join(node for node in pair if node))
        nodes = parents
    if next(left, None) is not None:
        raise VerificationError("5.8", "an opening has more nodes than its tree needs")
    if nodes != {0: root}:
        raise VerificationError("5.8", "an opening does not lead to the committed root")
