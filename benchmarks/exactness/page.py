"""The run as one page: what was asked of gate and circuit, and how often they differed."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.exactness.check import Proven, Tally
from benchmarks.exactness.forgeries import Lied

__all__ = ["Run", "page"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """Everything that one run found."""

    seed: int
    tally: Tally
    proofs: tuple[Proven, ...]
    shards: tuple[tuple[str, tuple[Proven, ...]], ...]
    lies: tuple[tuple[str, tuple[Lied, ...]], ...]
    skipped: tuple[str, ...]
    minutes: float
    cut_short: bool
    crashed: tuple[str, ...] = ()

    @property
    def wrong(self) -> tuple[str, ...]:
        """Everything that must not be."""
        proofs = [each.wrong for each in self.proofs if each.wrong]
        shards = [each.wrong for _, found in self.shards for each in found if each.wrong]
        lies = [each for _, found in self.lies for lied in found for each in lied.wrong]
        asked = (*self.tally.disagreements, *self.tally.unbroken)
        return (*asked, *proofs, *shards, *lies, *self.crashed)


MADE = (
    "*As made* are rows of the drawn plant itself. *Edge* are one to three readings moved to the "
    "register at which a rule's tolerance or severe bound turns, or one beside it; blocks "
    "flattened to the least range or one register less; codes, time jumps and missing readings one "
    "at a time. *Adversarial* are rolled, scaled, permuted, spliced, replayed, frozen, toggling "
    "and out-of-range rows. *Random* are drawn anew or noisy. Batches have 8 to 64 rows. Most "
    "are held to budgets of just what they show, or with one of these one less, so that the "
    "verdict turns on every row; the rest to what the plant's own rows show, and a few more."
)
CHECKS = (
    "After the colon stands the one kind of rule that spent the budget, where it was one. Repeated "
    "stretches are outside the statement, and the policies drawn here pass them over."
)


def page(run: Run) -> str:
    """Return the page as Markdown."""
    parts = [
        "# Whether gate and circuit ever disagree",
        (
            "Written by `benchmarks/exactness.py` (`make exactness`); do not edit. Rules, budgets "
            "and batches are drawn from named random streams: the same code and seed give the "
            "same counts."
        ),
    ]
    if run.cut_short:
        parts.append("**The run was cut short: it ends with what was done when its time was up.**")
    parts += [*_batches(run), *_proofs(run), *_shards(run), *_lies(run)]
    if run.wrong:
        parts += ["## What is wrong", "\n".join(f"- {each}" for each in run.wrong)]
    parts.append(f"The run took {run.minutes:.0f} minutes.")
    return "\n\n".join(parts) + "\n"


def _batches(run: Run) -> list[str]:
    tally = run.tally
    passed_over = tally.unstatable.total()
    parts = [
        (
            f"**{tally.verdicts.total():,} batches under {tally.cases - passed_over:,} sets of "
            f"rules (seed {run.seed}): {len(tally.disagreements)} disagreements.** The gate judges "
            "each batch under the hardened policy; the circuit's trace is filled and every "
            "constraint is tried on every row. A batch that is refused is filled once more as a "
            "prover that lies "
            f"would fill it: {tally.forced:,} such traces break a constraint, "
            f"{len(tally.unbroken)} break none. {tally.uncommitted + tally.outside:,} more are "
            f"refused when a plant commits to them: {tally.outside:,} hold a time jump under "
            f"policies that allow none, and {tally.uncommitted:,} a reading beyond a limit that "
            "leaves a register one value only, so that it has no digit that a lie could change."
        ),
        _table(
            ("batches", "admitted", "refused", "refused, share"),
            (_verdicts(tally, kind) for kind in sorted({kind for kind, _ in tally.verdicts})),
        ),
        MADE,
        "## Which check refuses",
        _table(
            ("check", "refused", "refused by it alone"),
            (
                (check, f"{count:,}", f"{tally.alone[check]:,}")
                for check, count in sorted(tally.failed.items())
            ),
        ),
        CHECKS,
    ]
    if tally.too_short:
        parts.append(
            f"{tally.too_short:,} more batches have fewer rows than their budgets have bits, which "
            "the circuit refuses to state; they are not counted."
        )
    if passed_over:
        parts.append(
            f"{passed_over:,} more sets of rules cannot be stated for a batch "
            f"so short and were passed over ({'; '.join(sorted(tally.unstatable))}); the built-in "
            "policy takes batches of 200 rows and more."
        )
    return parts


def _verdicts(tally: Tally, kind: str) -> tuple[str, ...]:
    admitted, refused = tally.verdicts[kind, True], tally.verdicts[kind, False]
    return kind, f"{admitted:,}", f"{refused:,}", f"{refused / (admitted + refused):.0%}"


def _proofs(run: Run) -> list[str]:
    if not run.proofs:
        return []
    sizes = [each.proof_bytes for each in run.proofs]
    wrong = sum(bool(each.wrong) for each in run.proofs)
    return [
        "## With proofs, at the edge of alpha",
        (
            f"{len(run.proofs):,} batches of {min(each.rows for each in run.proofs)} to "
            f"{max(each.rows for each in run.proofs)} rows with "
            f"{min(each.violating for each in run.proofs)} to "
            f"{max(each.violating for each in run.proofs)} violating rows. With a budget of just "
            "as many the proof is made and holds; with one less none is made, and the proof for "
            f"the larger budget does not hold for the smaller. {wrong} failed. A proof has "
            f"{min(sizes) / 1e3:.0f} to {max(sizes) / 1e3:.0f} kB."
        ),
    ]


def _shards(run: Run) -> list[str]:
    if not run.shards:
        return list(run.skipped)
    return [
        "## Honest shards",
        (
            "Rules are mined with the defaults; shards are disjoint and come after the rows that "
            "were mined. Each is proven in a process of its own and verified."
        ),
        _table(
            ("plant", "shards", "rows each", "proven and verified"),
            (
                (
                    plant,
                    str(len(found)),
                    str(found[0].rows),
                    str(sum(not each.wrong for each in found)),
                )
                for plant, found in run.shards
                if found
            ),
        ),
        *run.skipped,
    ]


def _lies(run: Run) -> list[str]:
    if not run.lies:
        return []
    kinds = tuple(
        dict.fromkeys(kind for _, found in run.lies for each in found for kind in each.told)
    )
    return [
        "## Lies made of them",
        (
            "Each honest shard rolled, permuted, scaled, spliced at random cuts, with an actuator "
            "that toggles on every row, and with one reading out of range. Given is how many of "
            "them the circuit does not take. The gate is asked about each, and the trace of each "
            "that is refused is forced, and must break a constraint: "
            f"{sum(len(each.wrong) for _, found in run.lies for each in found)} came out otherwise."
        ),
        _table(
            ("plant", *kinds),
            ((plant, *(_refused(found, kind) for kind in kinds)) for plant, found in run.lies),
        ),
    ]


def _refused(found: Sequence[Lied], kind: str) -> str:
    refused, told = (sum(each[kind] for each in counts) for counts in _counted(found))
    return f"{refused} of {told}"


def _counted(found: Sequence[Lied]) -> tuple[list[Counter[str]], list[Counter[str]]]:
    return [each.refused for each in found], [each.told for each in found]


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
