"""The split of section 4.2 against the figures of the paper's own implementation."""

import numpy as np
import pytest

from sluice.errors import SettingError
from sluice.telemetry.channel import Channel, Role
from sluice.telemetry.record import Record
from sluice.telemetry.split import Shares, shards, split

START = np.datetime64("2015-12-22T16:00:00", "us")


def counting(rows: int) -> Record:
    """A record whose only channel counts its rows."""
    return Record(
        name="counting",
        channels=(Channel(name="LIT101", role=Role.LEVEL),),
        values=np.arange(rows, dtype=float)[:, None],
        times=START + (np.arange(rows) * 5).astype("timedelta64[s]"),
        stride_s=5,
        labels=np.zeros(rows, np.int8),
    )


def test_swat_splits_as_published() -> None:
    parts = split(counting(94_680), clients=10)
    assert (len(parts.fit), len(parts.calibration)) == (14_202, 14_202)
    assert (len(parts.validation), len(parts.root)) == (14_202, 4_734)
    assert [len(shard) for shard in parts.shards] == [4_734] * 10


def test_batadal_shards_as_published() -> None:
    parts = split(counting(8_761), clients=5)
    assert [len(shard) for shard in parts.shards] == [876, 876, 876, 876, 877]


def test_wadi_shards_as_published() -> None:
    parts = split(counting(241_921), clients=10)
    assert [len(shard) for shard in parts.shards] == [12_096] * 9 + [12_097]


def test_slices_are_disjoint_in_time_order_and_lose_nothing() -> None:
    parts = split(counting(1_003), clients=7)
    rows = [parts.fit, parts.calibration, parts.validation, parts.root, *parts.shards]
    joined = np.concatenate([part.column("LIT101") for part in rows])
    assert np.array_equal(joined, np.arange(1_003))


@pytest.mark.parametrize("clients", [0, 11])
def test_more_clients_than_rows_are_refused(clients: int) -> None:
    with pytest.raises(SettingError, match=f"10 rows cannot be shared by {clients} clients"):
        shards(counting(10), clients=clients)


@pytest.mark.parametrize("clients", [1, 10])
def test_rows_are_shared_by_one_client_and_by_as_many_as_there_are_rows(clients: int) -> None:
    assert [len(shard) for shard in shards(counting(10), clients=clients)] == [
        10 // clients
    ] * clients


def test_shares_must_leave_rows_to_the_clients() -> None:
    with pytest.raises(SettingError, match="leave rows to the clients"):
        Shares(invariants=0.8, validation=0.15, root=0.05)


@pytest.mark.parametrize("name", ["invariants", "validation", "root"])
def test_no_share_is_zero(name: str) -> None:
    with pytest.raises(SettingError, match="shares must be positive"):
        Shares(**{name: 0.0})


def test_a_record_too_short_to_split_is_refused() -> None:
    with pytest.raises(SettingError, match="too few to split"):
        split(counting(8), clients=2)


def test_two_rows_are_enough_to_mine_and_one_is_not() -> None:
    shares = Shares(invariants=0.2, validation=0.2, root=0.2)
    parts = split(counting(10), clients=2, shares=shares)
    assert (len(parts.fit), len(parts.calibration)) == (1, 1)
    with pytest.raises(SettingError, match="has 9 rows, too few to split"):
        split(counting(9), clients=2, shares=shares)
