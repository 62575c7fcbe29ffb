"""Which edits weaken which refusals."""

import ast
import textwrap
from functools import cache
from pathlib import Path

import pytest

from tools.refusals import Area, Mutant, find, mutants_of

ROOT = Path(__file__).parents[3]
PATH = "src/sluice/attestation/sample.py"


@cache
def all_mutants() -> tuple[Mutant, ...]:
    return find(ROOT)


def mutants(source: str, path: str = PATH) -> tuple[Mutant, ...]:
    return mutants_of(path, textwrap.dedent(source).encode())


def edits(source: str) -> set[tuple[str, str]]:
    return {(mutant.kind, mutant.after) for mutant in mutants(source)}


def test_a_condition_that_raises_is_removed_and_its_boundary_moved() -> None:
    assert edits("""
        def read(size: int) -> None:
            if size > 10:
                raise DocumentError(f"{size} bytes; {'more' if size > 5 else 'less'} than 10")
        """) == {
        ("refusal removed", "if False:"),
        ("boundary moved", "if size >= 10:"),
        ("limit moved", "if size > 11:"),
        ("limit moved", "if size > 9:"),
        ("limit moved", "if size > 20:"),
    }


def test_the_branch_that_raises_decides_what_removes_the_refusal() -> None:
    source = """
        def read(known: bool, fresh: bool) -> None:
            if known:
                use()
            else:
                raise DocumentError("unknown")
            if known:
                use()
            elif fresh:
                raise DocumentError("fresh")
        """
    assert edits(source) == {("refusal removed", "if True:"), ("refusal removed", "elif False:")}
    late = next(mutant for mutant in mutants(source) if mutant.after == "elif False:")
    assert late.statement == 7  # a probe fits before the `if`, not before its `elif`
    assert late.branch == 10


def test_a_condition_that_refuses_nothing_is_left_alone() -> None:
    assert not edits("""
        if TYPE_CHECKING:
            import sys

        def speed(size: int) -> int:
            '''Return 1 if size > 10.'''
            if size > 10:
                return 1
            if size < 0:
                raise AssertionError("a bug")
            return 2
        """)


@pytest.mark.parametrize(
    "refusal",
    [
        'raise errors.DocumentError("no")',
        "raise Refused",
        "yield Objection(kind=1)",
        "found.append(Reason(kind=1))",
        'return VerificationError("5.7", "no")',
        "self._exclude(plant, step)",
    ],
)
def test_every_way_to_refuse_counts(refusal: str) -> None:
    source = f"def judge(self, bad, found):\n    if bad:\n        {refusal}\n"
    assert ("refusal removed", "if False:") in edits(source)


def test_a_complaint_in_words_is_a_refusal() -> None:
    source = 'def {}(rows: int) -> str:\n    if rows < least:\n        return "few rows"\n'
    assert ("boundary moved", "if rows <= least:") in edits(source.format("objection"))
    assert ("boundary moved", "if rows <= least:") in edits(
        source.format("_broken").replace("return", "yield")
    )
    assert not edits(source.format("described"))


@pytest.mark.parametrize(
    "call",
    [
        'signed.verify(key, step="7")',
        "check_signature(key, raw)",
        "demand_transition(self)",
        "self._refuse_unknown(commit)",
        "_check_rows(batch)",
    ],
)
def test_a_call_that_verifies_is_removed(call: str) -> None:
    assert edits(f"def read(self):\n    {call}\n    return 1\n") == {("check removed", "pass")}


def test_a_call_whose_result_is_used_is_not_removed() -> None:
    assert not edits("def read(self):\n    checked = check_rows(batch)\n    return checked\n")


def test_operands_are_swapped_and_dropped() -> None:
    assert edits("""
        def read(a: bool, b: bool) -> None:
            if a or not b:
                raise DocumentError("no")
        """) == {
        ("refusal removed", "if False:"),
        ("or for and", "if a and not b:"),
        ("operand dropped", "if False or not b:"),
        ("operand dropped", "if a or False:"),
    }


def test_parts_of_compared_tuples_are_dropped() -> None:
    assert {after for kind, after in edits("""
        def read(ask: Ask) -> None:
            if (ask.client, ask.round) != (
                self.name,
                self.round,
            ):
                raise VerificationError("6", "for another")
        """) if kind == "part not compared"} == {
        "if (ask.round,) != (self.round,):",
        "if (ask.client,) != (self.name,):",
    }  # fmt: skip


def test_a_name_may_stand_for_one_of_the_tuples() -> None:
    assert ("part not compared", "if (ours[0],) != (ask.client,):") in edits("""
        def read(ask: Ask) -> None:
            ours = (self.name, self.round)
            if ours != (ask.client, ask.round):
                raise VerificationError("6", "for another")
        """)


