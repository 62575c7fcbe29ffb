"""A trial: every mode, attack and rule of one scenario, each piece of work done once.

Poison is made once per liar and attack and used by every mode and rule, and cells that come down
to the same clients with the same rows under the same rule are one federation (`TrialPlan.key`).
Shuffles depend on client and round alone, so modes can be compared pair by pair.
"""

import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial, reduce

from sluice.aggregation import RULES, Rule
from sluice.detector import (
    Autoencoder,
    Detector,
    DetectorKind,
    Model,
    Moments,
    TrainingSummary,
    calibrated,
    fit_subspace,
    initial,
)
from sluice.errors import SettingError
from sluice.federation import (
    AdmissionCheck,
    AdmitAll,
    Attestor,
    Checkpoint,
    Decision,
    InProcess,
    Keeper,
    PhysicsGate,
    Proofs,
    RootSlice,
    Transport,
    admit,
    begin,
    run,
)
from sluice.lab.attacks import UPDATE_ATTACKS
from sluice.lab.trials.contributions import BLEND, Contribution, Contributions, NamedGate, pooled
from sluice.lab.trials.malicious import BlendingTransport, Eavesdropper, MaliciousTransport
from sluice.lab.trials.modes import Adversary, Mode, Roster
from sluice.lab.trials.scenario import Scenario
from sluice.telemetry import Record, Windows

__all__ = ["Finished", "Group", "Trial", "TrialPlan"]

