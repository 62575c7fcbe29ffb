"""The adaptive adversary of equation 5, as an attack on telemetry."""

from dataclasses import dataclass

from sluice.admission import Gate, Policy, default_policy
from sluice.invariants import RuleSet
from sluice.lab.attacks.data_attack import DataAttack
from sluice.lab.attacks.projection.outcome import Projection
from sluice.telemetry import Record

__all__ = ["Projected", "project"]


def project(
    record: Record, rules: RuleSet, policy: Policy | None = None, *, fixed: tuple[str, ...] = ()
) -> Projection:
    """Return the nearest record that obeys the rules, except for violations that the policy allows.

    Actuators, channels that no rule reads, `fixed` channels and rows with a missing reading stay
    unchanged. Shifts are measured in spreads: a channel's standard deviation in this record.
    """
    # Imported here because SciPy and the solver load slowly, and other commands do not need them.
    from sluice.lab.attacks.projection.search import nearest  # noqa: PLC0415

    policy = policy or default_policy(rules)
    return nearest(Gate.of(rules, policy, allow_empty=True), record, fixed=fixed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Projected:
    """The result of another attack, or the record itself, projected onto the rules."""

    of: DataAttack | None = None
    rules: RuleSet
    policy: Policy | None = None

    def __call__(self, record: Record, *, seed: int) -> Record:
        """Return the projected record; the seed goes to the other attack."""
        attacked = self.of(record, seed=seed) if self.of else record
        return project(attacked, self.rules, self.policy).record
