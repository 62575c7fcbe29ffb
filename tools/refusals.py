"""Find the lines of the runtime that refuse something, and small edits that weaken each of them.

A refusal is an `if` that raises an error, excludes a client, yields an objection or returns a
complaint; a call that verifies and raises by itself; a filter that leaves out what was refused; a
predicate that such a condition asks; the arithmetic of a budget; a number that limits. An edit
replaces one stretch of the source text and nothing else, so a mutant differs from its file in one
place.
"""

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from pathlib import Path

__all__ = ["SCOPE", "Area", "Mutant", "find", "mutants_of", "vocabulary_of"]

SCOPE = (
    "admission",
    "aggregation",
    "attestation",
    "detector/modelfile.py",
    "federation",
    "files.py",
    "invariants/budgets.py",
    "invariants/encoding.py",
    "invariants/measure.py",
    "invariants/rowcheck.py",
    "invariants/rulesfile.py",
    "network",
    "reports/dashboard",
    "telemetry/*.py",
    "telemetry/formats",
)
"""Packages and modules of the runtime in which refusals are searched."""
LIMITS_ALONE = "src/sluice/telemetry/"
"""Here only refusals by size or number count; the others are about the layout of files."""

VERIFYING = re.compile(r"^_?(verify|check|demand|refuse|require)(_|$)|^compare_digest$")
COMPLAINING = re.compile(r"broken|complaint|objection|refus|unsound")
EXCLUDING = re.compile(r"^_?(decline|exclude|refuse|suspend)(_|$)")
SELECTING = re.compile(r"active|admitted|allowed|attest|exclu|expired|fits|revoked|suspend|trusted")
BUDGETING = re.compile(r"(^|_)(allowed|among|budgets?|largest|limits?|within)(_|$)")
OBJECTIONS = ("Objection", "Reason")
LIMITS = re.compile(r"^(ge|gt|le|lt|limit|largest|max_length|min_length|\w+_(max|min))$")
NAMED_LIMIT = re.compile(r"^_?(LARGEST|LEAST|LONGEST|MAX|MIN|MOST)(_|$)")
LIMITING = re.compile(r"^alpha$|_(extra|factor|multiple|points|power|rows|s|share|than_last)$")
DEADLINES = ("seconds", "timeout")
FAULTS = ("AssertionError", "NotImplementedError", "TypeError")  # of Sluice itself, not refusals