def test_what_a_condition_was_computed_from_is_weakened_too() -> None:
    found = edits("""
        def read(ports: list[int], most: int) -> None:
            bad = [port for port in ports if port >= 1_024]
            limit = min(most, 9)
            unused = max(most, 9)
            if bad or len(ports) > limit:
                raise SettingError("no")
        """)
    assert ("none selected", "bad = [port for port in ports if False]") in found
    assert ("boundary moved", "bad = [port for port in ports if port > 1_024]") in found
    assert ("min for max", "limit = max(most, 9)") in found
    assert not any("unused" in after for _, after in found)


def test_a_filter_that_leaves_out_the_excluded_is_removed() -> None:
    assert ("all selected", "asks = [name for name in names if True]") in edits(
        "def ask(names):\n    asks = [name for name in names if name not in excluded]\n"
    )


def test_a_predicate_counts_if_a_refusal_asks_it() -> None:
    predicate = "def _fits(size: int) -> bool:\n    return size < 8\n"
    asked = "def read(size: int) -> None:\n    if not _fits(size):\n        raise E('no')\n"
    assert not edits(predicate)
    assert {
        ("predicate fixed", "return True"),
        ("predicate fixed", "return False"),
        ("boundary moved", "return size <= 8"),
    } <= edits(predicate + asked)


def test_the_arithmetic_of_a_budget_is_changed() -> None:
    found = edits("""
        def budget_for(rows: int) -> int:
            return 1 + math.floor(0.5 * rows)
        """)
    assert ("floor for ceil", "return 1 + math.ceil(0.5 * rows)") in found
    assert ("sum for difference", "return 1 - math.floor(0.5 * rows)") in found
    assert ("limit moved", "return 1 + math.floor(1.0 * rows)") in found


def test_limits_with_a_name_are_moved_if_a_refusal_reads_them() -> None:
    source = """
        LIMIT = 1 << 16
        OTHER = 1 << 16
        LARGEST_FILE = 9

        class Terms:
            schema: Literal[1] = 1
            rows_max: int = 100
            pages: int = 100

        FORM = Form.of(Terms, "terms", largest=4_096)

        def read(raw: bytes, terms: Terms) -> None:
            if len(raw) > LIMIT or terms.schema != schema or terms.rows > terms.rows_max:
                raise DocumentError("no")
        """
    moved = {after for kind, after in edits(source) if kind == "limit moved"}
    assert {
        "LIMIT = (1 << 16) + 1",
        "LARGEST_FILE = 18",
        "LIMIT = (1 << 16) * 2",
        "rows_max: int = 101",
        'FORM = Form.of(Terms, "terms", largest=4095)',
    } <= moved
    assert not any("OTHER" in after or "pages" in after or "schema" in after for after in moved)
    limit = next(mutant for mutant in mutants(source) if mutant.name == "LIMIT")
    assert limit.statement is None


def test_a_name_that_a_condition_binds_stays_bound() -> None:
    source = """
        def read(raw: bytes) -> int:
            if (size := len(raw)) > largest:
                raise DocumentError("no")
            return size
        """
    assert ("refusal removed", "if ((size := len(raw)) > largest) and False:") in edits(source)


def test_an_edit_changes_its_place_alone() -> None:
    source = (
        "WORDS = 'Überlänge → größer'\n\n\ndef read(n):\n    if 'é' < n:\n        raise E('no')\n"
    )
    moved = next(each for each in mutants(source) if each.kind == "boundary moved")
    assert moved.apply(source.encode()).decode() == source.replace("'é' < n", "'é' <= n")
    assert (moved.line, moved.before, moved.after) == (5, "if 'é' < n:", "if 'é' <= n:")


def test_areas_follow_the_words_of_a_refusal() -> None:
    def area(condition: str, message: str) -> Area:
        source = f"def f():\n    if {condition}:\n        raise E({message!r})\n"
        return mutants(source)[0].area

    assert area("not valid", "the signature was made with another key") is Area.SIGNATURES
    assert area("now > end", "the deadline has passed") is Area.TIME
    assert area("len(raw) > largest", "too many bytes") is Area.SIZES
    assert area("weight < 1", "the number of windows") is Area.COUNTS
    assert area("x", "above the tolerance") is Area.BUDGETS
    assert area("x", "this round is not open") is Area.STATE


def test_the_refusals_of_this_checkout_are_found_in_every_area() -> None:
    found = all_mutants()
    lines = {area: {(m.path, m.line) for m in found if m.area is area} for area in Area}
    assert all(len(places) >= 20 for places in lines.values())
    packages = {mutant.path.split("/")[2] for mutant in found}
    assert {"admission", "aggregation", "attestation", "federation", "network"} <= packages


def test_mutants_of_every_kind_are_python() -> None:
    kinds = {mutant.kind: mutant for mutant in all_mutants()}
    assert len(kinds) > 12
    for mutant in kinds.values():
        ast.parse(mutant.apply((ROOT / mutant.path).read_bytes()))
