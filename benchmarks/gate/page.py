"""The evaluation as one page: for each test a table, and what it does and does not show."""

from collections import Counter
from collections.abc import Iterable, Sequence

from benchmarks.gate.outcome import CHANCE, Outcome
from sluice.lab.audits import FREEZE_JITTER, Fabricated, Honest, Proportion

__all__ = ["page"]

ALPHA = 0.01
REASONS = 2
LISTED = 12  # refusals shown in full; the rest is in --json
HOLD = ("all hold", "one requirement fails", "two requirements fail", "three requirements fail")
REACHED = {"record": "the whole record", "batch": "a batch"}


def page(outcomes: Sequence[Outcome], skipped: Sequence[str], *, quick: bool) -> str:
    """Return the page as Markdown."""
    parts = [
        "# Evaluation of the gate",
        (
            "Written by `make evaluate` (`python -m benchmarks evaluation`); do not edit. The same "
            "code and data give the same page. Rules are mined and calibrated on the clean rows "
            "named here and frozen before any batch is judged. Intervals are Wilson's at 95 %."
        ),
        (
            "The miner and its margins were chosen on seeds below 100 of these plants, and on "
            "BATADAL; the simulated plants on this page have seeds from 100 on. [Honest batches]"
            "(honest.md) has more plants and more minings."
        ),
    ]
    if quick:
        parts.append("**A quick run: one seed and few batches. Do not cite its numbers.**")
    parts += skipped
    parts += [
        _table(
            ("plant", "mined and calibrated on", "rules", "rules hash"),
            (
                (o.plant, o.mined_on, str(o.coverage[0].rules), f"`{o.rules_hash}`")
                for o in outcomes
            ),
        ),
        *_must_hold(outcomes),
        *_coverage(outcomes),
        *_honest(outcomes),
        *_fabrications(outcomes),
        *_freezes(outcomes),
        *_ramps(outcomes),
    ]
    return "\n\n".join(parts) + "\n"


def _must_hold(outcomes: Sequence[Outcome]) -> list[str]:
    lines = []
    for outcome in outcomes:
        hardened, wide, *_ = outcome.coverage
        violations = []
        if hardened.covered < wide.covered:
            violations.append(
                f"The hardened rules cover {hardened.covered} attacks, paper-wide {wide.covered}"
            )
        above = [
            f"{season.season}: {_share(season.honest.refused)}"
            for season in outcome.seasons
            if season.honest.refused.low > ALPHA
        ]
        if above:
            violations.append(f"Honest refusals lie above 1 % ({'; '.join(above)})")
        unmatched = sum(len(each.unmatched) for each in outcome.fabrications)
        if unmatched:
            kinds = ", ".join(_unmatched(each) for each in outcome.fabrications if each.unmatched)
            batches = "1 batch is" if unmatched == 1 else f"{unmatched} batches are"
            violations.append(f"{batches} admitted without matching states: {kinds}")
        lines.append(f"- {outcome.plant}: {'. '.join((HOLD[len(violations)], *violations))}.")
    return [
        "## Requirements",
        (
            "The hardened rules cover at least as many attacks as the paper's wide rules. The "
            "interval of refused honest batches does not lie above 1 % in any season. No "
            "fabricated batch is admitted, except splices whose pieces meet in the same state."
        ),
        "\n".join(lines),
    ]


def _unmatched(each: Fabricated) -> str:
    name = f"a {each.name} pieces" if each.name.startswith("splice") else each.name
    times = f" ({len(each.unmatched)} times)" if len(each.unmatched) > 1 else ""
    return f"{name} of {REACHED[each.reach.value]}{times}"


