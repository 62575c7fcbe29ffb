"""What every loader must do, whichever it is; a new one in `FORMATS` is found here by itself."""

from pathlib import Path

import pytest

from sluice.telemetry.formats import FORMATS
from sluice.telemetry.formats.format import Format
from sluice.telemetry.source import Source
from sluice.telemetry.writers.layout import FileLayout, layout_for
from sluice.telemetry.writers.write import write

from ..unit.telemetry.test_record import filling_tank  # noqa: TID252

GARBAGE = (
    b"one line of prose\n",
    b"a,b\n1,2\n",
    b"\n\n\n,,,\n",
    b"{}\n",
    b"time,LIT101\n1,2\n3,4\n",
)


@pytest.fixture(params=FORMATS.values(), ids=lambda known: known.name)
def known(request: pytest.FixtureRequest) -> Format:
    found = request.param
    assert isinstance(found, Format)
    return found


def test_it_has_a_name_of_its_own_and_says_what_it_reads(known: Format) -> None:
    assert sum(other.name == known.name for other in FORMATS.values()) == 1
    assert known.title
    assert known.version


@pytest.mark.parametrize("data", GARBAGE)
def test_it_claims_nothing_that_is_not_its_own(known: Format, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "other.csv"
    path.write_bytes(data)
    assert not known.recognises(Source(path))


def test_it_leaves_plain_csv_alone(known: Format, tmp_path: Path) -> None:
    path = tmp_path / "plain.csv"
    write(filling_tank(), path, FileLayout.CSV)
    assert not known.recognises(Source(path))


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.jsonl", "a.state", "a.csv.gz"])
def test_every_suffix_has_a_layout_that_reads_back(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    write(filling_tank(), path, layout_for(path))
    assert path.stat().st_size > 0
