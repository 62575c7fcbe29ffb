"""Unambiguous byte encoding: the input of every hash and signature."""

import hashlib

__all__ = ["digest", "number", "packed"]

DOMAIN = "sluice attestation v1"


def packed(*fields: bytes) -> bytes:
    """Join fields so that no other list of fields gives the same bytes.

    The count comes first, and each field is preceded by its length; both are 8 bytes, big-endian.
    """
    parts = [number(len(fields))]
    for each in fields:
        parts += (number(len(each)), each)
    return b"".join(parts)


def number(value: int) -> bytes:
    """Return a count as 8 bytes, big-endian."""
    return value.to_bytes(8, "big")


def digest(tag: str, *fields: bytes) -> bytes:
    """Return SHA-256 over domain, tag and fields; the tag separates hashes of different kinds."""
    return hashlib.sha256(packed(DOMAIN.encode(), tag.encode(), *fields)).digest()
