"""Weaken one refusal at a time and check that a test notices: mutation tests of what refuses.

python -m tools.mutants --seed 0 --count 48     exits 1 if a mutant survives
python -m tools.mutants --list                  prints the sample and runs nothing

No library fits: mutmut 3 mutates function bodies only (no module's or field's limit) and everything
in them, cosmic-ray runs one test command for every mutant, mutatest is no longer maintained, and
none takes a seeded sample of the lines that refuse.

`tools.refusals` finds the mutants. The sample depends on the seed and on the mutants' own text, so
a change elsewhere in the code leaves it as it is. A first run, without a mutant, must pass; it
notes which test runs which statement and is kept in build/mutants (`tools.mapping`). A mutant then
meets the tests that run its statement, those that see the refusal first, and after them, if it is
still alive, all tests of their folders, which share fixtures with them; a limit that is read on
import meets all tests. Tests are the unit, contract and property tests except those of the lab. At
the end, the tests that killed a mutant must pass without one.

If tests do not end in time on a mutant, they run without it, and then with it again for a multiple
of the seconds that they needed. So a busy machine kills no mutant. A mutant that the clock stops
twice is listed as stopped, apart from those that a test killed.
"""

import argparse
import hashlib
import json
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tools.mapping import Map, files_naming, guessed, map_tests
from tools.refusals import Area, Mutant, find
from tools.trees import BrokenTestsError, Tree

ROOT = Path(__file__).parents[1]
EQUIVALENT = Path("tests/equivalent_mutants.txt")
PATIENCE_S = 90.0
PATIENCE_FACTOR = 6.0
GUESSED_S = 60.0
"""Seconds of a test file of which no run is known."""
SURVIVED = (0, 4, 5)  # exit codes of pytest: all passed, unknown test, no test


