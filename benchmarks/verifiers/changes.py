"""Changed proofs: bytes that are cut, moved or overwritten, and parts that are altered."""

import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, is_dataclass, replace
from typing import TypeVar

import numpy as np

from sluice.attestation.systems.full.reference import Ext, ProofParts

__all__ = ["changed_bytes", "changed_part", "written"]

T = TypeVar("T")
ORDER = 2**64 - 2**32 + 1
SPAN = 99  # bytes that one change moves or overwrites, at most


def changed_bytes(rng: np.random.Generator, proof: bytes, other: bytes) -> tuple[str, bytes]:
    """Return what was done to the bytes of a proof, and the result; `other` is a second proof."""
    while True:
        kind, changed = _changed(rng, proof, other)
        if changed not in (proof, other):
            return kind, changed


def _changed(rng: np.random.Generator, proof: bytes, other: bytes) -> tuple[str, bytes]:
    length = int(rng.integers(1, SPAN + 1))
    at = int(rng.integers(0, len(proof) - length))
    before, span, after = proof[:at], proof[at : at + length], proof[at + length :]
    flipped = bytes([span[0] ^ 1 << int(rng.integers(8))]) + span[1:]
    kinds: dict[str, Callable[[], bytes]] = {
        "a flipped bit": lambda: before + flipped + after,
        "a beginning": lambda: before,
        "a gap": lambda: before + after,
        "a repetition": lambda: before + span + span + after,
        "another order": lambda: before + span[8:] + span[:8] + after,
        "large numbers": lambda: before + b"\xff" * length + after,
        "zeros": lambda: before + bytes(length) + after,
        "a splice of two proofs": lambda: before + other[at:],
        "something behind it": lambda: proof + rng.bytes(length),
        "noise": lambda: rng.bytes(10 * length),
    }
    kind = list(kinds)[rng.integers(len(kinds))]
    return kind, kinds[kind]()


def changed_part(rng: np.random.Generator, proof: ProofParts) -> tuple[str, bytes]:
    """Return which part of a proof was changed, and the result, which is well formed."""
    while True:
        path: list[str] = []
        changed = _spoiled(rng, proof, path)
        if changed != proof:
            return path[0] if len(path) == 1 else f"{path[0]} {path[1]}", written(changed)


def _spoiled(rng: np.random.Generator, part: T, path: list[str]) -> T:
    """Walk down the parts at random, and change what the walk ends at."""
    changed: object = part
    match part:
        case Ext():
            coordinates = list(part.coordinates)
            at = int(rng.integers(3))
            coordinates[at] = _altered(rng, coordinates[at])
            changed = Ext(*coordinates)
        case bytes():
            at = int(rng.integers(len(part)))
            changed = part[:at] + bytes([part[at] ^ 1 << int(rng.integers(8))]) + part[at + 1 :]
        case int():
            changed = _altered(rng, part)
        case tuple() if part:
            changed = _spoiled_list(rng, part, path)
        case _ if is_dataclass(part) and not isinstance(part, type):
            name = fields(part)[rng.integers(len(fields(part)))].name
            path.append(name)
            changed = replace(part, **{name: _spoiled(rng, getattr(part, name), path)})
    return changed  # type: ignore[return-value]  # every case keeps the type of its part


def _spoiled_list(rng: np.random.Generator, parts: tuple[T, ...], path: list[str]) -> tuple[T, ...]:
    at = int(rng.integers(len(parts)))
    match int(rng.integers(16)):
        case 0:
            return parts[:at] + parts[at + 1 :]
        case 1:
            return parts[:at] + parts[at : at + 1] + parts[at:]
        case 2:
            return parts[::-1]
        case 3:
            return ()
        case _:
            return (*parts[:at], _spoiled(rng, parts[at], path), *parts[at + 1 :])


def _altered(rng: np.random.Generator, value: int) -> int:
    drawn = int(rng.integers(1 << 63))
    return [value ^ 1, value + 1, 0, drawn][rng.integers(4)] % ORDER


def written(proof: ProofParts) -> bytes:
    """Write a proof in its encoding."""
    opened, fri = proof.opened, proof.fri
    parts = [
        _root(proof.trace),
        _root(proof.quotient),
        _option(proof.random, _root),
        _ext_row(opened.here),
        _option(opened.next, _ext_row),
        _option(opened.preprocessed, _ext_row),
        _option(None, _ext_row),
        _items(opened.quotients, _ext_row),
        _option(opened.random, _ext_row),
        _items(proof.masks, lambda a: _items(a, lambda b: _items(b, _ext_row))),
        _elements([fri.batch_work]),
        _items(fri.roots, _root),
        _row(fri.fold_work),
        _items(
            fri.inputs,
            lambda each: (
                _items(each.rows, lambda rows: _items(rows, _row))
                + _tree(each.tree.salts, each.tree.siblings)
            ),
        ),
        _items(
            fri.folds,
            lambda each: (
                _items(each.siblings, _ext_row) + _tree(each.tree.salts, each.tree.siblings)
            ),
        ),
        _ext_row(fri.last),
        _elements([fri.query_work]),
        _number(proof.log_height),
        _elements([proof.point_work]),
    ]
    return b"".join(parts)


def _number(value: int) -> bytes:
    groups = []
    while value >= 0x80:
        groups.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*groups, value])


def _items(parts: Sequence[T], item: Callable[[T], bytes]) -> bytes:
    return _number(len(parts)) + b"".join(item(part) for part in parts)


def _option(part: T | None, item: Callable[[T], bytes]) -> bytes:
    return b"\0" if part is None else b"\1" + item(part)


def _elements(values: Iterable[int]) -> bytes:
    return b"".join(struct.pack("<Q", value) for value in values)


def _row(values: Sequence[int]) -> bytes:
    return _number(len(values)) + _elements(values)


def _ext_row(values: Sequence[Ext]) -> bytes:
    return _number(len(values)) + _elements(part for each in values for part in each.coordinates)


def _root(root: bytes) -> bytes:
    return _number(1) + root


def _tree(salts: Sequence[Sequence[Sequence[int]]], siblings: Sequence[bytes]) -> bytes:
    return _items(salts, lambda each: _items(each, _row)) + _items(siblings, bytes)
