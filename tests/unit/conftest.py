"""Run commands as a user would, in this process."""

import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from sluice.cli.app import main


@dataclass(frozen=True)
class Outcome:
    """What a command left: exit code, stdout, stderr."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, object]:
        """The one object on stdout."""
        found = json.loads(self.out)
        assert isinstance(found, dict)
        return found


Run = Callable[..., Outcome]


def run_main(
    main: Callable[[list[str]], None], capfd: pytest.CaptureFixture[str], arguments: list[object]
) -> Outcome:
    """Run a program's entry point, which ends by `SystemExit`, and keep what it left."""
    with pytest.raises(SystemExit) as stopped:
        main([str(argument) for argument in arguments])
    seen = capfd.readouterr()
    code = stopped.value.code
    assert isinstance(code, int)
    return Outcome(code, seen.out, seen.err)


@pytest.fixture
def sluice(capfd: pytest.CaptureFixture[str]) -> Run:
    return lambda *arguments: run_main(main, capfd, list(arguments))
