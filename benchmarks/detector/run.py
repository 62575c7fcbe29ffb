"""`detector`: what each detector finds on plants and seeds that no setting was chosen on.

Plants are measured one at a time and kept in a folder; the page is written from what is there.
"""

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from pydantic import TypeAdapter

from benchmarks.detector.measured import Failed, Measured, measure
from benchmarks.detector.page import write
from benchmarks.detector.subjects import SUBJECTS, Subject

__all__ = ["main"]

_LINES = TypeAdapter(tuple[Measured | Failed, ...])


def main() -> None:
    """Measure the named plants and write the page of all that are in the store."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks detector", description=__doc__)
    names = [subject.name for subject in SUBJECTS]
    parser.add_argument("--plant", action="append", choices=names, help="default: all")
    parser.add_argument("--case", type=int, help="only the case with this number, from 0")
    parser.add_argument("--kind", action="append", help="only this detector; default: all")
    parser.add_argument("--store", type=Path, default=Path("build/detector"))
    parser.add_argument("--out", type=Path, default=Path("docs/results/detector.md"))
    parser.add_argument("--page-only", action="store_true", help="measure nothing")
    given = parser.parse_args()
    given.store.mkdir(parents=True, exist_ok=True)
    for subject in SUBJECTS:
        if not given.page_only and subject.name in (given.plant or names):
            path = given.store / f"{subject.name}.json"
            _measure(subject, path, case=given.case, kinds=given.kind or subject.kinds)
    found = {
        subject: _LINES.validate_json((given.store / f"{subject.name}.json").read_text("utf-8"))
        for subject in SUBJECTS
        if (given.store / f"{subject.name}.json").exists()
    }
    write(given.out, found, missing=[subject for subject in SUBJECTS if subject not in found])


def _measure(subject: Subject, path: Path, *, case: int | None, kinds: Sequence[str]) -> None:
    """Measure a plant's cases; lines that are not measured now stay in the file."""
    lines = list(_LINES.validate_json(path.read_text("utf-8"))) if path.exists() else []
    order = {kind: at for at, kind in enumerate(subject.kinds)}
    for number, make in enumerate(subject.cases()):
        if case not in (None, number):
            continue
        one = make()
        for kind in subject.kinds:
            if kind not in kinds:
                continue
            lines = [line for line in lines if (line.case, line.detector) != (one.name, kind)]
            for line in measure(one, kind, asked=subject.asked):
                print(subject.name, asdict(line), flush=True)
                lines.append(line)
            lines.sort(key=lambda line: (line.case, order[line.detector]))
            path.write_text(_LINES.dump_json(tuple(lines), indent=1).decode(), encoding="utf-8")
