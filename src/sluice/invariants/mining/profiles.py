"""Profiles: which miners run with which thresholds, and which candidates become rules."""

from dataclasses import dataclass

from sluice.errors import SettingError
from sluice.invariants.mining import paper
from sluice.invariants.mining.hardened import mine_hardened
from sluice.invariants.mining.paper import MinedBalance, MinedCoupling, calibrate_as_paper
from sluice.invariants.ruleset import Dropped, Profile, RuleSet
from sluice.telemetry import Record

__all__ = ["mine"]

GENERIC_RULES = 10
TIGHT = 0.35
LOOSE = 0.85
LOOSE_R2 = 0.10


@dataclass(frozen=True, slots=True, kw_only=True)
class Thresholds:
    """The paper's thresholds: rows per state, flow in the off state, quality of the fit."""

    support: float
    off_ratio: float
    r2: float


NARROW = Thresholds(support=0.02, off_ratio=0.05, r2=0.60)
WIDE = Thresholds(support=0.005, off_ratio=0.10, r2=0.40)


def mine(fit: Record, calibration: Record, *, profile: Profile = Profile.HARDENED) -> RuleSet:
    """Mine rules from clean rows and calibrate them on other clean rows of the same plant.

    The caller must know that the rows are clean. `mine_record` checks a record's rows first: their
    labels, overlap, gaps and number.
    """
    if profile not in list(Profile):
        raise SettingError(f"unknown profile {profile!r}; known are {', '.join(Profile)}")
    if fit.names != calibration.names or fit.stride_s != calibration.stride_s:
        raise SettingError(
            f"fit slice {fit.name!r} and calibration slice {calibration.name!r} are not of one "
            "plant: their channels or strides differ; cut both from the same record"
        )
    match profile:
        case Profile.PAPER_NARROW:
            chosen = _federated(fit, NARROW)
        case Profile.PAPER_WIDE:
            chosen = _federated(fit, WIDE)
        case Profile.PAPER_GENERIC:
            chosen = _generic(fit)
        case Profile.PAPER_EXPERT:
            chosen = _expert(fit)
        case Profile.HARDENED:
            return mine_hardened(fit, calibration).rules
    kept, dropped = chosen
    return RuleSet(
        plant=fit.name,
        profile=profile,
        stride_s=fit.stride_s,
        channels=fit.channels,
        invariants=tuple(
            calibrate_as_paper(find.relation, find.evidence, calibration) for find in kept
        ),
        dropped=dropped,
        fit_rows=len(fit),
        calibration_rows=len(calibration),
    )


Chosen = tuple[tuple[MinedCoupling | MinedBalance, ...], tuple[Dropped, ...]]


def _federated(fit: Record, thresholds: Thresholds) -> Chosen:
    """Return all couplings in column order, then the balances that fit well enough."""
    couplings = paper.mine_couplings(
        fit, support=thresholds.support, off_ratio=thresholds.off_ratio
    )
    balances = paper.mine_balances(fit, alpha=5e-4, most_terms=8)
    kept = [balance for balance in balances if balance.r2 >= thresholds.r2]
    return (*couplings, *kept), _below(balances, thresholds.r2)


def _expert(fit: Record) -> Chosen:
    balances = paper.mine_balances(fit, alpha=5e-4, most_terms=8)
    kept = [balance for balance in balances if balance.r2 >= NARROW.r2]
    return (*paper.mine_expert_couplings(fit), *kept), _below(balances, NARROW.r2)


def _generic(fit: Record) -> Chosen:
    """Return at most ten rules: tight balances, one coupling per actuator, then looser balances."""
    balances = sorted(
        paper.mine_balances(fit, alpha=1e-4, most_terms=6), key=lambda find: find.tightness
    )
    couplings = paper.mine_couplings(fit, support=NARROW.support, off_ratio=NARROW.off_ratio)
    per_actuator: dict[str, MinedCoupling] = {}
    for find in sorted(couplings, key=lambda find: (find.variation, -find.support)):
        per_actuator.setdefault(find.relation.actuator, find)
    tight = [find for find in balances if find.tightness <= TIGHT]
    looser = [
        find
        for find in balances
        if find.tightness > TIGHT and (find.r2 > LOOSE_R2 or find.tightness <= LOOSE)
    ]
    ranked: tuple[MinedCoupling | MinedBalance, ...] = (*tight, *per_actuator.values(), *looser)
    candidates: tuple[MinedCoupling | MinedBalance, ...] = (*couplings, *balances)
    kept = {find.relation.name for find in ranked[:GENERIC_RULES]}
    dropped = tuple(
        Dropped(name=find.relation.name, why=f"not among the best {GENERIC_RULES}")
        for find in candidates
        if find.relation.name not in kept
    )
    return ranked[:GENERIC_RULES], dropped


def _below(balances: tuple[MinedBalance, ...], r2: float) -> tuple[Dropped, ...]:
    return tuple(
        Dropped(name=find.relation.name, why=f"R2 {find.r2:.4f} is below {r2:.2f}")
        for find in balances
        if find.r2 < r2
    )
