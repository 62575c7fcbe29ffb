"""Run pytest in forks of a process that has imported the libraries already.

python -m tools.warm reads one order a line: the folder, the environment, pytest's arguments and a
file for its output, as JSON. It answers with the process id of the fork, and then with its exit
code. Importing the libraries takes longer than most tests of one mutant. The code under test is
imported in the fork only.
"""

import importlib
import json
import os
import sys
import traceback
import warnings
from contextlib import suppress

import pytest

LIBRARIES = (
    "cryptography.x509",
    "fastapi",
    "flwr.proto.fleet_pb2",
    "httpx",
    "hypothesis",
    "jax.numpy",
    "numpy",
    "plotly.graph_objects",
    "polars",
    "pydantic",
    "scipy.optimize",
    "scipy.stats",
    "typer",
)


def serve() -> None:
    """Import the libraries, then obey orders until there are no more."""
    for library in LIBRARIES:
        with suppress(ImportError):
            importlib.import_module(library)
    warnings.simplefilter("ignore")  # jax warns of forks; its threads start in the fork only
    for line in sys.stdin:
        order = json.loads(line)
        child = os.fork()
        if child == 0:
            _run(order["folder"], order["environment"], order["arguments"], order["output"])
        _say(child)
        _, status = os.waitpid(child, 0)
        _say(os.waitstatus_to_exitcode(status))


def _say(number: int) -> None:
    sys.stdout.write(f"{number}\n")
    sys.stdout.flush()


def _run(folder: str, environment: dict[str, str], arguments: list[str], output: str) -> None:
    """Run pytest as a new process would, in a session of its own; never return."""
    code = 3
    try:
        os.setsid()
        nothing, written = os.open(os.devnull, os.O_RDONLY), os.open(output, os.O_WRONLY)
        for source, target in ((nothing, 0), (written, 1), (written, 2)):
            os.dup2(source, target)
        os.chdir(folder)
        os.environ.clear()
        os.environ.update(environment)
        here = [path for path in environment["PYTHONPATH"].split(os.pathsep) if path]
        libraries = (path for path in sys.path if "/lib/" in path)  # Python's own, and installed
        sys.path[:] = [*here, *dict.fromkeys(libraries)]
        for name in [each for each in sys.modules if each.split(".")[0] in ("sluice", "tools")]:
            del sys.modules[name]
        warnings.resetwarnings()
        sys.argv = ["pytest", *arguments]
        code = int(pytest.main(arguments))
    except BaseException:  # noqa: BLE001 - into the output, as a new process would
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    serve()
