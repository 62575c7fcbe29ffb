"""The parameters of the proof system. A proof carries none of them."""

from typing import Final

__all__ = [
    "BASE",
    "CODEWORDS",
    "EXTENSION",
    "LEAST_HEIGHT",
    "LOG_ARITY",
    "LOG_BLOWUP",
    "LOG_FINAL",
    "MOST_HEIGHT",
    "MOST_ROWS",
    "NAMED",
    "QUERIES",
    "QUERY_WORK",
    "QUOTIENTS",
    "RADIX",
    "SALT",
    "largest_proof",
]

BASE: Final = 1 << 21
"""Counts share a column in digits of this base."""
CODEWORDS: Final = 3
"""Random codewords beside each committed matrix."""
EXTENSION: Final = 3
LEAST_HEIGHT: Final = 256
LOG_ARITY: Final = 3
LOG_BLOWUP: Final = 3
LOG_FINAL: Final = 8
QUERIES: Final = 53
QUERY_WORK: Final = 22
RADIX: Final = 8
"""Digits are below it; membership is a constraint of this degree."""
SALT: Final = 2
"""Elements of salt in each leaf."""
MOST_HEIGHT: Final = 1 << 17
"""Of one trace; more rows are a chain."""
MOST_ROWS: Final = 1 << 19
"""Of a batch: a count with its slack is less than three times as much, and below the base."""
QUOTIENTS: Final = 16
"""No constraint has a degree above 8, so the quotient has 8 parts, and twice as many masked."""

NAMED: Final = (
    ("base", BASE),
    ("batch_work_bits", 0),
    ("codewords", CODEWORDS),
    ("collision_bits", 128),
    ("extension", EXTENSION),
    ("least_height", LEAST_HEIGHT),
    ("log_arity", LOG_ARITY),
    ("log_blowup", LOG_BLOWUP),
    ("log_cap", 0),
    ("log_final", LOG_FINAL),
    ("queries", QUERIES),
    ("query_work_bits", QUERY_WORK),
    ("radix", RADIX),
    ("salt", SALT),
)
"""As they are hashed into a circuit's identity."""


def largest_proof(width: int, height: int) -> int:
    """Return the bytes that no proof of this shape exceeds; a longer one is not read."""
    log_codeword = height.bit_length() + LOG_BLOWUP
    rounds = -(-log_codeword // LOG_ARITY)
    beside = (QUOTIENTS + 1) * EXTENSION
    rows = width + beside + 2 * (CODEWORDS + SALT)
    folded = rounds * (EXTENSION << LOG_ARITY) + rounds * SALT
    paths = (2 + rounds) * log_codeword * 4
    points = 2 * width + beside + 3 * CODEWORDS
    last = (1 << LOG_FINAL) + rounds + 8
    return 9 * (QUERIES * (rows + folded + paths) + EXTENSION * (points + last))
