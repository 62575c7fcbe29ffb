"""HAI as releases 20.07 and 21.03 are."""

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from sluice.errors import RecordError
from sluice.telemetry.formats.hai import HAI
from sluice.telemetry.record import Label
from sluice.telemetry.source import Source

from .conftest import Put

RELEASE_21 = (
    b"time,P1_B2004,P1_B2016,P1_FT01,attack,attack_P1,attack_P2,attack_P3\n"
    b"2020-07-07 15:00:00,0.0983,1.0702,132.98,0,0,0,0\n"
    b"2020-07-07 15:00:01,0.0983,1.0376,137.55,1,1,0,0\n"
)
RELEASE_20 = (
    b"time;P1_B2004;P1_B2016;P1_FT01;attack;attack_P1\n"
    b"2019-09-11 20:00:00;0.0983;1.0702;132.98;0;0\n"
)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_the_attack_column_labels_release_21(put: Put, pack: Callable[[bytes], bytes]) -> None:
    source = put("test1.csv.gz", pack(RELEASE_21))
    assert HAI.recognises(source)
    table = HAI.load(source)
    assert table.frame.columns == ["P1_B2004", "P1_B2016", "P1_FT01"]
    assert table.labels.tolist() == [Label.NORMAL, Label.ATTACK]
    assert str(table.times[1]) == "2020-07-07T15:00:01.000000"


def test_release_20_has_semicolons(put: Put) -> None:
    table = HAI.load(put("train1.csv", RELEASE_20))
    assert table.frame.columns == ["P1_B2004", "P1_B2016", "P1_FT01"]
    assert table.labels.tolist() == [Label.NORMAL]


def test_the_thinned_release_20_is_read(plant_data: Callable[..., Path]) -> None:
    source = Source(plant_data("hai", "hai2007_train_100s.csv"))
    assert HAI.recognises(source)
    table = HAI.load(source)
    assert table.frame.shape == (3_096, 59)
    assert table.frame.null_count().sum_horizontal().item() == 0
    assert set(table.labels) == {Label.UNLABELLED}
    steps = np.diff(table.times) / np.timedelta64(1, "s")
    assert np.median(steps) == 100


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        (b",1,1,0,0\n", b",2,1,0,0\n", "label column 'attack' holds 2.0"),
        (b"2020-07-07 15:00:01", b"yesterday", "row 1 has the time stamp 'yesterday'"),
        (b"137.55", b"high", "channel 'P1_FT01' holds 'high' at row 1"),
        (b"137.55,1,1,0,0\n", b"", "line 3 has 4 cells"),
    ],
)
def test_a_damaged_file_is_refused(put: Put, old: bytes, new: bytes, complaint: str) -> None:
    with pytest.raises(RecordError, match=complaint):
        HAI.load(put("damaged.csv", RELEASE_21.replace(old, new, 1)))


@pytest.mark.parametrize(
    "content", [b"time,FIT101\n", b"Time\tTank_1\tPump_1\tValv_1\n", b"\xff,\n"]
)
def test_other_files_are_not_claimed(put: Put, content: bytes) -> None:
    assert not HAI.recognises(put("other.csv", content))
