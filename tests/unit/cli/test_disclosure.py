"""What `plant check` says of what a plant lends."""

import pytest

from sluice.cli.plant.disclosure import Lending, show_lending


def test_a_plant_that_lends_nothing_reads_why(capsys: pytest.CaptureFixture[str]) -> None:
    """It said that the batch is too short, whatever the reason was."""
    lending = Lending(
        own=None, why="peaks above 0", once_a_week=None, rarest_rate=None, members=0, lending=0
    )
    show_lending(lending)
    assert "this plant lends no thresholds: peaks above 0" in capsys.readouterr().out
