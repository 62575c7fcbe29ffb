"""One federation in one process: admit clients, train together, set the threshold.

`federate` runs it from records. `Recipe` is the part that the lab shares: it trains the admitted
clients, whatever transport carries their updates.
"""

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from typing import Any

import numpy as np

from sluice.admission import Gate
from sluice.aggregation import RULES, Rule
from sluice.attestation.messages import StatisticLimits
from sluice.attestation.systems import System
from sluice.attestation.systems.full import statistic_settings
from sluice.detector import (
    SUMMED,
    Autoencoder,
    Descent,
    Detector,
    DetectorKind,
    Framing,
    Model,
    MomentSettings,
    MomentStatistic,
    ReceiverMoments,
    SummedDetector,
    TrainingSummary,
    calibrated,
    complete_rows,
    demand_detector,
    initial,
    moment_statistic,
    robust_scaler,
    summed_for,
)
from sluice.errors import InputError, RecordError, RefusedError, SettingError
from sluice.federation.admission_check import AdmissionCheck, AdmitAll, Decision, PhysicsGate
from sluice.federation.proofs import Keyless, Proofs
from sluice.federation.root import RootSlice
from sluice.federation.rounds import UPDATE_MAX, Checkpoint, Keeper, admit, begin, run
from sluice.federation.transport import InProcess, Transport
from sluice.federation.vote import VOTE_RULES, VoteSettings, hold_vote
from sluice.telemetry import Record, Scaler, Windows, feature_names

__all__ = ["Federated", "FederationSettings", "Recipe", "demand_bound", "demand_rule", "federate"]

FEDERATION = "local"
NO_PARAMETERS = np.zeros(0, np.float32)

