"""Faults of a federation of real processes: it ends with the right model and an unbroken log."""

import os
import resource
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from .outcomes import Row, format_members, note
from .relay import relayed
from .sites import Draft, Ending, Sites, running

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")

needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed")
needs_network = pytest.mark.skipif(
    "SLUICE_NETWORK" not in os.environ, reason="make test-network runs it"
)


@pytest.fixture
def sites(line_draft: Draft, jax_cache: Path, tmp_path: Path) -> Iterator[Sites]:
    with running(line_draft, tmp_path / "sites", jax_cache) as given:
        yield given


@pytest.fixture
def everybody(line_draft: Draft) -> tuple[str, ...]:
    return line_draft.plants


def ended(sites: Sites, case: str, everybody: tuple[str, ...]) -> Ending:
    """Wait for the end: the log verifies and the model is that of a federation in one process."""
    ending = sites.end()
    assert ending.model == sites.expected(ending.members)
    members = format_members(ending.members, everybody)
    note(Row(case=case, members=members, entries=ending.entries, seconds=sites.seconds))
    return ending


@needs_nginx
def test_a_federation_of_processes_ends_with_the_model_of_one_process(
    sites: Sites, everybody: tuple[str, ...]
) -> None:
    sites.start()
    ending = ended(sites, "nothing at all", everybody)
    assert ending.members == (everybody,) * 3


# -- kill -9 ----------------------------------------------------------------------------------


def kill_coordinator(sites: Sites) -> None:
    assert sites.coordinator is not None
    sites.coordinator.kill()
    sites.coordinator.wait()
    sites.start_coordinator()


def kill_superlink(sites: Sites) -> None:
    os.kill(sites.superlink, signal.SIGKILL)


def kill_filter(sites: Sites) -> None:
    os.kill(sites.filter, signal.SIGKILL)


def kill_nginx(sites: Sites) -> None:
    os.kill(sites.nginx, signal.SIGKILL)


def kill_plant(sites: Sites) -> None:
    sites.plants["west"].kill()
    sites.plants["west"].wait()
    sites.start_plant("west")


KILLS: dict[str, Callable[[Sites], None]] = {
    "the coordinator": kill_coordinator,
    "the SuperLink": kill_superlink,
    "the filter": kill_filter,
    "nginx": kill_nginx,
    "a plant": kill_plant,
}
MOMENTS: dict[str, Callable[[Sites], None]] = {
    "while batches are attested": lambda sites: sites.await_said("plants are connected"),
    "while tokens are taken": lambda sites: sites.await_entry("round opened", 2),
    "while updates are revealed": lambda sites: sites.await_entry("pledges closed", 2),
}

FIRST_ROUND_AT_RISK = ("a plant", "while batches are attested")


@needs_network
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("victim", KILLS)
def test_a_process_that_is_killed_costs_neither_a_round_nor_a_plant(
    sites: Sites, everybody: tuple[str, ...], victim: str, moment: str
) -> None:
    sites.start()
    MOMENTS[moment](sites)
    KILLS[victim](sites)
    ending = ended(sites, f"kill -9 of {victim} {moment}", everybody)
    assert ending.members[1:] == (everybody,) * 2
    # The coordinator does not wait for a plant that is gone before it is asked for its batch.
    may_miss_the_first = {"west"} if (victim, moment) == FIRST_ROUND_AT_RISK else set()
    assert set(everybody) - set(ending.members[0]) <= may_miss_the_first


# -- the network ------------------------------------------------------------------------------


@needs_network
def test_a_plant_that_is_cut_off_for_two_rounds_comes_back(
    sites: Sites, everybody: tuple[str, ...]
) -> None:
    sites.agree(rounds=8, deadline_s=30.0)
    with relayed(sites.site, [sites.folder / "west"]) as relay:
        sites.start()
        sites.await_entry("round opened", 2)
        relay.cut = True
        sites.await_entry("aggregated", 3)
        relay.cut = False
        case = "a plant is cut off for two rounds of eight, with 30 s to a phase"
        ending = ended(sites, case, everybody)
    assert all("west" not in each for each in ending.members[1:3])
    assert ending.members[0] == ending.members[-1] == everybody
    assert all({"north", "south"} <= set(each) for each in ending.members)


@needs_network
def test_messages_that_come_twice_and_overtake_each_other_change_nothing(
    sites: Sites, everybody: tuple[str, ...]
) -> None:
    with relayed(sites.site, [sites.folder / name for name in everybody]) as relay:
        relay.doubled = 0.1  # Flower loses the message in transfer; a silent plant is asked again
        relay.latest_s = 1.0
        sites.start()
        case = "one call in ten comes twice, all up to 1 s late and out of order"
        ending = ended(sites, case, everybody)
    assert relay.repeated > 5
    assert relay.overtaken > 0
    assert ending.members == (everybody,) * 3


# -- clocks and disks -------------------------------------------------------------------------


@needs_network
def test_a_plant_whose_clock_is_an_hour_off_is_left_out_until_it_is_put_right(
    sites: Sites, everybody: tuple[str, ...]
) -> None:
    sites.agree(rounds=6)
    sites.start_plant("north")
    sites.start_plant("south")
    sites.start_plant("west", shift_s=3_600)
    sites.start_coordinator(wait=20)
    sites.await_entry("aggregated", 1)
    sites.plants["west"].terminate()
    sites.plants["west"].wait()
    sites.start_plant("west")
    case = "a plant's clock is an hour ahead until round 1 is over, six rounds"
    ending = ended(sites, case, everybody)
    assert "west" not in ending.members[0]
    assert ending.excluded[0]["west"] == "4"
    assert ending.members[-1] == everybody
    assert "clock" in (sites.folder / "west.err").read_text(encoding="utf-8")


@needs_network
def test_a_coordinator_whose_disk_is_full_stops_and_goes_on_when_there_is_room(
    sites: Sites, everybody: tuple[str, ...]
) -> None:
    sites.start()
    sites.await_entry("round opened", 2)
    assert sites.coordinator is not None
    full = sites.site.log.stat().st_size  # no file of its can grow beyond this
    resource.prlimit(sites.coordinator.pid, resource.RLIMIT_FSIZE, (full, full))
    assert sites.coordinator.wait(timeout=300) not in {0, 1}, sites.words()  # 1 is a bug
    assert "cannot write" in sites.words() or "cannot be written" in sites.words()
    sites.start_coordinator()
    case = "the coordinator's disk is full while tokens are taken"
    ending = ended(sites, case, everybody)
    assert ending.members == (everybody,) * 3


@needs_network
def test_a_plant_whose_disk_is_full_says_nothing_it_could_not_keep(
    sites: Sites, everybody: tuple[str, ...]
) -> None:
    sites.start()
    sites.await_entry("aggregated", 1)
    whole = resource.prlimit(sites.plants["west"].pid, resource.RLIMIT_FSIZE)
    resource.prlimit(sites.plants["west"].pid, resource.RLIMIT_FSIZE, (0, whole[1]))
    sites.await_entry("pledges closed", 2)
    resource.prlimit(sites.plants["west"].pid, resource.RLIMIT_FSIZE, whole)
    ending = ended(sites, "a plant's disk is full in round 2", everybody)
    assert ending.members == (everybody, ("north", "south"), everybody)
