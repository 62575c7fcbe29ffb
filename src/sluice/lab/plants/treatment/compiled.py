"""Compiles the stages, and recompiles a cached function when any of its sources changes."""

import hashlib
from collections.abc import Callable
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, ParamSpec, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

__all__ = ["as_row", "compiled", "compiled_and_cached"]

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def compiled(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Compile a function that other compiled functions call."""
    return cast("Callable[_Arguments, _Result]", numba.njit(error_model="numpy")(function))


def compiled_and_cached(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Compile a function once per machine; for the outermost function, which Python calls."""
    return cast(
        "Callable[_Arguments, _Result]", numba.njit(cache=True, error_model="numpy")(function)
    )


@cache
def _digest_of_sources() -> str:
    digest = hashlib.blake2b(digest_size=8)
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    return digest.hexdigest()


def as_row(values: Any) -> NDArray[np.void]:
    """Return a dataclass of numbers and flags as a structured array of one row.

    Compiled code reads and writes the row's fields by the dataclass's names. Numba's cache checks
    only the file of the cached function, not the files of the functions it calls. Therefore the
    last field is named after a hash of the package's sources: every edit changes the type, and
    with it the cache key.
    """
    names = [field.name for field in fields(values)]
    layout: list[tuple[str, type]] = [(name, type(getattr(values, name))) for name in names]
    row = np.zeros(1, dtype=[*layout, (f"sources_{_digest_of_sources()}", bool)])
    for name in names:
        row[name] = getattr(values, name)
    return row
