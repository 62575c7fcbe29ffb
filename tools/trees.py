"""Copies of the checkout in which tests meet one changed file at a time."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tools import probe

__all__ = ["BrokenTestsError", "Tree", "stop"]

COPIED = ("src", "tests")
PYTEST = (
    *("-x", "-q", "--tb=no", "--no-header", "-p", "no:cacheprovider", "-p", "mutants_probe"),
    "--assert=plain",  # to rewrite assertions, plugins must not be imported before
)
UNSET = ("CI", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST")
FAILED = 1  # exit code of pytest
TOOLS = Path(__file__).parents[1]


class BrokenTestsError(Exception):
    """Tests fail without a mutant, or cannot be run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A copy of the checkout in which one file at a time is changed."""

    root: Path  # the checkout
    place: Path
    running: "list[subprocess.Popen[str]]" = field(default_factory=list)

    @classmethod
    def grow(cls, root: Path, place: Path) -> "Tree":
        """Copy sources and tests; link to everything else, the compiled module among it."""
        place.mkdir()
        skipped = shutil.ignore_patterns("__pycache__", "*.so")
        for entry in sorted(root.iterdir()):
            if entry.name in COPIED:
                shutil.copytree(entry, place / entry.name, ignore=skipped, symlinks=True)
            elif entry.name == ".venv" or not entry.name.startswith("."):
                (place / entry.name).symlink_to(entry.resolve())
        for module in root.glob("src/**/*.so"):
            (place / module.relative_to(root)).symlink_to(module.resolve())
        (place / ".probe").mkdir()
        shutil.copy(Path(probe.__file__), place / ".probe" / "mutants_probe.py")
        tree = cls(root=root, place=place)
        # Caches are checked by content: an edit may keep a file's size and second of change.
        tree.python("-m", "compileall", "-q", "--invalidation-mode", "checked-hash", "src")
        shown = tree.python("-c", "import sluice; print(sluice.__file__)").strip()
        if not Path(shown).is_relative_to(place):
            raise BrokenTestsError(f"the copy imports {shown}; expected a file below {place}")
        return tree

    def python(self, *arguments: str) -> str:
        """Run Python in the copy."""
        done = subprocess.run(  # noqa: S603 - this interpreter
            [sys.executable, *arguments],
            cwd=self.place,
            env=self.environment(),
            check=True,
            capture_output=True,
            text=True,
        )
        return done.stdout

    def environment(self) -> dict[str, str]:
        """Return an environment in which the copy is what is imported."""
        settings = {key: value for key, value in os.environ.items() if key not in UNSET}
        settings.setdefault("SLUICE_DATA", str(self.root.parent / "shared" / "data"))
        paths = (self.place / "src", self.place, self.place / ".probe")
        return settings | {
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "PYTHONHASHSEED": "0",
            probe.RECORD: str(self.record),
        }

    @property
    def record(self) -> Path:
        """The file in which the probe notes what it sees."""
        return self.place / "record.tsv"

    def test(
        self, tests: Sequence[str], *, seconds: float | None = None, but: Sequence[str] = ()
    ) -> int:
        """Run tests, but not some, up to the first that fails.

        Return pytest's exit code, or 1 if time is up.
        """
        self.record.unlink(missing_ok=True)
        listed, output = self.place / "tests.txt", self.place / "output.txt"
        listed.write_text("\n".join(tests) + "\n", encoding="utf-8")
        output.write_bytes(b"")
        order = {
            "folder": str(self.place),
            "environment": self.environment(),
            "arguments": [
                *PYTEST,
                f"--basetemp={self.place / 'tmp'}",
                *(f"--deselect={test}" for test in but),
                f"@{listed}",
            ],
            "output": str(output),
        }
        server = self._server()
        assert server.stdin is not None
        assert server.stdout is not None
        server.stdin.write(json.dumps(order) + "\n")
        server.stdin.flush()
        answer = server.stdout.readline()
        if not answer:
            self.stop()  # it ended; process group 0 would be this process's own
            return FAILED
        fork = int(answer)
        clock = threading.Timer(seconds or threading.TIMEOUT_MAX, self._end, (fork, seconds))
        clock.daemon = True
        clock.start()
        try:
            code = server.stdout.readline()
        finally:
            clock.cancel()
            with suppress(OSError):
                os.killpg(fork, signal.SIGKILL)  # what the tests have started
        return int(code) if code else FAILED

    def _server(self) -> "subprocess.Popen[str]":
        """Return the process whose forks run the tests."""
        if not self.running:
            self.running.append(
                subprocess.Popen(
                    [sys.executable, "-m", "tools.warm"],
                    cwd=TOOLS,
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.DEVNULL,
                    text=True,
                    start_new_session=True,
                )
            )
        return self.running[0]

    def _end(self, fork: int, seconds: float) -> None:
        """End tests whose time is up."""
        with self.record.open("a", encoding="utf-8") as record:
            record.write(f"stopped\ttime is up after {seconds:.0f} s\t0\n")
        with suppress(OSError):
            os.killpg(fork, signal.SIGKILL)

    def stop(self) -> None:
        """End the tests that run, with the processes they started."""
        while self.running:
            server = self.running.pop()
            for child in _children(server.pid):
                with suppress(OSError):
                    os.killpg(child, signal.SIGKILL)
            with server:  # closes its pipes
                server.kill()

    def demand_pass(self, tests: Sequence[str]) -> None:
        """Raise if one of these tests fails in the copy as it is."""
        code = self.test(tests) if tests else 0
        if code != 0:
            tail = (self.place / "output.txt").read_text("utf-8", errors="replace")[-2_000:]
            raise BrokenTestsError(
                f"without a mutant, {self.failed() or 'the run'} fails (exit {code}):\n{tail}"
            )

    def notes(self) -> list[list[str]]:
        """Return what the probe noted, as fields."""
        if not self.record.exists():
            return []
        return [line.split("\t") for line in self.record.read_text("utf-8").splitlines()]

    def failed(self) -> str:
        """Return the first test that failed; empty if the run ended otherwise."""
        return self._first("failed")

    def stopped(self) -> str:
        """Return which clock ended the run; empty if none did."""
        return self._first("stopped")

    def _first(self, kind: str) -> str:
        return next((fields[1] for fields in self.notes() if fields[0] == kind), "")


def stop(pool: ThreadPoolExecutor, trees: Sequence[Tree]) -> None:
    """End what runs in trees, and begin nothing that waits."""
    pool.shutdown(wait=False, cancel_futures=True)
    for tree in trees:
        tree.stop()
    pool.shutdown()
    for tree in trees:
        tree.stop()  # a run that was about to begin has started another process


def _children(parent: int) -> list[int]:
    """Return the processes that a process has forked and not waited for."""
    try:
        text = Path(f"/proc/{parent}/task/{parent}/children").read_text(encoding="ascii")
    except OSError:
        return []
    return [int(number) for number in text.split()]