POOL = "pool"
FEDERATION = "lab"
Group = Mapping[str, Contribution]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrialPlan:
    """A mode with its attack, after the door: who takes part with what."""

    mode: Mode
    attack: str | None
    invited: Group
    decisions: Mapping[str, Decision]

    @property
    def groups(self) -> tuple[Group, ...]:
        """The federations to run: one of all that were admitted, or one for each alone."""
        admitted = {c: found for c, found in self.invited.items() if self.decisions[c].admitted}
        if self.mode.roster is Roster.EACH_ALONE:
            return tuple({client: found} for client, found in admitted.items())
        return (admitted,)

    @property
    def key(self) -> str:
        """What the outcome depends on, besides the scenario and the rule."""
        told = (" ".join(f"{c}={found.key}" for c, found in g.items()) for g in self.groups)
        return " | ".join(told)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Finished:
    """A federation that has run."""

    detector: Detector
    influence: Mapping[str, float]  # mean over rounds, by client
    passed: Mapping[str, float]  # share of rounds the rule let a client through, as papers count


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trial:
    """One scenario and the gate that judges it; the liars know its rules too.

    With proofs the gate sees these in place of batches.
    """

    contributions: Contributions
    gate: NamedGate | None = None
    proofs: Proofs | None = None

    @property
    def scenario(self) -> Scenario:
        """The scenario that is tried."""
        return self.contributions.scenario

    def plan(self, mode: Mode, attack: str | None = None) -> TrialPlan:
        """Make what everybody brings and let the door decide on it."""
        if mode.attacked and attack is None:
            raise SettingError(f"mode {mode.name!r} needs an attack; name one with --attack")
        if not mode.attacked:
            attack = None
        invited = self._invited(mode, attack)
        return TrialPlan(
            mode=mode,
            attack=attack,
            invited=invited,
            decisions=self._decided(invited) if mode.gated else _all_admitted(invited),
        )

    def run(
        self,
        plan: TrialPlan,
        rule: str,
        *,
        keeper: Callable[[int], Keeper] | None = None,
        on_round: Callable[[Checkpoint], None] | None = None,
    ) -> tuple[Finished, ...]:
        """Train: one federation, or one for each plant where each is alone."""
        if rule not in RULES:
            raise SettingError(f"unknown rule {rule!r}; known are {', '.join(RULES)}")
        if self.scenario.setup.detector is DetectorKind.SUBSPACE:
            _demand_sums(plan, rule)
            return tuple(self._summed(group) for group in plan.groups)
        return tuple(
            self._trained(plan, at, RULES[rule], keeper(at) if keeper else None, on_round)
            for at in range(len(plan.groups))
        )

    def _trained(
        self,
        plan: TrialPlan,
        at: int,
        rule: Rule,
        keeper: Keeper | None,
        on_round: Callable[[Checkpoint], None] | None,
    ) -> Finished:
        """Train the autoencoder of one group in rounds."""
        setup, seed, group = self.scenario.setup, self.scenario.seed, plan.groups[at]
        alone = plan.mode.roster is Roster.EACH_ALONE
        decisions = {c: plan.decisions[c] for c in group} if alone else plan.decisions
        root = RootSlice(self._windows(self.scenario.parts.root), descent=setup.descent, seed=seed)
        heard = Eavesdropper()
        done = run(
            partial(begin, initial(self.scenario.framing.width, seed=seed), decisions),
            transport=self._transport(group, plan.attack, rule, root, heard),
            rule=rule,
            rounds=setup.rounds,
            root=root,
            keeper=keeper,
            on_round=[heard.hear, *([on_round] if on_round else [])],
        )
        return Finished(
            detector=self._calibrated(Autoencoder(done.parameters), group),
            influence={c: share / done.round for c, share in done.influence.items()},
            passed={c: rounds / done.round for c, rounds in done.passed.items()},
        )

    def _summed(self, group: Group) -> Finished:
        """Learn the subspace of one group from its summed moments, in one exchange."""
        sums = [Moments.of(found.windows) for found in group.values()]
        total = reduce(operator.add, sums)
        model = fit_subspace(total, self._windows(self.scenario.parts.validation))
        return Finished(
            detector=self._calibrated(model, group),
            influence={c: part.count / total.count for c, part in zip(group, sums, strict=True)},
            passed=dict.fromkeys(group, 1.0),
        )

    def _decided(self, invited: Group) -> Mapping[str, Decision]:
        """Let the gate decide, on batches or on proofs of them."""
        if self.gate is None:
            raise SettingError("a gated mode needs rules to gate by; give --rules")
        gate, clients = self.gate.gate, tuple(invited)
        if self.proofs is None:
            admission: AdmissionCheck = PhysicsGate(gates=dict.fromkeys(invited, gate))
            return admit(clients, self._honest_transport(invited), admission)
        longest = max(len(brought.batch) for brought in invited.values())
        attest, admission = self.proofs.sides(FEDERATION, gate.rules, gate.policy, rows_max=longest)
        return admit(clients, self._honest_transport(invited, attest), admission)

    def _invited(self, mode: Mode, attack: str | None) -> Group:
        scenario, made = self.scenario, self.contributions
        invited: dict[str, Contribution] = {}
        for client in scenario.shards:
            lies = client in scenario.liars
            if lies and mode.roster is Roster.HONEST_ONLY:
                continue
            if lies and attack is not None:
                project = mode.adversary is Adversary.PROJECTED
                invited[client] = made.lying(client, attack, onto=self.gate, project=project)
            else:
                invited[client] = made.honest(client)
        if mode.roster is Roster.POOLED:
            return {POOL: pooled(invited)}
        return invited

    def _transport(
        self, group: Group, attack: str | None, rule: Rule, root: RootSlice, heard: Eavesdropper
    ) -> Transport:
        inner = self._honest_transport(group)
        liars = tuple(client for client in self.scenario.liars if client in group)
        if attack == BLEND:
            own = {liar: self.contributions.honest(liar) for liar in liars}
            return BlendingTransport(
                inner=inner,
                clean=self._honest_transport(own),
                liars=liars,
                rule=rule,
                root=root,
                heard=heard,
            )
        if attack is not None and attack in UPDATE_ATTACKS:
            return MaliciousTransport(
                inner=inner,
                liars=liars,
                attack=UPDATE_ATTACKS[attack],
                seed=self.scenario.seed,
            )
        return inner

    def _honest_transport(self, group: Group, attest: Attestor | None = None) -> InProcess:
        return InProcess(
            batches={client: found.batch for client, found in group.items()},
            windows={client: found.windows for client, found in group.items()},
            descent=self.scenario.setup.descent,
            seed=self.scenario.seed,
            attest=attest,
        )

    def _windows(self, part: Record) -> Windows:
        return self.scenario.framing.windows(part)

    def _calibrated(self, model: Model, group: Group) -> Detector:
        setup = self.scenario.setup
        training = TrainingSummary(
            records=tuple(sorted(group)),
            windows=sum(len(found.windows) for found in group.values()),
            seed=self.scenario.seed,
            descent=setup.descent if model.kind is DetectorKind.AUTOENCODER else None,
        )
        clean = self._windows(self.scenario.parts.validation)
        return calibrated(model, self.scenario.framing, clean, training=training)


def _all_admitted(invited: Group) -> Mapping[str, Decision]:
    admission = AdmitAll()
    return {client: admission.decide(client, None) for client in invited}


def _demand_sums(plan: TrialPlan, rule: str) -> None:
    if rule != "fedavg":
        raise SettingError(
            f"the subspace detector adds sums up, as fedavg does; {rule!r} has no updates to weigh"
        )
    if plan.attack == BLEND or plan.attack in UPDATE_ATTACKS:
        raise SettingError(
            f"attack {plan.attack!r} falsifies updates; the subspace detector sends sums"
        )
