"""`cold-start`: what a plant gets from a federation in its first days.

Each draw is stored as soon as it is measured, so a stopped run continues where it stopped.
"""

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter

from benchmarks.cold_start.draws import SUBJECTS, Cell, Subject
from benchmarks.cold_start.page import Line, page
from benchmarks.cold_start.ways import ways
from benchmarks.worth.ways import measured
from sluice.files import atomically

__all__ = ["main"]

ASKED = 1.0  # false alarms a week


_LINES = TypeAdapter(list[Line])


def main() -> None:
    """Run the missing draws, then write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks cold-start", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results/cold-start.md"))
    parser.add_argument("--store", type=Path, default=Path("build/cold-start.jsonl"))
    names = [subject.name for subject in SUBJECTS]
    parser.add_argument("--only", choices=names, help="run one experiment only")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which to stop")
    given = parser.parse_args()
    lines, begun = _stored(given.store), time.monotonic()
    done = {(line.subject, line.cell, line.seed) for line in lines}
    for subject in SUBJECTS:
        if given.only in (None, subject.name):
            for seed, cell in _draws(subject):
                late = time.monotonic() - begun > given.limit
                if (subject.name, cell, seed) not in done and not late:
                    lines += _stored_draw(given.store, subject, cell, seed)
    with atomically(given.out) as draft:
        draft.write_text(page(lines), encoding="utf-8")
    print(f"{given.out}: {len(lines)} lines")


def _draws(subject: Subject) -> list[tuple[int, Cell]]:
    return [
        (seed, cell)
        for at, seed in enumerate(subject.seeds)
        for cell in subject.cells
        if at < cell.draws
    ]


def _stored_draw(store: Path, subject: Subject, cell: Cell, seed: int) -> list[Line]:
    draw = subject.draw(seed, cell)
    lines = [
        Line(
            subject=subject.name,
            cell=cell,
            seed=seed,
            way=way,
            found=None
            if detector is None
            else measured(detector, draw, subject=subject.name, days=cell.days, seed=seed, way=way),
        )
        for way, detector in ways(draw, asked=ASKED).items()
    ]
    store.parent.mkdir(parents=True, exist_ok=True)
    with store.open("a", encoding="utf-8") as out:
        out.write(json.dumps([asdict(line) for line in lines]) + "\n")
    return lines


def _stored(path: Path) -> list[Line]:
    if not path.exists():
        return []
    read = path.read_text(encoding="utf-8").splitlines()
    return [one for line in read for one in _LINES.validate_json(line)]


if __name__ == "__main__":
    main()