def _coverage(outcomes: Sequence[Outcome]) -> list[str]:
    rows = [
        (
            outcome.plant,
            each.profile,
            str(each.rules),
            f"{each.covered} / {each.attacks}",
            str(each.beyond_chance),
            f"{each.honest_share:.3%} of {each.honest_rows:,}",
        )
        for outcome in outcomes
        for each in outcome.coverage
    ]
    sources = "; ".join(
        f"{o.plant}: attacks {o.labelled_as}, clean rows {o.clean_as}" for o in outcomes
    )
    missed = [
        f"- {outcome.plant}, {each.profile}: {', '.join(each.missed)}"
        for outcome in outcomes
        for each in outcome.coverage
        if each.missed
    ]
    columns = (
        "plant",
        "profile",
        "rules",
        "attacks covered",
        "beyond chance",
        "suspect share of clean rows",
    )
    parts = [
        "## 1. Coverage of labelled attacks",
        f"Records: {sources}.",
        _table(columns, rows),
        (
            "An attack is covered if more than 1 % of its rows are suspect. It is covered beyond "
            f"chance if, in addition, fewer than {CHANCE:.0%} of the clean record's stretches of "
            "the same length have as many suspect rows. The table shows which of these attacks the "
            "rules detect. It does not show that a batch with such an attack is refused, and it "
            "says nothing about unlabelled attacks. The attacks of `treatment` were simulated with "
            "the same seed as the rows from which its rules were mined, but in another week. "
            "*With jitter*: each level has Gaussian noise of this standard deviation added on "
            "attacked rows, which hides readings that repeat digit by digit."
        ),
    ]
    if missed:
        parts += ["Not covered (number in the record, first row, length):", "\n".join(missed)]
    return parts


def _honest(outcomes: Sequence[Outcome]) -> list[str]:
    rows = [
        (
            outcome.plant,
            f"`{outcome.rules_hash}`",
            season.season,
            f"{season.batch_rows:,}",
            *_counted(season.honest.refused),
            _causes(season.honest),
        )
        for outcome in outcomes
        for season in outcome.seasons
    ]
    every = [
        (outcome.plant, season.season, refusal)
        for outcome in outcomes
        for season in outcome.seasons
        for refusal in season.honest.refusals
    ]
    judged = sum(season.honest.refused.of for o in outcomes for season in o.seasons)
    total = Proportion.counted(len(every), judged)
    rows.append(("all", "", "", "", *_counted(total), ""))
    columns = ("plant", "rules", "season", "rows", "batches", "refused", "share", "interval", "why")
    parts = [
        "## 2. Honest batches",
        _table(columns, rows),
        (
            "The batches are disjoint and come from records on which no rule was mined or "
            "calibrated. The table shows how often a plant that behaves like this simulator (or "
            "like BATADAL's second half-year) is refused. It says nothing about a plant that "
            "changes its set-points, loses an instrument or has rules from a record that is too "
            "short. A batch may be refused for several reasons. The batches of one seed share its "
            "random conditions, so the intervals are somewhat too narrow."
        ),
    ]
    if every:
        shown = [
            f"- {plant}, {season}, {refusal.where}: {_briefly(refusal.reasons)}"
            + (f" [furthest: {refusal.furthest}]" if refusal.furthest else "")
            for plant, season, refusal in every[:LISTED]
        ]
        more = len(every) - len(shown)
        parts += [
            "Refused" + (f", the first {LISTED} of {len(every)}:" if more else ":"),
            "\n".join(shown),
        ]
    return parts


def _fabrications(outcomes: Sequence[Outcome]) -> list[str]:
    rows = [
        (
            outcome.plant,
            each.name,
            each.reach.value,
            f"{each.admitted.of}",
            f"{each.admitted.count}",
            f"{each.state_matched}",
            f"{len(each.unmatched)}",
            _interval(each.admitted),
        )
        for outcome in outcomes
        for each in outcome.fabrications
    ]
    originals = "; ".join(
        f"{o.plant}: {o.originals} batches of {o.batch_rows:,} rows from {o.fabricated_from}"
        + (f" ({o.originals_refused} more were refused unchanged)" if o.originals_refused else "")
        for o in outcomes
    )
    columns = (
        "plant",
        "fabrication",
        "applied to",
        "changed",
        "admitted",
        "state-matched",
        "not matched",
        "interval of admitted",
    )
    listed = [
        f"- {outcome.plant}, {each.name}, by {each.reach.value}: {where}"
        for outcome in outcomes
        for each in outcome.fabrications
        for where in each.unmatched
    ]
    parts = [
        "## 3. Fabrications",
        f"Originals, which the gate admits unchanged: {originals}.",
        _table(columns, rows),
        (
            "Rolls and scalings use every original once. Splices and permutations are drawn at "
            "random until there are enough, or until no further draw changes anything. A batch "
            "counts only if its readings changed, and only once: a roll over rows in which nothing "
            "switches, a permutation that leaves every state in place and a splice in its old "
            "order do not count. Of a record spliced as a whole, only batches that contain a join "
            "count. *State-matched* is an admitted splice in which every rule about single rows is "
            "within tolerance at every join: pieces of true telemetry that meet in the same state. "
            "The table shows how the gate performs against these attacks at random places. An "
            "adversary who searches for matching states finds them; every row of such a splice is "
            "still true telemetry of the plant."
        ),
    ]
    if listed:
        first = f", the first {LISTED} of {len(listed)}" if len(listed) > LISTED else ""
        parts += [
            (
                f"Admitted without matching states{first} (with the rules beyond tolerance at a "
                "join, or what the fabrication changed):"
            ),
            "\n".join(listed[:LISTED]),
        ]
    return parts


