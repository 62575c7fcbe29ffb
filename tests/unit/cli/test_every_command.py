"""What every command keeps to: exit codes, an empty stdout on exit 2, JSON, and its help."""

import json
from collections.abc import Callable
from pathlib import Path

import click
import pytest
import typer

from sluice.cli import rules
from sluice.cli.app import EXTRAS, run_app
from sluice.cli.commands import Command
from sluice.errors import (
    EmptyRulesError,
    InputError,
    ProverError,
    RecordError,
    RefusedError,
    RulesFileError,
    SettingError,
    SluiceError,
    SolverError,
)
from tests.unit.cli.test_app import EVERY_COMMAND
from tests.unit.conftest import Outcome

Run = Callable[..., Outcome]

# Commands that serve or take part until they are stopped, and so print no result.
WITHOUT_JSON = {"sluice plant run", "sluice helper run", "sluice dashboard"}


@pytest.mark.parametrize("path", EVERY_COMMAND)
def test_an_unknown_option_exits_2_with_nothing_on_stdout(sluice: Run, path: str) -> None:
    seen = sluice(*path.split()[1:], "--no-such-option")
    assert (seen.code, seen.out) == (2, "")
    assert "--no-such-option" in seen.err or "Missing" in seen.err


@pytest.mark.parametrize("path", EVERY_COMMAND)
def test_every_command_that_prints_results_has_json(path: str) -> None:
    flags = {flag for one in EVERY_COMMAND[path].params for flag in one.opts}
    assert ("--json" in flags) is (path not in WITHOUT_JSON)


@pytest.mark.parametrize("path", EVERY_COMMAND)
def test_a_required_argument_that_is_missing_exits_2(sluice: Run, path: str) -> None:
    required = [one for one in EVERY_COMMAND[path].params if one.required]
    if not required:
        assert path in {"sluice data list", "sluice attest guarantee", "sluice demo"}
        return
    seen = sluice(*path.split()[1:])
    assert (seen.code, seen.out) == (2, "")
    assert "Missing" in seen.err


@pytest.mark.parametrize("path", EVERY_COMMAND)
def test_no_two_options_of_a_command_share_a_flag(path: str) -> None:
    flags = [flag for one in EVERY_COMMAND[path].params for flag in one.opts]
    assert len(flags) == len(set(flags))


def test_the_runtime_names_its_commands_as_released() -> None:
    groups = {path.split()[1] for path in EVERY_COMMAND}
    assert groups >= {
        "data", "mine", "rules", "check", "attest", "score", "model", "coordinator", "plant",
        "audit-log", "dashboard", "attack", "audit", "federate", "lab", "demo",
    }  # fmt: skip


@pytest.mark.parametrize("flag", ["-h", "--help"])
def test_help_exits_0_and_is_printed_on_stdout(sluice: Run, flag: str) -> None:
    seen = sluice(flag)
    assert (seen.code, seen.err) == (0, "")
    assert "Usage: sluice" in seen.out


def test_an_unknown_command_exits_2(sluice: Run) -> None:
    seen = sluice("chekc")
    assert (seen.code, seen.out) == (2, "")
    assert "No such command 'chekc'" in seen.err


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(rules, "load_rules", fail)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (InputError, 2),
        (RecordError, 2),
        (RulesFileError, 2),
        (EmptyRulesError, 2),
        (SettingError, 2),
        (SolverError, 1),
        (ProverError, 1),
        (RefusedError, 3),
    ],
)
def test_each_error_has_its_exit_code(
    sluice: Run, monkeypatch: pytest.MonkeyPatch, error: type[SluiceError], code: int
) -> None:
    raising(monkeypatch, error("the reason"))
    seen = sluice("rules", "show", __file__, "--json")
    assert (seen.code, seen.err) == (code, "sluice: the reason\n")
    if code == 3:
        assert seen.json == {"refused": True, "reason": "the reason", "step": None}
    else:
        assert seen.out == ""


@pytest.mark.parametrize(
    ("extra", "package"), [(extra, package) for extra in EXTRAS for package in EXTRAS[extra]]
)
def test_a_missing_package_is_told_with_its_extra(
    sluice: Run, monkeypatch: pytest.MonkeyPatch, extra: str, package: str
) -> None:
    raising(monkeypatch, ModuleNotFoundError("no", name=f"{package}.inner"))
    seen = sluice("rules", "show", __file__)
    assert (seen.code, seen.out) == (2, "")
    assert f"needs the package {package!r}" in seen.err
    assert f"pip install 'sluice-fl[{extra}]'" in seen.err


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ModuleNotFoundError("No module named 'nmupy'", name="nmupy"), "ModuleNotFoundError: No"),
        (KeyError("dL1"), "KeyError: 'dL1' "),
        (ValueError("first\nsecond"), "ValueError: first (run again with SLUICE_DEBUG=1"),
        (ZeroDivisionError(), "ZeroDivisionError:  (run"),
    ],
)
def test_a_bug_exits_1_with_one_line(
    sluice: Run, monkeypatch: pytest.MonkeyPatch, error: Exception, line: str
) -> None:
    monkeypatch.delenv("SLUICE_DEBUG", raising=False)
    raising(monkeypatch, error)
    seen = sluice("rules", "show", __file__, "--json")
    assert (seen.code, seen.out, seen.err.count("\n")) == (1, "", 1)
    assert seen.err.startswith(f"sluice: a bug in Sluice: {line}")


