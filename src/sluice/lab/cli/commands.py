"""The lab's commands, as the command line registers them (entry point `sluice.commands`)."""

from sluice.cli import Command

__all__ = ["COMMANDS"]

COMMANDS = (
    Command(path="data make", target="sluice.lab.cli.data:make", help=""),
    Command(path="attack", target="sluice.lab.cli.attack:attack", help=""),
    Command(path="audit", target="sluice.lab.cli.audit:app", help=""),
    Command(path="federate", target="sluice.lab.cli.federate:federate", help=""),
    Command(path="lab", target="sluice.lab.cli.grid:app", help=""),
    Command(path="demo", target="sluice.lab.cli.demo:demo", help=""),
)
