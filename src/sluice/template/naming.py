"""What names tell of channels that no reading tells apart.

Plants of one design often keep the numbers of instruments, and change the letters or add a prefix:
P102 is PMP-102 elsewhere. A name is no evidence of what a channel measures, so it only chooses
among proposals that are otherwise equal, and never makes one surer.
"""

import re

__all__ = ["likeness", "number_order"]

NUMBER_WEIGHT = 2.0  # plants keep the numbers of a design more often than its letters


def likeness(one: str, other: str) -> float:
    """Return the share of the parts of two names that both have, from 0 to 1."""
    first, second = _parts(one), _parts(other)
    either = _weight(first | second)
    return _weight(first & second) / either if either else 0.0


def number_order(name: str) -> list[tuple[int, str]]:
    """Return a key by which P-9 comes before P-10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def _parts(name: str) -> frozenset[str]:
    """Return the words and the numbers of a name: of `Unit2.LIT-0101` unit, 2, lit and 101."""
    found = re.findall(r"[^\W\d_]+|\d+", name.lower())
    return frozenset(str(int(part)) if part.isdigit() else part for part in found)


def _weight(parts: frozenset[str]) -> float:
    return sum(NUMBER_WEIGHT if part.isdigit() else 1.0 for part in parts)
