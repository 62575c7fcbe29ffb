"""The command line: every command is thin over the Python API and does one thing."""

import os
import sys
import traceback
from typing import NoReturn

import click
import typer

from sluice import __version__
from sluice.cli import (
    attack,
    attest,
    audit,
    audit_log,
    bench,
    check,
    coordinator_care,
    dashboard,
    data,
    demo,
    federate,
    lab,
    mine,
    plant,
    rules,
    score,
)
from sluice.errors import SluiceError

__all__ = ["app", "main"]

app = typer.Typer(
    name="sluice",
    help="Physics-attested federated learning for critical water infrastructure.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(data.app, name="data")
app.add_typer(rules.app, name="rules")
app.add_typer(audit.app, name="audit")
app.add_typer(attest.app, name="attest")
app.add_typer(lab.app, name="lab")
app.add_typer(coordinator_care.app, name="coordinator")
app.add_typer(plant.app, name="plant")
app.add_typer(audit_log.app, name="audit-log")
app.command(name="dashboard")(dashboard.dashboard)
app.command(name="demo")(demo.demo)
app.command(name="federate")(federate.federate)
app.command(name="mine")(mine.mine)
app.command(name="check")(check.check)
app.command(name="bench")(bench.bench)
app.command(name="score")(score.score)
app.command(name="attack")(attack.attack)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"sluice {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and stop."
    ),
) -> None:
    """Physics-attested federated learning for critical water infrastructure."""


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command line; exit 0 done, 2 bad usage or input, 3 refused, 1 a bug in Sluice."""
    try:
        outcome = app(args=arguments, prog_name="sluice", standalone_mode=False)
    except click.ClickException as error:
        error.show(file=sys.stderr)
        sys.exit(error.exit_code)
    except click.exceptions.Abort:
        typer.echo("stopped", err=True)
        sys.exit(2)
    except SluiceError as error:
        typer.echo(f"sluice: {error}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        # The reader of our output (head, less) went away; there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except Exception as error:  # noqa: BLE001 - no traceback reaches a user
        if os.environ.get("SLUICE_DEBUG"):
            traceback.print_exc()
        told = str(error).splitlines()
        typer.echo(
            f"sluice: a bug in Sluice: {type(error).__name__}: {told[0] if told else ''} "
            "(run again with SLUICE_DEBUG=1 and report it)",
            err=True,
        )
        sys.exit(1)
    sys.exit(outcome if isinstance(outcome, int) else 0)
