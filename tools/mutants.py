"""Weaken one refusal at a time and check that a test notices: mutation tests of what refuses.

python -m tools.mutants --seed 0 --count 48     exits 1 if a mutant survives
python -m tools.mutants --list                  prints the sample and runs nothing

No library fits: mutmut 3 mutates function bodies only (no module's or field's limit) and everything
in them, cosmic-ray runs one test command for every mutant, mutatest is no longer maintained, and
none takes a seeded sample of the lines that refuse.

`tools.refusals` finds the mutants. The sample depends on the seed and on the mutants' own text, so
a change elsewhere in the code leaves it as it is. A first run, without a mutant, must pass; it
notes which test runs which statement. A mutant then meets the tests that run its statement, those
that see the refusal first, and after them, if it is still alive, all tests of their folders, which
share fixtures with them; a limit that is read on import meets all tests. Tests are the unit,
contract and property tests except those of the lab.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from pathlib import Path
from queue import SimpleQueue

from tools import probe
from tools.refusals import Area, Mutant, find

ROOT = Path(__file__).parents[1]
EQUIVALENT = Path("tests/equivalent_mutants.txt")
TESTS = ("tests/unit", "tests/contract", "tests/property")
NOT_RUN = ("tests/unit/benchmarks", "tests/unit/lab", "tests/unit/tools")
COPIED = ("src", "tests")
PYTEST = ("-x", "-q", "--tb=no", "--no-header", "-p", "no:cacheprovider", "-p", "mutants_probe")
UNSET = ("CI", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST")
PATIENCE_S = 90.0
PATIENCE_FACTOR = 6.0
FAILED, SURVIVED = 1, (0, 4, 5)  # exit codes of pytest: all passed, unknown test, no test


class BrokenTestsError(Exception):
    """Tests fail without a mutant, or cannot be run."""


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
    verdict: str  # killed, survived, equivalent
    by: str  # the test that killed it, or why it is equivalent
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """What the run without mutants showed: who runs which statement, and how long each test takes.

    A place is a file and a line. Lines are those of the unchanged files.
    """

    runs: Mapping[str, tuple[str, ...]]
    seconds: Mapping[str, float]

    def tests_of(
        self, mutant: Mutant, others: Iterable[Mutant], naming: Collection[str] = ()
    ) -> tuple[str, ...]:
        """Return the tests that run a mutant, those that see it refuse first, file by file.

        A limit is read on import. Its tests are those of the files that name it (`naming`), or
        else those that run statements which name it.
        """
        if mutant.statement is not None:
            refusing = set(self.runs.get(f"{mutant.path}:{mutant.branch}", ()))
            running = set(self.runs.get(f"{mutant.path}:{mutant.statement}", ()))
            return (*self._by_file(refusing), *self._by_file(running - refusing))
        tests = {test for test in self.seconds if test.partition("::")[0] in naming}
        if not tests and mutant.name:
            word = re.compile(rf"\b{mutant.name}\b")
            for each in others:
                if word.search(each.before):
                    tests.update(self.runs.get(f"{each.path}:{each.statement}", ()))
        return tuple(self._by_file(tests))

    def neighbours_of(self, mutant: Mutant, first: Iterable[str]) -> tuple[str, ...]:
        """Return the files of all tests that a mutant can reach through a fixture or an import."""
        files = sorted({test.partition("::")[0] for test in self.seconds})
        if mutant.statement is None:
            return tuple(files)
        folders = {str(Path(test.partition("::")[0]).parent) for test in first}
        return tuple(file for file in files if str(Path(file).parent) in folders)

    def _by_file(self, tests: Iterable[str]) -> list[str]:
        """Order by file, the quickest first, so that each file's fixtures are made once."""
        total: dict[str, float] = defaultdict(float)
        for test in tests:
            total[test.partition("::")[0]] += self.seconds.get(test, 0.0)
        return sorted(tests, key=lambda test: (total[test.partition("::")[0]], test))


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


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A copy of the checkout in which one file at a time is changed."""

    root: Path  # the checkout
    place: Path
    running: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @classmethod
    def grow(cls, root: Path, place: Path) -> "Tree":
        """Copy sources and tests; link to everything else, the compiled module among it."""
        place.mkdir()
        skipped = shutil.ignore_patterns("__pycache__", "*.so")
        for entry in sorted(root.iterdir()):
            if entry.name in COPIED:
                shutil.copytree(entry, place / entry.name, ignore=skipped, symlinks=True)
            elif entry.name == ".venv" or not entry.name.startswith("."):
                (place / entry.name).symlink_to(entry.resolve())
        for module in root.glob("src/**/*.so"):
            (place / module.relative_to(root)).symlink_to(module.resolve())
        (place / ".probe").mkdir()
        shutil.copy(Path(probe.__file__), place / ".probe" / "mutants_probe.py")
        tree = cls(root=root, place=place)
        # Caches are checked by content: an edit may keep a file's size and second of change.
        tree.python("-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "src")
        shown = tree.python("-c", "import sluice; print(sluice.__file__)").strip()
        if not Path(shown).is_relative_to(place):
            raise BrokenTestsError(f"the copy imports {shown}; expected a file below {place}")
        return tree

    def python(self, *arguments: str) -> str:
        """Run Python in the copy."""
        done = subprocess.run(  # noqa: S603 - this interpreter
            [sys.executable, *arguments],
            cwd=self.place,
            env=self.environment(),
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout

    def environment(self) -> dict[str, str]:
        """Return an environment in which the copy is what is imported."""
        settings = {key: value for key, value in os.environ.items() if key not in UNSET}
        settings.setdefault("SLUICE_DATA", str(self.root.parent / "shared" / "data"))
        paths = (self.place / "src", self.place, self.place / ".probe")
        return settings | {
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "PYTHONHASHSEED": "0",
            probe.RECORD: str(self.record),
        }

    @property
    def record(self) -> Path:
        """The file in which the probe notes what it sees."""
        return self.place / "record.tsv"

    def test(self, tests: Sequence[str], *, seconds: float | None = None) -> int:
        """Run tests up to the first that fails; return pytest's exit code, or 1 if time is up."""
        self.record.unlink(missing_ok=True)
        listed = self.place / "tests.txt"
        listed.write_text("\n".join(tests) + "\n", encoding="utf-8")
        command = [sys.executable, "-m", "pytest", *PYTEST]
        with (self.place / "output.txt").open("wb") as output:
            process = subprocess.Popen(  # noqa: S603 - this interpreter
                [*command, f"--basetemp={self.place / 'tmp'}", f"@{listed}"],
                cwd=self.place,
                env=self.environment(),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            self.running.append(process)
            try:
                return process.wait(timeout=seconds)
            except subprocess.TimeoutExpired:
                with self.record.open("a", encoding="utf-8") as record:
                    record.write(f"failed\ttime is up after {seconds:.0f} s\t0\n")
                return FAILED
            finally:
                self.stop()

    def stop(self) -> None:
        """End the tests that run, with the processes they started."""
        while self.running:
            process = self.running.pop()
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def notes(self) -> list[list[str]]:
        """Return what the probe noted, as fields."""
        if not self.record.exists():
            return []
        return [line.split("\t") for line in self.record.read_text("utf-8").splitlines()]

    def failed(self) -> str:
        """Return the first test that failed."""
        return next((fields[1] for fields in self.notes() if fields[0] == "failed"), "a crash")


def map_tests(trees: Sequence[Tree], mutants: Sequence[Mutant]) -> Map:
    """Run all tests on files with probes, which are shared out among the trees."""
    places = _places(mutants)
    numbers = {place: number for number, place in enumerate(places)}
    root = trees[0].root
    for path in {path for path, _ in places}:
        lines = {line: number for (where, line), number in numbers.items() if where == path}
        probed = _probed((root / path).read_text(encoding="utf-8"), lines)
        for tree in trees:
            (tree.place / path).write_text(probed, encoding="utf-8")
    files = test_files(root)
    pool = ThreadPoolExecutor(len(trees))
    try:
        codes = [*pool.map(lambda at: trees[at].test(files[at :: len(trees)]), range(len(trees)))]
    finally:
        for tree in trees:
            tree.stop()
        pool.shutdown()
    for tree, code in zip(trees, codes, strict=True):
        if code != 0:
            tail = (tree.place / "output.txt").read_text("utf-8", errors="replace")[-2_000:]
            raise BrokenTestsError(
                f"without a mutant, {tree.failed()} fails (exit {code}):\n{tail}"
            )
    for path in {path for path, _ in places}:
        for tree in trees:
            shutil.copyfile(root / path, tree.place / path)
    return _map([note for tree in trees for note in tree.notes()], places)


def _places(mutants: Iterable[Mutant]) -> list[tuple[str, int]]:
    """Return the statements to watch: those that hold a mutant, and those that refuse."""
    return sorted(
        {
            (each.path, line)
            for each in mutants
            for line in (each.statement, each.branch)
            if line is not None
        }
    )


def _probed(source: str, lines: Mapping[int, int]) -> str:
    """Put a probe before each of these lines."""
    out = []
    for at, line in enumerate(source.splitlines(keepends=True), start=1):
        if at in lines:
            indent = line[: len(line) - len(line.lstrip())]
            out.append(f'{indent}__import__("mutants_probe").hit({lines[at]})\n')
        out.append(line)
    return "".join(out)


def _map(notes: Iterable[Sequence[str]], places: Sequence[tuple[str, int]]) -> Map:
    seconds: dict[str, float] = defaultdict(float)
    hits: dict[str, set[str]] = defaultdict(set)
    for kind, *fields in notes:
        if kind == "hit":
            path, line = places[int(fields[0])]
            hits[f"{path}:{line}"].add(fields[1])
        else:
            seconds[fields[0]] += float(fields[1])
    by_file: dict[str, list[str]] = defaultdict(list)
    for test in seconds:
        by_file[test.partition("::")[0]].append(test)
    runs = {}
    for place, wheres in hits.items():
        tests: set[str] = set()
        for where in wheres:
            test, _, phase = where.rpartition(" ")
            if not where:  # a plugin or a conftest that is loaded before the tests
                tests.update(seconds)
            elif phase == "(call)":
                tests.update({test} & seconds.keys())  # others ran in a pytest that a test started
            else:  # what a fixture or an import made serves every test of its file
                tests.update(by_file[(test or where).partition("::")[0]])
        runs[place] = tuple(sorted(tests))
    return Map(runs=runs, seconds=dict(seconds))


def test_files(root: Path) -> tuple[str, ...]:
    """Return the test files that may kill a mutant."""
    files = (
        path.relative_to(root).as_posix()
        for part in TESTS
        for path in (root / part).rglob("test_*.py")
    )
    return tuple(sorted(file for file in files if not file.startswith(NOT_RUN)))


def _naming(root: Path, name: str) -> set[str]:
    """Return the test files in which a name occurs."""
    if not name:
        return set()
    word = re.compile(rf"\b{name}\b")
    return {file for file in test_files(root) if word.search((root / file).read_text("utf-8"))}


def cached_map(trees: Sequence[Tree], mutants: Sequence[Mutant], folder: Path) -> Map:
    """Return the map of a checkout; make it only if sources or tests have changed since."""
    root = trees[0].root
    content = hashlib.sha256(repr(_places(mutants)).encode())
    for path in sorted(
        path
        for part in (*COPIED, "pyproject.toml")
        for path in [root / part, *(root / part).rglob("*")]
        if path.is_file() and "__pycache__" not in path.parts
    ):
        name = path.relative_to(root).as_posix()
        if name.startswith("tests/unit/tools/") or name == EQUIVALENT.as_posix():
            continue
        content.update(name.encode() + b"\0")
        content.update(hashlib.sha256(path.read_bytes()).digest())
    cache = folder / f"{content.hexdigest()[:32]}.json"
    if cache.exists():
        stored = json.loads(cache.read_text(encoding="utf-8"))
        return Map(
            runs={place: tuple(tests) for place, tests in stored["runs"].items()},
            seconds=stored["seconds"],
        )
    made = map_tests(trees, mutants)
    folder.mkdir(parents=True, exist_ok=True)
    cache.write_text(json.dumps(asdict(made)), encoding="utf-8")
    return made


def kill(tree: Tree, mutant: Mutant, shown: Map, others: Sequence[Mutant]) -> Outcome:
    """Run the tests that should notice a mutant, then all; put the file back."""
    started = time.monotonic()
    target = tree.place / mutant.path
    original = (tree.root / mutant.path).read_bytes()
    target.write_bytes(mutant.apply(original))
    try:
        first = shown.tests_of(mutant, others, _naming(tree.root, mutant.name))
        for tests in (first, shown.neighbours_of(mutant, first)):
            if not tests:
                continue
            expected = sum(shown.seconds.get(test, 0.0) for test in first)
            if tests is not first:
                expected = sum(shown.seconds.values())
            code = tree.test(tests, seconds=PATIENCE_S + PATIENCE_FACTOR * expected)
            if code not in SURVIVED:
                return Outcome(
                    mutant=mutant,
                    verdict="killed",
                    by=tree.failed(),
                    seconds=time.monotonic() - started,
                )
        return Outcome(mutant=mutant, verdict="survived", by="", seconds=time.monotonic() - started)
    finally:
        target.write_bytes(original)


def run(  # noqa: PLR0913 - one run
    root: Path,
    drawn: Sequence[Mutant],
    mutants: Sequence[Mutant],
    *,
    jobs: int,
    equivalents: Sequence[Equivalent] = (),
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
        shown = cached_map(trees, mutants, root / "build" / "mutants")
        say(f"the tests pass without a mutant ({time.monotonic() - started:.0f} s)")
        free: SimpleQueue[Tree] = SimpleQueue()
        for tree in trees:
            free.put(tree)

        def one(mutant: Mutant) -> Outcome:
            tree = free.get()
            try:
                outcome = kill(tree, mutant, shown, mutants)
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
    return tuple(outcomes[mutant] for mutant in drawn)


def table(outcomes: Iterable[Outcome]) -> str:
    """Return the outcomes as a table, the survivors first."""
    lines = ["| place | mutation | outcome | seconds |", "|---|---|---|---:|"]
    order = ("survived", "killed", "equivalent")
    for each in sorted(outcomes, key=lambda each: order.index(each.verdict)):
        outcome = {
            "killed": f"killed by {each.by}",
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
        outcomes = run(root, drawn, mutants, jobs=options.jobs, equivalents=equivalents, say=_say)
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
    _say(f"{len(survived)} of {len(outcomes)} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
