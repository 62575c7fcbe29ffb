"""Shaping: a replay is changed until the gate admits it, and no more than necessary.

Projection moves sensors and leaves actuators unchanged. If the gate still refuses, the malicious
client restores its own readings in the planted rows and tries again. It restores:

    actuators   whose rules collide, or that switch more often, or elsewhere, than in clean rows
    levels      that stand still as no live level does
    sensors     of the rules that still refuse, when all actuators are restored

Levels also get a jitter far below any tolerance, because readings that repeat digit by digit reveal
a replay.
"""

from dataclasses import dataclass, replace

import numpy as np

from sluice.admission import Gate, ReasonKind
from sluice.invariants import RuleSet
from sluice.lab.attacks.poison import Poison
from sluice.lab.attacks.projection import Projection, project
from sluice.seeding import stream
from sluice.telemetry import Record, Role

__all__ = ["Shaping", "shape"]

TRIES = 6
JITTER = 1e-6  # of a level's spread


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Shaping:
    """A shaped poison, whether the gate admits it, and the channels that were restored."""

    poison: Poison
    admitted: bool
    restored: frozenset[str] = frozenset()


def shape(poison: Poison, own: Record, gate: Gate, *, seed: int, jitter: float = JITTER) -> Shaping:
    """Change a poison that was planted in the client's own shard until the gate admits it.

    `jitter` is the size of what is added to levels, as a share of each level's spread.
    """
    restored: frozenset[str] = frozenset()
    for _ in range(TRIES):
        projection = project(
            _with_restored(
                poison, own, restored, jitter if gate.policy.integers else 0.0, seed=seed
            ),
            gate.rules,
            gate.policy,
        )
        if projection.verdict.admitted:
            break
        more = (
            _offending(projection, gate) - restored
            or _actuators(gate.rules) - restored
            or _refusing(projection, gate, poison) - restored
        )
        if not more:
            break
        restored |= more
    shaped = replace(poison, shown=projection.record, trained=projection.record)
    return Shaping(poison=shaped, admitted=projection.verdict.admitted, restored=restored)


def _with_restored(
    poison: Poison, own: Record, restored: frozenset[str], jitter: float, *, seed: int
) -> Record:
    values = poison.trained.values.copy()
    for name in restored:
        column = own.index(name)
        values[poison.planted, column] = own.values[poison.planted, column]
    if jitter:
        rng = stream(seed, "shaping", "jitter")
        for channel in own.of_role(Role.LEVEL):
            column = own.index(channel.name)
            size = jitter * float(np.nanstd(own.values[:, column]))
            values[poison.planted, column] += rng.normal(0.0, size, int(poison.planted.sum()))
    return poison.trained.with_values(values)


def _offending(projection: Projection, gate: Gate) -> frozenset[str]:
    """Return the channels for which the gate refuses the projected batch."""
    rules = {rule.name: rule.relation for rule in gate.rules.invariants}
    named = {name for conflict in projection.conflicts for name in conflict.rules}
    reasons = projection.verdict.reasons
    switching = (ReasonKind.TRANSITION, ReasonKind.SWITCHES)
    named |= {reason.rule for reason in reasons if reason.kind in switching}
    channels = {channel for name in named & set(rules) for channel in rules[name].channels}
    return frozenset(channels & _actuators(gate.rules)) | {
        reason.rule for reason in reasons if reason.kind.about_a_level
    }


def _refusing(projection: Projection, gate: Gate, poison: Poison) -> frozenset[str]:
    """Return the channels of the rules that refuse the batch, or that planted rows violate."""
    verdict = projection.verdict
    named = {reason.rule for reason in verdict.reasons if reason.rule}
    if any(not reason.rule for reason in verdict.reasons):
        rows = poison.planted
        named |= {found.name for found in verdict.findings if (found.violating & rows).any()}
    return frozenset(
        channel
        for rule in gate.rules.invariants
        if rule.name in named
        for channel in rule.relation.channels
    )


def _actuators(rules: RuleSet) -> frozenset[str]:
    read = {name for rule in rules.invariants for name in rule.relation.channels}
    return frozenset(
        channel.name for channel in rules.channels if channel.role.discrete and channel.name in read
    )