@dataclass(frozen=True, slots=True, kw_only=True)
class Equivalent:
    """A mutant that no test can kill, because it does what the original does."""

    path: str
    function: str
    before: str
    after: str
    why: str

    def names(self, mutant: Mutant) -> bool:
        """Whether this is the mutant."""
        return (self.path, self.function, self.before, self.after) == (
            mutant.path,
            mutant.function,
            mutant.before,
            mutant.after,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What became of a mutant."""

    mutant: Mutant
    verdict: str  # killed, stopped, survived, equivalent
    by: str  # the test that killed it, the clock that stopped it, or why it is equivalent
    seconds: float


def read_equivalents(text: str) -> tuple[Equivalent, ...]:
    """Read the list: a file with its function, the line before and after, and the reason."""
    found = []
    for block in "\n".join(line for line in text.splitlines() if not line.startswith("#")).split(
        "\n\n"
    ):
        lines = [line for line in block.splitlines() if line]
        if not lines:
            continue
        if len(lines) < 4 or [line[:2] for line in lines[1:3]] != ["- ", "+ "]:
            raise SystemExit(
                f"{EQUIVALENT}: expected place, '- ', '+ ' and a reason, got {block!r}"
            )
        path, _, function = lines[0].partition(" ")
        found.append(
            Equivalent(
                path=path,
                function=function,
                before=lines[1][2:],
                after=lines[2][2:],
                why=" ".join(lines[3:]),
            )
        )
    return tuple(found)


def sample(mutants: Sequence[Mutant], *, seed: int, count: int) -> tuple[Mutant, ...]:
    """Draw mutants of different lines, as many from each area as there are.

    The draw ranks lines by a hash of the seed and their text: it does not depend on line numbers,
    nor on other lines.
    """
    lines: dict[tuple[Area, str, str, str], list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        lines[mutant.area, mutant.path, mutant.function, mutant.before].append(mutant)
    ranked: dict[Area, list[Mutant]] = {area: [] for area in Area}
    for key in sorted(lines, key=lambda key: _rank(seed, *key)):
        drawn = min(lines[key], key=lambda each: (_rank(seed, each.after, each.kind), each.start))
        ranked[key[0]].append(drawn)
    chosen: list[Mutant] = []
    depth = 0
    while len(chosen) < count and any(len(each) > depth for each in ranked.values()):
        chosen += [each[depth] for each in ranked.values() if len(each) > depth]
        depth += 1
    return tuple(sorted(chosen[:count], key=lambda each: (each.path, each.start)))


def _rank(seed: int, *parts: str) -> str:
    return hashlib.sha256("\0".join([str(seed), *parts]).encode()).hexdigest()


def kill(
    tree: Tree, mutant: Mutant, shown: Map, others: Sequence[Mutant], *, quick: bool = False
) -> Outcome:
    """Run the tests that should notice a mutant, then (unless quick) all; put the file back."""
    started = time.monotonic()
    target = tree.place / mutant.path
    original = (tree.root / mutant.path).read_bytes()
    needed = 0.0
    target.write_bytes(mutant.apply(original))
    try:
        first = shown.tests_of(mutant, others, files_naming(tree.root, mutant.name))
        first += guessed(tree.root, mutant, shown.unknown)
        for tests in (first, () if quick else shown.neighbours_of(mutant, first)):
            if not tests:
                continue
            expected = sum(shown.seconds.get(test, GUESSED_S) for test in first)
            if tests is not first:
                expected = sum(shown.seconds.values())
            patience = PATIENCE_S + PATIENCE_FACTOR * expected
            code = tree.test(tests, seconds=patience)
            if tree.stopped():  # by the mutant, or because the machine is busy?
                target.write_bytes(original)
                needed = _seconds_without(tree, tests)
                target.write_bytes(mutant.apply(original))
                code = tree.test(tests, seconds=max(patience, PATIENCE_FACTOR * needed))
            if code in SURVIVED:
                continue
            verdict, by = "killed", tree.failed()
            if not by and tree.stopped():
                verdict, by = "stopped", f"{tree.stopped()}; without the mutant {needed:.0f} s"
            elif not by:  # a crash: it counts only if there is none without the mutant
                target.write_bytes(original)
                tree.demand_pass(tests)
                by = "a crash"
            seconds = time.monotonic() - started
            return Outcome(mutant=mutant, verdict=verdict, by=by, seconds=seconds)
        return Outcome(mutant=mutant, verdict="survived", by="", seconds=time.monotonic() - started)
    finally:
        target.write_bytes(original)


def _seconds_without(tree: Tree, tests: Sequence[str]) -> float:
    """Return how long tests take now in a tree without a mutant; raise if one fails."""
    started = time.monotonic()
    tree.demand_pass(tests)
    return time.monotonic() - started


def run(  # noqa: PLR0913 - one run
    root: Path,
    drawn: Sequence[Mutant],
    mutants: Sequence[Mutant],
    *,
    jobs: int,
    equivalents: Sequence[Equivalent] = (),
    quick: bool = False,
    say: Callable[[str], None] = lambda _: None,
) -> tuple[Outcome, ...]:
    """Return what became of each mutant of a sample."""
    started = time.monotonic()
    outcomes: dict[Mutant, Outcome] = {}
    for mutant in drawn:
        for each in equivalents:
            if each.names(mutant):
                outcomes[mutant] = Outcome(
                    mutant=mutant, verdict="equivalent", by=each.why, seconds=0.0
                )
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        trees = [Tree.grow(root, Path(folder).resolve() / str(job)) for job in range(jobs)]
        shown = map_tests(trees, mutants, drawn, root / "build" / "mutants", quick=quick)
        if not quick:
            say(f"the tests pass without a mutant ({time.monotonic() - started:.0f} s)")
        free: SimpleQueue[Tree] = SimpleQueue()
        for tree in trees:
            free.put(tree)

        def one(mutant: Mutant) -> Outcome:
            tree = free.get()
            try:
                outcome = kill(tree, mutant, shown, mutants, quick=quick)
            finally:
                free.put(tree)
            outcomes[mutant] = outcome
            say(
                f"[{len(outcomes):3}/{len(drawn)}] {outcome.verdict:8} {outcome.seconds:6.1f} s  "
                f"{mutant.place}: {mutant.kind}"
            )
            return outcome

        pool = ThreadPoolExecutor(jobs)
        try:
            list(pool.map(one, [mutant for mutant in drawn if mutant not in outcomes]))
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
            for tree in trees:
                tree.stop()
            pool.shutdown()
            for tree in trees:
                tree.stop()  # a mutant that was about to begin has started another process
        killers = {each.by for each in outcomes.values() if each.verdict == "killed"}
        try:
            trees[0].demand_pass(sorted(test for test in killers if "::" in test))
        finally:
            trees[0].stop()
    return tuple(outcomes[mutant] for mutant in drawn)


def table(outcomes: Iterable[Outcome]) -> str:
    """Return the outcomes as a table, the survivors first."""
    lines = ["| place | mutation | outcome | seconds |", "|---|---|---|---:|"]
    order = ("survived", "stopped", "killed", "equivalent")
    for each in sorted(outcomes, key=lambda each: order.index(each.verdict)):
        outcome = {
            "killed": f"killed by {each.by}",
            "stopped": f"stopped by the clock: {each.by}",
            "survived": "SURVIVED",
            "equivalent": f"equivalent: {each.by}",
        }[each.verdict]
        mutation = f"-{each.mutant.before} +{each.mutant.after}"
        cells = (each.mutant.place, mutation, outcome, f"{each.seconds:.1f}")
        lines.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return "\n".join(lines)


def _as_dict(mutant: Mutant) -> dict[str, object]:
    return {
        "place": mutant.place,
        "function": mutant.function,
        "area": mutant.area.value,
        "kind": mutant.kind,
        "before": mutant.before,
        "after": mutant.after,
    }


def _say(line: str) -> None:
    sys.stderr.write(line + "\n")
    sys.stderr.flush()


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--count", type=int, default=48, help="mutants in the sample")
    parser.add_argument("--jobs", type=int, default=2, help="mutants tested at a time")
    parser.add_argument("--only", action="append", metavar="FILE", help="mutate these files alone")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="for work on tests: make no run without a mutant; run only tests that ran the mutant "
        "in an earlier run, or name its function; a survivor may be false",
    )
    parser.add_argument("--list", action="store_true", help="print the sample, run nothing")
    parser.add_argument("--json", action="store_true", help="print one object instead of a table")
    return parser.parse_args(arguments)


def main(arguments: Sequence[str] | None = None, root: Path = ROOT) -> int:
    """Draw a sample, run it, print what became of it; return the exit code."""
    options = _options(sys.argv[1:] if arguments is None else arguments)
    mutants = find(root)
    listed = root / EQUIVALENT
    equivalents = read_equivalents(listed.read_text("utf-8")) if listed.exists() else ()
    for each in equivalents:
        if not any(each.names(mutant) for mutant in mutants):
            _say(f"{EQUIVALENT}: no mutant of {each.path} reads {each.after!r}; remove the entry")
            return 2
    within = tuple(
        mutant
        for mutant in mutants
        if not options.only or any(mutant.path.endswith(only) for only in options.only)
    )
    if not within:
        _say(f"no refusal found in {', '.join(options.only or ['src'])}")
        return 2
    drawn = sample(within, seed=options.seed, count=options.count)
    if options.list:
        shown = [_as_dict(mutant) for mutant in drawn]
        text = [f"{m.place} ({m.area}, {m.kind})\n- {m.before}\n+ {m.after}" for m in drawn]
        sys.stdout.write((json.dumps(shown, indent=1) if options.json else "\n".join(text)) + "\n")
        return 0
    _say(f"{len(drawn)} of {len(within):,} mutants, seed {options.seed}")
    try:
        outcomes = run(
            root,
            drawn,
            mutants,
            jobs=options.jobs,
            equivalents=equivalents,
            quick=options.quick,
            say=_say,
        )
    except BrokenTestsError as error:
        _say(str(error))
        return 2
    survived = [each for each in outcomes if each.verdict == "survived"]
    if options.json:
        shown = [
            _as_dict(each.mutant)
            | {"verdict": each.verdict, "by": each.by, "seconds": round(each.seconds, 1)}
            for each in outcomes
        ]
        sys.stdout.write(json.dumps({"seed": options.seed, "mutants": shown}, indent=1) + "\n")
    else:
        sys.stdout.write(table(outcomes) + "\n")
    stopped = sum(each.verdict == "stopped" for each in outcomes)
    _say(f"{len(survived)} of {len(outcomes)} survived, {stopped} stopped by the clock")
    return 1 if survived else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
