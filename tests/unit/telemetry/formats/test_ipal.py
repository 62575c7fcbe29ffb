"""IPAL's state files, as its transcriber and its dataset scripts write them."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from sluice.errors import RecordError
from sluice.telemetry.formats import ipal
from sluice.telemetry.formats.ipal import IPAL
from sluice.telemetry.record import Label

from .conftest import Put

LINES = (
    b'{"timestamp": 1451294953, "state": {"FIT101": 2.4, "MV101": 2}, "malicious": false}\n'
    b'{"timestamp": 1451294954, "state": {"FIT101": 0, "MV101": true}, "malicious": "1"}\n'
    b'{"timestamp": 1451294955.25, "state": {"MV101": false, "LIT101": "5e2"}, "malicious": true}\n'
    b'{"timestamp": 1451294956, "state": {"FIT101": null, "MV101": 1}, "malicious": null}\n'
    b'{"timestamp": 1451294957, "state": {"FIT101": 2.5, "MV101": 1}}\n'
)


ALIKE = LINES.replace(b"true}, ", b"1}, ").replace(b'{"MV101": false', b'{"MV101": 0')
"""The same with one kind of value per tag, which takes the quicker way."""


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_states_of_every_kind_are_read(put: Put, pack: Callable[[bytes], bytes]) -> None:
    source = put("plant.state.gz", pack(LINES))
    assert IPAL.recognises(source)
    table = IPAL.load(source)
    assert table.frame.columns == ["FIT101", "MV101", "LIT101"]
    assert table.frame["FIT101"].to_list() == [2.4, 0.0, None, None, 2.5]
    assert table.frame["MV101"].to_list() == [2.0, 1.0, 0.0, 1.0, 1.0]
    assert table.frame["LIT101"].to_list() == [None, None, 500.0, None, None]
    assert table.labels.tolist() == [
        Label.NORMAL,
        Label.ATTACK,
        Label.ATTACK,
        Label.UNLABELLED,
        Label.UNLABELLED,
    ]
    assert str(table.times[2]) == "2015-12-28T09:29:15.250000"


def test_booleans_and_numbers_in_one_tag_read_as_numbers_alone_do(put: Put) -> None:
    mixed, alike = IPAL.load(put("mixed.state", LINES)), IPAL.load(put("alike.state", ALIKE))
    assert mixed.frame.equals(alike.frame)
    assert mixed.labels.tolist() == alike.labels.tolist()


def test_tags_keep_the_order_of_the_first_line_and_later_ones_follow_by_name(put: Put) -> None:
    tags = [f"TAG{(at * 37) % 101}" for at in range(101)]
    first = json.dumps({"timestamp": 1, "state": dict.fromkeys(tags, 0.5), "malicious": False})
    later = '{"timestamp": 2, "state": {"Z": 1, "Y": 2}, "malicious": false}'
    table = IPAL.load(put("many.state", f"{first}\n{later}\n".encode()))
    assert table.frame.columns == [*tags, "Y", "Z"]


def test_the_attack_list_labels_what_the_lines_do_not(put: Put) -> None:
    put("attacks.json", b'[{"id": "1", "start": 1451294957, "end": 1451294957}]')
    labels = IPAL.load(put("plant.state", LINES)).labels
    assert labels.tolist() == [0, 1, 1, Label.NORMAL, Label.ATTACK]


def test_the_published_attack_list_of_swat_is_understood(
    put: Put, plant_data: Callable[..., Path]
) -> None:
    put("attacks.json", plant_data("formats", "swat_attacks_ipal.json").read_bytes())
    lines = b"".join(
        b'{"timestamp": %d, "state": {"MV101": 2}, "malicious": null}\n' % at
        for at in (1451294953, 1451294954, 1451295893, 1451295894)
    )
    assert IPAL.load(put("plant.state", lines)).labels.tolist() == [0, 1, 1, 0]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (LINES[:-20], "line 5 is not a JSON object"),
        (LINES.replace(b"true}\n", b"0}\n"), "which may mean no attack"),
        (LINES.replace(b"1451294954,", b'"noon",'), "row 1 has the time stamp 'noon'"),
        (LINES.replace(b'"5e2"', b'"full"'), "channel 'LIT101' holds 'full' at row 2"),
        (LINES.replace(b'"5e2"', b"[5]"), r"channel 'LIT101' holds '\[5\]' at row 2"),
        (ALIKE.replace(b'"5e2"', b"[5]"), "state 'LIT101' holds lists or objects"),
        (LINES.replace(b', "state": {"FIT101": 2.5, "MV101": 1}', b""), "row 4 has no 'state'"),
        (ALIKE.replace(b'"state"', b'"data"'), "give the state file instead"),
    ],
)
def test_a_damaged_file_is_refused(put: Put, content: bytes, complaint: str) -> None:
    with pytest.raises(RecordError, match=complaint):
        IPAL.load(put("damaged.state", content))


def test_a_line_is_as_long_as_the_limit_and_no_longer(
    put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = put("plant.state", LINES)
    longest = max(map(len, LINES.splitlines(keepends=True)))
    monkeypatch.setattr(ipal, "LONGEST_LINE", longest)
    assert IPAL.load(source).frame.height == 5
    monkeypatch.setattr(ipal, "LONGEST_LINE", longest - 1)
    with pytest.raises(RecordError, match=f"line 3 has more than {longest - 1} bytes"):
        IPAL.load(source)


@pytest.mark.parametrize(
    ("attacks", "complaint"),
    [
        (b"[{", "is not JSON"),
        (b'[{"id": "1", "start": "12/09/16", "end": "13/09/16"}]', "runs from '12/09/16'"),
        (b'[{"id": "1", "start": 9, "end": 3}]', "start <= end"),
    ],
)
def test_an_attack_list_that_cannot_be_read_is_refused(
    put: Put, attacks: bytes, complaint: str
) -> None:
    put("attacks.json", attacks)
    with pytest.raises(RecordError, match=complaint):
        IPAL.load(put("plant.state", LINES))


@pytest.mark.parametrize(
    "content",
    [
        b"{",
        b"{}\n",
        b'{"timestamp": 1, "data": {}}\n',
        b"[1]\n",
        b"[" * 100_000,
        b"\xff{\n",
        b"a,b\n",
    ],
)
def test_other_files_are_not_claimed(put: Put, content: bytes) -> None:
    assert not IPAL.recognises(put("other.json", content))
