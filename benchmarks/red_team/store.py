"""Results of the red team in a file of JSON lines, so that a run can be continued."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

__all__ = ["Attempt", "Damage", "Key", "Result", "Store"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Key:
    """One attack on one plant with one seed, at the gate of one rule set."""

    plant: str
    seed: int
    gate: str
    rules: str  # the hash of the gate's rules: results of other rules are not reused
    attack: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One malicious client at one gate."""

    client: str
    admitted: bool | None  # None: the attack made no batch
    touched: float  # share of its rows that are changed by more than `attempts.SMALL`
    touched_read: float  # the same, in channels that a detector behind the gate reads
    channels: int  # that are changed so much
    shift: float  # root mean square of the changes, in standard deviations of each channel
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """The detector if the admitted clients train on their own rows, and if on their poison."""

    detector: str
    admitted: int  # malicious clients
    targeted_before: float  # share of the targets' windows that raise an alarm
    targeted_after: float
    precision_before: float  # average precision over all labelled attacks
    precision_after: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What one attack achieved; without an admitted client there is no damage."""

    key: Key
    attempts: tuple[Attempt, ...]
    damages: tuple[Damage, ...]
    seconds: float


_ADAPTER = TypeAdapter(Result)


class Store:
    """Stores each result once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._results: dict[Key, Result] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                result = _ADAPTER.validate_python(json.loads(line))
                self._results[result.key] = result

    def __contains__(self, key: Key) -> bool:
        return key in self._results

    def __iter__(self) -> Iterator[Result]:
        return iter(self._results.values())

    def of_last_rules(self) -> Iterator[Result]:
        """Yield the results of each plant and gate against the rules that it had last."""
        last = {(each.key.plant, each.key.gate): each.key.rules for each in self}
        for each in self:
            if each.key.rules == last[each.key.plant, each.key.gate]:
                yield each

    def add(self, result: Result) -> None:
        """Store a result."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as out:
            line = json.dumps(_ADAPTER.dump_python(result, mode="json"), allow_nan=False)
            out.write(line + "\n")
        self._results[result.key] = result
