"""The field of the trace and the field of the challenges.

The trace is over the Goldilocks field: integers modulo 2^64 - 2^32 + 1. Challenges come from its
extension of degree 3, the polynomials in X modulo X^3 - X - 1.
"""

from collections.abc import Iterable, Sequence
from typing import Final

__all__ = [
    "DEGREE",
    "GENERATOR",
    "ORDER",
    "Ext",
    "inverses",
    "powers",
    "reverse_bits",
    "root_of_unity",
    "weighted",
]

ORDER: Final = 2**64 - 2**32 + 1
GENERATOR: Final = 7
"""It generates every non-zero element; codewords lie on its multiples of a subgroup."""
DEGREE: Final = 3


class Ext:
    """An element a + b X + c X^2 of the extension. Integers stand for elements of the field."""

    __slots__ = ("a", "b", "c")

    def __init__(self, a: int, b: int = 0, c: int = 0) -> None:
        self.a, self.b, self.c = a % ORDER, b % ORDER, c % ORDER

    @property
    def coordinates(self) -> tuple[int, int, int]:
        """The three elements of the field."""
        return self.a, self.b, self.c

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ext) and self.coordinates == other.coordinates

    def __hash__(self) -> int:
        return hash(self.coordinates)

    def __repr__(self) -> str:
        return f"Ext{self.coordinates}"

    def __add__(self, other: "Ext | int") -> "Ext":
        if isinstance(other, int):
            return Ext(self.a + other, self.b, self.c)
        return Ext(self.a + other.a, self.b + other.b, self.c + other.c)

    def __neg__(self) -> "Ext":
        return Ext(-self.a, -self.b, -self.c)

    def __sub__(self, other: "Ext | int") -> "Ext":
        return self + -other

    def __mul__(self, other: "Ext | int") -> "Ext":
        if isinstance(other, int):
            return Ext(self.a * other, self.b * other, self.c * other)
        one = self.a * other.a
        x1 = self.a * other.b + self.b * other.a
        x2 = self.a * other.c + self.b * other.b + self.c * other.a
        x3 = self.b * other.c + self.c * other.b  # X^3 = X + 1
        x4 = self.c * other.c  # X^4 = X^2 + X
        return Ext(one + x3, x1 + x3 + x4, x2 + x4)

    def __radd__(self, other: int) -> "Ext":
        return self + other

    def __rsub__(self, other: int) -> "Ext":
        return -self + other

    def __rmul__(self, other: int) -> "Ext":
        return self * other

    def __pow__(self, exponent: int) -> "Ext":
        result, square = Ext(1), self
        while exponent:
            if exponent & 1:
                result = result * square
            square, exponent = square * square, exponent >> 1
        return result

    def inverse(self) -> "Ext":
        """Return 1 / self, from the adjugate of the matrix that multiplies by self."""
        if self == Ext(0):
            raise ZeroDivisionError("zero has no inverse")
        (a, b, c), p = self.coordinates, self * Ext(0, 1)
        q = p * Ext(0, 1)  # the columns of the matrix are self, X self and X^2 self
        first = p.b * q.c - p.c * q.b
        second = c * q.b - b * q.c
        third = b * p.c - c * p.b
        determinant = a * first + p.a * second + q.a * third
        return Ext(first, second, third) * pow(determinant, -1, ORDER)


def inverses(elements: Sequence[Ext]) -> list[Ext]:
    """Return the inverse of each element, with one division in all."""
    before, product = [], Ext(1)
    for element in elements:
        before.append(product)
        product = product * element
    last, found = product.inverse(), []
    for element, product in zip(reversed(elements), reversed(before), strict=True):
        found.append(last * product)
        last = last * element
    return found[::-1]


def powers(element: Ext, count: int) -> list[Ext]:
    """Return 1, x, x^2, ... for an element x."""
    found = [Ext(1)]
    while len(found) < count:
        found.append(found[-1] * element)
    return found[:count]


def weighted(weights: Sequence[Ext], values: Iterable[int]) -> Ext:
    """Return the sum of weight times value, for values of the field."""
    a = b = c = 0
    for weight, value in zip(weights, values, strict=True):
        a += weight.a * value
        b += weight.b * value
        c += weight.c * value
    return Ext(a, b, c)


def root_of_unity(log_order: int) -> int:
    """Return the generator of the subgroup of 2^log_order elements."""
    return pow(GENERATOR, (ORDER - 1) >> log_order, ORDER)


def reverse_bits(value: int, width: int) -> int:
    """Return a number of so many bits, its lowest bit first."""
    return int(f"{value:0{width}b}"[::-1], 2) if width else 0