Listener = Callable[[Checkpoint], None]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Federated:
    """A federation that has run."""

    detector: Detector
    decisions: Mapping[str, Decision]  # by client: admitted, or why not
    influence: Mapping[str, float]  # mean over rounds, by client
    passed: Mapping[str, float]  # share of rounds in which the rule used a client's update

    @property
    def admitted(self) -> tuple[str, ...]:
        """The clients that took part."""
        return tuple(c for c, decision in self.decisions.items() if decision.admitted)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Recipe:
    """How admitted clients train one detector."""

    framing: Framing
    validation: Windows  # clean windows that set the threshold
    root: Record  # clean rows of the server, for rules that need them
    detector: str = DetectorKind.AUTOENCODER.value
    rounds: int = 25
    descent: Descent = field(default_factory=Descent)
    seed: int = 0
    update_max: float = UPDATE_MAX  # a client whose update has a larger entry sits the round out
    kind: SummedDetector | None = None  # how clients sum their windows; default: by `detector`
    vote: VoteSettings | None = None  # members vote, and their sums are not added

    def in_rounds(  # noqa: PLR0913 - a federation is these parts
        self,
        windows: Mapping[str, Windows],
        *,
        decisions: Mapping[str, Decision],
        transport: Transport,
        rule: Rule,
        keeper: Keeper | None = None,
        listeners: Sequence[Listener] = (),
    ) -> Federated:
        """Train the autoencoder in rounds, from the last checkpoint if there is one."""
        done = run(
            partial(begin, initial(self.framing.width, seed=self.seed), decisions),
            transport=transport,
            rule=rule,
            rounds=self.rounds,
            root=self.server(),
            keeper=keeper,
            on_round=listeners,
            decisions=decisions,
            update_max=self.update_max,
        )
        return Federated(
            detector=self._calibrated(Autoencoder(done.parameters), windows),
            decisions=decisions,
            influence={c: share / done.round for c, share in done.influence.items()},
            passed={c: rounds / done.round for c, rounds in done.passed.items()},
        )

    def from_sums(
        self,
        windows: Mapping[str, Windows],
        *,
        decisions: Mapping[str, Decision],
        sent: Callable[[Mapping[str, Any]], Mapping[str, Any]] | None = None,
    ) -> Federated:
        """Learn the detector from the clients' summed windows, in one exchange.

        `sent` turns the sums that clients compute into those that arrive.
        """
        kind = self.kind or SUMMED[self.detector]
        sums = {client: kind.summarise(own) for client, own in windows.items()}
        sums = dict(sent(sums)) if sent else sums
        if self.vote is not None:
            return self._from_votes(sums, kind, windows, decisions)
        total = reduce(operator.add, sums.values())
        return Federated(
            detector=self._calibrated(kind.fit(total, self.validation), windows),
            decisions=decisions,
            influence={client: own.count / total.count for client, own in sums.items()},
            passed=dict.fromkeys(windows, 1.0),
        )

    def from_bound(
        self, settings: MomentSettings, *, decisions: Mapping[str, Decision]
    ) -> Federated:
        """Hold a vote of the statistics that the gate has verified, and of nothing else."""
        assert self.vote is not None
        sums = {
            client: MomentStatistic.from_canonical(decision.statistic, settings)
            for client, decision in sorted(decisions.items())
            if decision.admitted and decision.statistic is not None
        }
        if not sums:
            refused = [f"{c}: {', '.join(d.reasons)}" for c, d in sorted(decisions.items())]
            raise RefusedError(
                f"no client was admitted, so there is nothing to vote on ({'; '.join(refused)})"
            )
        kind = ReceiverMoments(settings=settings, scaler=self.framing.scaler)
        training = TrainingSummary(
            records=tuple(sums),
            windows=sum(statistic.count for statistic in sums.values()),
            seed=self.seed,
            rule=self.vote.rule,
        )
        return self._voted(sums, kind, decisions, training)

    def _from_votes(
        self,
        sums: Mapping[str, Any],
        kind: SummedDetector,
        windows: Mapping[str, Windows],
        decisions: Mapping[str, Decision],
    ) -> Federated:
        """Let every member vote with a detector of its own sums."""
        assert self.vote is not None
        return self._voted(sums, kind, decisions, self._summary(windows, rule=self.vote.rule))

    def _voted(
        self,
        sums: Mapping[str, Any],
        kind: SummedDetector,
        decisions: Mapping[str, Decision],
        training: TrainingSummary,
    ) -> Federated:
        assert self.vote is not None
        detector = hold_vote(
            sums, kind, self.framing, self.validation, settings=self.vote, training=training
        )
        return Federated(
            detector=detector,
            decisions=decisions,
            influence=dict.fromkeys(sums, 1 / len(sums)),
            passed=dict.fromkeys(sums, 1.0),
        )

    def server(self) -> RootSlice:
        """Return the server's own training on its clean rows."""
        windows = self.framing.windows(self.root)
        return RootSlice(windows, descent=self.descent, seed=self.seed)

    def _calibrated(self, model: Model, windows: Mapping[str, Windows]) -> Detector:
        descent = self.descent if model.kind == DetectorKind.AUTOENCODER else None
        return calibrated(
            model, self.framing, self.validation, training=self._summary(windows, descent=descent)
        )

    def _summary(
        self,
        windows: Mapping[str, Windows],
        *,
        rule: str = "alone",
        descent: Descent | None = None,
    ) -> TrainingSummary:
        return TrainingSummary(
            records=tuple(sorted(windows)),
            windows=sum(len(own) for own in windows.values()),
            seed=self.seed,
            rule=rule,
            descent=descent,
        )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FederationSettings:
    """Everything that one federation in one process needs."""

    clients: Mapping[str, Record]  # each client's clean rows; it attests and trains on them
    validation: Record  # clean rows that set the threshold; no client trains on them
    root: Record | None = None  # clean rows of the server, for rule `fltrust`
    gate: Gate | None = None  # without one, every client is admitted
    proofs: Proofs | System | None = None  # with it, the gate sees proofs and no batch
    bound: StatisticLimits | None = None  # members share only the statistic that their proof binds
    rule: str = "fedavg"  # `vote` and `any-of-subsets` are for detectors from sums
    malicious: int = 1  # members that a vote withstands; count owners and integrators, not keys
    false_alarms_per_week: float = 1.0  # that a vote asks of each voter
    detector: str = DetectorKind.AUTOENCODER.value
    rounds: int = 25
    descent: Descent = field(default_factory=Descent)
    seed: int = 0
    update_max: float = UPDATE_MAX  # a client whose update has a larger entry sits the round out
    keeper: Keeper | None = None  # keeps a checkpoint after each round
    on_round: Listener | None = None


