"""The files in deploy/ can be read, and every command in them exists."""

import configparser
import shlex
from pathlib import Path

import click
import pytest
import typer.main
import yaml  # type: ignore[import-untyped]

from sluice.cli.app import app
from sluice.cli.commands import Deferred

DEPLOY = Path(__file__).parents[3] / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))


def demand_command(words: list[str]) -> None:
    """Let the command line read these words without doing what they say."""
    held: click.Command = typer.main.get_command(app)
    context = click.Context(held, info_name="sluice")
    while isinstance(held, click.Group):
        name, found, words = held.resolve_command(context, words)
        assert name is not None
        assert found is not None
        if isinstance(found, Deferred):
            found = found.load()
        held, context = found, click.Context(found, parent=context, info_name=name)
    held.parse_args(context, list(words))


def unit(path: Path) -> configparser.ConfigParser:
    read = configparser.ConfigParser(strict=False, interpolation=None)
    read.optionxform = str  # type: ignore[assignment, method-assign]
    read.read_string(path.read_text(encoding="utf-8"))
    return read


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.name)
def test_a_units_command_exists_and_runs_without_rights(path: Path) -> None:
    service = unit(path)["Service"]
    program, *words = shlex.split(service["ExecStart"])
    assert program == "/opt/sluice/bin/sluice"
    demand_command(words)
    assert service["User"] == "sluice"
    assert service["NoNewPrivileges"] == "yes"
    assert service["UMask"] == "0077"  # keys, openings and stores are their owner's alone


def test_there_are_units_for_every_party() -> None:
    assert [path.stem for path in UNITS] == [
        "sluice-coordinator",
        "sluice-dashboard",
        "sluice-plant",
    ]


def test_the_compose_file_types_commands_that_exist() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert set(services) == {"coordinator", "dashboard", "plant"}
    for service in services.values():
        demand_command(service["command"])
        assert service["cap_drop"] == ["ALL"]
        assert "ports" not in service  # nothing is opened but what the coordinator opens itself
    assert "--host" not in services["dashboard"]["command"]  # so it listens on loopback


def test_a_command_that_is_not_there_is_found_out() -> None:
    with pytest.raises(click.UsageError):
        demand_command(["coordinator", "launch", "water"])
    with pytest.raises(click.UsageError):
        demand_command(["plant", "run", "north", "--fast"])
