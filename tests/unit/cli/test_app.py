"""The `sluice` command: its list of commands, their help, and its exit codes."""

import inspect
from collections.abc import Callable, Iterator

import click
import pytest
import typer

from sluice.cli import rules
from sluice.cli.app import _Runtime, app, run_app
from sluice.cli.commands import Command, Deferred
from sluice.lab.cli import COMMANDS
from tests.unit.conftest import Outcome

Run = Callable[..., Outcome]

DECLARED = (*_Runtime.declared, *COMMANDS)


def leaves(command: click.Command, path: str) -> Iterator[tuple[str, click.Command]]:
    """Yield every command that is not a group, hidden ones included, with its full name."""
    if not isinstance(command, click.Group):
        yield path, command
        return
    context = click.Context(command, info_name=path)
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        assert inner is not None
        loaded = inner.load() if isinstance(inner, Deferred) else inner
        yield from leaves(loaded, f"{path} {name}")


EVERY_COMMAND = dict(leaves(typer.main.get_command(app), "sluice"))


@pytest.mark.parametrize("command", DECLARED, ids=lambda command: command.path)
def test_the_declared_line_is_the_first_of_the_commands_own_help(command: Command) -> None:
    assert command.help
    first = inspect.cleandoc(command.load().help or "").partition("\n")[0]
    assert first == command.help


def test_the_list_of_commands_shows_the_declared_lines(sluice: Run) -> None:
    for group, prefix in ((["--help"], ""), (["data", "--help"], "data ")):
        shown = " ".join(sluice(*group).out.replace("│", " ").split())
        for command in DECLARED:
            name = command.path.removeprefix(prefix)
            if command.path.startswith(prefix) and " " not in name:
                assert f"{name} {command.help}" in shown


@pytest.mark.parametrize("path", EVERY_COMMAND)
def test_every_command_shows_an_example_of_itself(path: str) -> None:
    text = EVERY_COMMAND[path].help or ""
    _, found, example = text.partition("Example:")
    assert found
    name = path.replace("readmit", "reinstate")  # the hidden alias shows the new name
    assert name in " ".join(example.split())


@pytest.mark.parametrize("path", EVERY_COMMAND)
def test_every_option_has_help(path: str) -> None:
    options = [one for one in EVERY_COMMAND[path].params if isinstance(one, click.Option)]
    assert [option.name for option in options if not option.help] == []


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, click.Abort, EOFError])
def test_an_interrupted_command_exits_with_130(
    sluice: Run, monkeypatch: pytest.MonkeyPatch, interruption: type[BaseException]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise interruption

    monkeypatch.setattr(rules, "load_rules", interrupted)
    seen = sluice("rules", "show", __file__, "--json")
    assert (seen.code, seen.out) == (130, "")
    assert seen.err.strip() == "sluice: interrupted"


def test_an_interruption_outside_a_command_exits_with_130(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(typer.Typer, "__call__", interrupted)
    with pytest.raises(SystemExit) as stopped:
        run_app(app, [], name="sluice")
    assert stopped.value.code == 130
    assert "interrupted" in capsys.readouterr().err
