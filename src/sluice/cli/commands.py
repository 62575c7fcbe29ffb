"""Commands that are imported only when they run, so that `sluice --help` starts fast."""

from dataclasses import dataclass
from functools import cache
from importlib import import_module
from typing import Any, ClassVar

import click
import typer
from typer.core import TyperGroup

from sluice.errors import SettingError
from sluice.plugins import load_all

__all__ = ["Command", "CommandGroup", "Deferred"]

ROOT = "sluice"


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Where a command is defined, and its line of help, which lists show without importing it."""

    path: str  # as it is typed: `check`, or `data make` for a command inside the group `data`
    target: str  # module:attribute; a function, or a Typer app for a group
    help: str  # equal to the first line of the command's own help

    def load(self) -> click.Command:
        """Import the command."""
        module, _, attribute = self.target.partition(":")
        loaded: Any = getattr(import_module(module), attribute)
        name = self.path.rpartition(" ")[2]
        if isinstance(loaded, typer.Typer):
            command: click.Command = typer.main.get_group(loaded)
        else:
            single = typer.Typer(rich_markup_mode="rich", add_completion=False)
            single.command(name=name)(loaded)
            command = typer.main.get_command(single)
        command.name = name
        return command


class Deferred(click.Command):
    """A placeholder for a command that is not imported yet."""

    def __init__(self, command: Command) -> None:
        super().__init__(command.path.rpartition(" ")[2], help=command.help)
        self.rich_help_panel = None  # read by Typer when it draws a list of commands
        self._command = command

    def load(self) -> click.Command:
        """Import the command."""
        return self._command.load()

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Import the command and make its context."""
        return self.load().make_context(info_name, args, parent, **extra)


class CommandGroup(TyperGroup):
    """A group with its own commands and those that the runtime and plug-ins declare for it."""

    declared: ClassVar[tuple[Command, ...]] = ()

    def list_commands(self, ctx: click.Context) -> list[str]:
        """List own commands first, then the declared ones in their order."""
        own = super().list_commands(ctx)
        return [*own, *(name for name in self._deferred() if name not in own)]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; a declared one is imported when it is run."""
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own
        command = self._deferred().get(cmd_name)
        return Deferred(command) if command else None

    def _deferred(self) -> dict[str, Command]:
        """Return the declared and registered commands of this group; no name stands twice."""
        prefix = "" if self.name in (None, ROOT) else f"{self.name} "
        named: dict[str, Command] = {}
        for command in (*self.declared, *_registered()):
            name = command.path.removeprefix(prefix)
            if not command.path.startswith(prefix) or " " in name:
                continue
            if name in named or name in self.commands:
                raise SettingError(
                    f"an installed package registers the command 'sluice {command.path}' as "
                    f"{command.target}, but that command exists; uninstall the package"
                )
            named[name] = command
        return named


@cache
def _registered() -> tuple[Command, ...]:
    """Return the commands of installed packages, including the lab's."""
    found: list[Command] = []
    for name, commands in load_all("sluice.commands").items():
        if not isinstance(commands, tuple) or not all(isinstance(c, Command) for c in commands):
            raise SettingError(
                f"an installed package registers {name!r} under 'sluice.commands', which is not a "
                "tuple of `Command`; correct or uninstall the package"
            )
        found += commands
    return tuple(found)