def federate(settings: FederationSettings) -> Federated:
    """Run one federation in one process and return its detector.

    Clients are admitted first. What a refused client shows changes nothing: readings are scaled by
    the `validation` rows. Rows that the gate finds violating are not trained on.

        rules = sluice.mine(fit, calibration)
        gate = sluice.Gate.of(rules, sluice.HardenedPolicy())
        clients = {"north": north, "south": south}
        done = sluice.federate(
            sluice.FederationSettings(clients=clients, validation=validation, gate=gate)
        )
    """
    _check(settings)
    if settings.bound is not None:
        return _bound(settings, settings.bound)
    decisions = dict(_decided(settings))
    framing = _framing(settings)
    windows: dict[str, Windows] = {}
    for client in sorted(client for client, decision in decisions.items() if decision.admitted):
        try:
            windows[client] = _own_windows(settings.clients[client], framing, settings.gate)
        except InputError as error:  # one client's rows must not stop the others
            decisions[client] = Decision(admitted=False, reasons=(str(error),))
    recipe = _recipe(settings, framing)
    if settings.detector != DetectorKind.AUTOENCODER:
        kind = summed_for(settings.detector, framing, settings.validation)
        recipe = replace(recipe, kind=kind)
        sent = None
        if isinstance(kind, ReceiverMoments):
            sent = partial(_exact_sums, settings.clients, kind.settings)
        return recipe.from_sums(windows, decisions=decisions, sent=sent)
    transport = InProcess(
        batches=settings.clients, windows=windows, descent=settings.descent, seed=settings.seed
    )
    return recipe.in_rounds(
        windows,
        decisions=decisions,
        transport=transport,
        rule=RULES[settings.rule],
        keeper=settings.keeper,
        listeners=(settings.on_round,) if settings.on_round else (),
    )


def _bound(settings: FederationSettings, limits: StatisticLimits) -> Federated:
    """Let clients prove their batches and statistics; the vote uses the verified statistics."""
    gate = settings.gate
    assert gate is not None
    attest, admission = Keyless.bound(limits).sides(
        FEDERATION, gate.rules, gate.policy, rows_max=_longest(settings)
    )
    transport = InProcess(
        batches=settings.clients,
        windows={},
        descent=settings.descent,
        seed=settings.seed,
        attest=attest,
    )
    decisions = admit(tuple(sorted(settings.clients)), transport, admission)
    summed = statistic_settings(attest.circuit)
    assert summed is not None
    return _recipe(settings, _framing(settings)).from_bound(summed, decisions=decisions)


def _framing(settings: FederationSettings) -> Framing:
    names = feature_names(settings.validation)
    if settings.detector == DetectorKind.MOMENTS:
        scaler = robust_scaler(settings.validation, names)
    else:
        scaler = Scaler.fit([settings.validation], names)
    return Framing(scaler=scaler, stride_s=settings.validation.stride_s)


def _recipe(settings: FederationSettings, framing: Framing) -> Recipe:
    return Recipe(
        framing=framing,
        validation=framing.windows(settings.validation),
        root=settings.root or settings.validation,
        detector=settings.detector,
        rounds=settings.rounds,
        descent=settings.descent,
        seed=settings.seed,
        update_max=settings.update_max,
        vote=_vote(settings),
    )


