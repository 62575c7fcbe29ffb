"""The run as one page: what gate and circuit judged, and how often they differed."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from benchmarks.exactness.check import LOG_ROWS, Proven, Tally
from benchmarks.exactness.forgeries import ForgeryCounts

__all__ = ["Run", "page"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """The results of one run."""

    seed: int
    tally: Tally
    proofs: tuple[Proven, ...]
    chains: tuple[Proven, ...]
    shards: tuple[tuple[str, tuple[Proven, ...]], ...]
    forgeries: tuple[tuple[str, tuple[ForgeryCounts, ...]], ...]
    skipped: tuple[str, ...]
    minutes: float
    cut_short: bool
    crashed: tuple[str, ...] = ()

    @property
    def wrong(self) -> tuple[str, ...]:
        """All errors."""
        proofs = [each.wrong for each in (*self.proofs, *self.chains) if each.wrong]
        shards = [each.wrong for _, proven in self.shards for each in proven if each.wrong]
        forgeries = [each for _, of in self.forgeries for counts in of for each in counts.wrong]
        batches = (*self.tally.disagreements, *self.tally.unbroken)
        return (*batches, *proofs, *shards, *forgeries, *self.crashed)


MADE = (
    "*As made*: unchanged rows of the random plant. *Edge*: one to three readings moved to the "
    "register at a rule's tolerance or severe bound, or to its neighbour; blocks flattened to the "
    "smallest allowed range or one register less; single changed codes, time jumps and missing "
    "readings. *Adversarial*: rolled, scaled, permuted, spliced, replayed, frozen, toggling and "
    "out-of-range rows. *Random*: random readings or added noise. Batches have 8 to 64 rows. For "
    "most batches, every budget equals what the batch uses, or one budget is one less, so that "
    "every row decides the verdict. For the others, budgets equal what the plant's own rows use, "
    "or a little more."
)
CHECKS = (
    "The word after the colon is the kind of rule that used the budget, if only one kind did. The "
    "statement of the circuit does not cover repeated stretches, and the policies of this run "
    "ignore them."
)

UNSTATABLE = {  # reasons of the core in words for this page
    "N rows are too few to balance N bits of budgets": (
        "the batch has too few rows for the bits of its budgets"
    ),
}


def page(run: Run) -> str:
    """Return the page as Markdown."""
    parts = [
        "# Agreement of gate and circuit",
        (
            "Written by `make exactness` (`python -m benchmarks exactness`); do not edit. Rules, "
            "budgets and batches are drawn from named random streams: the same code and seed give "
            "the same counts."
        ),
    ]
    if run.cut_short:
        parts.append(
            "**The run reached its time limit: the page covers only what was done by then.**"
        )
    parts += [*_batches(run), *_proofs(run), *_chains(run), *_shards(run), *_forgeries(run)]
    if run.wrong:
        parts += ["## Errors", "\n".join(f"- {each}" for each in run.wrong)]
    parts.append(f"The run took {run.minutes:.0f} minutes.")
    return "\n\n".join(parts) + "\n"


def _batches(run: Run) -> list[str]:
    tally = run.tally
    passed_over = tally.unstatable.total()
    parts = [
        (
            f"**{tally.verdicts.total():,} batches under {tally.cases - passed_over:,} sets of "
            f"rules (seed {run.seed}): {len(tally.disagreements)} disagreements.** The gate judges "
            "each batch under the hardened policy. The benchmark fills the circuit's trace and "
            "tests every constraint on every row. For each refused batch, the trace is filled "
            f"again as a malicious prover would fill it (a forced trace): {tally.forced:,} such "
            f"traces break a constraint, {len(tally.unbroken)} break none. "
            f"{tally.uncommitted + tally.outside:,} more batches are refused when a plant commits "
            f"to them: {tally.outside:,} contain a time jump under policies that allow none, and "
            f"{tally.uncommitted:,} contain a reading beyond a limit that leaves a register only "
            "one value, so that a malicious prover has no digit to change."
        ),
        _table(
            ("batches", "admitted", "refused", "share refused"),
            (_verdicts(tally, kind) for kind in sorted({kind for kind, _ in tally.verdicts})),
        ),
        MADE,
        "## Refusals by check",
        _table(
            ("check", "refused", "refused by this check only"),
            (
                (check, f"{count:,}", f"{tally.alone[check]:,}")
                for check, count in sorted(tally.failed.items())
            ),
        ),
        CHECKS,
    ]
    if tally.too_short:
        parts.append(
            f"{tally.too_short:,} more batches have fewer rows than their budgets have bits. The "
            "circuit cannot state such budgets, so these batches are not counted."
        )
    if passed_over:
        skipped = "; ".join(UNSTATABLE.get(each, each) for each in sorted(tally.unstatable))
        parts.append(
            f"{passed_over:,} more sets of rules cannot be stated for such a short batch and were "
            f"skipped ({skipped}). The built-in policy requires at least 200 rows."
        )
    return parts


def _verdicts(tally: Tally, kind: str) -> tuple[str, ...]:
    admitted, refused = tally.verdicts[kind, True], tally.verdicts[kind, False]
    return kind, f"{admitted:,}", f"{refused:,}", f"{refused / (admitted + refused):.0%}"


def _proofs(run: Run) -> list[str]:
    return _at_the_limit("## Proofs at the limit of alpha", run.proofs, "")


def _chains(run: Run) -> list[str]:
    each = f", proven in segments of {1 << LOG_ROWS} rows"
    return _at_the_limit("## Chains at the limit of alpha", run.chains, each)


def _at_the_limit(title: str, proofs: Sequence[Proven], how: str) -> list[str]:
    if not proofs:
        return []
    sizes = [each.proof_bytes for each in proofs]
    wrong = sum(bool(each.wrong) for each in proofs)
    return [
        title,
        (
            f"There are {len(proofs):,} batches of {min(each.rows for each in proofs)} to "
            f"{max(each.rows for each in proofs)} rows with "
            f"{min(each.violating for each in proofs)} to "
            f"{max(each.violating for each in proofs)} violating rows{how}. If the budget equals "
            "the number of violating rows, a proof is made and verified. If the budget is one "
            f"less, no proof is made, and the proof for the larger budget is invalid. {wrong} "
            f"batches failed. A proof has {min(sizes) / 1e3:.0f} to {max(sizes) / 1e3:.0f} kB."
        ),
    ]


def _shards(run: Run) -> list[str]:
    if not run.shards:
        return list(run.skipped)
    return [
        "## Honest shards",
        (
            "Rules are mined with the defaults. Shards are disjoint and come after the mined rows. "
            "Each is proven in its own process and verified."
        ),
        _table(
            ("plant", "shards", "rows each", "proven and verified"),
            (
                (
                    plant,
                    str(len(proven)),
                    str(proven[0].rows),
                    str(sum(not each.wrong for each in proven)),
                )
                for plant, proven in run.shards
                if proven
            ),
        ),
        *run.skipped,
    ]


def _forgeries(run: Run) -> list[str]:
    if not run.forgeries:
        return []
    kinds = tuple(
        dict.fromkeys(kind for _, counts in run.forgeries for each in counts for kind in each.tried)
    )
    wrong = sum(len(each.wrong) for _, counts in run.forgeries for each in counts)
    return [
        "## Forged shards",
        (
            "Each honest shard is rolled, permuted, scaled, spliced at random cuts, given an "
            "actuator that toggles on every row, and given one reading out of range. The table "
            "counts those that the circuit refuses. The gate must give the same verdict on each, "
            "and the forced trace of each refused one must break a constraint: "
            f"{wrong} exceptions."
        ),
        _table(
            ("plant", *kinds),
            ((plant, *(_refused(of, kind) for kind in kinds)) for plant, of in run.forgeries),
        ),
    ]


def _refused(counts: Sequence[ForgeryCounts], kind: str) -> str:
    refused, tried = (
        sum(each.refused[kind] for each in counts),
        sum(each.tried[kind] for each in counts),
    )
    return f"{refused} of {tried}"


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
