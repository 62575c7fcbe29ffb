"""Attack a record by the name of an attack."""

import difflib

from sluice.errors import SettingError
from sluice.lab.attacks.registry import DATA_ATTACKS, Means
from sluice.telemetry import Record

__all__ = ["attack"]


def attack(record: Record, name: str, *, seed: int = 0, means: Means | None = None) -> Record:
    """Return a record as a malicious client would submit it; the same seed gives the same record.

    `means` is what the attacker has besides the record: attacks to replay, the gate's rules.
    """
    if name not in DATA_ATTACKS:
        near = difflib.get_close_matches(name, DATA_ATTACKS, n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ""
        raise SettingError(f"unknown attack {name!r}; known are {', '.join(DATA_ATTACKS)}{hint}")
    return DATA_ATTACKS[name](means or Means())(record, seed=seed)
