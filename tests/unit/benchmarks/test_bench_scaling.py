"""`attest-full --scaling`: how the cost of a proof grows with the rows of its batch."""

from pathlib import Path

import pytest

from benchmarks.attest import full as bench_attest
from benchmarks.attest import scaling
from benchmarks.attest.full import Subject
from benchmarks.attest.scaling import LONGEST, SIZES, Point, Proven, Scaling
from sluice.attestation.systems import Circuit
from sluice.telemetry import Record
from tests.unit.conftest import Run


def point(rows: int, *times: float) -> Point:
    proofs = tuple(
        Proven(
            seconds=seconds, cpu_s=2 * seconds, peak_bytes=round(250_000_000 + seconds),
            verify_s=0.006, proof_bytes=500_000,
        )
        for seconds in times
    )  # fmt: skip
    return Point(rows=rows, segments=1, proofs=proofs)


MEASURED = Scaling(
    plant="treatment",
    columns=915,
    proven_bits=100,
    processors=2,
    load=0.5,
    points=(point(1_000, 1.5), point(2_000, 9.0, 2.5, 1.0), point(LONGEST, 600.0)),
)


def test_forty_sizes_and_one_long_batch_are_proven(
    bench: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, object] = {}

    def simulated(plant: str, *, rows: int) -> None:
        asked.update(plant=plant, longest=rows)

    def measure(_: Subject, *, rows: object, advance: object) -> Scaling:
        assert callable(advance)
        asked.update(rows=rows)
        return MEASURED

    monkeypatch.setattr(bench_attest, "subject", simulated)
    monkeypatch.setattr(scaling, "bench_scaling", measure)
    seen = bench("attest-full", "--scaling", "--json")
    assert seen.code == 0, seen.err
    assert asked == {"plant": "treatment", "longest": LONGEST, "rows": (*SIZES, LONGEST)}
    assert (len(SIZES), SIZES[0], SIZES[-1]) == (40, 300, 100_000)
    lines = seen.json["lines"]
    assert isinstance(lines, list)
    assert [line["of"] for line in lines] == ["time", "processor time"]
    assert lines[0]["start_s"] == pytest.approx(0.5)
    assert lines[0]["row_s"] == pytest.approx(1e-3)


def test_small_batches_are_proven_and_a_page_is_written(
    bench: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "scaling.md"
    asked = ("--rows", 300, "--rows", 700, "--plant", "line", "--out", page, "--quiet")
    made: list[int] = []
    prove = scaling._prove

    def counted(batch: Record, circuit: Circuit) -> Proven:
        made.append(len(batch))
        return prove(batch, circuit)

    monkeypatch.setattr(scaling, "_prove", counted)
    monkeypatch.setattr(scaling, "RUNS_S", 0.0)
    seen = bench("attest-full", "--scaling", *asked)
    assert seen.code == 0, seen.err
    assert made == [300, *5 * [300], *5 * [700]]
    assert "largest memory" in seen.out
    lines = page.read_text().splitlines()
    starts = [line.split(" | ")[:3] for line in lines[-2:]]
    assert starts == [["| 300", "1", "5"], ["| 700", "2", "5"]]
    megabytes = float(lines[-1].split(" | ")[7].removesuffix(" MB"))
    assert 10 < megabytes < 200
    assert "with the statistic of `moments`" in page.read_text()


def test_the_line_leaves_out_the_longest_batch() -> None:
    assert [one.rows for one in MEASURED.fitted()] == [1_000, 2_000]
    shown = scaling.page(MEASURED)
    assert "**Straight line, time**: 0.50 s + 1000 us a row. The largest ratio of a batch" in shown
    longest = (
        "| 524,288 | 1 | 1 | 600.00 s | x 1.14 | 1200.00 s | 2289 us | 250 MB | 6 ms | 500 kB |"
    )
    assert longest in shown


def test_the_median_of_several_proofs_counts() -> None:
    several = MEASURED.points[1]
    assert (several.seconds, several.cpu_s) == (2.5, 5.0)
    assert several.peak_bytes == 250_000_009
    assert "| 2,000 | 1 | 3 | 2.50 s (1.00 to 9.00) | x 1.00 | 5.00 s" in scaling.page(MEASURED)
    batches = scaling.payload(MEASURED)["batches"]
    assert isinstance(batches, list)
    assert batches[1]["seconds"] == 2.5
    assert [proof["seconds"] for proof in batches[1]["proofs"]] == [9.0, 2.5, 1.0]


@pytest.mark.parametrize(
    ("rows", "times", "done"),
    [
        (4_999, 4 * [30.0], False),  # short: five proofs, however long they take
        (4_999, 5 * [30.0], True),
        (5_000, [30.0], True),
        (5_000, [5.1], True),  # one more would take too long
        (5_000, [4.9], False),
        (300, 19 * [0.5], False),
        (300, 20 * [0.5], True),
    ],
)
def test_a_batch_is_proven_often_enough(rows: int, times: list[float], *, done: bool) -> None:
    assert scaling.enough(rows, times) is done


def test_the_furthest_batch_is_above_or_below_the_line() -> None:
    rows = [1_000, 2_000, 3_000, 4_000]
    _, slope, ratio = scaling.furthest(rows, [1.0, 2.0, 3.0, 4.0])
    assert slope == pytest.approx(1e-3)
    assert ratio == pytest.approx(1.0)
    for last in (2.0, 8.0):
        assert scaling.furthest(rows, [1.0, 2.0, 3.0, last])[2] > 1.2


def test_the_line_is_the_nearest_one() -> None:
    start, slope, ratio = scaling.furthest([1, 2, 3], [1.0, 1.0, 1.0])
    assert (start, slope, ratio) == pytest.approx((1.0, 0.0, 1.0))
    start, slope, ratio = scaling.furthest([0, 1, 2], [1.0, 4.0, 1.0])  # 2 is twice and half
    assert (start, slope, ratio) == pytest.approx((2.0, 0.0, 2.0))


def test_one_batch_has_no_line(capfd: pytest.CaptureFixture[str]) -> None:
    alone = Scaling(
        plant="line", columns=9, proven_bits=100, processors=1, load=0.0, points=(point(300, 1.0),)
    )
    assert scaling.payload(alone)["lines"] == []
    scaling.show(alone)
    assert "a row; furthest" not in capfd.readouterr().out


def test_the_memory_of_another_process_is_not_that_of_a_prover() -> None:
    assert scaling._peak_of(Path("/proc/self")) == 0
    assert scaling._peak_of(Path("/proc/no-process")) == 0


def test_a_thread_that_ends_while_it_is_looked_at_hides_no_prover(tmp_path: Path) -> None:
    for thread in ("1", "2", "3"):
        (tmp_path / thread).mkdir()
    (tmp_path / "3" / "children").write_text("11 12 ")
    assert list(scaling._children(tmp_path)) == [Path("/proc/11"), Path("/proc/12")]


def test_a_proof_whose_memory_was_not_seen_is_an_error(
    bench: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scaling, "_peak_of", lambda _: 0)
    seen = bench("attest-full", "--scaling", "--plant", "line", "--rows", 300)
    assert seen.code != 0
    assert "the memory of the prover was not seen" in seen.err


def test_only_attest_full_scales(bench: Run) -> None:
    assert bench("gate", "--scaling").code == 2
    seen = bench("attest-full", "--scaling", "--plant", "line", "--rows", 64)
    assert seen.code == 2
    assert "proves 200 to 2,880 rows of 'line', got 64" in seen.err
