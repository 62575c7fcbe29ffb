"""`worth`: what a plant gains by joining, alone beside vote beside pooled sum.

Each draw is stored as soon as it is measured, so a stopped run continues where it stopped.
"""

import argparse
import json
import time
from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter

from benchmarks.worth.draws import SUBJECTS
from benchmarks.worth.page import figure, page
from benchmarks.worth.ways import Measured, measure
from sluice.files import atomically

__all__ = ["main"]

FIRST_SEED = 100
ASKED = 1.0  # false alarms a week
_LINES = TypeAdapter(Measured)


def main() -> None:
    """Run the missing draws, then write the page and its figure."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks worth", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results/worth.md"))
    parser.add_argument("--store", type=Path, default=Path("build/worth.jsonl"))
    names = [subject.name for subject in SUBJECTS]
    parser.add_argument("--only", choices=names, help="run one experiment only")
    parser.add_argument("--draws", type=int, default=20, help="seeds 100, 101, ...")
    parser.add_argument("--first-seed", type=int, default=FIRST_SEED, help="settings: below 100")
    parser.add_argument("--limit", type=float, default=1e9, help="seconds after which to stop")
    given = parser.parse_args()
    found = _stored(given.store)
    done = {(line.subject, line.days, line.seed) for line in found}
    begun = time.monotonic()
    for subject in SUBJECTS:
        for seed in range(given.first_seed, given.first_seed + given.draws):
            for days in subject.days:
                late = time.monotonic() - begun > given.limit
                if given.only not in (None, subject.name) or late:
                    continue
                if (subject.name, days, seed) not in done:
                    draw = subject.draw(seed, days)
                    lines = measure(draw, subject=subject.name, days=days, seed=seed, asked=ASKED)
                    _store(given.store, lines)
                    found += lines
    with atomically(given.out) as draft:
        draft.write_text(page(found), encoding="utf-8")
    figure(found, given.out.with_suffix(".svg"))


def _stored(path: Path) -> list[Measured]:
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [_LINES.validate_python(one) for line in lines for one in json.loads(line)]


def _store(path: Path, lines: list[Measured]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as out:
        out.write(json.dumps([asdict(line) for line in lines]) + "\n")


if __name__ == "__main__":
    main()
