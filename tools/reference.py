"""Write docs/reference/api.md and docs/reference/cli.md from docstrings and command help.

python -m tools.reference            writes the pages
python -m tools.reference --check    exits 1 where a page is not what would be written
"""

import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from enum import Enum
from pathlib import Path

import click
import typer.main
from typer.core import TyperArgument

import sluice
import sluice.lab
from sluice.cli import app
from sluice.cli.commands import Deferred

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
END = "\0"
MARKUP = re.compile(r"\[/?(bold|dim|italic)\]")


def api_page() -> str:
    """Return the page of the public API."""
    lines = [
        "# Python API",
        "",
        "This page is generated from docstrings by `make reference`. `import sluice` is the",
        "runtime; `import sluice.lab` is the lab. Every name below is public: CHANGELOG.md lists",
        "each change. Other names may change at any time.",
    ]
    for module in (sluice, sluice.lab):
        lines += ["", f"## {module.__name__}", "", _section(inspect.getdoc(module) or "")]
        for name in sorted(module.__all__, key=str.lower):
            lines += ["", *_member(module.__name__, name, getattr(module, name))]
    return "\n".join(lines) + "\n"


def _member(module: str, name: str, member: object) -> Iterator[str]:
    yield f"### `{name}`"
    yield ""
    if inspect.isclass(member):
        yield from _class(member)
    elif inspect.isfunction(member):
        yield f"```py\n{module}.{name}{_signature(member)}\n```"
        yield ""
        yield _section(inspect.getdoc(member) or "")
    else:
        yield _value(member)


def _class(kind: type) -> Iterator[str]:
    yield _section(inspect.getdoc(kind) or "")
    if is_dataclass(kind):
        names = [each.name for each in fields(kind) if not each.name.startswith("_")]
        yield ""
        yield f"Fields: {', '.join(f'`{name}`' for name in names)}."
    elif members := getattr(kind, "__members__", None):
        yield ""
        yield f"Values: {', '.join(f'`{value.value}`' for value in members.values())}."
    methods = [
        (name, method)
        for name, method in vars(kind).items()
        if not name.startswith("_")
        and (inspect.isfunction(method) or isinstance(method, classmethod))
    ]
    if methods:
        yield ""
        for name, method in methods:
            function = method.__func__ if isinstance(method, classmethod) else method
            first = (inspect.getdoc(function) or "").split("\n")[0]
            yield f"- `{name}{_signature(function)}`: {first}"


def _signature(function: object) -> str:
    """Return the parameters by name, without types: those are in the source and in editors."""
    shown = []
    marked = False
    for parameter in inspect.signature(function).parameters.values():  # type: ignore[arg-type]
        if parameter.name in ("self", "cls"):
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not marked:
            shown.append("*")
            marked = True
        default = "" if parameter.default is parameter.empty else "=..."
        if isinstance(parameter.default, Enum):
            default = f"={parameter.default.value!r}"
        elif parameter.default is None or isinstance(parameter.default, int | float | str):
            default = f"={parameter.default!r}"
        shown.append(f"{parameter.name}{default}")
    return f"({', '.join(shown)})"


def _value(member: object) -> str:
    names = list(member) if hasattr(member, "keys") else []  # type: ignore[call-overload]
    if names:
        return f"A mapping by name: {', '.join(f'`{name}`' for name in names)}."
    if isinstance(member, tuple):
        return f"A tuple of {len(member)}."
    union = str(member).replace("sluice.admission.policy.", "")
    return f"`{union}`"


def _section(docstring: str) -> str:
    """Turn a docstring's indented example into a code block."""
    out: list[str] = []
    block: list[str] = []
    for line in [*docstring.split("\n"), END]:
        if line.startswith("    ") or (block and not line):
            block.append(line[4:])
            continue
        if block:
            out += ["```py", *"\n".join(block).rstrip().split("\n"), "```", ""]
            block = []
        out.append(line)
    return "\n".join(out[:-1]).rstrip()


def cli_page() -> str:
    """Return the page of all commands."""
    lines = [
        "# Command line",
        "",
        "This page is generated from the commands' own help by `make reference`.",
        "",
        "Exit codes: 0 done; 2 bad input or setting; 3 refused, not proven or over target;",
        "130 interrupted; 1 a bug in Sluice. With `--json` a command prints one object on stdout",
        "and nothing else; with exit 2 stdout stays empty. A refusal is an object with `refused`,",
        "`reason` and `step`, unless the command has keys of its own for it.",
    ]
    root = typer.main.get_group(app)
    lines += _commands(root, "sluice", click.Context(root, info_name="sluice"))
    return "\n".join(lines) + "\n"


def _commands(group: click.Group, path: str, context: click.Context) -> Iterator[str]:
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, Deferred):
            command = command.load()
        if command.hidden:
            continue
        inner = click.Context(command, info_name=name, parent=context)
        if isinstance(command, click.Group):
            yield from ("", f"## {path} {name}", "", _plain(command.help or ""))
            yield from _commands(command, f"{path} {name}", inner)
        else:
            yield from _command(command, f"{path} {name}", inner)


def _command(command: click.Command, path: str, context: click.Context) -> Iterator[str]:
    yield from ("", f"### {path}", "", _plain(command.help or ""), "")
    usage = " ".join(command.collect_usage_pieces(context))
    yield f"```text\n{path} {usage}\n```"
    rows = [_option(parameter, context) for parameter in command.params]
    rows = [row for row in rows if row]
    if rows:
        yield from ("", "| option | meaning |", "|---|---|", *rows)


def _option(parameter: click.Parameter, context: click.Context) -> str:
    record = parameter.get_help_record(context)
    if record is None or "--help" in parameter.opts:
        return ""
    name, meaning = record
    if isinstance(parameter, TyperArgument) and parameter.help and parameter.help not in meaning:
        meaning = f"{parameter.help} {meaning}"
    name, meaning = (text.replace("|", "\\|") for text in (name, meaning))
    return f"| `{name}` | {_plain(meaning)} |"


def _plain(text: str) -> str:
    text = MARKUP.sub("`", text).replace("\f", "")
    return "\n".join(line.strip() for line in text.strip().split("\n"))


def main() -> None:
    """Write the pages, or check that they are up to date."""
    pages = {"api.md": api_page(), "cli.md": cli_page()}
    stale = [
        name
        for name, text in pages.items()
        if not (REFERENCE / name).exists() or (REFERENCE / name).read_text("utf-8") != text
    ]
    if "--check" in sys.argv:
        if stale:
            sys.exit(f"out of date: {', '.join(stale)}; run 'make reference'")
        return
    for name, text in pages.items():
        (REFERENCE / name).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
