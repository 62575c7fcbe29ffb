"""Mutation tests of a small project: what is killed, what survives, what is refused."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from tools import mapping
from tools import mutants as tool
from tools.mapping import Map
from tools.mutants import EQUIVALENT, main, read_equivalents, sample
from tools.refusals import Area, Mutant, find, mutants_of
from tools.trees import Tree

ROOT = Path(__file__).parents[3]

FILES = '''"""A module that refuses."""

MOST = 8


def read(raw: bytes, *, sealed: bool) -> bytes:
    if len(raw) > MOST:
        raise ValueError("too long")
    if not sealed:
        raise PermissionError("not sealed")
    return raw
'''
TESTS = """
import pytest
from sluice.files import read

def test_long() -> None:
    assert read(b"x" * 8, sealed=True)
    with pytest.raises(ValueError, match="too long"):
        read(b"x" * 9, sealed=True)
"""
SEALED = """
def test_unsealed() -> None:
    with pytest.raises(PermissionError, match="not sealed"):
        read(b"x", sealed=False)
"""


@cache
def all_mutants() -> tuple[Mutant, ...]:
    return find(ROOT)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / "src" / "sluice").mkdir(parents=True)
    (root / "src" / "sluice" / "__init__.py").write_text("")
    (root / "src" / "sluice" / "files.py").write_text(FILES)
    (root / "tests" / "unit").mkdir(parents=True)
    (root / "tests" / "unit" / "test_files.py").write_text(TESTS)
    (root / "pyproject.toml").write_text('[tool.pytest.ini_options]\ntestpaths = ["tests"]\n')
    return root


def test_a_refusal_without_a_test_survives_and_others_are_killed(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["--jobs", "1", "--json"], root=project) == 1
    shown = {each["after"]: each for each in json.loads(capsys.readouterr().out)["mutants"]}
    killed = next(each for after, each in shown.items() if "MOST" in each["before"])
    assert killed["verdict"] == "killed"
    assert killed["by"] == "tests/unit/test_files.py::test_long"
    survivor = next(each for each in shown.values() if each["before"] == "if not sealed:")
    assert (survivor["after"], survivor["verdict"]) == ("if False:", "survived")
    assert survivor["place"] == "src/sluice/files.py:9"
    assert (project / "src" / "sluice" / "files.py").read_text() == FILES


def test_the_missing_test_kills_the_survivor(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "tests" / "unit" / "test_files.py").write_text(TESTS + SEALED)
    assert main(["--jobs", "2"], root=project) == 0
    shown = capsys.readouterr()
    assert "0 of 3 survived" in shown.err
    assert (
        "| src/sluice/files.py:9 | -if not sealed: +if False: | killed by "
        "tests/unit/test_files.py::test_unsealed |" in shown.out
    )


def test_a_proven_equivalent_is_shown_and_does_not_fail_the_run(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / EQUIVALENT).write_text(
        "# a comment\nsrc/sluice/files.py read\n- if not sealed:\n+ if False:\nNobody calls it.\n"
    )
    assert main(["--jobs", "1"], root=project) == 0
    assert "equivalent: Nobody calls it." in capsys.readouterr().out


def test_an_entry_that_names_no_mutant_is_refused(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / EQUIVALENT).write_text("src/sluice/files.py read\n- if x:\n+ if False:\nWhy.\n")
    assert main(["--list"], root=project) == 2
    assert "remove the entry" in capsys.readouterr().err


def test_a_block_without_a_reason_is_refused() -> None:
    with pytest.raises(SystemExit, match="a reason"):
        read_equivalents("src/sluice/files.py read\n- if x:\n+ if False:\n")


def test_the_committed_list_names_mutants_that_exist() -> None:
    found = all_mutants()
    listed = ROOT / EQUIVALENT
    for each in read_equivalents(listed.read_text("utf-8")) if listed.exists() else ():
        assert any(each.names(mutant) for mutant in found), each
        assert len(each.why) > 40


def test_tests_that_fail_without_a_mutant_kill_nothing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "tests" / "unit" / "test_bad.py").write_text("def test_bad():\n    assert False\n")
    assert main(["--jobs", "1"], root=project) == 2
    assert "without a mutant, tests/unit/test_bad.py::test_bad fails" in capsys.readouterr().err


WAIT = """
def wait(left: int) -> None:
    while True:
        if left <= 0:
            raise TimeoutError("late")
        left -= 1
"""
WAITS = """
import pytest
from sluice.files import wait

def test_late() -> None:
    with pytest.raises(TimeoutError):
        wait(3)
"""


@pytest.fixture
def endless(project: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose only mutant never ends."""
    (project / "src" / "sluice" / "files.py").write_text(WAIT)
    (project / "tests" / "unit" / "test_files.py").write_text(WAITS)
    monkeypatch.setattr(
        tool,
        "sample",
        lambda mutants, **_: tuple(each for each in mutants if each.after == "if False:"),
    )
    return project


