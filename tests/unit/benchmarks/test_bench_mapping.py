"""Counts of proposals, in small, and their page."""

from dataclasses import replace

from benchmarks.mapping import Counted, counted, page
from sluice.lab.plants import simulate
from sluice.template import derive_template


def test_a_site_is_counted_and_the_page_says_what_holds() -> None:
    reference = simulate("treatment", seed=50, days=0.5)
    template = derive_template(reference.without_first(6 * 3_600.0).every(5))
    site = counted(3, template, days=0.5)
    assert site.moving >= site.right + site.twins
    assert site.tags >= site.moving
    assert site.still + site.moving <= site.tags
    assert site.kept_right > site.all_right  # drawn tags leave points that never move to guesses
    assert site.wrong_confidence < 0.9
    fine = Counted(
        seed=120,
        moving=40,
        right=37,
        twins=2,
        apart=36,
        apart_right=36,
        still=10,
        still_right=1,
        tags=50,
        all_right=38,
        kept_right=49,
        wrong_confidence=0.01,
        confident=30,
    )
    text = page([fine])
    for line in (
        "| moving points | **92.5%** of 40 | is missed |",
        "| moving points, if exchanged twins count as right | **97.5%** of 40 | holds |",
        "| moving points without a twin | **100.0%** of 36 | holds |",
        "| moving points with a twin: guesses | **25.0%** of 4 | is missed |",
        "| points that never move: guesses | **10.0%** of 10 | is missed |",
        "| all tags | **76.0%** of 50 | is missed |",
        "| all tags, if they keep the numbers of the design | **98.0%** of 50 | holds |",
        "| largest confidence of a wrong one | **0.010** | holds |",
        "| 120 | 37 of 40 | 39 of 40 | 36 of 36 | 1 of 10 | 38 of 50 | 49 of 50 | 30 of 50 | 0.010",
    ):
        assert line in text
    assert "| largest confidence of a wrong one | **0.910** | is missed |" in page(
        [replace(fine, wrong_confidence=0.91)]
    )
