"""Expert rules: hand-written relations, not mined ones, calibrated with equation 3."""

from sluice.invariants import (
    ActuatorState,
    Balance,
    Coupling,
    Evidence,
    Profile,
    Relation,
    RuleSet,
    Term,
    Transition,
)
from sluice.invariants.mining import calibrate_as_paper
from sluice.lab.plants.line import ExactRelation, LineDesign, exact_relations
from sluice.telemetry import Record

__all__ = ["expert_rules", "line_rules"]


def expert_rules(relations: tuple[Relation, ...], clean: Record) -> RuleSet:
    """Return rules made of hand-written relations, with tolerances from clean rows."""
    return RuleSet(
        plant=clean.name,
        profile=Profile.PAPER_EXPERT,
        stride_s=clean.stride_s,
        channels=clean.channels,
        invariants=tuple(calibrate_as_paper(known, Evidence(), clean) for known in relations),
        calibration_rows=len(clean),
    )


def line_rules(clean: Record, *, site: LineDesign | None = None) -> RuleSet:
    """Return the laws that the `line` plant obeys by construction, as rules."""
    known = exact_relations(site) if site else exact_relations()
    return expert_rules(tuple(_relation(exact) for exact in known), clean)


def _relation(exact: ExactRelation) -> Relation:
    if exact.kind == "coupling":
        flow, state = exact.terms
        return Coupling(
            name=exact.name,
            actuator=state.channel,
            flow=flow.channel,
            off=0,
            states=(ActuatorState(code=1, nominal=-state.coefficient),),
            settle=0,
            transition=Transition.SILENT,
        )
    level, _, *flows = exact.terms
    return Balance(
        name=exact.name,
        level=level.channel,
        terms=tuple(Term(channel=flow.channel, coefficient=-flow.coefficient) for flow in flows),
        constant=-exact.constant,
        averaged=False,
    )
