"""Run benchmarks as a user would, in this process."""

import pytest

from benchmarks.__main__ import main
from tests.unit.conftest import Run, run_main


@pytest.fixture
def bench(capfd: pytest.CaptureFixture[str]) -> Run:
    return lambda *arguments: run_main(main, capfd, list(arguments))