def test_a_bug_is_traced_when_asked(sluice: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLUICE_DEBUG", "1")
    raising(monkeypatch, KeyError("dL1"))
    assert "Traceback" in sluice("rules", "show", __file__).err


@pytest.mark.parametrize(("returned", "code"), [(None, 0), (3, 3), ("done", 0)])
def test_what_a_command_returns_is_its_exit_code(returned: object, code: int) -> None:
    application = typer.Typer()

    @application.command()
    def command() -> object:
        if returned == 3:
            raise typer.Exit(3)
        return returned

    with pytest.raises(SystemExit) as stopped:
        run_app(application, [], name="sluice")
    assert stopped.value.code == code


def test_a_command_is_called_by_the_last_word_of_its_path() -> None:
    command = Command(path="data list", target="sluice.cli.data:list_plants", help="x").load()
    assert command.name == "list"
    group = Command(path="rules", target="sluice.cli.rules:app", help="x").load()
    assert isinstance(group, click.Group)
    assert group.name == "rules"


@pytest.mark.parametrize(
    ("violations", "one_bad", "two_bad"),
    [(0, 28 / 36, 21 / 36), (1, 1.0, 35 / 36), (2, 1.0, 1.0)],
)
def test_the_guarantee_of_two_rows_drawn_from_nine_is_counted_by_hand(
    sluice: Run, violations: int, one_bad: float, two_bad: float
) -> None:
    """Of ten rows the first is never drawn: C(9, 2) = 36 pairs."""
    options = ("--rows", 10, "--samples", 2, "--violations", violations)
    seen = sluice("attest", "guarantee", *options, "--clean-share", 0.1, "--rounds", 2, "--json")
    assert (seen.code, seen.err) == (0, "")
    assert set(seen.json) == {
        "pass", "violations", "clean_share", "excluded_per_round", "excluded_per_run", "rounds",
        "passes_after_tries", "tries",
    }  # fmt: skip
    passes = seen.json["pass"]
    assert isinstance(passes, list)
    shares = {one["share"]: one["probability"] for one in passes}
    assert [shares[0.0], shares[0.1], shares[0.2]] == pytest.approx([1.0, one_bad, two_bad])
    assert seen.json["excluded_per_round"] == pytest.approx(1 - one_bad)
    assert seen.json["excluded_per_run"] == pytest.approx(1 - one_bad**2)
    assert (seen.json["violations"], seen.json["rounds"]) == (violations, 2)


@pytest.mark.parametrize(
    "options", [("--rows", 1), ("--samples", 0), ("--violations", -1), ("--rounds", 0)]
)
def test_a_draw_out_of_range_exits_2(sluice: Run, options: tuple[object, ...]) -> None:
    seen = sluice("attest", "guarantee", *options, "--json")
    assert (seen.code, seen.out) == (2, "")
    assert "Invalid value" in seen.err


@pytest.mark.parametrize("content", ["", "no log\n", "{}\n", "[]\n", '{"kind": "opened"}\n'])
def test_a_file_that_is_no_log_is_not_verified(sluice: Run, tmp_path: Path, content: str) -> None:
    path = tmp_path / "log.jsonl"
    path.write_text(content)
    seen = sluice("audit-log", "verify", path, "--json")
    assert (seen.code, seen.out) == (2, "")
    assert "is not a log of a federation" in seen.err


@pytest.mark.parametrize(
    "command",
    [
        ("coordinator", "status", "nowhere"),
        ("coordinator", "reinstate", "nowhere", "north"),
        ("coordinator", "abandon", "nowhere"),
        ("coordinator", "remove", "nowhere", "north", "--from", "1"),
        ("coordinator", "invite", "nowhere", "north", "--out", "north.invitation"),
        ("plant", "status", "nowhere"),
        ("plant", "check", "nowhere"),
        ("plant", "renew", "nowhere", "--rows", "0:10"),
        ("plant", "export", "nowhere", "--out", "a.json"),
        ("dashboard", "nowhere"),
        ("audit-log", "verify", "nowhere.jsonl"),
    ],
)
def test_a_folder_that_is_not_there_exits_2_and_is_not_made(
    sluice: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[object, ...]
) -> None:
    monkeypatch.chdir(tmp_path)
    seen = sluice(*command)
    assert (seen.code, seen.out) == (2, "")
    assert "nowhere" in seen.err
    assert not (tmp_path / "nowhere").exists()
    assert [path.name for path in tmp_path.iterdir() if path.name != "cache"] == []


@pytest.mark.parametrize(
    ("start", "end", "message"),
    [
        ("2026-04-02T08:00", "2026-04-01T08:00", "before it starts"),
        ("noon", "2026-04-01T08:00", "'noon' is not a time on the plant's clock"),
        ("2026-04-01T08:00", "2026-04-01T08:00+02:00", "which has no time zone"),
    ],
)
def test_a_waiver_needs_a_window_on_the_plants_clock(
    sluice: Run, tmp_path: Path, start: str, end: str, message: str
) -> None:
    (tmp_path / "terms.json").touch()  # by which a coordinator's folder is known
    seen = sluice(
        "coordinator", "waive", tmp_path, "north", "--from", start, "--to", end,
        "--reason", "paint", "--json",
    )  # fmt: skip
    assert (seen.code, seen.out) == (2, "")
    assert message in seen.err


def test_json_is_one_object_on_one_line(sluice: Run) -> None:
    seen = sluice("attest", "guarantee", "--json")
    assert seen.out.count("\n") == 1
    assert isinstance(json.loads(seen.out), dict)
