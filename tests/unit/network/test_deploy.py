"""The files in deploy/ can be read, every command in them exists, and installs are hash-locked."""

import configparser
import re
import shlex
from pathlib import Path

import click
import pytest
import typer.main
import yaml  # type: ignore[import-untyped]

from sluice.cli.app import app
from sluice.cli.commands import Deferred
from sluice.cli.paths import InputPath

DEPLOY = Path(__file__).parents[3] / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))


def demand_command(words: list[str]) -> None:
    """Parse a command line without running the command; its folders are on another machine."""
    command: click.Command = typer.main.get_command(app)
    context = click.Context(command, info_name="sluice")
    while isinstance(command, click.Group):
        name, child, words = command.resolve_command(context, words)
        assert name is not None
        assert child is not None
        if isinstance(child, Deferred):
            child = child.load()
        command, context = child, click.Context(child, parent=context, info_name=name)
    with pytest.MonkeyPatch.context() as elsewhere:
        elsewhere.setattr(InputPath, "convert", lambda *given: given[1])
        command.parse_args(context, list(words))


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


def pip_installs(text: str) -> list[list[str]]:
    """Return the arguments of every `pip install` in a Containerfile or a page."""
    lines = text.replace("\\\n", " ").splitlines()
    commands = [part for line in lines for part in line.removeprefix("RUN ").split("&&")]
    return [
        shlex.split(command, comments=True)[2:]
        for command in commands
        if re.match(r"\s*(\S+/)?pip install ", command)
    ]


def requirement_of(arguments: list[str]) -> str:
    """Return what a `pip install` installs: a lock, or the project's wheel without dependencies."""
    if "--require-hashes" in arguments:
        options = [word for word in arguments if word.startswith("-")]
        files = [word for word in arguments if not word.startswith("-")]
        assert "-r" in options
        assert len(files) == 1, f"installs {files}; expected one lock"
        return Path(files[0]).name
    assert "--no-deps" in arguments, f"pip install {arguments} takes packages without hashes"
    return Path(arguments[-1]).name


def test_the_image_installs_from_the_hash_lock_and_its_own_wheel() -> None:
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8")
    installs = pip_installs(text)
    assert len(installs) == text.count("pip install")
    assert [requirement_of(arguments) for arguments in installs] == [
        "network.txt",
        "maturin.txt",
        "sluice_fl-*.whl",
    ]
    assert "requirements/dev.txt > /opt/build/maturin.txt" in text  # maturin's hashes too


def test_the_page_on_deployment_installs_as_the_image_does() -> None:
    page = (DEPLOY.parent / "docs" / "how-to" / "deploy.md").read_text(encoding="utf-8")
    installed = {requirement_of(arguments) for arguments in pip_installs(page)}
    assert installed == {"network.txt", "sluice_fl-*.whl"}


def test_an_install_of_the_bare_name_is_found_out() -> None:
    for line in ("RUN pip install sluice", "RUN /opt/sluice/bin/pip install '.[network]'"):
        with pytest.raises(AssertionError, match="without hashes"):
            requirement_of(*pip_installs(line))
    with pytest.raises(AssertionError, match="expected one lock"):
        requirement_of(*pip_installs("pip install --require-hashes -r network.txt sluice"))


def test_the_compose_file_types_commands_that_exist() -> None:
    services = yaml.safe_load((DEPLOY / "compose.yaml").read_text(encoding="utf-8"))["services"]
    assert set(services) == {"coordinator", "dashboard", "plant"}
    for service in services.values():
        demand_command(service["command"])
        assert service["image"] == "sluice-fl"
        assert service["pull_policy"] == "never"  # the image is built here, from the hash lock
        assert service["build"]["dockerfile"] == "deploy/Containerfile"
        assert service["cap_drop"] == ["ALL"]
        assert "ports" not in service  # nothing is opened but what the coordinator opens itself
    assert "--host" not in services["dashboard"]["command"]  # so it listens on loopback


def test_a_command_that_is_not_there_is_found_out() -> None:
    with pytest.raises(click.UsageError):
        demand_command(["coordinator", "launch", "water"])
    with pytest.raises(click.UsageError):
        demand_command(["plant", "run", "north", "--fast"])