BOUNDARIES: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
}
SWAPS = {"min": "max", "max": "min", "floor": "ceil", "ceil": "floor", "any": "all", "all": "any"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


class Area(StrEnum):
    """What a refusal protects; the sample takes as many mutants from each."""

    SIGNATURES = "signatures"
    BUDGETS = "budgets"
    TIME = "deadlines and time"
    SIZES = "hosts and sizes"
    COUNTS = "weights and counts"
    STATE = "protocol state"


WORDS = {
    Area.SIGNATURES: r"verif|signature|signed|signing|\.key\b|digest|hash|seal|certif|"
    r"authori|approv|pledge|token",
    Area.TIME: r"time|clock|deadline|expire|interval|second|stride|moment|instant|until|since|"
    r"_s\b|age\b|overlap|later|earlier|patience",
    Area.SIZES: r"host|address|port\b|bytes|\bsize|largest|proxy|loopback|path|url|length|"
    r"expos|listen|file\b",
    Area.COUNTS: r"weight|count|window|number of|\brows|updates|clients|share\b|how many|few|more "
    r"than|least|finite|allowance",
    Area.BUDGETS: r"budget|tolerance|alpha|severe|envelope|margin|objection|reason|policy|span|"
    r"limit|anchors?|residual",
    Area.STATE: r"state|round|transition|admitted|registered|registration|member|suspend|exclude|"
    r"waive|exempt|ledger|\blog\b|entry|head|attest|commit|challenge|step",
}
DEFAULTS = (
    ("admission/", Area.BUDGETS),
    ("invariants/", Area.BUDGETS),
    ("aggregation/", Area.COUNTS),
    ("telemetry/", Area.SIZES),
    ("reports/", Area.SIZES),
    ("network/wire/", Area.SIZES),
    ("", Area.STATE),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One edit of one file: the bytes from `start` to `end` become `replacement`."""

    path: str  # from the root of the checkout
    line: int
    function: str  # its qualified name; empty outside functions
    area: Area
    kind: str
    start: int
    end: int
    replacement: str
    before: str  # the edited lines, written as one
    after: str
    statement: int | None  # the line of the statement that runs it; None: it runs on import
    branch: int | None = None  # the first line that runs only if it refuses
    runs: str = ""  # names that statement by file, function and text; empty: it runs on import
    refuses: str = ""  # names the branch likewise
    name: str = ""  # that its statement assigns, or of the argument that limits

    @property
    def place(self) -> str:
        """Where it is, as editors and compilers write it."""
        return f"{self.path}:{self.line}"

    def apply(self, source: bytes) -> bytes:
        """Return the file with the edit."""
        return source[: self.start] + self.replacement.encode() + source[self.end :]


@dataclass(frozen=True, slots=True, kw_only=True)
class Vocabulary:
    """Names that occur in refusals anywhere: what they ask, and the limits they compare with."""

    asked: frozenset[str]
    limits: frozenset[str]


def find(root: Path, scope: Iterable[str] = SCOPE) -> tuple[Mutant, ...]:
    """Return all mutants of a checkout, in the order of files and lines."""
    package = root / "src" / "sluice"
    paths: list[Path] = []
    for part in scope:
        for place in sorted(package.glob(part)):
            paths += sorted(place.rglob("*.py")) if place.is_dir() else [place]
    sources = {path.relative_to(root).as_posix(): path.read_bytes() for path in paths}
    words = vocabulary_of(sources.values())
    return tuple(
        mutant for path, source in sources.items() for mutant in mutants_of(path, source, words)
    )


def vocabulary_of(sources: Iterable[bytes]) -> Vocabulary:
    """Collect the names that the refusals of these files ask for."""
    asked: set[str] = set()
    limits: set[str] = set()
    for source in sources:
        for expression in _asked(ast.parse(source)):
            limits.update(_compared(expression))
            for node in ast.walk(expression):
                if isinstance(node, ast.Name | ast.Attribute):
                    asked.add(_name(node))
                elif isinstance(node, ast.Compare) and _ordering(node):
                    for side in (node.left, *node.comparators):
                        limits.update(_compared(side))
    return Vocabulary(asked=frozenset(asked), limits=frozenset(limits))


def _ordering(node: ast.Compare) -> bool:
    return any(type(operator) in BOUNDARIES for operator in node.ops)


def _compared(side: ast.expr) -> Iterator[str]:
    """Yield the names whose values one side of a comparison is computed from."""
    match side:
        case ast.Name() | ast.Attribute():
            yield _name(side)
        case ast.BinOp(left=left, right=right):
            yield from _compared(left)
            yield from _compared(right)
        case ast.UnaryOp(operand=operand):
            yield from _compared(operand)
        case ast.Call(func=ast.Name(id="min" | "max"), args=parts):
            for part in parts:
                yield from _compared(part)


def _asked(tree: ast.Module) -> Iterator[ast.expr]:
    """Yield every condition that decides about a refusal, and every argument that limits."""
    inside = _functions(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.If):
            function = inside.get(node)
            if _refusing(node, function) is not None or _skips(node, function):
                yield node.test
                if function is not None:
                    yield from _origins(node.test, function)
        elif isinstance(node, ast.keyword) and LIMITS.search(node.arg or ""):
            yield node.value
        elif isinstance(node, ast.comprehension):
            yield from (each for each in node.ifs if SELECTING.search(ast.unparse(each)))
        elif isinstance(node, ast.BinOp) and _budgets(inside.get(node)):
            yield node


def _origins(test: ast.expr, function: Function) -> Iterator[ast.expr]:
    """Yield the expressions of the same function from which the names of a condition come."""
    names = {node.id for node in ast.walk(test) if isinstance(node, ast.Name)}
    for node in ast.walk(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if name in names:
                yield value
            case ast.AugAssign(target=ast.Name(id=name), value=value) if name in names:
                yield value


def _functions(tree: ast.AST) -> dict[ast.AST, Function]:
    """Return the innermost function around each node."""
    around: dict[ast.AST, Function] = {}

    def visit(node: ast.AST, function: Function | None) -> None:
        for child in ast.iter_child_nodes(node):
            if function is not None:
                around[child] = function
            visit(child, child if isinstance(child, Function) else function)

    visit(tree, None)
    return around


def _refusing(node: ast.If, function: Function | None) -> list[ast.stmt] | None:
    """Return the branch of an `if` that refuses."""
    if any(_refuses(statement, function) for statement in node.body):
        return node.body
    otherwise = node.orelse
    if not (len(otherwise) == 1 and isinstance(otherwise[0], ast.If)) and any(
        _refuses(statement, function) for statement in otherwise
    ):
        return otherwise
    return None


def _refuses(statement: ast.stmt, function: Function | None) -> bool:
    match statement:
        case ast.Raise(exc=ast.expr() as raised):
            return _name(raised) not in FAULTS
        case (
            ast.Return(value=ast.expr() as given)
            | ast.Expr(value=ast.Yield(value=ast.expr() as given))
            | ast.Expr(value=ast.Call(func=ast.Attribute(attr="append"), args=[given]))
        ):
            return _objects(given, function)
        case ast.Expr(value=ast.Call() as call):
            return bool(EXCLUDING.search(_name(call)))
    return False


def _objects(given: ast.expr, function: Function | None) -> bool:
    """Whether a value that a function gives is an objection, an error or a complaint in words."""
    if isinstance(given, ast.Call):
        name = _name(given)
        return name in OBJECTIONS or name.endswith("Error") or _gives_objections(function)
    words = isinstance(given, ast.JoinedStr) or (
        isinstance(given, ast.Constant) and isinstance(given.value, str) and bool(given.value)
    )
    return words and function is not None and bool(COMPLAINING.search(function.name))


def _skips(node: ast.If, function: Function | None) -> bool:
    """Whether an `if` leaves a function that checks before it has refused anything."""
    if function is None or len(node.body) != 1:
        return False
    match node.body[0]:
        case ast.Return(value=None):
            return bool(VERIFYING.search(function.name))
        case ast.Return(value=ast.Constant(value="")):
            return bool(COMPLAINING.search(function.name))
    return False


def _budgets(function: Function | None) -> bool:
    return function is not None and bool(BUDGETING.search(function.name))


def _gives_objections(function: Function | None) -> bool:
    if function is None or function.returns is None:
        return False
    named = (node.id for node in ast.walk(function.returns) if isinstance(node, ast.Name))
    return any(name in OBJECTIONS for name in named)


def mutants_of(path: str, source: bytes, words: Vocabulary | None = None) -> tuple[Mutant, ...]:
    """Return the mutants of one file, in the order of its text."""
    finder = _Finder(path=path, source=source, words=words or vocabulary_of([source]))
    return finder.found()


@dataclass(slots=True, kw_only=True)
class _Finder:
    path: str
    source: bytes
    words: Vocabulary
    tree: ast.Module = field(init=False)
    starts: list[int] = field(init=False)  # the byte at which each line begins
    parents: dict[ast.AST, ast.AST] = field(init=False)
    functions: dict[ast.AST, Function] = field(init=False)
    mutants: dict[tuple[int, int, str], Mutant] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.tree = ast.parse(self.source)
        self.starts = [0]
        for line in self.source.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.parents = {
            child: node for node in ast.walk(self.tree) for child in ast.iter_child_nodes(node)
        }
        self.functions = _functions(self.tree)

    def found(self) -> tuple[Mutant, ...]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.If):
                self._if(node)
            elif isinstance(node, ast.keyword | ast.Assign | ast.AnnAssign):
                self._limit(node)
            elif not self.path.startswith(LIMITS_ALONE):
                self._other(node)
        return tuple(sorted(self.mutants.values(), key=lambda each: (each.start, each.end)))

    def _other(self, node: ast.AST) -> None:
        match node:
            case ast.Expr(value=ast.Call() as call) if VERIFYING.search(_name(call)):
                self._edit(node, "pass", "check removed")
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                self._function(node)
            case ast.comprehension(ifs=conditions):
                for condition in conditions:
                    if SELECTING.search(self._text(condition)):
                        self._edit(condition, self._constant(condition, "True"), "all selected")
                        self._weaken(condition)

    def _limit(self, node: ast.keyword | ast.Assign | ast.AnnAssign) -> None:
        """Move a limit: an argument, a constant of the module, or a field's default."""
        match node:
            case ast.keyword(arg=str() as name, value=value):
                if LIMITS.search(name) or name in DEADLINES:
                    self._weaken(value)
                    if name not in DEADLINES:
                        self._number(value, name)
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=value)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value)
            ):
                compared = name.isupper() or bool(LIMITING.search(name))
                stated = LIMITS.search(name) or NAMED_LIMIT.search(name)
                limits = stated or (compared and name in self.words.limits)
                if limits and node not in self.functions:
                    self._number(value, name)

    def _if(self, node: ast.If) -> None:
        function = self.functions.get(node)
        branch = _refusing(node, function)
        if branch is None:
            if _skips(node, function):
                self._edit(node.test, self._constant(node.test, "True"), "check skipped")
                self._weaken(node.test)
            return
        if self.path.startswith(LIMITS_ALONE) and not self._by_number(node.test, function):
            return
        never = "False" if branch is node.body else "True"
        self._edit(node.test, self._constant(node.test, never), "refusal removed", branch=branch)
        self._weaken(node.test, branch=branch)
        if function is not None:
            self._weaken_origins(node.test, function)

    def _by_number(self, test: ast.expr, function: Function | None) -> bool:
        """Whether a condition compares by size, itself or in what it was computed from."""
        origins = _origins(test, function) if function else ()
        return any(
            isinstance(node, ast.Compare) and _ordering(node)
            for expression in (test, *origins)
            for node in ast.walk(expression)
        )

    def _function(self, function: Function) -> None:
        if isinstance(function.returns, ast.Name) and function.returns.id == "bool":
            if function.name in self.words.asked:
                self._predicate(function)
        elif _budgets(function):
            for node in ast.walk(function):
                if isinstance(node, ast.Return | ast.Assign) and node.value is not None:
                    self._weaken(node.value)
                    self._arithmetic(node.value)
                elif isinstance(node, ast.While):
                    self._weaken(node.test)

    def _predicate(self, function: Function) -> None:
        for node in ast.walk(function):
            if self.functions.get(node) is not function:
                continue
            if isinstance(node, ast.Return) and node.value is not None:
                if not isinstance(node.value, ast.Constant):
                    self._edit(node.value, "True", "predicate fixed")
                    self._edit(node.value, "False", "predicate fixed")
                self._weaken(node.value)
            elif isinstance(node, ast.If):
                if isinstance(node.body[0], ast.Return):
                    self._edit(node.test, self._constant(node.test, "False"), "case removed")
                self._weaken(node.test)

    def _weaken_origins(self, test: ast.expr, function: Function) -> None:
        for value in _origins(test, function):
            self._weaken(value)
            for node in ast.walk(value):
                if isinstance(node, ast.comprehension):
                    for condition in node.ifs:
                        self._edit(condition, self._constant(condition, "False"), "none selected")

    def _weaken(self, expression: ast.expr, branch: list[ast.stmt] | None = None) -> None:
        for node in ast.walk(expression):
            match node:
                case ast.Compare():
                    self._boundary(node, branch)
                    self._tuples(node, branch)
                    for side in (node.left, *node.comparators):
                        self._constants(side, branch)
                case ast.BoolOp():
                    self._operands(node, branch)
                case ast.Call(func=ast.Name(id=name) as named) if name in SWAPS:
                    self._edit(named, SWAPS[name], f"{name} for {SWAPS[name]}", branch=branch)
                case ast.Call(func=ast.Attribute(attr=name) as dotted) if name in ("floor", "ceil"):
                    start = self._end(dotted) - len(name)
                    kind = f"{name} for {SWAPS[name]}"
                    self._replace(dotted, start, self._end(dotted), SWAPS[name], kind, branch)

    def _boundary(self, node: ast.Compare, branch: list[ast.stmt] | None) -> None:
        for (left, right), operator in zip(
            pairwise((node.left, *node.comparators)), node.ops, strict=True
        ):
            if type(operator) in BOUNDARIES:
                old, new = BOUNDARIES[type(operator)]
                start = self.source.index(old.encode(), self._end(left), self._start(right))
                self._replace(left, start, start + len(old), new, "boundary moved", branch)

    def _tuples(self, node: ast.Compare, branch: list[ast.stmt] | None) -> None:
        """Drop one part of two tuples that are compared."""
        if len(node.ops) != 1 or not isinstance(node.ops[0], ast.Eq | ast.NotEq):
            return
        left, right = self._parts(node.left), self._parts(node.comparators[0])
        if len(left) != len(right) or len(left) < 2:
            return
        operator = "==" if isinstance(node.ops[0], ast.Eq) else "!="
        for dropped in range(len(left)):
            sides = [
                "(" + ", ".join((*side[:dropped], *side[dropped + 1 :])) + ",)"
                for side in (left, right)
            ]
            self._edit(node, f" {operator} ".join(sides), "part not compared", branch=branch)

    def _parts(self, side: ast.expr) -> tuple[str, ...]:
        """Return the texts of a tuple's parts, or of a name's that stands for a tuple."""
        if isinstance(side, ast.Tuple):
            return tuple(self._text(part) for part in side.elts)
        function = self.functions.get(side)
        if isinstance(side, ast.Name) and function is not None:
            for node in ast.walk(function):
                match node:
                    case ast.Assign(targets=[ast.Name(id=side.id)], value=ast.Tuple(elts=parts)):
                        return tuple(f"{side.id}[{at}]" for at in range(len(parts)))
        return ()

    def _operands(self, node: ast.BoolOp, branch: list[ast.stmt] | None) -> None:
        old, new, neutral = (
            (b"and", "or", "True") if isinstance(node.op, ast.And) else (b"or", "and", "False")
        )
        for left, right in pairwise(node.values):
            start = self.source.index(old, self._end(left), self._start(right))
            kind = f"{old.decode()} for {new}"
            self._replace(left, start, start + len(old), new, kind, branch)
        for operand in node.values:
            if not any(isinstance(inner, ast.NamedExpr) for inner in ast.walk(operand)):
                self._edit(operand, neutral, "operand dropped", branch=branch)

    def _constants(self, side: ast.expr, branch: list[ast.stmt] | None) -> None:
        """Move the numbers of a comparison, but not those that only pick an element."""
        if isinstance(side, ast.Constant):
            for text in _moved(side.value):
                self._edit(side, text, "limit moved", branch=branch)
        elif isinstance(side, ast.BinOp):
            self._constants(side.left, branch)
            self._constants(side.right, branch)
        elif isinstance(side, ast.UnaryOp):
            self._constants(side.operand, branch)

    def _arithmetic(self, expression: ast.expr) -> None:
        for node in ast.walk(expression):
            if isinstance(node, ast.BinOp):
                if isinstance(node.op, ast.Add) and not _text_like(node):
                    left, right = node.left, node.right
                    start = self.source.index(b"+", self._end(left), self._start(right))
                    self._replace(left, start, start + 1, "-", "sum for difference", None)
                self._constants(node.left, None)
                self._constants(node.right, None)

    def _number(self, value: ast.expr, name: str) -> None:
        """Move a number that stands by itself: as an argument, a named constant or a default."""
        if not _numeric(value):
            return
        if isinstance(value, ast.Constant):
            for text in _moved(value.value):
                self._edit(value, text, "limit moved", name=name)
        else:
            for text in (f"({self._text(value)}) + 1", f"({self._text(value)}) * 2"):
                self._edit(value, text, "limit moved", name=name)

    def _constant(self, test: ast.expr, answer: str) -> str:
        """Return a condition with a fixed answer; one that also binds a name still binds it."""
        if any(isinstance(node, ast.NamedExpr) for node in ast.walk(test)):
            return f"({self._text(test)}) {'and False' if answer == 'False' else 'or True'}"
        return answer

    def _edit(
        self,
        node: ast.expr | ast.stmt,
        replacement: str,
        kind: str,
        *,
        branch: list[ast.stmt] | None = None,
        name: str = "",
    ) -> None:
        start, end = self._start(node), self._end(node)
        self._replace(node, start, end, replacement, kind, branch, name=name)

    def _replace(  # noqa: PLR0913, PLR0917 - one edit
        self,
        node: ast.expr | ast.stmt,
        start: int,
        end: int,
        replacement: str,
        kind: str,
        branch: list[ast.stmt] | None,
        *,
        name: str = "",
    ) -> None:
        key = (start, end, replacement)
        if key in self.mutants or self.source[start:end].decode() == replacement:
            return
        statement = self._statement(node)
        first = self.source.rfind(b"\n", 0, start) + 1
        last = self.source.find(b"\n", end)
        line = self.source[first:last]
        edited = line[: start - first] + replacement.encode() + line[end - first :]
        function = self.functions.get(node)
        runs_at = None if function is None else self._runs_at(statement)
        self.mutants[key] = Mutant(
            path=self.path,
            line=self.source.count(b"\n", 0, start) + 1,
            function=self._qualified(node),
            area=self._area(statement, function, branch),
            kind=kind,
            start=start,
            end=end,
            replacement=replacement,
            before=_one_line(line),
            after=_one_line(edited),
            statement=runs_at,
            branch=branch[0].lineno if branch else None,
            runs=self._named(node, runs_at),
            refuses=self._named(node, branch[0].lineno if branch else None),
            name=_target(statement) or name,
        )

    def _area(
        self, statement: ast.stmt, function: Function | None, branch: list[ast.stmt] | None
    ) -> Area:
        """Return what a refusal protects, by the words of its condition, message and function."""
        parts = [self.source[self._start(statement) : self._head_end(statement)].decode()]
        parts += [self._text(inner) for inner in branch or ()]
        if function is not None:
            parts.append(function.name)
        text = " ".join(parts).lower()
        scores = {area: len(re.findall(pattern, text)) for area, pattern in WORDS.items()}
        best = max(scores.values())
        if best:
            return next(area for area, score in scores.items() if score == best)
        inside = self.path.removeprefix("src/sluice/")
        return next(area for prefix, area in DEFAULTS if inside.startswith(prefix))

    def _statement(self, node: ast.AST) -> ast.stmt:
        while not isinstance(node, ast.stmt):
            node = self.parents[node]
        return node

    def _runs_at(self, statement: ast.stmt) -> int:
        """Return the line of the statement; of an `elif`, that of the `if` it belongs to."""
        parent = self.parents[statement]
        while isinstance(statement, ast.If) and isinstance(parent, ast.If):
            if self.source[self._start(statement) :].startswith(b"if"):
                break
            statement, parent = parent, self.parents[parent]
        return statement.lineno

    def _named(self, node: ast.AST, line: int | None) -> str:
        """Name a statement so that the name outlives edits elsewhere in its file."""
        if line is None:
            return ""
        text = _one_line(self.source[self.starts[line - 1] : self.starts[line]])
        return f"{self.path} {self._qualified(node)}: {text}"

    def _qualified(self, node: ast.AST) -> str:
        names = []
        while node in self.parents:
            node = self.parents[node]
            if isinstance(node, Function | ast.ClassDef):
                names.append(node.name)
        return ".".join(reversed(names))

    def _head_end(self, statement: ast.stmt) -> int:
        """Return where a statement's own text ends: before the block it opens, if it opens one."""
        body = getattr(statement, "body", None)
        if not body:
            return self._end(statement)
        last = self.source.rindex(b":", 0, self.starts[body[0].lineno - 1])
        return last + 1 if last >= self._start(statement) else self._end(statement)

    def _start(self, node: ast.expr | ast.stmt) -> int:
        return self.starts[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self.starts[node.end_lineno - 1] + node.end_col_offset

    def _text(self, node: ast.expr | ast.stmt) -> str:
        return self.source[self._start(node) : self._end(node)].decode()


def _name(expression: ast.expr) -> str:
    """Return the last part of what is called or named."""
    match expression:
        case ast.Call(func=called):
            return _name(called)
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
    return ""


def _target(statement: ast.stmt) -> str:
    """Return the name that a statement assigns."""
    match statement:
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
            return name
    return ""


def _numeric(value: ast.expr) -> bool:
    """Whether an expression is a number, or arithmetic of numbers."""
    match value:
        case ast.Constant(value=bool()):
            return False
        case ast.Constant(value=int() | float()):
            return True
        case ast.BinOp(left=left, right=right):
            return _numeric(left) and _numeric(right)
        case _:
            return False


def _moved(value: object) -> Iterator[str]:
    """Yield other numbers close to a limit."""
    if isinstance(value, bool):
        return
    if isinstance(value, int):
        yield str(value + 1)
        if value > 0:
            yield str(value - 1)
        if value > 2:
            yield str(value * 2)
    elif isinstance(value, float) and value:
        yield repr(value * 2)


def _text_like(node: ast.BinOp) -> bool:
    return any(
        isinstance(inner, ast.JoinedStr | ast.List | ast.Tuple)
        or (isinstance(inner, ast.Constant) and isinstance(inner.value, str | bytes))
        for inner in ast.walk(node)
    )


def _one_line(text: bytes) -> str:
    return " ".join(text.decode().split())
