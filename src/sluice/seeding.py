"""Named random streams: one seed gives one independent generator per purpose."""

import hashlib

import numpy as np

__all__ = ["stream"]


def stream(seed: int, *purpose: str | int) -> np.random.Generator:
    """Return the generator for one purpose of one seed, e.g. ``stream(7, "demand", "T1")``.

    A new purpose never changes the numbers that another purpose draws, so a change in one part of
    a simulation does not affect the rest.
    """
    label = "\x1f".join(str(part) for part in purpose).encode()
    words = np.frombuffer(hashlib.blake2b(label, digest_size=16).digest(), dtype="<u4")
    return np.random.default_rng([seed, *(int(word) for word in words)])
