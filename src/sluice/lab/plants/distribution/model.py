"""Finds a network by name or path, and reads it.

wntr takes two seconds to import, so every module of this package imports it where it is first
needed: commands that never touch a network must not wait for it.
"""

import difflib
import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeAlias

from sluice.errors import RecordError, SettingError

__all__ = ["BUNDLED", "Model", "load", "quiet"]

FROM_WNTR = ("Net1", "Net2", "Net3", "Net6", "ky10", "ky4")
"""The networks that wntr includes, by name."""

OWN = ("Ridge", "Terraces", "Wells")
"""The networks in the folder `networks`, written for this project."""

BUNDLED = (*FROM_WNTR, *OWN)
"""The networks that need no file."""

Model: TypeAlias = Any
"""A wntr.network.WaterNetworkModel; wntr publishes no types."""


def load(network: str) -> Model:
    """Read a bundled network by its name, or a user's by the path of its .inp file."""
    from wntr.network import WaterNetworkModel  # noqa: PLC0415

    path = _path(network)
    if not path.is_file():
        raise _unknown(network)
    try:
        with quiet():
            model = WaterNetworkModel(str(path))
    except Exception as error:  # wntr's parser raises anything, from KeyError to its own
        reason = " ".join(f"{type(error).__name__} {error}".split())
        raise RecordError(
            f"cannot read {network!r} as an EPANET network ({reason}); "
            "open it in EPANET and export it again"
        ) from error
    if not model.num_nodes or not model.num_links:
        raise RecordError(
            f"cannot read {network!r} as an EPANET network: it has {model.num_nodes} nodes and "
            f"{model.num_links} links; export it from EPANET as an .inp file"
        )
    return model


def _path(network: str) -> Path:
    if network in OWN:
        return Path(__file__).with_name("networks") / f"{network}.inp"
    if network in FROM_WNTR:
        from wntr.library import ModelLibrary  # noqa: PLC0415

        return Path(ModelLibrary().get_filepath(network))
    return Path(network)


@contextmanager
def quiet() -> Iterator[None]:
    """Hide wntr's log lines and warnings about a network's style from the user's terminal.

    Real problems (a file that cannot be read, a run that stops early) are raised as errors instead.
    """
    logger = logging.getLogger("wntr")
    level = logger.level
    logger.setLevel(logging.CRITICAL + 1)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            yield
    finally:
        logger.setLevel(level)


def _unknown(network: str) -> SettingError:
    if Path(network).suffix.lower() == ".inp":
        return SettingError(f"there is no network file {network!r}; check the path")
    by_lower = {name.lower(): name for name in BUNDLED}
    near = difflib.get_close_matches(network.lower(), by_lower, n=1, cutoff=0.4)
    hint = f"did you mean {by_lower[near[0]]!r}?" if near else "or give the path of an .inp file"
    return SettingError(f"no network is named {network!r}; known are {', '.join(BUNDLED)}; {hint}")
