"""Results of attacks on a vote, in a file of JSON lines."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from sluice.evaluation import CertifiedFigures

__all__ = ["OR_RULES", "SUM", "VOTE", "Result", "Store"]

VOTE = "vote"
SUM = "sum"
OR_RULES = "vote or rules"
"""Half of the false alarms for each voter, half for the receiver's own rules."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A detector under one attack; a vote also has its certificate."""

    study: str
    seed: int
    detector: str
    rule: str
    attack: str
    figures: CertifiedFigures
    targeted_recall: float
    certified: CertifiedFigures | None = None
    targeted_recall_certified: float | None = None
    holds: bool | None = None  # no figure is worse than certified
    seconds: float = 0.0
    untied: tuple[str, ...] = ()  # channels that a vote does not read


_ADAPTER = TypeAdapter(Result)


class Store:
    """Stores the results of one run of a seed together, or not at all."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._done: set[tuple[str, int, str, str]] = set()
        self.results: list[Result] = []
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                entry = json.loads(line)
                self._note(entry["key"], [_ADAPTER.validate_python(r) for r in entry["results"]])

    def missing(
        self, study: str, seed: int, detector: str, attacks: Sequence[str]
    ) -> tuple[str, ...]:
        """Return the attacks without a stored result."""
        key = (study, seed, str(detector))
        return tuple(attack for attack in attacks if (*key, attack) not in self._done)

    def add(self, study: str, seed: int, detector: str, results: Sequence[Result]) -> None:
        """Store the results."""
        entry = {
            "key": [study, seed, str(detector)],
            "results": [_ADAPTER.dump_python(result) for result in results],
        }
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("a", encoding="utf-8") as out:
            out.write(json.dumps(entry, allow_nan=False) + "\n")
        self._note(entry["key"], results)

    def _note(self, key: Sequence[object], results: Sequence[Result]) -> None:
        study, seed, detector = key
        for result in results:
            if result.rule != SUM:
                self._done.add((str(study), int(str(seed)), str(detector), result.attack))
        self.results += results
