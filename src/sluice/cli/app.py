"""The `sluice` command: finds the command that was asked for, and turns errors into exit codes."""

import os
import sys
import traceback
from typing import NoReturn

import click
import typer

from sluice.cli.commands import ROOT, Command, CommandGroup
from sluice.errors import SluiceError

__all__ = ["app", "main", "run_app"]


class _Runtime(CommandGroup):
    declared = (
        Command(
            path="data",
            target="sluice.cli.data:app",
            help="Simulated plants and plant records.",
        ),
        Command(
            path="mine",
            target="sluice.cli.mine:mine",
            help="Mine a plant's rules from clean rows of its record.",
        ),
        Command(
            path="rules",
            target="sluice.cli.rules:app",
            help="Rules in words, sealed, compared and accepted.",
        ),
        Command(
            path="check",
            target="sluice.cli.check:check",
            help="Judge a batch of telemetry against its plant's rules; exit 0 admitted, 3 not.",
        ),
        Command(
            path="attest",
            target="sluice.cli.attest:app",
            help="Prove a batch's verdict without showing readings.",
        ),
        Command(
            path="score",
            target="sluice.cli.score:score",
            help="Score a record with a trained detector.",
        ),
        Command(
            path="coordinator",
            target="sluice.cli.coordinator:app",
            help="A federation between sites: the coordinator's side.",
        ),
        Command(
            path="plant",
            target="sluice.cli.plant:app",
            help="A federation between sites: a plant's side.",
        ),
        Command(
            path="audit-log",
            target="sluice.cli.audit_log:app",
            help="Verify a federation's log.",
        ),
        Command(
            path="dashboard",
            target="sluice.cli.dashboard:dashboard",
            help="Serve the page of a federation.",
        ),
    )


app = typer.Typer(
    name=ROOT,
    cls=_Runtime,
    help="Physics-attested federated learning for critical water infrastructure.",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

EXTRAS = {
    "lab": ("matplotlib", "numba", "piqp", "wntr", "xlsxwriter"),
    "network": ("fastapi", "flwr", "httpx", "uvicorn"),
    "export": ("onnx",),
    "ray": ("ray",),
}
"""Which extra of the distribution brings which package."""


def _version(asked: bool) -> None:
    if asked:
        from sluice import __version__

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
    """Run the `sluice` command."""
    run_app(app, arguments, name=ROOT)


def run_app(application: typer.Typer, arguments: list[str] | None, *, name: str) -> NoReturn:
    """Run a command line; exit 0 done, 2 bad usage or input, 3 refused, 1 a bug in Sluice."""
    try:
        outcome = application(args=arguments, prog_name=name, standalone_mode=False)
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
        # The reader of our output (head, less) has closed it; nothing more can be written.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except ModuleNotFoundError as error:
        remedy = _missing_extra(error)
        if remedy is None:
            _report_bug(error)
        typer.echo(f"sluice: {remedy}", err=True)
        sys.exit(2)
    except Exception as error:  # noqa: BLE001 - no traceback reaches a user
        _report_bug(error)
    sys.exit(outcome if isinstance(outcome, int) else 0)


def _missing_extra(error: ModuleNotFoundError) -> str | None:
    """Return which extra to install, where a package of one is missing."""
    package = (error.name or "").partition(".")[0]
    for extra, packages in EXTRAS.items():
        if package in packages:
            return (
                f"this needs the package {package!r}, which is not installed; run "
                f"pip install 'sluice-fl[{extra}]'"
            )
    return None


def _report_bug(error: Exception) -> NoReturn:
    if os.environ.get("SLUICE_DEBUG"):
        traceback.print_exc()
    lines = str(error).splitlines()
    typer.echo(
        f"sluice: a bug in Sluice: {type(error).__name__}: {lines[0] if lines else ''} "
        "(run again with SLUICE_DEBUG=1 and report it)",
        err=True,
    )
    sys.exit(1)
