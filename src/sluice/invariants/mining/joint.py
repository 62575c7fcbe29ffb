"""Joint calibration: all limits together, so that few whole honest batches are refused.

The clean record is cut into blocks. Each block is judged by rules whose numbers and limits come
from the other blocks alone. Where the refused share is above the target, the limits of the rules to
blame are widened, in every fold and in the rules themselves, or the rule is dropped once it would
be vacuous.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from sluice.invariants.budgets import Margins
from sluice.invariants.measure import Repeated, repeated_levels
from sluice.invariants.mining.bands import band_of
from sluice.invariants.mining.candidates import Candidate, CrossJudged, judged, window_candidates
from sluice.invariants.mining.facts import clean_facts, liveness_of
from sluice.invariants.mining.folds import Clean, CleanFold
from sluice.invariants.mining.means import mean_of
from sluice.invariants.mining.slack import Slack, slackened
from sluice.invariants.mining.spans import operating_range, resolution
from sluice.invariants.mining.spectra import spectrum_of
from sluice.invariants.mining.trial import TARGET, HonestRefusal, RepeatedBatches, tried
from sluice.invariants.relations import (
    Balance,
    Bound,
    Coupling,
    Invariant,
    Mean,
    Relation,
    RelationKind,
    Spectrum,
    SwitchBand,
    Tie,
    Window,
)
from sluice.invariants.ruleset import (
    CleanFacts,
    CleanShare,
    Dropped,
    Liveness,
    RuleSet,
    staggered,
    untied_channels,
)
from sluice.telemetry import Record, Role

__all__ = [
    "REFERENCE_ROWS",
    "Calibrated",
    "Structure",
    "calibrate_jointly",
    "structure_of",
    "with_rate",
]

VACUOUS = 0.5  # of nominal flow: a looser coupling cannot tell on from off
TIE_ROOM = 1.25  # a tie is linear; in a state that clean rows lack it is off by more than in them
VACUOUS_TIE = 0.25 * TIE_ROOM  # of the reading's range
VIOLATING = 1e-4  # share of rows that all rules together may be expected to break
REFERENCE_ROWS = 1_000  # of a batch in which the target is shared among the rules
WINDOW_ROOM = 1.5  # a short batch may have no window out of balance
WIDEN = 1.5
MOST_ROUNDS = 3
LEAST_TOLERANCE = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Structure:
    """What the rules are about, before their limits are set."""

    rules: RuleSet  # channels, and the rules whose limits need no calibration
    judged: tuple[CrossJudged, ...]
    bands: tuple[SwitchBand, ...]
    spectra: tuple[Spectrum, ...]
    means: tuple[Mean, ...]
    folds: tuple[CleanFold, ...]
    clean: Clean
    repeated: tuple[Repeated, ...]  # of each fold by itself

    @property
    def checks(self) -> int:
        """The number of limits that the target is shared among."""
        limits = len(self.bands) + len(self.spectra) + len(self.means) + len(self.rules.channels)
        return max(1, len(self.judged) + limits)

    @property
    def violating(self) -> float:
        """The share of rows that one rule may be expected to break."""
        return VIOLATING / self.checks

    @property
    def severe(self) -> float:
        """The share of rows on which one rule may be expected to be severe."""
        return TARGET / self.checks / REFERENCE_ROWS

    def blocks(self, without: int | None) -> list[Record]:
        """Return the clean record in blocks, without one of them."""
        return [fold.held_out for at, fold in enumerate(self.folds) if at != without]

    def repeated_without(self, without: int | None) -> Repeated | None:
        """Return the repeated rows of all folds but one; `None` if all are to be searched as one.

        Each fold is searched by itself, so that no fold knows of the one that it is to judge.
        """
        if without is None:
            return None
        rest = [found for at, found in enumerate(self.repeated) if at != without]
        return tuple(
            (parts[0][0], np.concatenate([rows for _, rows in parts]))
            for parts in zip(*rest, strict=True)
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibrated:
    """Rules, and the refusal rate that their clean record predicts."""

    rules: RuleSet
    honest: HonestRefusal


def structure_of(  # noqa: PLR0913 - the rules, by what sets their limits
    rules: RuleSet,
    candidates: tuple[Candidate, ...],
    clean: Clean,
    *,
    bands: tuple[SwitchBand, ...] = (),
    spectra: tuple[Spectrum, ...] = (),
    means: tuple[Mean, ...] = (),
) -> Structure:
    """Judge the candidates out of fold, and add the windows of each balance."""
    found: list[CrossJudged] = []
    limits = len(bands) + len(spectra) + len(means) + len(rules.channels)
    checks = 2 * len(candidates) + limits
    shares = (VIOLATING / checks, TARGET / checks / REFERENCE_ROWS / 2)
    for candidate in candidates:
        by_row = judged(candidate, clean.folds)
        found.append(by_row)
        if isinstance(candidate.relation, Balance):
            found += window_candidates(by_row, clean.folds, shares)
    return Structure(
        rules=rules,
        judged=tuple(found),
        bands=bands,
        spectra=spectra,
        means=means,
        folds=clean.folds,
        clean=clean,
        repeated=tuple(repeated_levels(rules, fold.held_out) for fold in clean.folds),
    )


def calibrate_jointly(
    structure: Structure, *, margins: Margins | None = None, target: float = TARGET
) -> Calibrated:
    """Return rules that are expected to refuse few honest batches, and how few."""
    margins, slack = margins or Margins(), Slack()
    structure = _without_vacuous(structure)
    bases = [_rules(structure, fold.rest, at) for at, fold in enumerate(structure.folds)]
    rules = _rules(structure, structure.clean.record, None)
    held_out = [fold.held_out for fold in structure.folds]
    repeated: RepeatedBatches = {}
    pairs = list(zip(bases, held_out, strict=True))
    honest = tried(pairs, margins, target, repeated=repeated)
    for _ in range(MOST_ROUNDS):
        if honest.kept or not any(each.rule for each in honest.blamed):
            break
        slack = slack.widened(honest.blamed, WIDEN)
        pairs = [
            (slackened(base, slack), record) for base, record in zip(bases, held_out, strict=True)
        ]
        honest = tried(pairs, margins, target, repeated=repeated)
    rules = slackened(rules, slack)
    assert rules.clean is not None
    rules = replace(rules, clean=with_rate(rules.clean, honest), untied=untied_channels(rules))
    return Calibrated(rules=rules, honest=honest)


def with_rate(facts: CleanFacts, honest: HonestRefusal) -> CleanFacts:
    """Return the facts with the predicted refusal rate."""
    worst = honest.worst
    return replace(
        facts,
        batch_rows=worst.rows,
        batches=worst.batches,
        effective_batches=float(worst.batches),
        refused_share=worst.rate,
        refused_upper=worst.high,
    )


def _rules(structure: Structure, clean: Record, without: int | None) -> RuleSet:
    """Return the rules with limits from all folds but one."""
    found = [_invariant(each, structure, without) for each in structure.judged]
    limited = _limited(structure, without)
    rules = staggered(
        replace(structure.rules, invariants=(*found, *limited, *structure.rules.invariants))
    )
    severe = tuple(
        CleanShare(
            rule=rule.name,
            share=each.farthest(without, share=structure.severe) / rule.tolerance,
        )
        for each, rule in zip(structure.judged, found, strict=True)
    )
    facts = clean_facts(
        rules,
        clean,
        liveness=_liveness(structure, without),
        severe=severe,
        jumps_per_row=structure.clean.jumps_per_row,
        repeated=structure.repeated_without(without),
    )
    return replace(rules, clean=facts)


def _invariant(each: CrossJudged, structure: Structure, without: int | None) -> Invariant:
    relation = each.candidate.relation
    if isinstance(relation, Window):
        share = structure.severe * relation.rows / 2
        return each.invariant(without, share=share, slack=WINDOW_ROOM)
    room = TIE_ROOM if isinstance(relation, Tie) else 1.0
    return each.invariant(without, share=structure.violating, slack=room)


def _limited(structure: Structure, without: int | None) -> Iterator[Invariant]:
    """Yield the rules that have limits instead of a residual."""
    blocks, record = structure.blocks(without), structure.clean.record
    for channel in structure.rules.channels:
        if not channel.role.discrete:
            usual = operating_range(channel, blocks, share=structure.severe / 2)
            if usual is not None:
                name = channel.name
                bound = Bound(name=f"{name} in range", channel=name, low=usual.low, high=usual.high)
                yield Invariant(relation=bound, tolerance=resolution(record.column(name)))
    for band in structure.bands:
        step = max(resolution(record.column(band.level)), LEAST_TOLERANCE)
        yield Invariant(relation=band_of(band, blocks) or band, tolerance=step)
    for spectrum in structure.spectra:
        found = spectrum_of(spectrum, blocks, share=structure.severe) or spectrum
        step = max(resolution(record.column(spectrum.channel)), LEAST_TOLERANCE)
        yield Invariant(relation=found, tolerance=step)
    for mean in structure.means:
        yield _mean(mean, structure, blocks)


def _mean(mean: Mean, structure: Structure, blocks: list[Record]) -> Invariant:
    """Return the mean with limits from these blocks; from all, where these hold too few windows."""
    share = structure.severe
    found = mean_of(mean, blocks, share=share) or mean_of(mean, structure.blocks(None), share=share)
    assert found is not None  # it was mined from all blocks
    return found


def _liveness(structure: Structure, without: int | None) -> tuple[Liveness, ...]:
    parts = structure.blocks(without)
    return tuple(
        fact
        for level in structure.rules.channels
        if level.role is Role.LEVEL and level.span
        for fact in liveness_of(level.name, parts, share=structure.severe)
    )


def _without_vacuous(structure: Structure) -> Structure:
    """Drop rules that are so wide that they say nothing."""
    kept, dropped = [], list(structure.rules.dropped)
    for each in structure.judged:
        why = _vacuous(each, structure)
        if why:
            dropped.append(Dropped(name=each.candidate.relation.name, why=why))
        else:
            kept.append(each)
    rules = replace(structure.rules, dropped=tuple(dropped))
    means = tuple(
        mean
        for mean in structure.means
        if not any(_about(each.candidate.relation, mean.channel) for each in kept)
    )
    return replace(structure, judged=tuple(kept), means=means, rules=rules)


def _about(relation: Relation, channel: str) -> bool:
    """Whether a relation says what a channel shows, so that an offset breaks it."""
    match relation:
        case Coupling(flow=own) | Tie(channel=own):
            return own == channel
        case _:
            return False


def _vacuous(each: CrossJudged, structure: Structure) -> str:
    relation = each.candidate.relation
    if relation.kind not in (RelationKind.COUPLING, RelationKind.TIE):
        return ""
    tolerance = _invariant(each, structure, None).tolerance
    match relation:
        case Coupling(nominal=nominal) if tolerance >= VACUOUS * nominal:
            return (
                f"vacuous: tolerance {tolerance:.3g} reaches half of nominal {nominal:.3g}; it "
                "cannot tell on from off"
            )
        case Tie(channel=channel):
            low, high = structure.clean.range_of(channel)
            if tolerance >= VACUOUS_TIE * (high - low):
                return (
                    f"vacuous: tolerance {tolerance:.3g} reaches {VACUOUS_TIE:.0%} of the range "
                    f"{high - low:.3g}"
                )
    return ""
