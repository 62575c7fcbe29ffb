"""Which tests run which statement, and how long each takes: from a run without a mutant.

The run is kept for each test file by itself. It is made again if the file, what it shares with its
neighbours, or a source file that it runs and that holds a drawn mutant has changed since.
"""

import hashlib
import json
import re
import shutil
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path

from tools.refusals import Mutant
from tools.trees import Tree

__all__ = ["Map", "files_naming", "guessed", "map_tests", "test_files"]

TESTS = ("tests/unit", "tests/contract", "tests/property")
NOT_RUN = (
    "tests/contract/test_attacks.py",
    "tests/contract/test_plants.py",
    "tests/unit/benchmarks",
    "tests/unit/lab",
    "tests/unit/tools",
)
"""Tests of the lab and of tools: the runtime must not need them."""
AT_ONCE = 4
"""Test files in one process: a value that one file's tests keep for another's is seen less."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the run of one test file showed.

    `hits` gives for each statement the tests and phases that ran it, as pytest names them. A
    statement is named by its file, its function and its text, so that a name outlives edits
    elsewhere. `sources` gives the hash of each file with such statements.
    """

    hits: Mapping[str, Sequence[str]]
    seconds: Mapping[str, float]
    sources: Mapping[str, str]

    def outdated(self, drawn: Iterable[str], now: Mapping[str, str]) -> bool:
        """Whether this run says nothing certain about the statements of these source files."""
        ran = {place.partition(" ")[0] for place in self.hits}
        return any(self.sources.get(path) != now[path] for path in ran.intersection(drawn))


@dataclass(frozen=True, slots=True, kw_only=True)
class Map:
    """Who runs which statement, and how long each test takes."""

    runs: Mapping[str, tuple[str, ...]]
    seconds: Mapping[str, float]
    unknown: tuple[str, ...] = ()  # test files of which no run is known

    @classmethod
    def of(cls, files: Mapping[str, Seen], unknown: Sequence[str] = ()) -> "Map":
        """Put the runs of test files together."""
        runs: dict[str, set[str]] = defaultdict(set)
        for seen in files.values():
            for place, wheres in seen.hits.items():
                for where in wheres:
                    test, _, phase = where.rpartition(" ")
                    if phase == "(call)":  # other tests ran in a pytest that a test started
                        runs[place].update({test} & seen.seconds.keys())
                    else:  # what a fixture or an import made serves every test of its file
                        runs[place].update(seen.seconds)
        return cls(
            runs={place: tuple(sorted(tests)) for place, tests in runs.items()},
            seconds={
                test: taken for seen in files.values() for test, taken in seen.seconds.items()
            },
            unknown=tuple(unknown),
        )

    def tests_of(
        self, mutant: Mutant, others: Iterable[Mutant], naming: Collection[str] = ()
    ) -> tuple[str, ...]:
        """Return the tests that run a mutant, those that see it refuse first, file by file.

        A limit is read on import. Its tests are those of the files that name it (`naming`), or
        else those that run statements which name it.
        """
        if mutant.runs:
            refusing = set(self.runs.get(mutant.refuses, ()))
            running = set(self.runs.get(mutant.runs, ()))
            return (*self._by_file(refusing), *self._by_file(running - refusing))
        tests = {test for test in self.seconds if test.partition("::")[0] in naming}
        if not tests and mutant.name:
            word = re.compile(rf"\b{mutant.name}\b")
            for each in others:
                if word.search(each.before):
                    tests.update(self.runs.get(each.runs, ()))
        return tuple(self._by_file(tests))

    def neighbours_of(self, mutant: Mutant, first: Iterable[str]) -> tuple[str, ...]:
        """Return the files of all tests that a mutant can reach through a fixture or an import."""
        files = sorted({test.partition("::")[0] for test in self.seconds})
        if not mutant.runs:
            return tuple(files)
        folders = {str(Path(test.partition("::")[0]).parent) for test in first}
        return tuple(file for file in files if str(Path(file).parent) in folders)

    def _by_file(self, tests: Iterable[str]) -> list[str]:
        """Order by file, the quickest first, so that each file's fixtures are made once."""
        total: dict[str, float] = defaultdict(float)
        for test in tests:
            total[test.partition("::")[0]] += self.seconds.get(test, 0.0)
        return sorted(tests, key=lambda test: (total[test.partition("::")[0]], test))


def test_files(root: Path) -> tuple[str, ...]:
    """Return the test files that may kill a mutant."""
    files = (
        path.relative_to(root).as_posix()
        for part in TESTS
        for path in (root / part).rglob("test_*.py")
    )
    return tuple(sorted(file for file in files if not file.startswith(NOT_RUN)))


def files_naming(root: Path, name: str) -> set[str]:
    """Return the test files in which a name occurs."""
    if not name:
        return set()
    word = re.compile(rf"\b{name}\b")
    return {file for file in test_files(root) if word.search((root / file).read_text("utf-8"))}


def guessed(root: Path, mutant: Mutant, files: Iterable[str]) -> tuple[str, ...]:
    """Return those of these test files that name a mutant's function, its class or its module."""
    module = mutant.path.removeprefix("src/").removesuffix(".py").replace("/", ".")
    texts = {file: (root / file).read_text("utf-8") for file in files}
    names = [*reversed(mutant.function.split(".")), module]
    words = [re.compile(rf"\b{re.escape(name)}\b") for name in names if name.strip("_")]
    found = [file for word in words for file, text in texts.items() if word.search(text)]
    return tuple(dict.fromkeys(found))


