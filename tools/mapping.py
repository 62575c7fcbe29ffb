"""Which tests run which statement, and how long each takes: from a run without a mutant.

The run is kept for each test file by itself. It is made again if the file, what it shares with its
neighbours, or a source file that it runs and that holds a drawn mutant has changed since.

`likelihood` reads the text of test files and guesses which of them notice a mutant. It only decides
the order: a mutant survives only after every test file has been run.
"""

import ast
import hashlib
import json
import re
import shutil
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tools.refusals import Mutant
from tools.trees import Tree, stop

__all__ = ["Map", "Maps", "files_naming", "likelihood", "likely", "quoting", "test_files"]

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
LEAST_LIKELY = 3
"""Score of a test file that a mutant meets before any map is made."""
MOST_LIKELY = 12
"""Such test files."""
SAID_WORDS = 3
SHORTEST_SAID = 10
"""Words and characters of a text that is looked for in test files."""


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

    @classmethod
    def of(cls, files: Mapping[str, Seen]) -> "Map":
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


def likelihood(root: Path, mutant: Mutant, files: Iterable[str]) -> dict[str, int]:
    """Return how many signs each test file shows that it tests a mutant; leave out those without.

    Signs are the words of the refusal, the names of the limit, of the function, of its class and of
    the module, and a test file that is named as the module.
    """
    inside = Path(mutant.path.removeprefix("src/").removesuffix(".py"))
    said, constants = _words_of(root, mutant)
    signs = [(6, re.compile("|".join(map(re.escape, said))))] if said else []
    names = [(5, mutant.name), *((3, name) for name in constants)]
    if not mutant.runs:  # a limit that is read on import: no other sign is as good as its name
        whole = ".".join(filter(None, (*inside.parts[1:], mutant.function, mutant.name)))
        names += [(20, mutant.name), (20, whole)]
    names += [(4, name) for name in mutant.function.split(".")]
    names += [(3, ".".join(inside.parts)), (1, ".".join(inside.parts[:-1]))]
    signs += [(weight, re.compile(rf"\b{re.escape(name)}\b")) for weight, name in names if name]
    found = {}
    for file in files:
        text = (root / file).read_text("utf-8")
        score = sum(weight for weight, sign in signs if sign.search(text))
        score += 4 * (Path(file).stem == f"test_{inside.stem}")
        score += 2 * (inside.parts[1] in Path(file).parts)
        if score:
            found[file] = score
    return found


def likely(root: Path, mutant: Mutant, files: Iterable[str]) -> tuple[str, ...]:
    """Return the test files that most likely notice a mutant, the likeliest and shortest first."""
    found = {
        file: score
        for file, score in likelihood(root, mutant, files).items()
        if score >= LEAST_LIKELY
    }
    ranked = sorted(found, key=lambda file: (-found[file], (root / file).stat().st_size))
    return tuple(ranked[:MOST_LIKELY])


def quoting(root: Path, mutant: Mutant, files: Iterable[str]) -> tuple[str, ...]:
    """Return the tests of these files that say a part of what a mutant's refusal says."""
    said, _ = _words_of(root, mutant)
    if not said:
        return ()
    words = re.compile("|".join(map(re.escape, said)))
    found = []
    for file in files:
        text = (root / file).read_text("utf-8")
        if words.search(text):
            lines = text.splitlines()
            for node in ast.parse(text).body:
                if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
                    if words.search("\n".join(lines[first - 1 : node.end_lineno])):
                        found.append(f"{file}::{node.name}")
    return tuple(found)


def _words_of(root: Path, mutant: Mutant) -> tuple[set[str], set[str]]:
    """Return what a refusal says, and the constants that it or the mutant's statement names.

    Tests quote a part of what it says, so each few words that follow each other are returned.
    """
    said: set[str] = set()  # in groups of words
    constants: set[str] = set()
    lines = {mutant.branch, mutant.statement} - {None}
    for node in ast.walk(ast.parse((root / mutant.path).read_bytes())):
        if isinstance(node, ast.stmt) and node.lineno in lines:
            refuses = node.lineno == mutant.branch
            for inner in ast.walk(node) if refuses or not hasattr(node, "body") else ():
                match inner:
                    case ast.Constant(value=str() as text) if refuses:
                        words = text.split()
                        said.update(
                            " ".join(words[at : at + SAID_WORDS])
                            for at in range(max(1, len(words) - SAID_WORDS + 1))
                        )
                    case ast.Attribute(attr=name) | ast.Name(id=name) if name.isupper():
                        constants.add(name)
    return {text for text in said if len(text) >= SHORTEST_SAID}, constants


@dataclass(slots=True, kw_only=True)
class Maps:
    """The runs of test files that are known, and the files of which none is."""

    trees: Sequence[Tree]
    mutants: Sequence[Mutant]
    folder: Path
    known: dict[str, Seen] = field(default_factory=dict)
    missing: list[str] = field(default_factory=list)
    sources: dict[str, str] = field(default_factory=dict)

    @classmethod
    def read(
        cls,
        trees: Sequence[Tree],
        mutants: Sequence[Mutant],
        drawn: Sequence[Mutant],
        folder: Path,
    ) -> "Maps":
        """Read the runs in a folder; leave out those that do not serve for the drawn mutants."""
        root = trees[0].root
        maps = cls(trees=trees, mutants=mutants, folder=folder)
        maps.sources = {path: _hash([root / path]) for path in {each.path for each in mutants}}
        paths = {mutant.path for mutant in drawn}
        for file in test_files(root):
            kept = folder / _kept_as(root, file)
            if kept.exists():
                seen = Seen(**json.loads(kept.read_text(encoding="utf-8")))
                if not seen.outdated(paths, maps.sources):
                    maps.known[file] = seen
        maps.missing = [file for file in test_files(root) if file not in maps.known]
        return maps

    def map(self) -> Map:
        """Return the map of what is known."""
        return Map.of(self.known)

    def grow(self, undecided: Sequence[Mutant], count: int) -> None:
        """Run some of the missing test files without a mutant, the likeliest to notice one first.

        Raise if a test fails.
        """
        root = self.trees[0].root
        scores: dict[str, int] = defaultdict(int)
        for mutant in undecided:
            for file, score in likelihood(root, mutant, self.missing).items():
                scores[file] = max(scores[file], score)
        ranked = sorted(self.missing, key=lambda file: -scores[file])
        self.folder.mkdir(parents=True, exist_ok=True)
        for file, seen in _run(self.trees, self.mutants, ranked[:count], self.sources):
            kept = self.folder / _kept_as(root, file)
            kept.write_text(json.dumps(asdict(seen)), encoding="utf-8")
            self.known[file] = seen
            self.missing.remove(file)


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
    except BaseException:
        stop(pool, trees)
        raise
    pool.shutdown()
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
