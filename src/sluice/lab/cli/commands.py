"""The lab's commands, which the command line finds by the entry point `sluice.commands`."""

from sluice.cli import Command

__all__ = ["COMMANDS"]

COMMANDS = (
    Command(
        path="data make",
        target="sluice.lab.cli.data:make",
        help="Simulate a plant and write its record.",
    ),
    Command(
        path="attack",
        target="sluice.lab.cli.attack:attack",
        help="Falsify a record as a malicious client would, to test a gate or a detector.",
    ),
    Command(
        path="audit",
        target="sluice.lab.cli.audit:app",
        help="Measure which fabrications and attacks a plant's rules detect.",
    ),
    Command(
        path="federate",
        target="sluice.lab.cli.federate:federate",
        help="Run one federation in this process and measure its detector.",
    ),
    Command(
        path="lab",
        target="sluice.lab.cli.grid:app",
        help="Plan, run, resume, inspect, export and report experiment grids.",
    ),
    Command(
        path="demo",
        target="sluice.lab.cli.demo:demo",
        help="Simulate ten plants, three of them malicious: mine, prove, gate, train, report.",
    ),
)
