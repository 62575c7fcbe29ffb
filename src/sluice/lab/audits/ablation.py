"""Ablation: the same audits with parts of the rules, to show what physics adds to ranges."""

from dataclasses import dataclass, replace
from enum import StrEnum

from sluice.admission import Gate
from sluice.invariants import CleanFacts, RelationKind, RuleSet, encode
from sluice.lab.audits.coverage import Coverage, coverage
from sluice.lab.audits.progress import Progress, ignore_progress
from sluice.lab.audits.separation import SeparationTable, separation
from sluice.telemetry import Record

__all__ = ["Ablation", "AblationPart", "Part", "ablation", "subset"]


class Part(StrEnum):
    """The parts of a rule set that are audited separately."""

    RANGES = "bounds and rates"
    COUPLINGS = "couplings"
    BALANCES = "balances"
    TIES = "ties, constants, switch bands, spectra and means"
    ALL = "all"

    @property
    def kinds(self) -> frozenset[RelationKind]:
        """The kinds of relation in this part."""
        return {
            Part.RANGES: frozenset((RelationKind.BOUND, RelationKind.RATE)),
            Part.COUPLINGS: frozenset((RelationKind.COUPLING,)),
            Part.BALANCES: frozenset((RelationKind.BALANCE, RelationKind.WINDOW)),
            Part.TIES: frozenset(
                (
                    RelationKind.TIE,
                    RelationKind.CONSTANT,
                    RelationKind.SWITCH_BAND,
                    RelationKind.SPECTRUM,
                    RelationKind.MEAN,
                )
            ),
            Part.ALL: frozenset(RelationKind),
        }[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationPart:
    """The audit of one part of the rules; coverage is None without a labelled record."""

    part: Part
    rules: int
    separation: SeparationTable
    coverage: Coverage | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """The audits of all parts; the complete rule set is last."""

    parts: tuple[AblationPart, ...]

    def of(self, part: Part) -> AblationPart:
        """Return one part."""
        return next(audit for audit in self.parts if audit.part is part)


def ablation(  # noqa: PLR0913 - the protocol's parameters
    record: Record,
    gate: Gate,
    *,
    labelled: Record | None = None,
    batches: int = 200,
    size: int = 1_000,
    seed: int = 0,
    progress: Progress = ignore_progress,
) -> Ablation:
    """Run separation, and coverage if a labelled record is given, with each part of the rules.

    Paper profiles have no ties, constants, switch bands, spectra or means: that part is left out.
    """
    audits = []
    mined = {rule.kind for rule in gate.rules.invariants}
    tried = tuple(part for part in Part if part is not Part.TIES or part.kinds & mined)
    for done, part in enumerate(tried):

        def report(share: float, done: int = done) -> None:
            progress((done + share) / len(tried))

        alone = _gate_of(gate, part)
        audits.append(
            AblationPart(
                part=part,
                rules=len(alone.rules.invariants),
                separation=separation(
                    record, alone, batches=batches, size=size, seed=seed, progress=report
                ),
                coverage=None if labelled is None else coverage(labelled, alone),
            )
        )
    return Ablation(parts=tuple(audits))


def subset(rules: RuleSet, kinds: frozenset[RelationKind]) -> RuleSet:
    """Return the rules of some kinds, with the clean facts about these rules.

    The facts on liveness and repeats of levels belong to the balances.
    """
    invariants = tuple(rule for rule in rules.invariants if rule.kind in kinds)
    names = frozenset(rule.name for rule in invariants)
    clean = rules.clean and _facts_of(rules.clean, names, lively=RelationKind.BALANCE in kinds)
    return replace(rules, invariants=invariants, clean=clean)


def _facts_of(facts: CleanFacts, names: frozenset[str], *, lively: bool) -> CleanFacts:
    return replace(
        facts,
        severe=tuple(share for share in facts.severe if share.rule in names),
        envelope=tuple(share for share in facts.envelope if share.rule in names),
        anchors=tuple(share for share in facts.anchors if share.rule in names),
        switches=tuple(share for share in facts.switches if share.rule in names),
        blocks=tuple(share for share in facts.blocks if share.rule in names),
        liveness=facts.liveness if lively else (),
        # A share of 1 allows every row to repeat, which disables the check.
        repeats=facts.repeats if lively else tuple(replace(s, share=1.0) for s in facts.repeats),
    )


def _gate_of(gate: Gate, part: Part) -> Gate:
    """Return the gate with a part of its rules; bounds alone, without physics, are allowed."""
    rules = subset(gate.rules, part.kinds)
    return replace(gate, rules=rules, encoding=None if gate.encoding is None else encode(rules))