def _exact_sums(
    records: Mapping[str, Record], settings: MomentSettings, sums: Mapping[str, Any]
) -> Mapping[str, MomentStatistic]:
    """Return the statistic of each client's rows, as a plant sends it between sites.

    It sums all rows of an admitted batch. If it left out rows that the gate finds violating, a
    client could choose what it sums.
    """
    return {client: moment_statistic(complete_rows(records[client]), settings) for client in sums}


def _check(settings: FederationSettings) -> None:
    if not settings.clients:
        raise SettingError("a federation needs at least one client, got none")
    demand_detector(settings.detector)
    demand_rule(settings.rule, settings.detector)
    if settings.proofs is not None and settings.gate is None:
        raise SettingError("proofs need rules to prove; give a gate")
    if settings.bound is not None:
        demand_bound(settings.detector, settings.rule)
        if settings.gate is None or settings.proofs is not None:
            raise SettingError(
                "bound statistics need rules to prove, and bring their own proofs (system 'full'): "
                "give a gate and no proofs"
            )


def demand_bound(detector: str, rule: str) -> None:
    """Refuse a detector or a rule whose contributions no proof can bind to the batch."""
    if detector != DetectorKind.MOMENTS:
        raise SettingError(
            f"the detector {detector!r} cannot be bound: a proof binds exact sums over the rows, "
            f"and only the detector {DetectorKind.MOMENTS.value!r} is made of them"
        )
    if rule not in VOTE_RULES:
        raise SettingError(
            f"bound statistics are voted on, and rule {rule!r} is no vote; use "
            f"{' or '.join(VOTE_RULES)}"
        )


def demand_rule(rule: str, detector: str) -> None:
    """Refuse a rule that does not exist, or that does not fit the detector."""
    known = (*RULES, *VOTE_RULES)
    if rule not in known:
        raise SettingError(f"unknown rule {rule!r}; known are {', '.join(known)}")
    if detector == DetectorKind.AUTOENCODER:
        if rule in VOTE_RULES:
            raise SettingError(
                f"rule {rule!r} makes one detector of each member's sums, and an autoencoder is "
                f"trained in rounds; use one of the detectors {', '.join(SUMMED)}"
            )
    elif rule not in ("fedavg", *VOTE_RULES):
        raise SettingError(
            f"the detector {detector!r} is made of clients' sums, so rule {rule!r} has no updates "
            f"to weigh; use rule 'fedavg' (it adds the sums) or {' or '.join(VOTE_RULES)}"
        )


def _vote(settings: FederationSettings) -> VoteSettings | None:
    if settings.rule not in VOTE_RULES:
        return None
    return VoteSettings.on(
        settings.validation,
        rule=settings.rule,
        malicious=settings.malicious,
        false_alarms_per_week=settings.false_alarms_per_week,
    )


def _own_windows(record: Record, framing: Framing, gate: Gate | None) -> Windows:
    """Return a client's windows, without those that hold a row which the gate finds violating."""
    windows = framing.windows(record)
    if gate is not None and gate.policy.integers:
        windows = windows.take(~windows.touching(gate.judge(record).violating))
    if not len(windows):
        raise RecordError(f"record {record.name!r} has no window to train on; give more rows")
    return windows


def _longest(settings: FederationSettings) -> int:
    return max(len(record) for record in settings.clients.values())


def _decided(settings: FederationSettings) -> Mapping[str, Decision]:
    """Return the decision on each client."""
    gate, attest = settings.gate, None
    admission: AdmissionCheck = AdmitAll()
    if gate is not None and settings.proofs is not None:
        longest = _longest(settings)
        proofs = settings.proofs
        if not isinstance(proofs, Proofs):
            proofs = Keyless(system=proofs)
        attest, admission = proofs.sides(FEDERATION, gate.rules, gate.policy, rows_max=longest)
    elif gate is not None:
        admission = PhysicsGate(gates=dict.fromkeys(settings.clients, gate))
    transport = InProcess(
        batches=settings.clients,
        windows={},
        descent=settings.descent,
        seed=settings.seed,
        attest=attest,
    )
    return admit(tuple(sorted(settings.clients)), transport, admission)
