"""`detector`: what each detector finds on plants and seeds that no setting was chosen on.

Plants are measured one at a time and kept in a folder; the page is written from what is there.
"""

import argparse
from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter

from benchmarks.detector.measured import Failed, Measured, measure
from benchmarks.detector.page import write
from benchmarks.detector.subjects import SUBJECTS, Subject

__all__ = ["main"]

ASKED = 1.0
_LINES = TypeAdapter(tuple[Measured | Failed, ...])


def main() -> None:
    """Measure the named plants and write the page of all that are in the store."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks detector", description=__doc__)
    names = [subject.name for subject in SUBJECTS]
    parser.add_argument("--plant", action="append", choices=names, help="default: all")
    parser.add_argument("--store", type=Path, default=Path("build/detector"))
    parser.add_argument("--out", type=Path, default=Path("docs/results/detector.md"))
    parser.add_argument("--page-only", action="store_true", help="measure nothing")
    given = parser.parse_args()
    given.store.mkdir(parents=True, exist_ok=True)
    for subject in SUBJECTS:
        if not given.page_only and subject.name in (given.plant or names):
            lines = _lines(subject)
            text = _LINES.dump_json(lines, indent=1).decode()
            (given.store / f"{subject.name}.json").write_text(text, encoding="utf-8")
    found = {
        subject: _LINES.validate_json((given.store / f"{subject.name}.json").read_text("utf-8"))
        for subject in SUBJECTS
        if (given.store / f"{subject.name}.json").exists()
    }
    write(given.out, found)


def _lines(subject: Subject) -> tuple[Measured | Failed, ...]:
    lines = []
    for case in subject.cases():
        for kind in subject.kinds:
            line = measure(case, kind, asked=ASKED)
            print(subject.name, asdict(line), flush=True)
            lines.append(line)
    return tuple(lines)
