"""A trial: every mode, attack and rule of one scenario, each piece of work done once.

Poison is made once per malicious client and attack and used by every mode and rule. Cells with the
same clients, the same rows and the same rule are one federation (`TrialPlan.key`). Shuffles depend
on client and round alone, so modes can be compared pair by pair.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sluice.aggregation import RULES, Rule
from sluice.attestation.messages import StatisticLimits
from sluice.attestation.systems.full import statistic_settings
from sluice.detector import DetectorKind, MomentSettings, SummedDetector, summed_for
from sluice.errors import SettingError
from sluice.federation import (
    VOTE_RULES,
    AdmissionCheck,
    AdmitAll,
    Attestor,
    Checkpoint,
    Decision,
    Federated,
    InProcess,
    Keeper,
    Keyless,
    PhysicsGate,
    Proofs,
    Recipe,
    RootSlice,
    Shown,
    Transport,
    VoteSettings,
    admit,
    demand_bound,
    demand_rule,
)
from sluice.lab.attacks import UPDATE_ATTACKS
from sluice.lab.trials.contributions import BLEND, Contribution, Contributions, NamedGate, pooled
from sluice.lab.trials.forged import StatisticForger
from sluice.lab.trials.forgeries import STATISTIC_FORGERIES, ForgerKnowledge
from sluice.lab.trials.malicious import BlendingTransport, Eavesdropper, MaliciousTransport
from sluice.lab.trials.modes import Adversary, Mode, Roster
from sluice.lab.trials.scenario import Scenario
from sluice.telemetry import Windows

__all__ = ["Group", "Trial", "TrialPlan"]

POOL = "pool"
FEDERATION = "lab"
POISON = "attest-clean"
"""The attack whose rows a forger of statistics wants to share."""
Group = Mapping[str, Contribution]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrialPlan:
    """A mode with its attack, after admission: who takes part, and with which rows."""

    mode: Mode
    attack: str | None
    invited: Group
    decisions: Mapping[str, Decision]
    summed: MomentSettings | None = None  # what bound statistics sum

    @property
    def groups(self) -> tuple[Group, ...]:
        """The federations to run: one of all admitted clients, or one for each client alone."""
        admitted = {c: brought for c, brought in self.invited.items() if self.decisions[c].admitted}
        if self.mode.roster is Roster.EACH_ALONE:
            return tuple({client: brought} for client, brought in admitted.items())
        return (admitted,)

    @property
    def key(self) -> str:
        """What the outcome depends on, besides the scenario and the rule."""
        groups = (" ".join(f"{c}={brought.key}" for c, brought in g.items()) for g in self.groups)
        return " | ".join(groups)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Trial:
    """One scenario and the gate that judges it. Malicious clients know the gate's rules too.

    With `proofs`, the gate sees proofs in place of batches. Mode `bound` uses `binding`, proofs
    that bind statistics; by default those of `full`, under the `limits` of shared statistics.
    """

    contributions: Contributions
    gate: NamedGate | None = None
    proofs: Proofs | None = None
    limits: StatisticLimits = StatisticLimits()  # noqa: RUF009 - frozen, so sharing it is safe
    binding: Proofs | None = None

    @property
    def scenario(self) -> Scenario:
        """The scenario of this trial."""
        return self.contributions.scenario

    def plan(self, mode: Mode, attack: str | None = None) -> TrialPlan:
        """Make what every client brings, and decide who is admitted."""
        if mode.attacked and attack is None and not mode.bound:
            raise SettingError(f"mode {mode.name!r} needs an attack; name one with --attack")
        if not mode.attacked:
            attack = None
        if mode.bound:
            return self._bound_plan(mode, attack)
        if attack in STATISTIC_FORGERIES and attack != POISON:
            raise SettingError(
                f"attack {attack!r} forges a statistic that a proof binds; use --mode bound"
            )
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
    ) -> tuple[Federated, ...]:
        """Train one federation, or one for each client where each is alone."""
        setup = self.scenario.setup
        demand_rule(rule, setup.detector)
        if plan.summed is not None:
            demand_bound(setup.detector, rule)
            (group,) = plan.groups
            recipe = self._recipe(rule, members=len(group))
            return (recipe.from_bound(plan.summed, decisions=plan.decisions),)
        if setup.detector != DetectorKind.AUTOENCODER:
            _demand_data(plan.attack)
            return tuple(
                self._recipe(rule, members=len(group)).from_sums(
                    _windows(group), decisions=_decisions(plan, group)
                )
                for group in plan.groups
            )
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
    ) -> Federated:
        """Train the autoencoder of one group in rounds."""
        heard, group = Eavesdropper(), plan.groups[at]
        recipe = self._recipe(members=len(group))
        return recipe.in_rounds(
            _windows(group),
            decisions=_decisions(plan, group),
            transport=self._transport(plan, at, rule, recipe.server(), heard),
            rule=rule,
            keeper=keeper,
            listeners=[heard.hear, *([on_round] if on_round else [])],
        )

    def _recipe(self, rule: str = "fedavg", *, members: int) -> Recipe:
        scenario, setup = self.scenario, self.scenario.setup
        vote = None
        if rule in VOTE_RULES:
            _demand_own_scale(setup.detector)
            vote = VoteSettings.on(
                scenario.parts.validation,
                rule=rule,
                # The gate may leave fewer members than such a vote needs.
                malicious=min(setup.malicious, (members - 1) // 2),
                false_alarms_per_week=setup.false_alarms_per_week,
            )
        return Recipe(
            framing=scenario.framing,
            validation=scenario.framing.windows(scenario.parts.validation),
            root=scenario.parts.root,
            detector=setup.detector,
            rounds=setup.rounds,
            descent=setup.descent,
            seed=scenario.seed,
            kind=self.kind,
            vote=vote,
        )

    @property
    def kind(self) -> SummedDetector | None:
        """How clients sum their windows; None for the autoencoder, which is trained in rounds."""
        shared = self.scenario
        if shared.setup.detector == DetectorKind.AUTOENCODER:
            return None
        return summed_for(shared.setup.detector, shared.framing, shared.parts.validation)

    def _bound_plan(self, mode: Mode, attack: str | None) -> TrialPlan:
        """Let clients prove batches and statistics; some forge theirs, or poison their batch."""
        if self.gate is None:
            raise SettingError("a gated mode needs rules to gate by; give --rules")
        gate, forges = self.gate.gate, attack in STATISTIC_FORGERIES
        _demand_data(attack)
        invited = self._invited(mode, None if forges else attack)
        longest = max(len(brought.batch) for brought in invited.values())
        binding = self.binding or Keyless.bound(self.limits)
        honest, admission = binding.sides(FEDERATION, gate.rules, gate.policy, rows_max=longest)
        summed = statistic_settings(honest.circuit)
        assert summed is not None
        forged = self._forged(attack, summed, invited) if attack is not None and forges else {}
        attest = StatisticForger(honest=honest, forged=forged)
        return TrialPlan(
            mode=mode,
            attack=attack,
            invited=invited,
            decisions=admit(tuple(invited), self._honest_transport(invited, attest), admission),
            summed=summed,
        )

    def _forged(self, attack: str, summed: MomentSettings, invited: Group) -> dict[str, bytes]:
        shared, honest = self.scenario, self.scenario.honest[0]
        forged = {}
        for client in shared.malicious:
            known = ForgerKnowledge(
                settings=summed,
                batch=invited[client].batch,
                poison=self.contributions.poison(client, POISON),
                neighbour=invited[honest].batch,
                other=shared.parts.fit,
            )
            forged[client] = STATISTIC_FORGERIES[attack](known).canonical()
        return forged

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
            is_malicious = client in scenario.malicious
            if is_malicious and mode.roster is Roster.HONEST_ONLY:
                continue
            if is_malicious and attack is not None:
                project = mode.adversary is Adversary.PROJECTED
                invited[client] = made.malicious(client, attack, onto=self.gate, project=project)
            else:
                invited[client] = made.honest(client)
        if mode.roster is Roster.POOLED:
            return {POOL: pooled(invited)}
        return invited

    def _transport(
        self, plan: TrialPlan, at: int, rule: Rule, root: RootSlice, heard: Eavesdropper
    ) -> Transport:
        group, attack = plan.groups[at], plan.attack
        inner = self._honest_transport(group)
        malicious = tuple(client for client in self.scenario.malicious if client in group)
        if attack == BLEND:
            own = {client: self.contributions.honest(client) for client in malicious}
            return BlendingTransport(
                inner=inner,
                clean=self._honest_transport(own),
                malicious=malicious,
                rows={client: plan.decisions[client].rows for client in group},
                rule=rule,
                root=root,
                heard=heard,
            )
        if attack is not None and attack in UPDATE_ATTACKS:
            return MaliciousTransport(
                inner=inner,
                malicious=malicious,
                attack=UPDATE_ATTACKS[attack],
                seed=self.scenario.seed,
            )
        return inner

    def _honest_transport(
        self, group: Group, attest: Attestor | StatisticForger | None = None
    ) -> InProcess:
        return InProcess(
            batches={client: brought.batch for client, brought in group.items()},
            windows={client: brought.windows for client, brought in group.items()},
            descent=self.scenario.setup.descent,
            seed=self.scenario.seed,
            attest=attest,
        )


def _windows(group: Group) -> Mapping[str, Windows]:
    return {client: brought.windows for client, brought in group.items()}


def _decisions(plan: TrialPlan, group: Group) -> Mapping[str, Decision]:
    """Return the decisions on a group: its own where each client is alone, else everybody's."""
    if plan.mode.roster is Roster.EACH_ALONE:
        return {client: plan.decisions[client] for client in group}
    return plan.decisions


def _all_admitted(invited: Group) -> Mapping[str, Decision]:
    admission = AdmitAll()
    return {
        client: admission.decide(client, Shown(batch=brought.batch))
        for client, brought in invited.items()
    }


def _demand_own_scale(detector: str) -> None:
    if detector == DetectorKind.SUBSPACE:
        raise SettingError(
            f"the lab scales readings for {detector!r} by the rows of all clients, so a vote would "
            f"have no certificate; use the detector {DetectorKind.MOMENTS.value!r}"
        )


def _demand_data(attack: str | None) -> None:
    if attack == BLEND or attack in UPDATE_ATTACKS:
        raise SettingError(f"attack {attack!r} falsifies updates, and this detector sends sums")
