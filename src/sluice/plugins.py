"""Plug-ins: what installed packages add to Sluice, found by entry point.

    sluice.aggregation   name -> an aggregation rule's class
    sluice.attacks       name -> a data attack
    sluice.detectors     name -> a kind of detector
    sluice.formats       name -> a record format
    sluice.commands      name -> a list of commands
    sluice.plants        name -> a list of simulated plants
    sluice.simulations   name -> an experiment that a runtime command offers

The lab registers itself here too: the runtime never imports it.
"""

from collections.abc import Iterable
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from sluice.errors import SettingError

__all__ = ["load_all", "load_one"]


def load_all(group: str) -> dict[str, Any]:
    """Return everything registered under a group, by name."""
    loaded: dict[str, Any] = {}
    for point in _sorted(entry_points(group=group)):
        if point.name in loaded:
            raise SettingError(
                f"two installed packages register {point.name!r} under {group!r} (the second is "
                f"{point.value}); uninstall one of them"
            )
        loaded[point.name] = _load(point)
    return loaded


def load_one(group: str, name: str) -> Any:
    """Return what is registered under a group by this name."""
    for point in _sorted(entry_points(group=group, name=name)):
        return _load(point)
    raise SettingError(
        f"nothing is installed that provides {name!r} ({group}); install sluice-fl[lab]"
    )


def _sorted(points: Iterable[EntryPoint]) -> list[EntryPoint]:
    """Order by name; an editable install lists a registration twice, which counts once."""
    return sorted({(point.name, point.value): point for point in points}.values())


def _load(point: EntryPoint) -> Any:
    try:
        return point.load()
    except (ImportError, AttributeError) as error:
        distribution = point.dist.name if point.dist else "an installed package"
        raise SettingError(
            f"{distribution} registers {point.name!r} as {point.value}, which cannot be loaded: "
            f"{error}; reinstall or remove it"
        ) from error
