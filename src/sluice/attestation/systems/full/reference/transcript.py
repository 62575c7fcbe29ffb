"""The transcript: everything that was said so far, and challenges that depend on all of it.

A hash chain over bytes. What is observed is appended; a challenge is taken from the end of the
hash of everything appended since the last hash, which is where the next hash begins. What is
hashed is padded to blocks of 64 bytes. Each of the three parts of the protocol (constraints,
openings, folding) begins with a description of itself:
its name, the hash of its list of steps, and its sizes.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from sluice.attestation.systems.full.reference.field import DEGREE, ORDER, Ext
from sluice.attestation.systems.full.reference.hashes import blake3, keccak256

__all__ = ["SCALARS", "Step", "Transcript", "bits", "elements", "marker", "message", "work"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """A step of a protocol as its description words it."""

    kind: str
    label: str
    length: str
    type: str
    hierarchy: str = "Atomic"

    def line(self) -> str:
        """Return the words that are hashed; the label has its length before it."""
        words = (self.hierarchy, self.kind, str(len(self.label)), self.label, self.length)
        return " ".join((*words, self.type))


def _algebra(degree: int, basis: bytes) -> str:
    return f"Algebra({ORDER}^{degree};{keccak256(basis).hex()})"


_BLOCK = 64

SCALARS = _algebra(1, b"p3-scalar-basis-v1")
_EXTENSION = _algebra(DEGREE, b"p3-power-basis-v1:X^3-X-1")


def message(label: str) -> Step:
    """A commitment of the prover."""
    return Step(kind="Message", label=label, length="Scalar", type="Opaque")


def elements(kind: str, label: str, count: int | None = None) -> Step:
    """So many elements of the extension, or one challenge from it."""
    length = "Scalar" if count is None else f"Fixed({count})"
    return Step(kind=kind, label=label, length=length, type=_EXTENSION)


def work(label: str, bit_count: int) -> Step:
    """A proof of work."""
    return Step(kind="Pow", label=label, length=f"Fixed({bit_count})", type=SCALARS)


def bits(label: str, width: int, count: int) -> Step:
    """Challenges of so many bits each."""
    return Step(kind="Challenge", label=label, length=f"Fixed({count})", type=f"Bits({width})")


def marker(label: str) -> tuple[Step, Step]:
    """A protocol inside this one."""
    begin, end = (
        Step(hierarchy=each, kind="Protocol", label=label, length="None", type="Marker")
        for each in ("Begin", "End")
    )
    return begin, end


def _padded(data: bytes) -> bytes:
    """Return whole blocks: the bytes, one bit, and zeros."""
    ended = data + b"\x80"
    return ended.ljust(-(-len(ended) // _BLOCK) * _BLOCK, b"\0")


class Transcript:
    """Observes what the prover said and draws challenges."""

    __slots__ = ("_pending", "_unread")

    def __init__(self, seed: bytes) -> None:
        self._pending, self._unread = bytearray(seed), b""

    def observe(self, data: bytes) -> None:
        """Append bytes; what was left of the last hash is given up."""
        if data:
            self._unread = b""
            self._pending += data

    def observe_elements(self, values: Iterable[int]) -> None:
        """Append elements of the field, eight bytes each, the lowest first."""
        self.observe(b"".join(value.to_bytes(8, "little") for value in values))

    def observe_extension(self, values: Iterable[Ext]) -> None:
        """Append elements of the extension by their coordinates."""
        self.observe_elements(part for value in values for part in value.coordinates)

    def begin(self, name: str, steps: Sequence[Step], sizes: Iterable[int]) -> None:
        """Describe a protocol: its name, the hash of its steps, its sizes."""
        identity = bytes([1]) + name.encode().ljust(62, b"\0") + bytes([len(name)])
        width = len(str(len(steps) - 1))
        lines = [f"Plonky3 Fiat-Shamir Transcript ({len(steps)} interactions)"]
        depth = 0
        for at, step in enumerate(steps):
            depth -= step.hierarchy == "End"
            lines.append(f"{at:0{width}d} {'  ' * depth}{step.line()}")
            depth += step.hierarchy == "Begin"
        pattern = keccak256("".join(f"{line}\n" for line in lines).encode())
        instance = b"".join((8).to_bytes(4, "big") + size.to_bytes(8, "big") for size in sizes)
        described = identity + pattern + len(instance).to_bytes(4, "big") + instance + b"\x80"
        words = [described[at : at + 7] for at in range(0, len(described), 7)]
        self.observe_elements([len(described), *(int.from_bytes(w, "little") for w in words)])

    def challenge(self) -> Ext:
        """Draw an element of the extension, each coordinate without bias."""
        return Ext(*(self._element() for _ in range(DEGREE)))

    def challenge_bits(self, width: int) -> int:
        """Draw a number of so many bits."""
        return int.from_bytes(self._take(8), "little") & (1 << width) - 1

    def spent_work(self, width: int, witness: int) -> bool:
        """Whether so many bits are zero after the witness: the prover searched for one."""
        self._take(1)
        self.observe_elements([witness])
        return self.challenge_bits(width) == 0

    def _element(self) -> int:
        while True:
            value = int.from_bytes(self._take(8), "little")
            if value < ORDER:
                return value

    def _take(self, count: int) -> bytes:
        taken = bytearray()
        while len(taken) < count:
            if not self._unread:
                self._unread = blake3(_padded(bytes(self._pending)))
                self._pending = bytearray(self._unread)
            taken.append(self._unread[-1])
            self._unread = self._unread[:-1]
        return bytes(taken)
