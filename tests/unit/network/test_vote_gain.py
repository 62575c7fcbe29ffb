"""What a plant gains over its own detector, in a federation that shares statistics."""

from dataclasses import replace

import pytest

from sluice.cli.plant.gain import UnknownGain, gain_of, show_gain
from sluice.errors import SettingError
from sluice.lab.plants.catalogue import simulate
from sluice.network.plant.folder import PlantFolder
from sluice.network.plant.gain import Own
from sluice.network.plant.model import last_statistics
from sluice.network.plant.vote_gain import VoteGain, measured_vote_gain
from sluice.network.statistics import MemberStatistics
from sluice.telemetry.reading import read_record

from .conftest import Consortium, Founder

NAMES = ("north", "south", "west")


@pytest.fixture
def summed(founder: Founder) -> Consortium:
    made = founder("vote", detector="moments", members_min=3)
    for index, name in enumerate(NAMES):
        made.join(name, index)
    return made


def test_check_compares_the_vote_with_the_plants_own_statistic(
    summed: Consortium, capsys: pytest.CaptureFixture[str]
) -> None:
    north = PlantFolder(summed.folder / "north")
    unknown = gain_of(north, clean=None, attacks=None, quiet=True)
    assert isinstance(unknown, UnknownGain)
    assert "no model" in unknown.reason.lower()
    summed.run()
    gain = gain_of(north, clean=None, attacks=None, quiet=True)
    assert isinstance(gain, VoteGain)
    assert (gain.members, gain.attacked, gain.alone.recall) == (3, 0, None)
    assert gain.days == len(north.share.read()) / 1_440
    assert 0 <= gain.federation.time_in_alarm < 0.1
    show_gain(gain)
    printed = capsys.readouterr().out
    assert "vote of 3 members" in printed
    assert "Clean rows show false alarms" in printed
    with pytest.raises(SettingError, match="which the plant trains on"):
        gain_of(north, clean="9000:9900", attacks=None, quiet=True)


def test_a_vote_of_one_member_gains_nothing(summed: Consortium) -> None:
    """The yardstick itself: the same statistic gives the same figures."""
    summed.run()
    north, terms = PlantFolder(summed.folder / "north"), summed.site.terms
    received = last_statistics(north.folder, terms)
    assert received is not None
    member = received.shared.of("north")
    assert member is not None
    statistic = replace(terms.statistic, malicious=0)  # type: ignore[type-var]
    terms = replace(terms, statistic=statistic)
    single = MemberStatistics(settings=received.shared.settings, members=(member,))
    line, circuit = read_record(summed.record), north.keys.circuit
    own = Own(
        plant="north",
        batch=north.share.read(),
        clean=line.rows(0, 2_000),
        attacks=simulate("line", seed=1, days=1, attacks=True),
    )
    seen = replace(received, shared=single)
    gain = measured_vote_gain(terms, seen, own, circuit=circuit, false_alarms_per_week=1.0)
    assert gain.attacked > 0
    assert gain.alone.recall is not None
    assert gain.alone == gain.federation
    short = replace(own, clean=line.rows(0, 2 * (99 + terms.window_rows) - 1))
    with pytest.raises(SettingError, match="too few to compare"):
        measured_vote_gain(terms, seen, short, circuit=circuit, false_alarms_per_week=1.0)
    fewest = replace(own, clean=line.rows(0, 2 * (99 + terms.window_rows)))
    with pytest.raises(SettingError, match="separate peaks"):  # they are compared
        measured_vote_gain(terms, seen, fewest, circuit=circuit, false_alarms_per_week=1.0)