def test_a_mutant_that_never_ends_is_stopped_by_the_clock(
    endless: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool, "LIKELY_S", 6.0)
    monkeypatch.setattr(tool, "PATIENCE_S", 6.0)
    monkeypatch.setattr(tool, "PATIENCE_FACTOR", 0.0)
    assert main(["--jobs", "1"], root=endless) == 0
    shown = capsys.readouterr()
    assert "stopped by the clock: time is up after 6 s; without the mutant" in shown.out
    assert "0 of 1 survived, 1 stopped by the clock" in shown.err


def test_a_busy_machine_decides_nothing_about_a_mutant(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first clock is too short for any run; the tests then get a multiple of what they need."""
    monkeypatch.setattr(tool, "LIKELY_S", 0.01)
    monkeypatch.setattr(tool, "PATIENCE_S", 0.01)
    monkeypatch.setattr(tool, "PATIENCE_FACTOR", 20.0)
    assert main(["--jobs", "1"], root=project) == 1
    shown = capsys.readouterr()
    assert "stopped by the clock:" not in shown.out
    assert "killed by tests/unit/test_files.py::test_long" in shown.out
    assert "| SURVIVED |" in shown.out


def test_the_list_runs_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "tests" / "unit" / "test_files.py").write_text("def test_bad():\n    assert False\n")
    assert main(["--list", "--only", "sluice/files.py"], root=project) == 0
    assert "- if not sealed:\n+ if False:" in capsys.readouterr().out
    assert main(["--list", "--only", "elsewhere.py"], root=project) == 2


def many(count: int, *, shift: int = 0) -> tuple[Mutant, ...]:
    words = ("signature", "tolerance", "deadline", "bytes", "weight", "round")
    body = "".join(
        f"    if x > {at + 2}:\n        raise E('{words[at % 6]}')\n" for at in range(count)
    )
    return mutants_of("src/sluice/files.py", b"\n" * shift + f"def f(x):\n{body}".encode())


def test_the_sample_takes_as_many_from_each_area_and_one_from_each_line() -> None:
    drawn = sample(many(60), seed=0, count=24)
    assert [sum(each.area is area for each in drawn) for area in Area] == [4] * 6
    assert len({each.line for each in drawn}) == 24


def test_the_sample_depends_on_the_seed_and_not_on_line_numbers() -> None:
    texts = [
        [(each.before, each.after) for each in sample(many(60, shift=shift), seed=seed, count=12)]
        for seed, shift in ((0, 0), (0, 7), (1, 0))
    ]
    assert texts[0] == texts[1]
    assert texts[0] != texts[2]


def test_the_default_sample_of_this_checkout_holds_forty_lines() -> None:
    drawn = sample(all_mutants(), seed=0, count=48)
    assert len({(each.path, each.line) for each in drawn}) >= 40
    assert all(sum(each.area is area for each in drawn) == 8 for area in Area)


def test_tests_that_see_the_refusal_run_first() -> None:
    mutant = many(1)[0]
    shown = Map(
        runs={
            mutant.runs: ("slow.py::a", "quick.py::b", "seen.py::c"),
            mutant.refuses: ("seen.py::c",),
        },
        seconds={"slow.py::a": 9.0, "quick.py::b": 1.0, "seen.py::c": 20.0},
    )
    assert shown.tests_of(mutant, [mutant]) == ("seen.py::c", "quick.py::b", "slow.py::a")


def test_the_run_of_a_test_file_serves_until_what_it_runs_has_changed(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = project / "tests" / "unit" / "test_other.py"
    other.write_text("def test_nothing() -> None:\n    assert True\n")
    ran: list[str] = []
    seen = mapping._seen

    def counted(tree: Tree, files: Sequence[str], *rest: object) -> dict[str, mapping.Seen]:
        ran.extend(files)
        return seen(tree, files, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(mapping, "_seen", counted)
    both = ["tests/unit/test_files.py", "tests/unit/test_other.py"]

    def runs() -> list[str]:
        ran.clear()
        main(["--jobs", "1"], root=project)
        return ran

    assert runs() == both
    assert runs() == []
    other.write_text("def test_nothing() -> None:\n    assert not False\n")
    assert runs() == both[1:]
    (project / "src" / "sluice" / "files.py").write_text("LEFT = 1\n\n\n" + FILES)
    assert runs() == both[:1]
    (project / "tests" / "conftest.py").write_text("")
    assert runs() == both


def test_no_map_is_made_if_likely_tests_kill_every_mutant(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "tests" / "unit" / "test_files.py").write_text(TESTS + SEALED)
    (project / "tests" / "unit" / "test_bad.py").write_text("def test_bad():\n    assert False\n")
    assert main(["--jobs", "1"], root=project) == 0
    assert "0 of 3 survived" in capsys.readouterr().err
    assert not (project / "build").exists()


def test_a_test_that_shows_no_sign_of_the_mutant_kills_it_after_the_map(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "tests" / "unit" / "test_other.py").write_text(
        "import pytest\nimport sluice\nfrom importlib import import_module\n\n"
        "def test_shut() -> None:\n    module = import_module('.'.join(['sluice', 'files']))\n"
        "    with pytest.raises(PermissionError):\n"
        "        getattr(module, 're' + 'ad')(b'', sealed=False)\n"
    )
    mutant = next(each for each in find(project) if each.before == "if not sealed:")
    assert mapping.likely(project, mutant, mapping.test_files(project)) == (
        "tests/unit/test_files.py",
    )
    assert main(["--jobs", "1"], root=project) == 0
    assert "killed by tests/unit/test_other.py::test_shut" in capsys.readouterr().out


def test_a_test_that_fails_once_kills_nothing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It fails on a busy machine, say; alone it passes, with the mutant too."""
    (project / "tests" / "unit" / "test_files.py").write_text(
        f"from pathlib import Path\n{TESTS}\ndef test_busy() -> None:\n"
        f"    once = Path({str(project / 'once')!r})\n    seen = once.exists()\n"
        "    once.touch()\n    assert read(b'', sealed=True) == b''\n    assert seen\n"
    )
    assert main(["--jobs", "1"], root=project) == 1
    shown = capsys.readouterr()
    assert "test_busy" not in shown.out
    assert "| SURVIVED |" in shown.out


def test_the_words_of_a_refusal_find_its_tests(project: Path) -> None:
    unit = project / "tests" / "unit"
    (unit / "test_words.py").write_text("def test_it() -> None:\n    assert 'not sealed'\n")
    (unit / "test_none.py").write_text("def test_it() -> None:\n    assert True\n")
    mutant = next(each for each in find(project) if each.before == "if not sealed:")
    found = mapping.likelihood(project, mutant, mapping.test_files(project))
    assert found["tests/unit/test_words.py"] > 0
    assert "tests/unit/test_none.py" not in found


def test_a_test_that_quotes_a_refusal_is_told_from_others_of_its_file(project: Path) -> None:
    unit = project / "tests" / "unit"
    (unit / "test_words.py").write_text(
        "import pytest\n\ndef test_other() -> None:\n    assert True\n\n"
        "@pytest.mark.parametrize('why', ['not sealed'])\n"
        "def test_it(why: str) -> None:\n    assert why\n"
    )
    mutant = next(
        each for each in find(project) if each.kind == "refusal removed" and "sealed" in each.before
    )
    files = ("tests/unit/test_files.py", "tests/unit/test_words.py")
    assert mapping.quoting(project, mutant, files) == ("tests/unit/test_words.py::test_it",)
    assert not mapping.quoting(project, replace(mutant, branch=None), files)


def test_a_test_that_names_a_limit_meets_it_first(project: Path) -> None:
    (project / "src" / "sluice" / "files.py").write_text(
        "LARGEST = 7\n\n\ndef read(raw):\n    if len(raw) > LARGEST:\n"
        "        raise ValueError('too large')\n"
    )
    (project / "tests" / "contract").mkdir(parents=True, exist_ok=True)
    table = project / "tests" / "contract" / "test_table.py"
    table.write_text("def test_it() -> None:\n    assert 'files.LARGEST'\n" + "#\n" * 400)
    mutant = next(each for each in find(project) if each.name == "LARGEST" and not each.runs)
    first = mapping.likely(project, mutant, mapping.test_files(project))[0]
    assert first == "tests/contract/test_table.py"


def test_a_mutant_that_no_conftest_can_import_is_killed_by_the_crash(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (project / "src" / "sluice" / "files.py").write_text(
        "def keep(m):\n    if m is not None and m < 1:\n        raise ValueError('m')\n\n\n"
        "keep(None)\n"
    )
    (project / "tests" / "conftest.py").write_text("import sluice.files\n")
    (project / "tests" / "unit" / "test_files.py").write_text(
        "from sluice.files import keep\n\ndef test_none() -> None:\n    keep(None)\n"
    )
    monkeypatch.setattr(
        tool, "sample", lambda mutants, **_: tuple(m for m in mutants if " or " in m.after)
    )
    assert main(["--jobs", "1"], root=project) == 0
    assert "| killed by a crash |" in capsys.readouterr().out


def test_a_test_that_fails_without_the_mutant_too_kills_nothing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It passes when it is run first, and fails ever after."""
    (project / "tests" / "unit" / "test_files.py").write_text(
        "from pathlib import Path\nfrom sluice.files import read\n\ndef test_once() -> None:\n"
        f"    once = Path({str(project / 'once')!r})\n    assert not once.exists()\n"
        "    once.touch()\n    assert read(b'', sealed=True) == b''\n"
    )
    assert main(["--jobs", "1"], root=project) == 2
    assert "without a mutant, tests/unit/test_files.py::test_once fails" in capsys.readouterr().err


def test_a_run_that_crashes_without_the_mutant_too_kills_nothing(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The run is known from before, and now something else ends it."""
    assert main(["--jobs", "1"], root=project) == 1
    ends = "import os\n\ndef pytest_runtest_call() -> None:\n    os._exit(3)\n"
    (project / "src" / "conftest.py").write_text(ends)
    (project / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\ntestpaths = ["tests"]\naddopts = ["-p", "conftest"]\n'
    )
    assert main(["--jobs", "1"], root=project) == 2
    assert "without a mutant, the run fails (exit 3)" in capsys.readouterr().err
