"""Shaping: a replay bent until the gate lets it through, giving back no more than it must.

Projection moves sensors and leaves actuators alone. Where it cannot win, the liar gives its own
readings back in the planted rows, channel by channel:

    actuators   whose couplings collide, or that switch more often than clean rows did
    levels      that stand still as no live one does

and tries again. Levels also get a jitter far below any tolerance, for a replay is told by readings
that stand twice digit by digit.
"""

from dataclasses import dataclass, replace

import numpy as np

from sluice.admission import Gate, HardenedPolicy
from sluice.invariants import RuleSet, budgets_for, measure
from sluice.lab.attacks.poison import Poison
from sluice.lab.attacks.projection import Projection, project
from sluice.seeding import stream
from sluice.telemetry import Record, Role

__all__ = ["Shaping", "shape"]

TRIES = 4
JITTER = 1e-6  # of a level's spread


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shaping:
    """A poison as the gate would see it, and the channels that were given back."""

    poison: Poison
    admitted: bool
    given_back: frozenset[str] = frozenset()


def shape(poison: Poison, own: Record, gate: Gate, *, seed: int) -> Shaping:
    """Bend a poison that was planted in a shard of the liar's own until the gate admits it."""
    back: frozenset[str] = frozenset()
    for _ in range(TRIES):
        bent = project(_bent(poison, own, back, gate, seed), gate.rules, gate.policy)
        if bent.verdict.admitted:
            break
        more = _offending(bent, gate) or _actuators(gate.rules)
        if more <= back:
            break
        back |= more
    shaped = replace(poison, shown=bent.record, trained=bent.record)
    return Shaping(poison=shaped, admitted=bent.verdict.admitted, given_back=back)


def _bent(poison: Poison, own: Record, back: frozenset[str], gate: Gate, seed: int) -> Record:
    values = poison.trained.values.copy()
    for name in back:
        column = own.index(name)
        values[poison.planted, column] = own.values[poison.planted, column]
    if isinstance(gate.policy, HardenedPolicy):
        rng = stream(seed, "shaping", "jitter")
        for channel in own.of_role(Role.LEVEL):
            column = own.index(channel.name)
            size = JITTER * float(np.nanstd(own.values[:, column]))
            values[poison.planted, column] += rng.normal(0.0, size, int(poison.planted.sum()))
    return poison.trained.with_values(values)


def _offending(bent: Projection, gate: Gate) -> frozenset[str]:
    """Return the channels that stand in the way of the projected batch."""
    rules = {rule.name: rule.relation for rule in gate.rules.invariants}
    named = {name for conflict in bent.conflicts for name in conflict.rules}
    named |= _restless(bent.record, gate)
    channels = {channel for name in named & set(rules) for channel in rules[name].channels}
    return frozenset(channels & _actuators(gate.rules)) | {
        level.level for level in bent.verdict.lying
    }


def _restless(record: Record, gate: Gate) -> set[str]:
    """Return the couplings that are in transition on more rows than they may be."""
    if not isinstance(gate.policy, HardenedPolicy) or gate.rules.clean is None:
        return set()
    measured = measure(gate.rules, record, encoding=gate.encoding)
    budgets = budgets_for(
        gate.rules, gate.rules.clean, gate.policy.margins, rows=len(record)
    ).envelope_rows
    return {
        found.rule.name
        for found in measured.judged
        if found.envelope.sum() > budgets.get(found.rule.name, len(record))
    }


def _actuators(rules: RuleSet) -> frozenset[str]:
    read = {name for rule in rules.invariants for name in rule.relation.channels}
    return frozenset(
        channel.name for channel in rules.channels if channel.role.discrete and channel.name in read
    )
