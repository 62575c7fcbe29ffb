"""The proof systems by name. `full` is the default; `unsafe` must be requested by name.

`sampled` needs keys: sampled/keys.py opens it.
"""

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

from sluice.admission import Policy
from sluice.attestation.systems.full import Full, StatisticName
from sluice.attestation.systems.system import Circuit, System
from sluice.attestation.systems.unsafe import Unsafe
from sluice.errors import EmptyRulesError, SettingError
from sluice.invariants import RuleSet

__all__ = ["DEFAULT_ROWS", "SystemName", "circuit_for", "find_system", "resumable"]

DEFAULT_ROWS = 8_192
"""Default for the largest batch."""


class SystemName(StrEnum):
    """The values of `--system`."""

    FULL = "full"
    SAMPLED = "sampled"
    UNSAFE = "unsafe"


def find_system(name: str, *, reveal_rows: bool = False, statistic: str | None = None) -> System:
    """Return a proof system; `unsafe` also requires `reveal_rows`.

    `statistic` names the sums of the rows that its proofs are bound to; only `full` binds any.
    """
    if statistic is not None and (name != SystemName.FULL or statistic not in list(StatisticName)):
        raise SettingError(
            f"the system {name!r} binds no statistic {statistic!r}; 'full' binds "
            f"{', '.join(StatisticName)}"
        )
    if name == SystemName.UNSAFE:
        return Unsafe(reveal_rows=reveal_rows)
    if name == SystemName.FULL:
        return Full(binds=None if statistic is None else StatisticName(statistic))
    if name == SystemName.SAMPLED:
        raise SettingError("the system 'sampled' needs keys; open its key folder")
    raise SettingError(f"there is no proof system {name!r}; known are {', '.join(SystemName)}")


def resumable(
    system: System, under_way: Path, progress: Callable[[int, int], None] | None = None
) -> System:
    """Return the system with the file of a proof under way, and whom it tells about segments.

    A system that does not prove in segments is returned as it is.
    """
    if not isinstance(system, Full):
        return system
    return replace(system, under_way=under_way, progress=progress)


def circuit_for(system: System, rules: RuleSet, policy: Policy, *, rows_max: int) -> Circuit:
    """Derive a circuit; refuse empty rules and a largest batch outside the policy."""
    if rules.empty:
        raise EmptyRulesError(
            f"the rules of {rules.plant!r} hold no coupling, balance or window, so a proof "
            "would say nothing; mine other rows"
        )
    least = policy.least_rows(rules)
    if not least <= rows_max <= policy.rows_max:
        raise SettingError(
            f"the largest batch is {rows_max:,} rows; under the policy, the rules of "
            f"{rules.plant!r} take batches of {least:,} to {policy.rows_max:,}"
        )
    return system.circuit(rules, policy, rows_max=rows_max)
