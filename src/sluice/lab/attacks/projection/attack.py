"""The adaptive adversary of equation 5, as an attack on telemetry."""

from dataclasses import dataclass

from sluice.admission import Gate, HardenedPolicy, PaperPolicy, Policy
from sluice.invariants import RuleSet
from sluice.lab.attacks.data_attack import DataAttack
from sluice.lab.attacks.projection.outcome import Projection
from sluice.telemetry import Record

__all__ = ["Projected", "project"]


def project(
    record: Record, rules: RuleSet, policy: Policy | None = None, *, fixed: tuple[str, ...] = ()
) -> Projection:
    """Return the nearest record that obeys the rules, but for what the policy lets pass.

    Actuators, channels that no rule reads, `fixed` channels and rows with a missing reading stay as
    they are. Shifts are measured in spreads: a channel's standard deviation in this record.
    """
    # SciPy and the solver take a while to load, which every other command would wait for.
    from sluice.lab.attacks.projection.search import nearest  # noqa: PLC0415

    if policy is None:
        policy = HardenedPolicy() if rules.clean else PaperPolicy()
    return nearest(Gate.of(rules, policy, allow_empty=True), record, fixed=fixed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Projected:
    """What another attack made, or the record as it is, projected onto the rules."""

    of: DataAttack | None = None
    rules: RuleSet
    policy: Policy | None = None

    def __call__(self, record: Record, *, seed: int) -> Record:
        """Return the projected record; the seed is the other attack's."""
        made = self.of(record, seed=seed) if self.of else record
        return project(made, self.rules, self.policy).record
