"""Weaken one refusal at a time and check that a test notices: mutation tests of what refuses.

python -m tools.mutants --seed 0 --count 48     exits 1 if a mutant survives
python -m tools.mutants --list                  prints the sample and runs nothing

No library fits: mutmut 3 mutates function bodies only (no module's or field's limit) and everything
in them, cosmic-ray runs one test command for every mutant, mutatest is no longer maintained, and
none takes a seeded sample of the lines that refuse.

`tools.refusals` finds the mutants. The sample depends on the seed and on the mutants' own text, so
a change elsewhere in the code leaves it as it is. Tests are the unit, contract and property tests
except those of the lab.

A mutant first meets the tests that quote its refusal, those that are known to run its statement,
and the test files whose text speaks most of it. If it is still alive, a run without a mutant notes
which test runs which statement (`tools.mapping`). It takes a few test files at a time, the
likeliest first, and every mutant that is alive meets the tests that run it, those that see the
refusal first. What the run shows is kept in build/mutants. A mutant that is alive when all test
files have been run meets all tests of the folders of its tests, which share fixtures with them; a
limit that is read on import meets all tests. Only then it has survived.

A test kills a mutant if it fails twice with it, the second time alone, and passes without it. So a
test that depends on the clock kills no mutant on a busy machine. If tests do not end in time on a
mutant, they run without it, and then with it again for a multiple of the seconds that they needed.
A mutant that the clock stops twice is listed as stopped, apart from those that a test killed.
"""

import argparse
import hashlib
import json
import signal
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from queue import SimpleQueue

from tools.mapping import Maps, files_naming, likely, quoting
from tools.refusals import Area, Mutant, find
from tools.trees import BrokenTestsError, Tree, stop

ROOT = Path(__file__).parents[1]
EQUIVALENT = Path("tests/equivalent_mutants.txt")
PATIENCE_S = 90.0
PATIENCE_FACTOR = 6.0
LIKELY_S = 420.0
"""Seconds for the tests that most likely notice a mutant, before a map is made."""
AT_ONCE = 24
"""Test files that are run for the map before mutants meet their tests."""
SURVIVED = (0, 5)  # exit codes of pytest: all passed, no test
UNKNOWN = 4  # exit code of pytest: it knows no such test, or cannot import a conftest.py


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


@dataclass(slots=True, kw_only=True)
class Trial:
    """One mutant on its way through the tests."""

    mutant: Mutant
    met: set[str] = field(default_factory=set)  # tests and test files that it has passed
    seconds: float = 0.0

    def outcome(self, verdict: str, by: str = "") -> Outcome:
        """Return what became of it."""
        return Outcome(mutant=self.mutant, verdict=verdict, by=by, seconds=self.seconds)

    def first(self, tree: Tree, maps: Maps, others: Sequence[Mutant]) -> Outcome | None:
        """Meet the tests that most likely notice the mutant; None: it is still alive.

        The clock decides nothing here.
        """
        tests = maps.map().tests_of(self.mutant, others, self._naming(tree))
        files = likely(tree.root, self.mutant, maps.missing)
        # A table names the limits that are read on import.
        soonest = quoting(tree.root, self.mutant, files) if self.mutant.runs else files[:1]
        tests += files
        if not tests:
            return None
        with self._placed(tree):
            by = _test(tree, soonest, LIKELY_S)[1] if soonest else ""
        if by:
            return self.outcome("killed", by)
        with self._placed(tree):
            code, by = _test(tree, tests, LIKELY_S)
            crashed: tuple[str, ...] = ()
            if not by and code not in SURVIVED and not tree.stopped():
                crashed = (tests[0].partition("::")[0],)
                again, by = _test(tree, crashed, LIKELY_S)
                if again in SURVIVED or tree.stopped():
                    crashed = ()
        if crashed and not by:
            tree.demand_pass(crashed)
            by = "a crash"
        if code in SURVIVED:
            self.met.update(tests)
        return self.outcome("killed", by) if by else None

    def next(self, tree: Tree, maps: Maps, others: Sequence[Mutant]) -> Outcome | None:
        """Meet the tests that run the mutant and that it has not met; None: it is still alive."""
        shown = maps.map()
        found = shown.tests_of(self.mutant, others, self._naming(tree))
        tests = [
            test for test in found if not self.met.intersection((test, test.partition("::")[0]))
        ]
        return self._meet(tree, tests, sum(shown.seconds.get(test, 0.0) for test in tests))

    def last(self, tree: Tree, maps: Maps, others: Sequence[Mutant]) -> Outcome:
        """Meet all tests that share something with those that run the mutant."""
        shown = maps.map()
        found = shown.tests_of(self.mutant, others, self._naming(tree))
        files = [file for file in shown.neighbours_of(self.mutant, found) if file not in self.met]
        outcome = self._meet(tree, files, sum(shown.seconds.values()))
        return outcome or self.outcome("survived")

    def _naming(self, tree: Tree) -> set[str]:
        return files_naming(tree.root, self.mutant.name)

    def _meet(self, tree: Tree, tests: Sequence[str], expected: float) -> Outcome | None:
        if not tests:
            return None
        patience = PATIENCE_S + PATIENCE_FACTOR * expected
        needed = 0.0
        with self._placed(tree):
            code, by = _test(tree, tests, patience)
        if not by and tree.stopped():  # by the mutant, or because the machine is busy?
            needed = _seconds_without(tree, tests)
            with self._placed(tree):
                code, by = _test(tree, tests, max(patience, PATIENCE_FACTOR * needed))
        if code in SURVIVED:
            self.met.update(tests)
            return None
        if by:
            return self.outcome("killed", by)
        if tree.stopped():
            stopped = f"{tree.stopped()}; without the mutant {needed:.0f} s"
            return self.outcome("stopped", stopped)
        tree.demand_pass(tests)  # a crash: it counts only if there is none without the mutant
        return self.outcome("killed", "a crash")

    @contextmanager
    def _placed(self, tree: Tree) -> Iterator[None]:
        """Put the mutant into a tree for a while, and the file back."""
        started = time.monotonic()
        target = tree.place / self.mutant.path
        original = (tree.root / self.mutant.path).read_bytes()
        target.write_bytes(self.mutant.apply(original))
        try:
            yield
        finally:
            target.write_bytes(original)
            self.seconds += time.monotonic() - started


