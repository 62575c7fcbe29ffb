"""Tell which test runs which statement: a probe that statements call, and a plugin of pytest.

`tools.mutants` copies this file next to the code under test. It imports only the standard library,
and it works in the processes that tests start, because it finds its place in the environment.
"""

import os
from collections.abc import Generator
from contextlib import suppress
from typing import Any

import pytest

RECORD = "MUTANTS_RECORD"
COLLECTING = "MUTANTS_COLLECTING"

# Tests may replace these functions of `os`.
_open, _write, _close = os.open, os.write, os.close
_seen: set[tuple[int, str]] = set()


def hit(number: int) -> None:
    """Note that the running test, or the file being collected, runs a probed statement."""
    where = os.environ.get("PYTEST_CURRENT_TEST") or os.environ.get(COLLECTING, "")
    if (number, where) not in _seen:
        _seen.add((number, where))
        _note("hit", str(number), where)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note how long each test took, and which failed."""
    _note("failed" if report.failed else "ran", report.nodeid, f"{report.duration:.4f}")


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Note a file that cannot be collected."""
    if report.failed:
        _note("failed", report.nodeid, "0")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Name the file whose import runs statements."""
    os.environ[COLLECTING] = collector.nodeid
    try:
        return (yield)
    finally:
        os.environ.pop(COLLECTING, None)


def _note(*fields: str) -> None:
    path = os.environ.get(RECORD)
    if path:
        line = "\t".join(text.replace("\t", " ").replace("\n", " ") for text in fields) + "\n"
        # One write to a file opened for appending: processes do not mix their lines. A test may
        # allow its processes no files, or short ones: then the code under test must not fail.
        with suppress(OSError):
            file = _open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                _write(file, line.encode())
            finally:
                _close(file)