def _freezes(outcomes: Sequence[Outcome]) -> list[str]:
    rows = []
    for outcome in outcomes:
        for level in dict.fromkeys(each.level for each in outcome.freezes):
            of_level = [each for each in outcome.freezes if each.level == level]
            cells = [f"{_share(each.refused)}; {each.moved:.3g}" for each in of_level]
            rows.append((outcome.plant, level, str(of_level[0].refused.of), *cells))
    lengths = list(dict.fromkeys(each.rows for o in outcomes for each in o.freezes))
    columns = (
        "plant",
        "level",
        "batches",
        *(f"refused, {length} rows; true range" for length in lengths),
    )
    return [
        "## 4. Frozen levels",
        _table(columns, rows),
        (
            "One level is frozen at its last reading from a random row on. The frozen reading has "
            f"jitter with a standard deviation of {FREEZE_JITTER:.0%} of the standard deviation of "
            "the level's row-to-row steps. *Refused* is the share of batches, with its interval. "
            "*True range* is the level's median range over the same number of rows before the "
            "freeze, in its own unit. Batches are the originals of table 3. A tank whose level "
            "does not change for so long looks the same as a frozen one. For a level without a "
            "balance, only its range over a block is checked."
        ),
    ]


def _ramps(outcomes: Sequence[Outcome]) -> list[str]:
    rows = []
    for outcome in outcomes:
        for level in dict.fromkeys(each.level for each in outcome.ramps):
            of_level = [each for each in outcome.ramps if each.level == level]
            once = next(each for each in of_level if each.multiple == 1)
            rows.append(
                (
                    outcome.plant,
                    level,
                    once.rule,
                    f"{once.per_row:.3g}",
                    str(once.refused.of),
                    *(f"{_share(each.refused)}, {each.by_window}" for each in of_level),
                )
            )
    multiples = list(dict.fromkeys(each.multiple for o in outcomes for each in o.ramps))
    columns = (
        "plant",
        "level",
        "window rule",
        "smallest ramp per row",
        "batches",
        *(f"refused, {multiple:g} x; by window" for multiple in multiples),
    )
    unwatched = "; ".join(
        f"{outcome.plant}: {', '.join(outcome.unwatched)}"
        for outcome in outcomes
        if outcome.unwatched
    )
    parts = [
        "## 5. Slow ramps",
        _table(columns, rows),
        (
            "One level drifts away for two windows and back for two, through the whole batch, by a "
            "multiple of the smallest ramp that its window rule states (tolerance over rows, in "
            "the level's unit per row). *Refused* is the share of batches, with its interval. *By "
            "window* is the number of refused batches in which a window of this level does not "
            "balance; with a wide tolerance, the drift leaves the tank's range before a window "
            "detects it. At the stated ramp the residual reaches the tolerance, and honest noise "
            "decides whether a window counts as violating. Assume that half of the stated ramp is "
            "undetectable. This bounds what a patient malicious client can hide."
        ),
    ]
    if unwatched:
        parts.append(
            f"No ramp was tested on these levels, because they have no window rule: {unwatched}."
        )
    return parts


def _briefly(reasons: Sequence[str]) -> str:
    more = len(reasons) - REASONS
    return "; ".join(reasons[:REASONS]) + (f"; and {more} more" if more > 0 else "")


def _causes(honest: Honest) -> str:
    counts = Counter(cause for refusal in honest.refusals for cause in refusal.causes)
    return ", ".join(f"{cause} {count}" for cause, count in counts.most_common())


def _counted(part: Proportion) -> tuple[str, str, str, str]:
    return f"{part.of:,}", f"{part.count:,}", f"{part.share:.2%}", _interval(part)


def _interval(part: Proportion) -> str:
    return f"{part.low:.2%} to {part.high:.2%}"


def _share(part: Proportion) -> str:
    return f"{part.share:.0%} ({part.low:.0%} to {part.high:.0%})"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
