"""What a proof states about a batch, as integers: derived once, and used by the circuit as given.

The statement does not depend on the length of a batch; its budgets follow from the number of rows.
Prover and verifier each derive both from rules and policy. Neither is ever sent.
"""

import json
from dataclasses import dataclass, field

from sluice.admission import HardenedPolicy
from sluice.attestation.systems.full.derivation import Deriving, Json, couplings_of, windows_of
from sluice.attestation.systems.full.lanes import Actuator, actuators_of
from sluice.errors import SettingError
from sluice.invariants import Budgets, Encoding, RelationKind, RuleSet, encode

__all__ = ["Statement", "derive"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """The statement of one rule set under one policy, for batches of any length."""

    rules: RuleSet
    policy: HardenedPolicy
    encoding: Encoding
    actuators: tuple[Actuator, ...]
    content: bytes = field(repr=False)  # as the circuit reads it

    def budgets(self, rows: int) -> Budgets:
        """Return the budgets of a batch with this number of rows."""
        assert self.rules.clean is not None
        return self.policy.budgets(self.rules, rows=rows)

    def budget_content(self, rows: int) -> bytes:
        """Return the budgets as the circuit reads them, with rules in the circuit's order."""
        budgets = self.budgets(rows)
        couplings, windows = couplings_of(self.encoding), windows_of(self.encoding)
        return _canonical(
            {
                "violating": budgets.violating_rows,
                "severe": budgets.severe_rows,
                "segments": budgets.segments,
                "unsteady": [budgets.envelope_rows[rule.rule.name] for rule in couplings],
                "windows": [budgets.anchors[rule.rule.name] for rule in windows],
            }
        )


def derive(rules: RuleSet, policy: HardenedPolicy) -> Statement:
    """Derive the statement; rules or policies that the circuit cannot state are refused."""
    if rules.clean is None:
        raise SettingError(
            f"the rules of {rules.plant!r} are of profile {rules.profile.value!r}, which has "
            "no facts about clean batches; mine with --profile hardened"
        )
    if policy.margins.severe_multiple < 1:
        raise SettingError(
            f"severe_multiple is {policy.margins.severe_multiple}; a proof counts severe rows "
            "among the violating ones, so it must be 1 or more"
        )
    _refuse_unstated(rules)
    encoding = encode(rules)
    actuators = actuators_of(rules, encoding)
    deriving = Deriving(
        rules=rules,
        encoding=encoding,
        actuators=actuators,
        budgets=policy.budgets(rules, rows=1),
        jumps=rules.clean.segments_per_row > 0 or policy.margins.segment_points > 0,
        severe=policy.margins.severe_share > 0,
    )
    return Statement(
        rules=rules,
        policy=policy,
        encoding=encoding,
        actuators=actuators,
        content=_canonical(deriving.document()),
    )


def _refuse_unstated(rules: RuleSet) -> None:
    for rule in rules.of_kind(
        RelationKind.TIE, RelationKind.CONSTANT, RelationKind.SWITCH_BAND, RelationKind.SPECTRUM
    ):
        raise SettingError(
            f"the system 'full' does not state rule {rule.name!r} of {rules.plant!r}, which is of "
            f"kind {rule.kind.value!r}; mine without this kind"
        )


def _canonical(document: Json) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
