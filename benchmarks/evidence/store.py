"""Storage of results during a run: one line per federation, one file per seed."""

import json
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter

from sluice.files import atomically
from sluice.lab.trials import CellResult, Score


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredCell:
    """The result of one cell, and the gate it belongs to."""

    gate: str
    result: CellResult


_CELLS = TypeAdapter(list[StoredCell])
_SCORE = TypeAdapter(Score)


def save_cells(path: Path, cells: list[StoredCell]) -> None:
    """Write a seed's cells."""
    with atomically(path) as draft:
        draft.write_bytes(_CELLS.dump_json(cells))


def load_cells(path: Path) -> list[StoredCell]:
    """Read a seed's cells."""
    return _CELLS.validate_json(path.read_bytes())


class Scores:
    """The scores of one seed, one line per federation; an incomplete last line is dropped."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, Score] = {}
        self.added = 0
        if path.exists():
            whole = path.read_text(encoding="utf-8").rpartition("\n")[0]
            path.write_text(whole + "\n" if whole else "", encoding="utf-8")
            for line in whole.splitlines():
                entry = json.loads(line)
                self._known[entry["key"]] = _SCORE.validate_python(entry["score"])

    def recall(self, key: str) -> Score | None:
        """Return the score if this federation has run before."""
        return self._known.get(key)

    def note(self, key: str, score: Score) -> None:
        """Append a score to the file."""
        self._known[key] = score
        self.added += 1
        line = json.dumps({"key": key, "score": _SCORE.dump_python(score, mode="json")})
        with self._path.open("a", encoding="utf-8") as file:
            file.write(line + "\n")
