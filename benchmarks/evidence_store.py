"""Where the evidence is kept while it is gathered: a line per federation, a file per seed."""

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from sluice.files import atomically
from sluice.lab.cell import CellResult, Score


@dataclass(frozen=True, slots=True, kw_only=True)
class Kept:
    """One cell and the gate it belongs to."""

    gate: str
    result: CellResult


_KEPT = TypeAdapter(list[Kept])
_SCORE = TypeAdapter(Score)


def save_kept(path: Path, kept: list[Kept]) -> None:
    """Write a seed's cells."""
    with atomically(path) as draft:
        draft.write_bytes(_KEPT.dump_json(kept))


def load_kept(path: Path) -> list[Kept]:
    """Read a seed's cells."""
    return _KEPT.validate_json(path.read_bytes())


class Scores:
    """The federations of one seed, a line each; a torn last line is run again."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Score] = {}
        self.noted = 0
        if path.exists():
            whole = path.read_text(encoding="utf-8").rpartition("\n")[0]
            path.write_text(whole + "\n" if whole else "", encoding="utf-8")
            for line in whole.splitlines():
                found = json.loads(line)
                self._known[found["key"]] = _SCORE.validate_python(found["score"])

    def recall(self, key: str) -> Score | None:
        """Return the score of a federation that has run."""
        return self._known.get(key)

    def note(self, key: str, score: Score) -> None:
        """Keep a score, for good."""
        self._known[key] = score
        self.noted += 1
        line = json.dumps({"key": key, "score": _SCORE.dump_python(score, mode="json")})
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
