"""The plants by name. Simulators are imported when needed, because numba and wntr load slowly."""

import difflib
from dataclasses import dataclass

from sluice.errors import SettingError
from sluice.telemetry import Record

__all__ = ["PLANTS", "Plant", "simulate"]

NETWORK_PREFIX = "network:"
LONGEST_DAYS = 3_660  # ten years; more does not fit into memory


@dataclass(frozen=True, slots=True, kw_only=True)
class Plant:
    """One entry of the catalogue; `days` is the default length of its record."""

    name: str
    title: str
    days: float


PLANTS = (
    Plant(name="line", title="three tanks in a line, exact physics, 1 min", days=30.0),
    Plant(
        name="treatment",
        title="six-stage treatment plant with SWaT's 51 tags, set-points and attack list, 1 s",
        days=495_000 / 86_400,
    ),
    Plant(
        name="network:NAME",
        title="EPANET network: Net1, Net2, Net3, Net6, ky4, ky10, Ridge, Terraces, Wells or a path "
        "to an .inp, 1 h",
        days=30.0,
    ),
)


def simulate(name: str, *, seed: int, days: float | None = None, attacks: bool = False) -> Record:
    """Simulate a plant by its name; the same seed gives the same record."""
    if days is not None and not 0 < days <= LONGEST_DAYS:
        raise SettingError(
            f"a plant runs for more than 0 days and up to {LONGEST_DAYS}, got {days:g}"
        )
    if name == "line":
        from sluice.lab.plants import line  # noqa: PLC0415

        return line.simulate(seed=seed, days=30.0 if days is None else days, attacks=attacks)
    if name == "treatment":
        from sluice.lab.plants import treatment  # noqa: PLC0415

        return treatment.simulate(seed=seed, days=days, attacks=attacks).record
    if name.startswith(NETWORK_PREFIX):
        from sluice.lab.plants import distribution as network  # noqa: PLC0415

        return network.simulate(
            network=name.removeprefix(NETWORK_PREFIX),
            seed=seed,
            days=30.0 if days is None else days,
            attacks=attacks,
        )
    near = difflib.get_close_matches(name, ["line", "treatment", "network:Net1"], n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    known = ", ".join(plant.name for plant in PLANTS)
    raise SettingError(f"unknown plant {name!r}; known are {known}{hint}")
