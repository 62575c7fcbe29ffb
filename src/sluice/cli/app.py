"""The `sluice` command: runs the requested command and turns errors into exit codes."""

import os
import sys
import traceback
from typing import NoReturn

import click
import typer

from sluice.cli.commands import ROOT, Command, CommandGroup
from sluice.cli.console import PIPE_CLOSED, drop_output, emit
from sluice.errors import RefusedError, SettingError, SluiceError

__all__ = ["app", "main", "run_app"]


class _Runtime(CommandGroup):
    declared = (
        Command(
            path="data",
            target="sluice.cli.data:app",
            help="Inspect, convert and simulate plant records.",
        ),
        Command(
            path="mine",
            target="sluice.cli.mine:mine",
            help="Mine a plant's rules from clean rows of its record.",
        ),
        Command(
            path="rules",
            target="sluice.cli.rules:app",
            help="Show, seal, compare and accept rules files.",
        ),
        Command(
            path="check",
            target="sluice.cli.check:check",
            help="Judge a batch by its plant's rules; exit 0 if admitted, 3 if refused.",
        ),
        Command(
            path="attest",
            target="sluice.cli.attest:app",
            help="Prove that a batch satisfies its plant's rules without showing readings.",
        ),
        Command(
            path="train",
            target="sluice.cli.train:train",
            help="Train a detector on one plant's clean rows; labels are not needed.",
        ),
        Command(
            path="score",
            target="sluice.cli.score:score",
            help="Score a record with a trained detector; write a score and an alarm per row.",
        ),
        Command(
            path="watch",
            target="sluice.cli.watch:watch",
            help="Watch a plant: judge each row by rules and detector, and raise alarms.",
        ),
        Command(
            path="certify",
            target="sluice.cli.certify:certify",
            help="Certify a shared detector: the worst that any --malicious members can do to it.",
        ),
        Command(
            path="model",
            target="sluice.cli.model:app",
            help="Show, export and recalibrate trained detectors.",
        ),
        Command(
            path="coordinator",
            target="sluice.cli.coordinator:app",
            help="Run a federation between sites: the coordinator's commands.",
        ),
        Command(
            path="helper",
            target="sluice.cli.helper:app",
            help="Run the second aggregator of hidden sums.",
        ),
        Command(
            path="plant",
            target="sluice.cli.plant:app",
            help="Take part in a federation between sites: a plant's commands.",
        ),
        Command(
            path="audit-log",
            target="sluice.cli.audit_log:app",
            help="Verify the hash-chained log of a federation.",
        ),
        Command(
            path="dashboard",
            target="sluice.cli.dashboard:dashboard",
            help="Serve a web page that shows a federation, and Prometheus metrics.",
        ),
    )

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command; say where the one that left has gone."""
        if cmd_name == "bench":
            raise SettingError(
                "benchmarks are not installed; in a checkout, run python -m benchmarks"
            )
        return super().get_command(ctx, cmd_name)


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
    "mqtt": ("paho",),
    "opcua": ("asyncua",),
}
"""The packages that each extra of the distribution installs."""
INTERRUPTED = 130


def _version(requested: bool) -> None:
    if requested:
        from sluice import __version__

        typer.echo(f"sluice {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    """Physics-attested federated learning for critical water infrastructure."""


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the `sluice` command."""
    run_app(app, arguments, name=ROOT)


def run_app(application: typer.Typer, arguments: list[str] | None, *, name: str) -> NoReturn:
    """Run a command line and exit.

    Exit codes: 0 done, 2 bad usage or input, 3 refused, 130 interrupted, 1 a bug in Sluice.
    """
    try:
        outcome = application(args=arguments, prog_name=name, standalone_mode=False)
    except click.ClickException as error:
        error.show(file=sys.stderr)
        sys.exit(error.exit_code)
    except (click.exceptions.Abort, KeyboardInterrupt):
        outcome = INTERRUPTED
    except SluiceError as error:
        if isinstance(error, RefusedError) and "--json" in (arguments or sys.argv):
            emit({"refused": True, "reason": str(error), "step": getattr(error, "step", None)})
        typer.echo(f"sluice: {error}", err=True)
        sys.exit(error.exit_code)
    except BrokenPipeError:
        drop_output()
        sys.exit(PIPE_CLOSED)
    except Exception as error:  # noqa: BLE001 - no traceback reaches a user
        sys.exit(_failed(error))
    if outcome == INTERRUPTED:  # Typer returns this code when a command raises KeyboardInterrupt
        typer.echo("sluice: interrupted", err=True)
    sys.exit(outcome if isinstance(outcome, int) else 0)


def _failed(error: Exception) -> int:
    """Say what went wrong outside of Sluice's own errors; return the exit code."""
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        typer.echo(f"sluice: {where}{error.strerror or error}", err=True)
        return 2
    remedy = _missing_extra(error) if isinstance(error, ModuleNotFoundError) else None
    if remedy is not None:
        typer.echo(f"sluice: {remedy}", err=True)
        return 2
    if os.environ.get("SLUICE_DEBUG"):
        traceback.print_exc()
    lines = str(error).splitlines()
    typer.echo(
        f"sluice: a bug in Sluice: {type(error).__name__}: {lines[0] if lines else ''} "
        "(run again with SLUICE_DEBUG=1 and report it)",
        err=True,
    )
    return 1


def _missing_extra(error: ModuleNotFoundError) -> str | None:
    """Return which extra to install if it provides the missing package, else None."""
    package = (error.name or "").partition(".")[0]
    for extra, packages in EXTRAS.items():
        if package in packages:
            return (
                f"this command needs the package {package!r}, which is not installed; run "
                f"pip install 'sluice-fl[{extra}]'"
            )
    return None
