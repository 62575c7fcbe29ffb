"""A plant shares in a group only if the coordinator's log and the helper's log say the same."""

from types import SimpleNamespace
from typing import Any

import pytest

from sluice.errors import SettingError, VerificationError
from sluice.network.plant.grouping import GroupMember

EPOCH = SimpleNamespace(epoch=1, members=("north", "south"))
KEYS = {"north": "ab" * 32, "south": "cd" * 32}


def demanded(*, round_: int = 1, number: int | None = 0, epoch: Any = EPOCH, **theirs: Any) -> Any:
    """Return what a plant accepts in round 1, from logs that differ in what is given."""
    keys = theirs.get("keys", KEYS)
    helper = SimpleNamespace(epoch=theirs.get("epoch_there", EPOCH), key_of=keys.__getitem__)
    groups = SimpleNamespace(epoch=epoch, round=round_, number_of=lambda _: number)
    ledger: Any = SimpleNamespace(
        groups=groups, client=lambda name, **_: SimpleNamespace(key=KEYS[name])
    )
    member: Any = SimpleNamespace(
        _plant=SimpleNamespace(client="north"),
        _helper=lambda _: SimpleNamespace(catch_up=lambda: helper),
    )
    return GroupMember.demand_epoch(member, ledger, 1)


@pytest.mark.parametrize("changes", [{"epoch": None}, {"round_": 2}, {"number": None}])
def test_an_epoch_of_another_round_or_without_the_plant_is_none(changes: dict[str, Any]) -> None:
    assert demanded() is EPOCH
    with pytest.raises(VerificationError, match="the log has no epoch for round 1 with 'north'"):
        demanded(**changes)


def test_an_epoch_that_the_helper_does_not_have_is_refused() -> None:
    for other in (None, SimpleNamespace(epoch=1, members=("north", "west"))):
        with pytest.raises(VerificationError, match="has another epoch than the coordinator's"):
            demanded(epoch_there=other)


def test_a_member_that_the_helper_knows_under_another_key_is_named() -> None:
    with pytest.raises(VerificationError, match="the helper knows south under another key"):
        demanded(keys=KEYS | {"south": "ef" * 32})


def test_nothing_is_shared_in_a_group_of_which_a_member_has_not_pledged() -> None:
    member: Any = SimpleNamespace(
        _plant=SimpleNamespace(client="north"),
        _terms=SimpleNamespace(statistic=SimpleNamespace(malicious=1)),
        demand_epoch=lambda *_: EPOCH,
    )
    ledger: Any = SimpleNamespace(groups=SimpleNamespace(sharing=(1,), number_of=lambda _: 0))
    archived: Any = None
    with pytest.raises(VerificationError, match="nothing is shared"):
        GroupMember.hand_in(member, archived, ledger, 1)


def test_a_batch_whose_shares_are_gone_is_not_summed() -> None:
    archived: Any = SimpleNamespace(
        shares=SimpleNamespace(coordinator=SimpleNamespace(canonical=lambda: b"share"))
    )
    member: Any = None
    assert GroupMember.share_of(member, archived) == b"share"
    archived.shares = None
    with pytest.raises(SettingError, match="the batch has no shares; its files were changed"):
        GroupMember.share_of(member, archived)
