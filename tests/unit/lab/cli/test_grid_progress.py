"""How far a grid is, told in plain lines where nobody looks on."""

import pytest

from sluice.lab.cli.grid_progress import LabView
from sluice.lab.results.work import Counts, WorkClaim


def counts(done: int, *, failed: int = 0) -> Counts:
    return Counts(
        cells=80,
        cells_done=2 * done,
        works=40,
        waiting=40 - done - failed,
        running=0,
        done=done,
        failed=failed,
        recalled=0,
    )


def described(claim: WorkClaim) -> str:
    return claim.id


def test_plain_lines_come_at_the_start_at_each_twentieth_and_at_the_end(
    capfd: pytest.CaptureFixture[str],
) -> None:
    with LabView(described, quiet=False) as view:
        for done in (0, 1, 1, 2, 3, 4, 39):
            view.seen(counts(done), ())
        view.seen(counts(39, failed=1), ())
    lines = capfd.readouterr().err.splitlines()
    assert [line.split(";")[0] for line in lines] == [
        "federations: 0 of 40",
        "federations: 2 of 40",
        "federations: 4 of 40",
        "federations: 39 of 40",
        "federations: 40 of 40, 1 failed",
    ]
    assert "no federation finished yet" in lines[0]
    assert "per minute" in lines[1]
    assert "cells: 4 of 80" in lines[1]


def test_quiet_says_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    with LabView(described, quiet=True) as view:
        view.seen(counts(40), ())
    assert capfd.readouterr().err == ""
