"""`mapping`: how often `sluice plant map` proposes the right point, on varied treatment sites."""

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from sluice.files import atomically
from sluice.lab.plants import VariedSite, simulate, varied_site
from sluice.telemetry import Record
from sluice.template import CONFIDENT, Match, Template, derive_template, propose

__all__ = ["Counted", "counted", "main", "page"]

SKIP_S = 6 * 3_600.0
EVERY = 5
DAYS = 3.0
REFERENCE_SEED = 50
SITES = 10  # by which a seed picks a site's number
TARGET = 0.95
SUMMED = (
    *("moving", "right", "twins", "apart", "apart_right", "still", "still_right", "tags"),
    *("all_right", "kept_right", "confident"),
)

LETTERS = {
    "AIT": "AT",
    "DPIT": "PDT",
    "FIT": "FT",
    "LIT": "LT",
    "MV": "XV",
    "P": "PMP",
    "PIT": "PT",
}

HEAD = """# Proposals of a mapping

Written by `python -m benchmarks mapping`; do not edit. `sluice plant map` proposes which tag of a
plant is which point of a template that was derived from another plant. Proposals with a confidence
below 0.9 are shown to an operator and not taken.

"""

EXPLAINED = """
## What is counted

Each site is a simulated `treatment` plant with other units, sizes and columns in another order,
some without a meter or with one more analyser. It is mapped twice:

- **drawn tags**: each tag has a number that is drawn at random, so no name helps. Everything must
  come from readings, units, spans and codes.
- **kept numbers**: tags have other letters and a prefix, and keep the numbers of the design:
  `N-PMP-102` is P102. Plants of one design often do so.

Three kinds of points differ in what readings can tell:

- **moving, without a twin**: a reading tells which one it is.
- **moving, with a twin**: no reading tells it from one other point. MV301 and MV303 have the same
  reading in every row. FIT401 and FIT501 are two meters of one flow, with equal noise; some sites
  have one of them only. Exchanged twins give the same statistic, or one that differs by noise. With
  drawn tags their order is drawn too, so they are right in half of the sites by chance: a method
  that is right wherever readings can tell has about 95 % of the moving points right. That share
  varies by chance: on three earlier sets of 20 sites it was 94.5 % (seeds 140 to 159), 96.0 % (160
  to 179) and 93.2 % (180 to 199).
- **never moving**: standby pumps, and equipment that always runs. Readings tell only which of these
  two it is, and that is weak evidence: at another plant the other pump is on standby. Without
  names, these proposals are guesses. Their confidence says so, and an operator decides them. No
  statistic, vote or proof depends on which is which while they stand still.

Names and states choose only among proposals that are otherwise equal, and add nothing to a
confidence. *Taken* is the number of tags whose confidence is 0.9 or more.

## Each site

"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Counted:
    """The proposals of one site."""

    seed: int
    moving: int  # tags whose point moves in the reference
    right: int  # of them
    twins: int  # of them: proposed for the point of their twin
    apart: int  # tags whose point moves and has no twin in the reference
    apart_right: int  # of them
    still: int  # tags whose point never moves in the reference
    still_right: int  # of them
    tags: int
    all_right: int  # of all tags; a tag that is no point is right if it is proposed for none
    kept_right: int  # of all tags, if they keep the numbers of the design
    wrong_confidence: float  # the largest of a wrong proposal that is no twin, both ways
    confident: int  # proposals that are taken without an operator


def counted(seed: int, template: Template, *, days: float = DAYS) -> Counted:
    """Count the proposals of one site."""
    site = varied_site("treatment", 1 + seed % SITES, seed=seed, days=days)
    record = site.record.without_first(SKIP_S).every(EVERY)
    still = {point.name for point in template.points if point.still}
    paired = {point.name for point in template.points if point.twins}
    matches, truth = propose(record, template).matches, site.reference
    moving = [match for match in matches if truth.get(match.tag, "") not in (still | {""})]
    standing = [match for match in matches if truth.get(match.tag) in still]
    twins = [
        match
        for match in moving
        if match.point != truth[match.tag] and truth[match.tag] in match.twins
    ]
    apart = [match for match in moving if truth[match.tag] not in paired]
    renamed, own = _with_kept_numbers(record, site)
    kept = propose(renamed, template).matches
    return Counted(
        seed=seed,
        moving=len(moving),
        right=_right(moving, truth),
        twins=len(twins),
        apart=len(apart),
        apart_right=_right(apart, truth),
        still=len(standing),
        still_right=_right(standing, truth),
        tags=len(matches),
        all_right=_right(matches, truth),
        kept_right=_right(kept, own),
        wrong_confidence=max(_most_wrong(matches, truth), _most_wrong(kept, own)),
        confident=sum(match.confident for match in matches),
    )


def _with_kept_numbers(record: Record, site: VariedSite) -> tuple[Record, dict[str, str]]:
    """Return the record with tags that keep the numbers of the design, and what each tag is."""
    tags = {tag: _kept(point) for tag, point in site.reference.items()}
    channels = tuple(replace(each, name=tags.get(each.name, each.name)) for each in record.channels)
    return replace(record, channels=channels), {
        tags[tag]: point for tag, point in site.reference.items()
    }


def _kept(point: str) -> str:
    letters, number = re.findall(r"[A-Z]+|\d+", point)
    return f"N-{LETTERS.get(letters, letters)}-{number}"


def _right(matches: Sequence[Match], truth: Mapping[str, str]) -> int:
    return sum(match.point == truth.get(match.tag) for match in matches)


def _most_wrong(matches: Sequence[Match], truth: Mapping[str, str]) -> float:
    """Return the largest confidence of a wrong proposal; an exchanged twin is no wrong one."""
    return max(
        (
            match.confidence
            for match in matches
            if match.point is not None
            and match.point != truth.get(match.tag)
            and truth.get(match.tag) not in match.twins
        ),
        default=0.0,
    )


def page(sites: Sequence[Counted]) -> str:
    """Return the page of what is counted."""
    columns = (
        *("seed", "moving: right", "right or twin", "without a twin: right", "never moving: right"),
        *("all tags: right", "all, kept numbers: right", "taken", "largest confidence, if wrong"),
    )
    lines = [f"{HEAD}{_answer(sites)}{EXPLAINED}| {' | '.join(columns)} |"]
    lines.append(f"|{'---|' * len(columns)}")
    lines += [
        f"| {one.seed} | {one.right} of {one.moving} | {one.right + one.twins} of {one.moving} | "
        f"{one.apart_right} of {one.apart} | {one.still_right} of {one.still} | "
        f"{one.all_right} of {one.tags} | {one.kept_right} of {one.tags} | "
        f"{one.confident} of {one.tags} | {one.wrong_confidence:.3f} |"
        for one in sites
    ]
    return "\n".join(lines) + "\n"


def _answer(sites: Sequence[Counted]) -> str:
    """Return the shares of all sites, and which of them reach the target."""
    total = Counted(
        seed=0,
        wrong_confidence=max(one.wrong_confidence for one in sites),
        **{name: sum(getattr(one, name) for one in sites) for name in SUMMED},
    )
    shares = (
        ("moving points", total.right, total.moving),
        (
            "moving points, if exchanged twins count as right",
            total.right + total.twins,
            total.moving,
        ),
        ("moving points without a twin", total.apart_right, total.apart),
        (
            "moving points with a twin: guesses",
            total.right - total.apart_right,
            total.moving - total.apart,
        ),
        ("points that never move: guesses", total.still_right, total.still),
        ("all tags", total.all_right, total.tags),
        ("all tags, if they keep the numbers of the design", total.kept_right, total.tags),
    )
    said = (
        f"{len(sites)} sites, seeds {sites[0].seed} to {sites[-1].seed}. The target is "
        f"{TARGET:.0%}; above a confidence of {CONFIDENT} none may be wrong.\n"
    )
    lines = [
        said,
        "| what is counted | right | target |",
        "|---|---|---|",
    ]
    lines += [
        f"| {what} | **{right / count:.1%}** of {count} | "
        f"{'holds' if right >= TARGET * count else 'is missed'} |"
        for what, right, count in shares
    ]
    held = "holds" if total.wrong_confidence <= CONFIDENT else "is missed"
    lines.append(
        f"| largest confidence of a wrong one | **{total.wrong_confidence:.3f}** | {held} |"
    )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Count the sites and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks mapping", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results/mapping.md"))
    parser.add_argument("--first-seed", type=int, default=200, help="settings: below 100")
    parser.add_argument("--sites", type=int, default=20)
    given = parser.parse_args()
    reference = simulate("treatment", seed=REFERENCE_SEED, days=DAYS)
    template = derive_template(reference.without_first(SKIP_S).every(EVERY))
    last = given.first_seed + given.sites
    sites = [counted(seed, template) for seed in range(given.first_seed, last)]
    with atomically(given.out) as draft:
        draft.write_text(page(sites), encoding="utf-8")
    print(f"{given.out}: {len(sites)} sites")


if __name__ == "__main__":
    main()
