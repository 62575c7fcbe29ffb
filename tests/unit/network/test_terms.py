"""The documents by which plants join are read up to a limit; terms that cannot work are refused."""

import math
from dataclasses import replace
from pathlib import Path

import pytest

from sluice.attestation.log.entries import LogTerms, StatisticChannel, StatisticTerms
from sluice.attestation.messages import HelperCard, StatisticLimits
from sluice.errors import DocumentError, SettingError
from sluice.network.coordinator.founding import FederationPlan
from sluice.network.terms import (
    FederationTerms,
    JoinRequest,
    demand_phase_terms,
    read_document,
)
from sluice.network.training_rows import TrainingRows

LARGEST = 16 * 1024 * 1024


def test_a_file_beyond_the_limit_is_not_parsed(tmp_path: Path) -> None:
    path = tmp_path / "request.json"
    path.write_bytes(b" " * LARGEST)
    with pytest.raises(DocumentError, match="is not a valid join request"):
        read_document(JoinRequest, path)
    path.write_bytes(b" " * (LARGEST + 1))
    with pytest.raises(SettingError, match="expected at most 16,777,216 bytes"):
        read_document(JoinRequest, path)


PLAN = FederationPlan(
    federation="water",
    host="127.0.0.1",
    port=1,
    link_port=2,
    reference=TrainingRows(record="line.csv", start=0, stop=1),
    policy="",
    approvers=("ab" * 32,),
)
MONTH_S = 30 * 86_400.0


@pytest.mark.parametrize(
    "deadline", [0.0, -1.0, math.nan, math.inf, math.nextafter(MONTH_S, math.inf)]
)
def test_a_deadline_that_never_comes_or_is_over_at_once_is_refused(deadline: float) -> None:
    with pytest.raises(SettingError, match=f"got {deadline} s for batches"):
        replace(PLAN, batch_deadline_s=deadline)
    with pytest.raises(SettingError, match=f"{deadline} s for rounds"):
        replace(PLAN, round_deadline_s=deadline)


def test_deadlines_from_nothing_to_a_month_are_taken() -> None:
    for deadline in (math.nextafter(0, 1), 0.5, MONTH_S):
        assert replace(PLAN, batch_deadline_s=deadline, round_deadline_s=deadline)


def test_a_plant_is_suspended_after_one_round_at_the_earliest() -> None:
    assert replace(PLAN, suspend_after=1)
    with pytest.raises(SettingError, match="suspend_after at least 1 round; got .* and 0 rounds"):
        replace(PLAN, suspend_after=0)


def test_a_round_may_be_of_one_plant_and_not_of_none() -> None:
    assert replace(PLAN, members_min=1)
    with pytest.raises(SettingError, match="members_min is 0"):
        replace(PLAN, members_min=0)


@pytest.mark.parametrize(("port", "link", "filter_"), [(2, 2, 3), (1, 2, 1), (1, 2, 2), (5, 5, 5)])
def test_two_servers_cannot_share_a_port(port: int, link: int, filter_: int) -> None:
    with pytest.raises(SettingError, match="need three ports; got"):
        replace(PLAN, port=port, link_port=link, filter_port=filter_)


def test_no_more_approvals_are_needed_than_there_are_approvers() -> None:
    two = ("ab" * 32, "cd" * 32)
    assert replace(PLAN, approvers=two, log=LogTerms(approvals=2))
    with pytest.raises(SettingError, match="2 approvals are needed and 1 approvers are named"):
        replace(PLAN, approvers=two[:1] * 2, log=LogTerms(approvals=2))
    with pytest.raises(SettingError, match="at least one approver"):
        replace(PLAN, approvers=())


def phases(*, quorum: float = 0.5, grace_s: float = 1.0, update_max: float = 1.0) -> None:
    demand_phase_terms(quorum=quorum, grace_s=grace_s, update_max=update_max)


def test_the_terms_of_a_phase_are_in_range() -> None:
    for quorum in (0.0, -0.5, math.nextafter(1, 2), math.nan):
        with pytest.raises(SettingError, match="quorum must be a share"):
            phases(quorum=quorum)
    for grace in (-0.5, math.inf, math.nan):
        with pytest.raises(SettingError, match="grace must be 0 or more"):
            phases(grace_s=grace)
    for largest in (0.0, -1.0, math.inf, math.nan):
        with pytest.raises(SettingError, match="finite number above 0"):
            phases(update_max=largest)
    phases(quorum=1.0)
    phases(quorum=0.01, grace_s=0.0, update_max=0.5)
    with pytest.raises(SettingError, match="quorum must be a share"):
        replace(PLAN, quorum=0.0)


def test_a_plan_says_how_many_points_a_plant_may_lack() -> None:
    with pytest.raises(SettingError, match="reads every point"):
        replace(PLAN, overlap_min=0.9)
    summed = replace(PLAN, detector="moments", rule="vote")
    assert replace(summed, overlap_min=0.9)
    with pytest.raises(SettingError, match="above 0 and at most 1"):
        replace(summed, overlap_min=1.1)


def test_a_statistic_may_cover_exactly_the_largest_batch() -> None:
    summed = replace(PLAN, detector="moments", rule="vote", rows_max=500)
    assert replace(summed, limits=StatisticLimits(rows_min=500))
    with pytest.raises(SettingError, match="raise --largest"):
        replace(summed, limits=StatisticLimits(rows_min=501))


TERMS = FederationTerms(
    federation="water",
    coordinator="ab" * 32,
    host="127.0.0.1",
    port=1,
    system="full",
    rows_max=4_096,
    policy="",
    channels=("level",),
    mean=(0.0,),
    spread=(1.0,),
    stride_s=60.0,
    window_rows=10,
    epochs=1,
    batch=256,
    learning_rate=0.001,
    seed=0,
    rule="vote",
    rounds=1,
    batch_deadline_s=600.0,
    round_deadline_s=600.0,
    suspend_after=5,
    members_min=9,
)


def test_plants_lend_or_share_in_groups_if_the_statistic_says_so() -> None:
    level = StatisticChannel(
        channel="level", mean=0.0, spread=1.0, resolution=0.1, low=0.0, step=0.1
    )
    plain = StatisticTerms(lags=10, stride_s=60.0, channels=(level,), rule="vote", malicious=1)
    card = HelperCard(federation="water", host="h", port=1, key="cd" * 32, authority="")
    hidden = replace(plain, bound=True, helper=card)
    for statistic, lends, grouped in (
        (None, False, False),
        (plain, False, False),
        (replace(plain, lends=True), True, False),
        (hidden, False, True),
        (replace(hidden, lends=True), False, True),
    ):
        terms = replace(TERMS, statistic=statistic)
        assert (terms.lends, terms.grouped) == (lends, grouped)
