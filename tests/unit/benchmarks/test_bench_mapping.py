"""Counts of proposals, in small, and their page."""

from benchmarks.mapping import Counted, counted, page
from sluice.lab.plants import simulate
from sluice.template import derive_template


def test_a_site_is_counted_and_the_page_says_what_holds() -> None:
    reference = simulate("treatment", seed=50, days=0.5)
    template = derive_template(reference.without_first(6 * 3_600.0).every(5))
    site = counted(3, template, days=0.5)
    assert site.moving >= site.right + site.twins
    assert site.tags >= site.moving
    fine = Counted(
        seed=120,
        moving=40,
        right=37,
        twins=2,
        apart=36,
        apart_right=36,
        tags=50,
        all_right=38,
        wrong_confidence=0.01,
        confident=30,
    )
    text = page([fine])
    assert "**92.5% of 40 moving points are right, 97.5% are right or twins.**" in text
    assert "Of the 36 without a twin, 100.0% are right." in text
    assert "is missed if exchanged twins count as wrong, and holds if they do not" in text
    assert "| 120 | 40 | 37 | 39 | 36 of 36 | 30 of 50 | 0.010 |" in text
