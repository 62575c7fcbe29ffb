"""BLAKE3, and Keccak-256 as it was before SHA-3. Neither is in the standard library.

BLAKE3 binds everything: leaves, trees, transcript, identity. Keccak-256 only names the shape of a
transcript. Both are written out here so that the check rests on no compiled code.
"""

from collections.abc import Iterator, Sequence
from typing import Final

__all__ = ["blake3", "blake3_stream", "keccak256"]

Words = Sequence[int]

_MASK: Final = 0xFFFF_FFFF
_IV: Final = (
    0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19,
)  # fmt: skip
_PERMUTATION: Final = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
_MIXED: Final = (
    (0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),  # columns
    (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14),  # diagonals
)  # fmt: skip
_CHUNK, _BLOCK, _ROUNDS = 1024, 64, 7
_START, _END, _PARENT, _ROOT, _CONTEXT, _MATERIAL = 1, 2, 4, 8, 32, 64


def _schedule() -> tuple[tuple[tuple[int, int, int, int, int, int], ...], ...]:
    """Return the cells and message words of every mixing step, round by round."""
    order, rounds = list(range(16)), []
    for _ in range(_ROUNDS):
        words = [order[at : at + 2] for at in range(0, 16, 2)]
        rounds.append(tuple((*cells, x, y) for cells, (x, y) in zip(_MIXED, words, strict=True)))
        order = [order[at] for at in _PERMUTATION]
    return tuple(rounds)


_SCHEDULE: Final = _schedule()


def _compress(chain: Words, block: bytes, counter: int, flags: int) -> list[int]:
    """Mix one block into a chaining value; return all 16 words."""
    padded = block.ljust(_BLOCK, b"\0")
    words = [int.from_bytes(padded[at : at + 4], "little") for at in range(0, _BLOCK, 4)]
    v = [*chain, *_IV[:4], counter & _MASK, counter >> 32, len(block), flags]
    for steps in _SCHEDULE:
        for i, j, k, m, x, y in steps:
            a, b, c, d = v[i], v[j], v[k], v[m]
            a = (a + b + words[x]) & _MASK
            d ^= a
            d = (d >> 16 | d << 16) & _MASK
            c = (c + d) & _MASK
            b ^= c
            b = (b >> 12 | b << 20) & _MASK
            a = (a + b + words[y]) & _MASK
            d ^= a
            d = (d >> 8 | d << 24) & _MASK
            c = (c + d) & _MASK
            b ^= c
            b = (b >> 7 | b << 25) & _MASK
            v[i], v[j], v[k], v[m] = a, b, c, d
    low = [v[at] ^ v[at + 8] for at in range(8)]
    return low + [v[at + 8] ^ chain[at] for at in range(8)]


class _Node:
    """The last compression of a chunk or a parent, not yet made: the root makes it otherwise."""

    __slots__ = ("block", "chain", "counter", "flags")

    def __init__(self, chain: Words, block: bytes, counter: int, flags: int) -> None:
        self.chain, self.block, self.counter, self.flags = chain, block, counter, flags

    def value(self) -> list[int]:
        return _compress(self.chain, self.block, self.counter, self.flags)[:8]

    def output(self) -> Iterator[bytes]:
        counter = 0
        while True:
            yield _packed(_compress(self.chain, self.block, counter, self.flags | _ROOT))
            counter += 1


def _packed(words: Words) -> bytes:
    return b"".join(word.to_bytes(4, "little") for word in words)


def _chunk(key: Words, data: bytes, counter: int, mode: int) -> _Node:
    chain = key
    blocks = [data[at : at + _BLOCK] for at in range(0, len(data), _BLOCK)] or [b""]
    for at, block in enumerate(blocks):
        flags = mode | (_START if at == 0 else 0)
        if at == len(blocks) - 1:
            return _Node(chain, block, counter, flags | _END)
        chain = _compress(chain, block, counter, flags)[:8]
    raise AssertionError("there is a last block")


def _tree(key: Words, data: bytes, counter: int, mode: int) -> _Node:
    """Return the root of a message: the left subtree has the largest power of two of chunks."""
    if len(data) <= _CHUNK:
        return _chunk(key, data, counter, mode)
    chunks = 1 << ((len(data) - 1) // _CHUNK).bit_length() - 1
    left = _tree(key, data[: chunks * _CHUNK], counter, mode)
    right = _tree(key, data[chunks * _CHUNK :], counter + chunks, mode)
    return _Node(key, _packed(left.value() + right.value()), 0, mode | _PARENT)


def blake3_stream(data: bytes, *, context: str | None = None) -> Iterator[bytes]:
    """Yield the output of BLAKE3, 64 bytes at a time; with a context, in its mode for keys."""
    if context is None:
        return _tree(_IV, data, 0, 0).output()
    key = _compress_root(_tree(_IV, context.encode(), 0, _CONTEXT))
    return _tree(key, data, 0, _MATERIAL).output()


def _compress_root(node: _Node) -> list[int]:
    return _compress(node.chain, node.block, 0, node.flags | _ROOT)[:8]


def blake3(data: bytes, *, context: str | None = None) -> bytes:
    """Return the 32 bytes of BLAKE3."""
    return next(blake3_stream(data, context=context))[:32]


def keccak256(data: bytes) -> bytes:
    """Return Keccak-256, with its first padding."""
    rate = 136
    padded = bytearray(data + b"\1" + bytes(-(len(data) + 1) % rate))
    padded[-1] |= 0x80
    lanes = [0] * 25
    for at in range(0, len(padded), rate):
        for lane in range(rate // 8):
            lanes[lane] ^= int.from_bytes(padded[at + 8 * lane : at + 8 * lane + 8], "little")
        lanes = _keccak_f(lanes)
    return b"".join(lane.to_bytes(8, "little") for lane in lanes[:4])


def _keccak_f(lanes: list[int]) -> list[int]:
    """Permute 25 lanes of 64 bits; lane x + 5 y is in column x."""
    full, register = (1 << 64) - 1, 1

    def turned(lane: int, by: int) -> int:
        return (lane << by | lane >> (64 - by)) & full if by else lane

    for _ in range(24):
        column = [lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20]
                  for x in range(5)]  # fmt: skip
        mixed = [column[(x + 4) % 5] ^ turned(column[(x + 1) % 5], 1) for x in range(5)]
        lanes = [lane ^ mixed[at % 5] for at, lane in enumerate(lanes)]
        x, y, moved = 1, 0, lanes[1]
        for step in range(24):
            x, y = y, (2 * x + 3 * y) % 5
            shift = (step + 1) * (step + 2) // 2 % 64
            lanes[x + 5 * y], moved = turned(moved, shift), lanes[x + 5 * y]
        lanes = [
            lane ^ (~lanes[at // 5 * 5 + (at + 1) % 5] & lanes[at // 5 * 5 + (at + 2) % 5] & full)
            for at, lane in enumerate(lanes)
        ]
        for bit in range(7):  # the round constant, from an LFSR
            if register & 1:
                lanes[0] ^= 1 << (1 << bit) - 1
            register = (register << 1) ^ (0x171 if register >> 7 else 0)
    return lanes
