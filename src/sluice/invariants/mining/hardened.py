"""The hardened profile: plausible rules, with tolerances within which whole clean batches stay."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from sluice.invariants.budgets import Margins
from sluice.invariants.encoding import register_of
from sluice.invariants.mining.balances import BalanceFind, mine_balances
from sluice.invariants.mining.bands import mine_bands
from sluice.invariants.mining.candidates import Candidate
from sluice.invariants.mining.constants import constant_rules, with_constant_spans
from sluice.invariants.mining.couplings import CouplingFind, mine_couplings
from sluice.invariants.mining.folds import clean_record
from sluice.invariants.mining.joint import (
    REFERENCE_ROWS,
    Calibrated,
    calibrate_jointly,
    structure_of,
)
from sluice.invariants.mining.means import mine_means
from sluice.invariants.mining.refit import refitted
from sluice.invariants.mining.spans import resolution, with_spans
from sluice.invariants.mining.spectra import mine_spectra
from sluice.invariants.mining.ties import TieFind, mine_ties
from sluice.invariants.mining.trial import TARGET
from sluice.invariants.relations import (
    Balance,
    Coupling,
    Evidence,
    Invariant,
    Mean,
    Rate,
    RelationKind,
    Tie,
    Window,
)
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.telemetry import Channel, Record, Role

__all__ = ["MINED_KINDS", "TYING_KINDS", "mine_hardened", "with_power"]


def with_power(rules: RuleSet, clean: Record) -> RuleSet:
    """Return the rules, each with the smallest offset, freeze and contradiction it detects."""
    return replace(rules, invariants=tuple(_powered(rule, clean) for rule in rules.invariants))


def _powered(rule: Invariant, clean: Record) -> Invariant:
    match rule.relation:
        case Coupling() as coupling:
            evidence = replace(
                rule.evidence,
                smallest_offset=rule.tolerance,
                sees_contradiction=rule.tolerance < min(state.nominal for state in coupling.states),
            )
        case Balance() as balance:
            evidence = replace(
                rule.evidence,
                smallest_offset=rule.tolerance,
                smallest_freeze_rows=1
                if _moves(balance.level, 1, clean) > rule.tolerance
                else None,
            )
        case Window() as window:
            detects_freeze = _moves(window.level, window.rows, clean) > rule.tolerance
            evidence = replace(
                rule.evidence,
                smallest_offset=rule.tolerance / window.rows,
                smallest_freeze_rows=window.rows if detects_freeze else None,
            )
        case Rate() | Tie() | Mean():
            evidence = replace(rule.evidence, smallest_offset=rule.tolerance)
        case _:
            return rule
    return replace(rule, evidence=evidence)


def _moves(level: str, rows: int, clean: Record) -> float:
    """Return the median change of the level over `rows` rows."""
    readings = clean.column(level)
    return float(np.nanmedian(np.abs(readings[rows:] - readings[:-rows])))


READING_FLOOR = 0.0025  # of the usual reading: no meter is closer, and its offset drifts by more
TIE_FLOOR = 0.03  # of the range: a closer tie fails when a rare state occurs
RARE_ROWS = 12  # of the rarer state: fewer tell the flow of a pump only roughly
RARE_FLOOR = 0.15  # of that flow
TYING_KINDS = frozenset(
    {
        RelationKind.TIE,
        RelationKind.CONSTANT,
        RelationKind.SWITCH_BAND,
        RelationKind.SPECTRUM,
        RelationKind.MEAN,
    }
)
"""The kinds that tie down channels which no coupling and no balance reads."""
MINED_KINDS: frozenset[RelationKind] = TYING_KINDS
"""Those of them that are mined unless the caller names others."""


def mine_hardened(
    *records: Record,
    kinds: frozenset[RelationKind] = MINED_KINDS,
    margins: Margins | None = None,
    target: float = TARGET,
) -> Calibrated:
    """Find what the rules are about on all clean rows, then set every limit by cross-validation.

    `kinds` names the kinds to mine beside couplings, balances, windows, bounds and rates.
    """
    clean = clean_record(*records)
    channels = with_spans(clean.record)
    if RelationKind.CONSTANT in kinds:
        channels = with_constant_spans(clean.record, channels)
    clean = replace(clean, record=replace(clean.record, channels=channels))
    record = clean.record
    bands, no_bands = mine_bands(record)
    couplings, no_couplings = mine_couplings(record)
    balances, no_balances = mine_balances(record, couplings, bands)
    candidates = [*_coupled(couplings, record), *_balanced(balances, record), *_rates(record)]
    dropped = [*no_couplings, *no_balances]
    if RelationKind.TIE in kinds:
        ties, no_ties = mine_ties(record, clean.folds, _loose(record, candidates))
        candidates += _tied(ties, record)
        dropped += no_ties
    if RelationKind.SWITCH_BAND in kinds:
        dropped += no_bands
    else:
        bands = ()
    measured = [channel for channel in channels if channel.span]
    rules = RuleSet(
        plant=record.name,
        profile=Profile.HARDENED,
        stride_s=record.stride_s,
        channels=channels,
        invariants=constant_rules(record) if RelationKind.CONSTANT in kinds else (),
        dropped=tuple(dropped),
        fit_rows=len(records[0]),
        calibration_rows=len(record) - len(records[0]),
    )
    share = TARGET / (2 * len(channels) + 2 * len(candidates)) / REFERENCE_ROWS
    blocks = [fold.held_out for fold in clean.folds]
    spectra = (
        mine_spectra(record, measured, blocks, share=share)
        if RelationKind.SPECTRUM in kinds
        else ()
    )
    means = mine_means(_steady(measured), blocks, share=share) if RelationKind.MEAN in kinds else ()
    structure = structure_of(
        rules, tuple(candidates), clean, bands=bands, spectra=spectra, means=means
    )
    calibrated = calibrate_jointly(structure, margins=margins, target=target)
    return replace(calibrated, rules=with_power(calibrated.rules, record))


def _steady(channels: Sequence[Channel]) -> list[Channel]:
    """Return the channels without analysers: these drift.

    A level that switches a pump is among them: its band says little where the pump also stops for
    other reasons, and a level may be wrong by as much as the band is wide.
    """
    return [channel for channel in channels if channel.role is not Role.QUALITY]


def _coupled(couplings: tuple[CouplingFind, ...], record: Record) -> Iterator[Candidate]:
    for find in couplings:
        rare = find.support * len(record) < RARE_ROWS
        yield Candidate(
            relation=find.relation,
            floor=max(
                resolution(record.column(find.relation.flow)),
                RARE_FLOOR * find.relation.nominal if rare else 0.0,
            ),
            evidence=Evidence(support=find.support, variation=find.variation),
        )


def _balanced(balances: tuple[BalanceFind, ...], record: Record) -> Iterator[Candidate]:
    for find in balances:
        yield Candidate(
            relation=refitted(find.relation, record),
            floor=resolution(record.column(find.relation.level)),
            evidence=Evidence(r2=find.r2, r2_held_out=find.r2_held_out),
        )


def _rates(record: Record) -> Iterator[Candidate]:
    for channel in record.of_role(Role.LEVEL, Role.QUALITY):
        step = resolution(record.column(channel.name))
        if channel.span and step > 0:
            relation = Rate(name=f"{channel.name} rate", channel=channel.name)
            yield Candidate(relation=relation, floor=step)


def _tied(ties: tuple[TieFind, ...], record: Record) -> Iterator[Candidate]:
    for find in ties:
        shown = record.column(find.relation.channel)
        shown = shown[~np.isnan(shown)]
        usual = float(np.median(np.abs(shown)))
        yield Candidate(
            relation=refitted(find.relation, record),
            floor=max(
                TIE_FLOOR * float(np.ptp(shown)),
                READING_FLOOR * usual,
                2 * _steps(find.relation, record),
            ),
            evidence=Evidence(r2_held_out=find.r2_held_out),
        )


def _steps(tie: Tie, record: Record) -> float:
    """Return how far the registers of a tie's channels can move its residual by one step each."""
    weights = {tie.channel: 1.0}
    weights |= {term.channel: abs(term.coefficient) for term in tie.terms if not term.on}
    return sum(weight * register_of(record.channel(name)).step for name, weight in weights.items())


def _loose(record: Record, candidates: Sequence[Candidate]) -> list[Channel]:
    """Return the moving channels to tie: every pressure, and what no rule is about.

    A balance is about its level; a flow among its terms may still be replaced within its tolerance.
    """
    stated: set[str] = set()
    for each in candidates:
        match each.relation:
            case Coupling() as coupling:
                stated |= set(coupling.channels)
            case Balance(level=level):
                stated.add(level)
            case _:
                pass
    return [
        channel
        for channel in record.channels
        if channel.span
        and resolution(record.column(channel.name)) > 0
        and (channel.role is Role.PRESSURE or channel.name not in stated)
    ]
