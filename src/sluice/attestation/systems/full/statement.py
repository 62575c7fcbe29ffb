"""What a proof states about a batch, as integers: derived once, and used by the circuit as given.

The statement does not depend on the length of a batch; its budgets follow from the number of rows.
Prover and verifier each derive both from rules and policy. Neither is ever sent.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field

from sluice.admission import HardenedPolicy
from sluice.attestation.systems.full.derivation import (
    Deriving,
    Json,
    couplings_of,
    spectra_of,
    switches_of,
    windows_of,
)
from sluice.attestation.systems.full.lanes import Actuator, actuators_of
from sluice.detector import MomentSettings
from sluice.errors import SettingError
from sluice.invariants import Budgets, Encoding, RuleSet, encode

__all__ = ["Statement", "derive"]

Summing = Callable[[RuleSet, Encoding, tuple[Actuator, ...]], MomentSettings]


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """The statement of one rule set under one policy, for batches of any length."""

    rules: RuleSet
    policy: HardenedPolicy
    encoding: Encoding
    actuators: tuple[Actuator, ...]
    content: bytes = field(repr=False)  # as the circuit reads it
    statistic: MomentSettings | None = None  # what is summed and bound to the rows
    masked: bool = False  # whether the sums stay hidden

    def budgets(self, rows: int) -> Budgets:
        """Return the budgets of a batch with this number of rows."""
        assert self.rules.clean is not None
        return self.policy.budgets(self.rules, rows=rows)

    def budget_content(self, rows: int) -> bytes:
        """Return the budgets as the circuit reads them, with rules in the circuit's order."""
        budgets = self.budgets(rows)
        couplings, windows = couplings_of(self.encoding), windows_of(self.encoding)
        switches, spectra = switches_of(self.encoding), spectra_of(self.encoding)
        return _canonical(
            {
                "violating": budgets.violating_rows,
                "severe": budgets.severe_rows,
                "segments": budgets.segments,
                "unsteady": [budgets.envelope_rows[rule.rule.name] for rule in couplings],
                "windows": [budgets.anchors[rule.rule.name] for rule in windows],
                "switches": [budgets.switches[rule.rule.name] for rule in switches],
                "blocks": [budgets.blocks[rule.rule.name] for rule in spectra],
            }
        )


def derive(
    rules: RuleSet,
    policy: HardenedPolicy,
    *,
    statistic: Summing | None = None,
    masked: bool = False,
) -> Statement:
    """Derive the statement; rules or policies that the circuit cannot state are refused.

    `statistic` chooses what is summed from the rules, for a statement that binds a statistic. If it
    is `masked`, a proof shows the sums to no one.
    """
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
    encoding = encode(rules)
    actuators = actuators_of(rules, encoding)
    settings = statistic(rules, encoding, actuators) if statistic else None
    deriving = Deriving(
        rules=rules,
        encoding=encoding,
        actuators=actuators,
        budgets=policy.budgets(rules, rows=1),
        jumps=rules.clean.segments_per_row > 0 or policy.margins.segment_points > 0,
        severe=policy.margins.severe_share > 0,
        statistic=settings,
        masked=masked,
    )
    return Statement(
        rules=rules,
        policy=policy,
        encoding=encoding,
        actuators=actuators,
        content=_canonical(deriving.document()),
        statistic=settings,
        masked=masked,
    )


def _canonical(document: Json) -> bytes:
    return json.dumps(document, sort_keys=True, separators=(",", ":")).encode()
