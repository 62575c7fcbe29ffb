"""Ablation: the same audits with parts of the rules, to see what physics adds to ranges."""

from dataclasses import dataclass, replace
from enum import StrEnum

from sluice.admission import Gate
from sluice.invariants import CleanFacts, RelationKind, RuleSet, encode
from sluice.lab.audits.coverage import Coverage, coverage
from sluice.lab.audits.progress import Progress, nobody
from sluice.lab.audits.separation import SeparationTable, separation
from sluice.telemetry import Record

__all__ = ["Ablation", "AblationPart", "Part", "ablation", "subset"]


class Part(StrEnum):
    """The parts of a rule set that are tried alone."""

    RANGES = "bounds and rates"
    COUPLINGS = "couplings"
    BALANCES = "balances"
    ALL = "all"

    @property
    def kinds(self) -> frozenset[RelationKind]:
        """The families in it."""
        return {
            Part.RANGES: frozenset((RelationKind.BOUND, RelationKind.RATE)),
            Part.COUPLINGS: frozenset((RelationKind.COUPLING,)),
            Part.BALANCES: frozenset((RelationKind.BALANCE, RelationKind.WINDOW)),
            Part.ALL: frozenset(RelationKind),
        }[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class AblationPart:
    """What one part of the rules tells apart; coverage where a labelled record was given."""

    part: Part
    rules: int
    separation: SeparationTable
    coverage: Coverage | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Ablation:
    """Every part, the whole last."""

    parts: tuple[AblationPart, ...]

    def of(self, part: Part) -> AblationPart:
        """Return one part."""
        return next(found for found in self.parts if found.part is part)


def ablation(  # noqa: PLR0913 - the protocol's own dials
    record: Record,
    gate: Gate,
    *,
    labelled: Record | None = None,
    batches: int = 200,
    size: int = 1_000,
    seed: int = 0,
    progress: Progress = nobody,
) -> Ablation:
    """Run separation, and coverage if a labelled record is given, with each part of the rules."""
    found = []
    for done, part in enumerate(Part):

        def told(share: float, done: int = done) -> None:
            progress((done + share) / len(Part))

        alone = _gate_of(gate, part)
        found.append(
            AblationPart(
                part=part,
                rules=len(alone.rules.invariants),
                separation=separation(
                    record, alone, batches=batches, size=size, seed=seed, progress=told
                ),
                coverage=None if labelled is None else coverage(labelled, alone),
            )
        )
    return Ablation(parts=tuple(found))


def subset(rules: RuleSet, kinds: frozenset[RelationKind]) -> RuleSet:
    """Keep the rules of some families, and of the clean facts what is about them.

    That levels move and do not repeat themselves goes with the balances.
    """
    kept = tuple(rule for rule in rules.invariants if rule.kind in kinds)
    names = frozenset(rule.name for rule in kept)
    clean = rules.clean and _facts_of(rules.clean, names, lively=RelationKind.BALANCE in kinds)
    return replace(rules, invariants=kept, clean=clean)


def _facts_of(facts: CleanFacts, names: frozenset[str], *, lively: bool) -> CleanFacts:
    return replace(
        facts,
        severe=tuple(share for share in facts.severe if share.rule in names),
        envelope=tuple(share for share in facts.envelope if share.rule in names),
        anchors=tuple(share for share in facts.anchors if share.rule in names),
        liveness=facts.liveness if lively else (),
        # Where repeats are not looked at, every row may be one.
        repeats=facts.repeats if lively else tuple(replace(s, share=1.0) for s in facts.repeats),
    )


def _gate_of(gate: Gate, part: Part) -> Gate:
    """Return the gate with a part of its rules: bounds alone are no physics, which is the point."""
    rules = subset(gate.rules, part.kinds)
    return replace(gate, rules=rules, encoding=None if gate.encoding is None else encode(rules))