def map_tests(
    trees: Sequence[Tree],
    mutants: Sequence[Mutant],
    drawn: Sequence[Mutant],
    folder: Path,
    *,
    quick: bool = False,
) -> Map:
    """Return the map of all test files; run those whose runs in the folder do not serve.

    If `quick`, nothing is run: the map names the test files of which no run is known.
    """
    root = trees[0].root
    now = {path: _hash([root / path]) for path in {mutant.path for mutant in mutants}}
    paths = {mutant.path for mutant in drawn}
    known: dict[str, Seen] = {}
    for file in test_files(root):
        kept = folder / _kept_as(root, file)
        if kept.exists():
            seen = Seen(**json.loads(kept.read_text(encoding="utf-8")))
            if not seen.outdated(paths, now):
                known[file] = seen
    missing = [file for file in test_files(root) if file not in known]
    if quick:
        return Map.of(known, missing)
    if missing:
        folder.mkdir(parents=True, exist_ok=True)
        for file, seen in _run(trees, mutants, missing, now):
            (folder / _kept_as(root, file)).write_text(json.dumps(asdict(seen)), encoding="utf-8")
            known[file] = seen
    return Map.of(known)


def _kept_as(root: Path, file: str) -> str:
    """Name a run by its test file, the file's content and that of what it shares."""
    path = root / file
    shared = [each for each in path.parent.glob("*.py") if not each.name.startswith("test_")]
    shared += [root / "tests" / "conftest.py", root / "tests" / "unit" / "conftest.py"]
    content = _hash([path, *sorted(each for each in set(shared) if each.exists())])
    return f"{file.removesuffix('.py').replace('/', '.')}-{content}.json"


def _hash(paths: Iterable[Path]) -> str:
    content = hashlib.sha256()
    for path in paths:
        content.update(hashlib.sha256(path.read_bytes()).digest())
    return content.hexdigest()[:16]


def _run(
    trees: Sequence[Tree],
    mutants: Sequence[Mutant],
    files: Sequence[str],
    sources: Mapping[str, str],
) -> Iterator[tuple[str, Seen]]:
    """Run test files on sources with probes, a few files at a time."""
    places = _places(mutants)
    numbers = {place: number for number, place in enumerate(sorted(places))}
    root = trees[0].root
    probed = {path for path, _ in places}
    for path in probed:
        lines = {line: number for (where, line), number in numbers.items() if where == path}
        text = _probed((root / path).read_text(encoding="utf-8"), lines)
        for tree in trees:
            (tree.place / path).write_text(text, encoding="utf-8")
    names = [places[place] for place in sorted(places)]
    parts = [files[at : at + AT_ONCE] for at in range(0, len(files), AT_ONCE)]
    pool = ThreadPoolExecutor(len(trees))
    free = list(trees)

    def one(part: Sequence[str]) -> dict[str, Seen]:
        tree = free.pop()
        try:
            return _seen(tree, part, names, sources)
        finally:
            free.append(tree)

    try:
        for found in as_completed([pool.submit(one, part) for part in parts]):
            yield from found.result().items()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
        for tree in trees:
            tree.stop()
        pool.shutdown()
        for tree in trees:
            tree.stop()  # a run that was about to begin has started another process
    for path in probed:
        for tree in trees:
            shutil.copyfile(root / path, tree.place / path)


def _seen(
    tree: Tree, files: Sequence[str], names: Sequence[str], sources: Mapping[str, str]
) -> dict[str, Seen]:
    """Run some test files; return what each showed."""
    tree.demand_pass(files)
    hits: dict[str, dict[str, set[str]]] = {file: defaultdict(set) for file in files}
    seconds: dict[str, dict[str, float]] = {file: defaultdict(float) for file in files}
    for kind, *fields in tree.notes():
        if kind == "hit":
            place, where = names[int(fields[0])], fields[1]
            file = where.partition("::")[0].partition(" ")[0]
            # Outside test files: a plugin, or a conftest that is loaded before the tests.
            for each in files if Path(file).suffix != ".py" else {file} & hits.keys():
                hits[each][place].add(where)
        elif (file := fields[0].partition("::")[0]) in seconds:
            seconds[file][fields[0]] += float(fields[1])
    return {
        file: Seen(
            hits={place: sorted(wheres) for place, wheres in hits[file].items()},
            seconds=dict(seconds[file]),
            sources={
                path: sources[path] for path in {each.partition(" ")[0] for each in hits[file]}
            },
        )
        for file in files
    }


def _places(mutants: Iterable[Mutant]) -> dict[tuple[str, int], str]:
    """Return the statements to watch, by file and line: those with a mutant, those that refuse."""
    return {
        (each.path, line): name
        for each in mutants
        for line, name in ((each.statement, each.runs), (each.branch, each.refuses))
        if line is not None and name
    }


def _probed(source: str, lines: Mapping[int, int]) -> str:
    """Put a probe before each of these lines."""
    out = []
    for at, line in enumerate(source.splitlines(keepends=True), start=1):
        if at in lines:
            indent = line[: len(line) - len(line.lstrip())]
            out.append(f'{indent}__import__("mutants_probe").hit({lines[at]})\n')
        out.append(line)
    return "".join(out)