def _test(tree: Tree, tests: Sequence[str], seconds: float) -> tuple[int, str]:
    """Run tests up to the first that fails and fails again alone; return the exit code and it."""
    ends = time.monotonic() + seconds
    passed: list[str] = []  # failed, and then passed
    while True:
        code = tree.test(tests, seconds=max(0.01, ends - time.monotonic()), but=passed)
        files = tuple(dict.fromkeys(test.partition("::")[0] for test in tests))
        if code == UNKNOWN and files != tuple(tests):  # the mutant may be in a test's name
            tests = files
            continue
        failed = tree.failed()
        if not failed or tree.stopped():
            return code, ""
        if tree.test([failed], seconds=seconds) not in SURVIVED and tree.failed():
            return code, failed
        passed.append(failed)


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
        maps = Maps.read(trees, mutants, drawn, root / "build" / "mutants")
        trials = [Trial(mutant=mutant) for mutant in drawn if mutant not in outcomes]

        def decide(step: Callable[[Trial, Tree], Outcome | None]) -> None:
            """Take one step with every mutant that is alive; keep those that stay alive."""
            alive = list(trials)
            for trial, outcome in zip(alive, _each(trees, alive, step), strict=True):
                if outcome is not None:
                    trials.remove(trial)
                    outcomes[trial.mutant] = outcome
                    say(
                        f"[{len(outcomes):3}/{len(drawn)}] {outcome.verdict:8} "
                        f"{outcome.seconds:6.1f} s  {trial.mutant.place}: {trial.mutant.kind}"
                    )

        try:
            decide(lambda trial, tree: trial.first(tree, maps, mutants))
            while trials and maps.missing and not quick:
                say(
                    f"{len(trials)} alive; {len(maps.missing)} test files have not been run "
                    f"({time.monotonic() - started:.0f} s)"
                )
                maps.grow([trial.mutant for trial in trials], AT_ONCE)
                decide(lambda trial, tree: trial.next(tree, maps, mutants))
            decide(
                lambda trial, tree: (
                    trial.outcome("survived") if quick else trial.last(tree, maps, mutants)
                )
            )
            killers = {each.by for each in outcomes.values() if each.verdict == "killed"}
            trees[0].demand_pass(sorted(test for test in killers if "::" in test))
        finally:
            for tree in trees:
                tree.stop()
    return tuple(outcomes[mutant] for mutant in drawn)


def _each(
    trees: Sequence[Tree],
    trials: Sequence[Trial],
    step: Callable[[Trial, Tree], Outcome | None],
) -> Iterator[Outcome | None]:
    """Take one step with each mutant, in as many trees as there are; yield what became of it."""
    free: SimpleQueue[Tree] = SimpleQueue()
    for tree in trees:
        free.put(tree)

    def one(trial: Trial) -> Outcome | None:
        tree = free.get()
        try:
            return step(trial, tree)
        finally:
            free.put(tree)

    pool = ThreadPoolExecutor(len(trees))
    try:
        yield from pool.map(one, trials)
    except BaseException:
        stop(pool, trees)
        raise
    pool.shutdown()


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
        help="for work on tests: make no map; run only tests that ran the mutant in an earlier "
        "run, and test files that speak of it; a survivor may be false",
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
