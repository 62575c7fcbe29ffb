"""`parameters`: other parameters of the full proof, built, timed, and continued after a stop."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.attest import choices, parameters
from benchmarks.attest.choices import CHOICES, Choice
from benchmarks.attest.parameters import Run

ROWS = 1_024
FAKE = f"""#!{sys.executable}
import json, sys
mask = int(sys.argv[4])
open({{log!r}}, "a").write(sys.argv[4] + " " + sys.argv[3] + "\\n")
print(json.dumps(dict(
    prove_s=1.0 + mask, verify_s=0.005, proof_bytes=500_000 + mask, bits=101, columns=885
)))
"""


def found(seconds: float) -> Run:
    return Run(
        seconds=seconds, verify_s=0.005, proof_bytes=500_000, bits=101, columns=885,
        peak_bytes=50_000_000, cpu_s=2 * seconds, load=0.5,
    )  # fmt: skip


@pytest.mark.parametrize("choice", CHOICES, ids=lambda choice: choice.name)
def test_every_choice_still_edits_the_source(choice: Choice) -> None:
    plain, changed = choices.source(CHOICES[0]), choices.source(choice)
    differing = {name for name in plain if plain[name] != changed[name]}
    assert differing == {name for name, _, _ in choice.edits}


def test_the_programs_of_two_choices_or_two_sources_have_two_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {choices.program(choice, tmp_path).name for choice in CHOICES}
    assert len(names) == len(CHOICES)
    flags = [Choice("same", flags=each) for each in (None, "-C target-cpu=x86-64")]
    assert len({choices.program(each, tmp_path) for each in flags}) == 2
    before = choices.program(CHOICES[0], tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(choices, "ALONE", (*choices.ALONE, choices.const("QUERIES", 54)))
        assert choices.program(CHOICES[0], tmp_path) != before
    assert choices.program(CHOICES[0], tmp_path) == before


def test_an_edit_that_matches_nothing_is_an_error() -> None:
    with pytest.raises(ValueError, match="no match for"):
        choices.source(Choice("older", (choices.const("QUERIES_OF_OLD", 54),)))


def test_a_program_that_is_there_is_not_built_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commands: list[list[str]] = []

    def cargo(command: list[str], *, cwd: Path, **_: object) -> None:
        commands.append(command)
        made = cwd / "target" / "release" / "examples" / "prove"
        made.parent.mkdir(parents=True, exist_ok=True)
        constant = "pub const QUERIES: usize = 57;"
        assert constant in (cwd / choices.FULL / "parameters.rs").read_text()
        made.write_text("built")

    monkeypatch.setattr("benchmarks.attest.choices.subprocess.run", cargo)
    choice = next(each for each in CHOICES if each.name.startswith("57 queries"))
    for _ in range(2):
        choices.build(choice, tmp_path)
        assert choices.program(choice, tmp_path).read_text() == "built"
    assert len(commands) == 1
    alone = Choice("fewer threads", choice.edits, threads=1)
    choices.build(alone, tmp_path)
    assert choices.program(alone, tmp_path).read_text() == "built"
    assert len(commands) == 1


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a program that notes how it was called, for the first two choices."""
    parameters.request_file(tmp_path, ROWS).write_bytes(b"request")
    for choice in CHOICES[:2]:
        made = choices.program(choice, tmp_path)
        made.write_text(FAKE.format(log=str(made) + ".log"))
        made.chmod(0o700)
    return tmp_path


def measured(folder: Path, runs: int) -> dict[str, Sequence[Run]]:
    results = parameters.measure(CHOICES[:2], folder, rows=ROWS, runs=runs)
    return {choice.name: found for choice, found in results}


def calls(folder: Path) -> list[list[str]]:
    made = [choices.program(choice, folder) for choice in CHOICES[:2]]
    return [Path(str(each) + ".log").read_text().splitlines() for each in made]


def test_each_run_has_other_masks_and_is_made_once(folder: Path) -> None:
    first = measured(folder, 2)
    assert [one.seconds for one in first["ours"]] == [1.0, 2.0]
    # One call is timed, and one is measured.
    assert calls(folder) == 2 * [["0 0", "0 0", "1 0", "1 0"]]
    assert {one.peak_bytes > 1_000_000 for one in first["ours"]} == {True}
    assert measured(folder, 2) == first
    again = measured(folder, 3)
    assert again["ours"][:2] == first["ours"]
    assert calls(folder) == 2 * [["0 0", "0 0", "1 0", "1 0", "2 0", "2 0"]]


def test_a_stopped_measurement_continues(folder: Path) -> None:
    measured(folder, 1)
    made = [choices.program(choice, folder) for choice in CHOICES[:2]]
    request = parameters.request_file(folder, ROWS)
    kept = [parameters.results_file(each, request) for each in made]
    kept[0].write_bytes(kept[0].read_bytes() + b'{"seconds": 1')  # a write that was cut short
    kept[1].unlink()
    results = measured(folder, 2)
    assert [[one.seconds for one in runs] for runs in results.values()] == 2 * [[1.0, 2.0]]
    assert calls(folder)[0] == ["0 0", "0 0", "1 0", "1 0"]
    lines = [json.loads(line) for line in kept[0].read_text().splitlines()]
    assert [line["seconds"] for line in lines] == [1.0, 2.0]


def test_results_of_another_batch_are_not_used(folder: Path) -> None:
    measured(folder, 1)
    parameters.request_file(folder, ROWS).write_bytes(b"another request")
    measured(folder, 1)
    assert calls(folder) == 2 * [4 * ["0 0"]]


def test_a_long_batch_is_proven_in_segments(folder: Path) -> None:
    made, request = folder / "program", folder / "request"
    command = parameters.proving(made, request, Choice("x", threads=1), rows=4_097, mask=3)
    assert command[1:] == ["RAYON_NUM_THREADS=1", str(made), str(request), "1", "12", "3"]


def test_the_page_compares_with_our_parameters() -> None:
    table: list[tuple[Choice, Sequence[Run]]] = [
        (CHOICES[0], [found(2.0), found(1.0), found(9.0)]),
        (CHOICES[1], [found(3.0)]),
    ]
    shown = parameters.page({ROWS: table}, runs=3)
    assert "| ours | 885 | 2.00 s (1.00 to 9.00) | 1.00 | 4.00 s | 50 MB |" in shown
    assert "| extension of degree 5 | 885 | 3.00 s (3.00 to 3.00) | 1.50 | 6.00 s |" in shown
    assert "load of 0.5 at the start" in shown
    assert "## Steps of the prover, measured by hand" in shown
