"""`mapping`: how often `sluice plant map` proposes the right point, on varied treatment sites."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from sluice.files import atomically
from sluice.lab.plants import simulate, varied_site
from sluice.template import CONFIDENT, Match, Template, derive_template, propose

__all__ = ["Counted", "counted", "main", "page"]

SKIP_S = 6 * 3_600.0
EVERY = 5
DAYS = 3.0
REFERENCE_SEED = 50
SITES = 10  # by which a seed picks a site's number

HEAD = """# Proposals of a mapping

Written by `python -m benchmarks mapping`; do not edit. Each line is a simulated site of `treatment`
with other tags, units, sizes and columns in another order, some without a meter or with one more
analyser. `sluice plant map` proposes which tag is which point of a template that was derived from
another plant. Proposals with a confidence below 0.9 are shown to an operator and not taken.

*Right* counts points that move in the reference. *Right or twin* also counts a tag that is proposed
for a point that no reading tells from its own. There are two such pairs of points. MV301 and MV303
have the same reading in every row. FIT401 and FIT501 are two meters of one flow, with equal noise;
some sites have one of them only. Exchanged twins give the same statistic, or one that differs by
noise. They are proposed in the order of their tags. Here tags are drawn, so that is right in half
of the sites by chance: a method that is right wherever readings can tell has about 95 % right.
*Told apart* counts the points without a twin.
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
    tags: int
    all_right: int  # of all tags; points that never move are guesses
    wrong_confidence: float  # the largest of a wrong proposal that is no twin
    confident: int  # proposals that are taken without an operator


def counted(seed: int, template: Template, *, days: float = DAYS) -> Counted:
    """Count the proposals of one site."""
    site = varied_site("treatment", 1 + seed % SITES, seed=seed, days=days)
    record = site.record.without_first(SKIP_S).every(EVERY)
    still = {point.name for point in template.points if point.still}
    matches = propose(record, template).matches
    truth = site.reference
    moving = [match for match in matches if truth.get(match.tag, "") not in (still | {""})]
    right = [match for match in moving if match.point == truth[match.tag]]
    twins = [match for match in moving if match not in right and truth[match.tag] in match.twins]
    paired = {point.name for point in template.points if point.twins}
    apart = [match for match in moving if truth[match.tag] not in paired]
    wrong = [match for match in matches if _wrong(match, truth.get(match.tag))]
    return Counted(
        seed=seed,
        moving=len(moving),
        right=len(right),
        twins=len(twins),
        apart=len(apart),
        apart_right=sum(match in right for match in apart),
        tags=len(matches),
        all_right=sum(match.point == truth.get(match.tag) for match in matches),
        wrong_confidence=max((match.confidence for match in wrong), default=0.0),
        confident=sum(match.confident for match in matches),
    )


def _wrong(match: Match, truth: str | None) -> bool:
    return match.point is not None and match.point != truth and truth not in match.twins


def page(sites: Sequence[Counted]) -> str:
    """Return the page of what is counted."""
    moving, right = sum(one.moving for one in sites), sum(one.right for one in sites)
    twins = sum(one.twins for one in sites)
    apart, told = sum(one.apart for one in sites), sum(one.apart_right for one in sites)
    tags = sum(one.tags for one in sites)
    worst = max(one.wrong_confidence for one in sites)
    held = "holds" if right >= 0.95 * moving else "is missed"
    either = "holds" if right + twins >= 0.95 * moving else "is missed"
    found = (
        f"{len(sites)} sites, seeds {sites[0].seed} to {sites[-1].seed}: **{right / moving:.1%} of "
        f"{moving} moving points are right, {(right + twins) / moving:.1%} are right or twins.** "
        f"Of the {apart} without a twin, {told / apart:.1%} are right. The target of 95 % {held} "
        f"if exchanged twins count as wrong, and {either} if they do not. Of all "
        f"{tags} tags, {sum(one.all_right for one in sites) / tags:.1%} are right: points that "
        f"never move are guesses. The largest confidence of a wrong proposal is {worst:.3f}; "
        f"above {CONFIDENT} none may be wrong.\n"
    )
    columns = (
        *("seed", "moving", "right", "right or twin", "told apart", "taken"),
        "largest confidence, if wrong",
    )
    lines = [HEAD, found, f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    lines += [
        f"| {one.seed} | {one.moving} | {one.right} | {one.right + one.twins} | "
        f"{one.apart_right} of {one.apart} | {one.confident} of {one.tags} | "
        f"{one.wrong_confidence:.3f} |"
        for one in sites
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Count the sites and write the page."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks mapping", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("docs/results/mapping.md"))
    parser.add_argument("--first-seed", type=int, default=160, help="settings: below 100")
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
