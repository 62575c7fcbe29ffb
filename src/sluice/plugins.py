"""Plug-ins: what installed packages add to Sluice, found by entry point.

    sluice.aggregation   name -> an aggregation rule
    sluice.attacks       name -> an attack on telemetry
    sluice.detectors     name -> a kind of detector
    sluice.formats       name -> a record format
    sluice.commands      name -> a list of commands
    sluice.plants        name -> a list of simulated plants
    sluice.simulations   name -> an experiment that a runtime command offers

docs/how-to/plug-in.md describes the first four. The last three connect the lab to the runtime,
which never imports it.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from importlib.metadata import EntryPoint, entry_points
from types import MappingProxyType
from typing import Any, Generic, TypeVar, cast

from sluice.errors import SettingError

__all__ = ["Registry", "load_all", "load_one"]

Member = TypeVar("Member")


def load_all(group: str) -> dict[str, Any]:
    """Return everything registered under a group, by name."""
    loaded: dict[str, Any] = {}
    for point in _distinct(entry_points(group=group)):
        if point.name in loaded:
            raise SettingError(
                f"two installed packages register {point.name!r} under {group!r} (the second is "
                f"{point.value}); uninstall one of them"
            )
        loaded[point.name] = _load(point)
    return loaded


def load_one(group: str, name: str) -> Any:
    """Return what is registered under a group by this name."""
    for point in _distinct(entry_points(group=group, name=name)):
        return _load(point)
    raise SettingError(
        f"no installed package provides {name!r} ({group}); run pip install 'sluice-fl[lab]'"
    )


class Registry(Mapping[str, Member], Generic[Member]):
    """Members by name: the built-in ones, then those that installed packages register.

    An installed package may register an instance or a class without parameters. `adapt` turns what
    it registers into a member. `reserved` are names that only Sluice may use.
    """

    def __init__(
        self,
        built_in: Mapping[str, Member],
        *,
        group: str,
        adapt: Callable[[Any], Member] | None = None,
        reserved: Iterable[str] = (),
    ) -> None:
        self.built_in = MappingProxyType(dict(built_in))
        self._group = group
        self._reserved = frozenset(reserved)
        self._adapt = adapt or (lambda member: cast("Member", member))

    def __getitem__(self, name: str) -> Member:
        return self.built_in[name] if name in self.built_in else self._installed[name]

    def __iter__(self) -> Iterator[str]:
        yield from self.built_in
        yield from self._installed

    def __len__(self) -> int:
        return len(self.built_in) + len(self._installed)

    @cached_property
    def _installed(self) -> dict[str, Member]:
        """The registered members; looked up once, because a process does not install packages."""
        members = {}
        for name, loaded in load_all(self._group).items():
            if name in self.built_in or name in self._reserved:
                raise SettingError(
                    f"an installed package registers {name!r} under {self._group!r}, which is a "
                    "built-in name; rename it or uninstall the package"
                )
            try:
                members[name] = self._adapt(loaded() if isinstance(loaded, type) else loaded)
            except Exception as error:
                raise SettingError(
                    f"what an installed package registers as {name!r} under {self._group!r} cannot "
                    f"be used: {error}; correct or uninstall the package"
                ) from error
        return members


def _distinct(points: Iterable[EntryPoint]) -> list[EntryPoint]:
    """Order by name; an editable install lists a registration twice, which counts once."""
    return sorted({(point.name, point.value): point for point in points}.values())


def _load(point: EntryPoint) -> Any:
    try:
        return point.load()
    except Exception as error:
        distribution = point.dist.name if point.dist else "an installed package"
        raise SettingError(
            f"{distribution} registers {point.name!r} as {point.value}, which cannot be loaded: "
            f"{error}; reinstall or remove it"
        ) from error
