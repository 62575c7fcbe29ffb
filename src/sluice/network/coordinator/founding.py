"""Found a federation from a clean reference record, and build its coordinator service.

The reference belongs to the coordinator. It determines the scaling of all plants' readings, the
root update of aggregation rules that need one, and the finished model's threshold. No row of it is
sent.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

import rfc8785
from pydantic import TypeAdapter

from sluice.aggregation import RULES
from sluice.attestation.log import CHALLENGED, ENTRIES, LogOpened, LogTerms, StatisticTerms
from sluice.attestation.messages import HelperCard, StatisticLimits
from sluice.attestation.systems import SystemName
from sluice.detector import (
    VOTE,
    Autoencoder,
    Descent,
    Detector,
    DetectorKind,
    Framing,
    MomentSettings,
    TrainingSummary,
    calibrated,
    moment_settings,
    robust_scaler,
    statistic_bytes,
)
from sluice.errors import SettingError
from sluice.federation import (
    UPDATE_MAX,
    VOTE_RULES,
    Checkpoint,
    RootSlice,
    demand_bound,
    votes_needed,
)
from sluice.invariants import Register
from sluice.network.coordinator.folder import CoordinatorFolder
from sluice.network.coordinator.grouping import SharedGroups
from sluice.network.coordinator.intake import Intake
from sluice.network.coordinator.pages import LogPages
from sluice.network.coordinator.requests import Requests
from sluice.network.coordinator.rounds import LoggedTransport
from sluice.network.coordinator.service import CoordinatorService
from sluice.network.coordinator.sharing import (
    SharedStatistics,
    Sharing,
    WeightUpdates,
    statistics_in,
)
from sluice.network.coordinator.store import CoordinatorStore
from sluice.network.helper import HelperClient
from sluice.network.statistics import members_max, vote_of
from sluice.network.terms import (
    GRACE_S,
    KEEP_ROUNDS,
    MEMBERS_MIN,
    QUORUM,
    FederationTerms,
    demand_group_terms,
    demand_overlap,
    demand_phase_terms,
    read_document,
    statistic_terms,
    write_document,
)
from sluice.network.training_rows import TrainingRows
from sluice.network.wire import LARGEST_ANSWER, Wire
from sluice.telemetry import WINDOW_ROWS, Record, Scaler, feature_names
from sluice.template import Template, demand_kinds

__all__ = ["FederationPlan", "coordinator_service", "detector", "found_federation"]

REFERENCE = "reference.json"
LONGEST_DEADLINE_S = 30 * 86_400.0
ANSWER_EXTRA = 65_536
"""Bytes of an answer beside the statistic in it."""
PROOF_ROOM = 3 * 1024 * 1024
"""Bytes of an answer for the proof beside a bound statistic; a proof takes about a third of it."""
ENTRY_EXTRA = 4_096
"""Bytes of an entry of the log beside its body."""
FALSE_ALARMS_PER_WEEK = 1.0
SHARED_DETECTORS = (DetectorKind.AUTOENCODER.value, DetectorKind.MOMENTS.value)


@dataclass(frozen=True, slots=True, kw_only=True)
class FederationPlan:
    """The settings of a new federation."""

    federation: str
    host: str
    port: int
    link_port: int
    reference: TrainingRows
    policy: str  # the policy file's text
    system: str = "full"
    rows_max: int = 8_192
    rule: str = "fedavg"
    rounds: int = 10
    seed: int = 0
    descent: Descent = field(default_factory=Descent)
    batch_deadline_s: float = 600.0
    round_deadline_s: float = 3_600.0
    suspend_after: int = 5
    log: LogTerms = field(default_factory=LogTerms)
    approvers: tuple[str, ...] = ()  # their public keys
    quorum: float = QUORUM
    grace_s: float = GRACE_S
    update_max: float = UPDATE_MAX
    members_min: int = MEMBERS_MIN
    keep_rounds: int = KEEP_ROUNDS
    filter_port: int | None = None  # default: the port after `link_port`
    detector: str = DetectorKind.AUTOENCODER.value  # or `moments`: plants share statistics, once
    malicious: int = 1  # members that a vote withstands; count owners and integrators, not keys
    bound: bool = False  # a proof ties each statistic to its rows
    limits: StatisticLimits | None = None  # of a batch whose statistic is shared
    lends: bool = False  # members lend the tails of their scores
    template: Template | None = None  # None: all plants use the same tags
    overlap_min: float = 1.0  # share of the points that a plant needs to join
    helper: HelperCard | None = None  # of groups, of which only the sum is learnt; None: no groups

    def __post_init__(self) -> None:
        if len({self.port, *self.inner_ports}) < 3:
            raise SettingError(
                f"the proxy, Flower and the filter need three ports; got {self.port} for the "
                f"proxy, and {self.inner_ports} for the other two"
            )
        self._demand_rule()
        if self.system in CHALLENGED:
            raise SettingError(
                f"system {str(self.system)!r} does not work between sites: one trusted party must "
                "make its keys, and its rows are drawn in an exchange that the network does not "
                "carry; use 'full', or 'sluice federate --proof sampled' in one process"
            )
        if not self.approvers:
            raise SettingError(
                "a federation needs the public key of at least one approver; 'sluice rules key' "
                "makes one"
            )
        if self.log.approvals > len(set(self.approvers)):
            raise SettingError(
                f"{self.log.approvals} approvals are needed and {len(set(self.approvers))} "
                "approvers are named; name more with --approver"
            )
        deadlines = (self.batch_deadline_s, self.round_deadline_s)
        if not all(0 < each <= LONGEST_DEADLINE_S for each in deadlines) or self.suspend_after < 1:
            raise SettingError(
                f"deadlines must be above 0 s and at most {LONGEST_DEADLINE_S:,.0f} s, and "
                f"suspend_after at least 1 round; got {self.batch_deadline_s} s for batches, "
                f"{self.round_deadline_s} s for rounds and {self.suspend_after} rounds"
            )
        if self.members_min < 1:
            raise SettingError(f"members_min is {self.members_min}; a round needs at least 1 plant")
        demand_phase_terms(quorum=self.quorum, grace_s=self.grace_s, update_max=self.update_max)
        demand_overlap(self.overlap_min, statistic=self.detector == DetectorKind.MOMENTS)

    def _demand_rule(self) -> None:
        """Raise unless the rule exists and fits the detector."""
        if self.detector not in SHARED_DETECTORS:
            raise SettingError(
                f"unknown detector {self.detector!r}; between sites, plants share one of "
                f"{', '.join(SHARED_DETECTORS)}"
            )
        known = VOTE_RULES if self.detector == DetectorKind.MOMENTS else tuple(RULES)
        if self.rule not in known:
            raise SettingError(
                f"unknown rule {self.rule!r} for the detector {self.detector!r}; known are "
                f"{', '.join(known)}"
            )
        if self.detector == DetectorKind.MOMENTS:
            votes_needed(self.members_min, self.malicious)
        if self.bound:
            demand_bound(self.detector, self.rule)
            if self.system != SystemName.FULL:
                raise SettingError(
                    f"system {str(self.system)!r} binds no statistic; --bound needs 'full'"
                )
        if self.lends and (self.detector, self.rule) != (DetectorKind.MOMENTS, VOTE):
            raise SettingError(
                f"members lend thresholds to their own voters; the detector {self.detector!r} with "
                f"rule {self.rule!r} has none: use --detector moments --rule {VOTE}"
            )
        if self.lends and self.helper is not None:
            raise SettingError(
                "a plant lends thresholds to its own voter, and in groups no plant has one: use "
                "--lend-thresholds or --groups"
            )
        if self.helper is not None:
            demand_group_terms(
                malicious=self.malicious, members_min=self.members_min, bound=self.bound
            )
            if self.helper.federation != self.federation:
                raise SettingError(
                    f"the helper's card is of the federation {self.helper.federation!r}, and this "
                    f"one is called {self.federation!r}; create the helper with 'sluice helper "
                    f"init --federation {self.federation}'"
                )
        self._demand_limits()

    def _demand_limits(self) -> None:
        """Raise unless limits are of a statistic, and the largest batch keeps them."""
        if self.limits is not None and self.detector != DetectorKind.MOMENTS:
            raise SettingError(
                f"the detector {self.detector!r} shares no statistic, so it has no limits of one"
            )
        if self.limits is not None and self.limits.rows_min > self.rows_max:
            raise SettingError(
                f"a statistic covers at least {self.limits.rows_min:,} rows, and the largest batch "
                f"has {self.rows_max:,}; raise --largest, or lower --statistic-rows-min"
            )

    @property
    def inner_ports(self) -> tuple[int, int]:
        """The loopback ports of Flower and of the filter."""
        return self.link_port, self.filter_port or self.link_port + 1


def found_federation(folder: Path, plan: FederationPlan, *, at: datetime) -> CoordinatorFolder:
    """Create a federation in an empty folder."""
    reference = plan.reference.read()
    if len(reference) < 2 * WINDOW_ROWS:
        raise SettingError(
            f"the reference has {len(reference)} rows; scaling and a threshold need at least "
            f"{2 * WINDOW_ROWS}"
        )
    if plan.template is not None:
        _demand_points(reference, plan.template)
    framing = _framing(reference, plan)
    scaler, statistic = framing.scaler, _statistic(reference, framing, plan)
    terms = FederationTerms(
        federation=plan.federation,
        coordinator=CoordinatorFolder.new_key(folder),
        host=plan.host,
        port=plan.port,
        system=plan.system,
        rows_max=plan.rows_max,
        policy=plan.policy,
        channels=scaler.names,
        mean=tuple(scaler.mean.tolist()),
        spread=tuple(scaler.spread.tolist()),
        stride_s=reference.stride_s,
        window_rows=WINDOW_ROWS,
        epochs=plan.descent.epochs,
        batch=plan.descent.batch,
        learning_rate=plan.descent.learning_rate,
        seed=plan.seed,
        rule=plan.rule,
        rounds=plan.rounds if statistic is None else 1,
        batch_deadline_s=plan.batch_deadline_s,
        round_deadline_s=plan.round_deadline_s,
        suspend_after=plan.suspend_after,
        quorum=plan.quorum,
        members_min=plan.members_min,
        grace_s=plan.grace_s,
        update_max=plan.update_max,
        keep_rounds=plan.keep_rounds,
        statistic=statistic,
        template=plan.template,
        overlap_min=plan.overlap_min,
    )
    opened = LogOpened(
        federation=terms.federation,
        coordinator=terms.coordinator,
        approvers=plan.approvers,
        terms=plan.log,
        statistic=statistic,
    )
    size = len(rfc8785.dumps(TypeAdapter(LogOpened).dump_python(opened, mode="json")))
    if size + ENTRY_EXTRA > ENTRIES.largest:
        raise SettingError(
            f"the first entry of the log would have {size:,} bytes, because it names each of "
            f"{len(terms.channels)} channels; an entry holds {ENTRIES.largest:,}: leave channels "
            "out of --reference"
        )
    write_document(plan.reference, folder / REFERENCE)
    return CoordinatorFolder.create(folder, terms, opened, plan.inner_ports, at=at)


def _demand_points(reference: Record, template: Template) -> None:
    """Raise unless the reference is a plant of this template, with every point that is read."""
    strangers = sorted(set(feature_names(reference)) - set(template.names))
    if strangers or reference.stride_s != template.stride_s:
        what = (
            f"its channel {strangers[0]!r} is no point of it"
            if strangers
            else f"it has a row every {reference.stride_s:g} s, not {template.stride_s:g} s"
        )
        raise SettingError(
            f"the reference is not a record of template {template.name!r}: {what}; derive the "
            "template from the reference ('sluice coordinator template'), or map its tags "
            "('sluice plant map')"
        )
    demand_kinds(reference.channels, template, plant=reference.name)


def _framing(reference: Record, plan: FederationPlan) -> Framing:
    """Return how records are read; the coordinator's own clean rows set the scale of all plants."""
    names = feature_names(reference)
    moments = plan.detector == DetectorKind.MOMENTS
    scaler = robust_scaler(reference, names) if moments else Scaler.fit([reference], names)
    return Framing(scaler=scaler, stride_s=reference.stride_s)


def _statistic(reference: Record, framing: Framing, plan: FederationPlan) -> StatisticTerms | None:
    """Return what plants sum; no row of a plant has a say in it."""
    if plan.detector != DetectorKind.MOMENTS:
        return None
    settings = moment_settings(reference, lags=framing.window_rows)
    limits = plan.limits
    room = LARGEST_ANSWER - ANSWER_EXTRA
    if plan.bound:  # each plant's rules choose among the channels; its proof is in the answer too
        names = framing.scaler.names
        registers = tuple(Register(channel=name, low=0.0, step=1.0) for name in names)
        settings = MomentSettings(registers=registers, lags=framing.window_rows)
        limits = limits or StatisticLimits()
        room -= PROOF_ROOM
    size, most = statistic_bytes(settings), members_max(settings, bound=plan.bound)
    if 4 * size // 3 > room or most < plan.members_min:
        raise SettingError(
            f"a statistic of {len(settings.registers)} channels has {size:,} bytes; one answer "
            f"holds {3 * room // 4:,} and one model those of {most} "
            "plants: leave channels out of --reference"
        )
    return statistic_terms(
        framing,
        settings,
        rule=plan.rule,
        malicious=plan.malicious,
        bound=plan.bound,
        limits=limits,
        lends=plan.lends,
        helper=plan.helper,
    )


def coordinator_service(
    site: CoordinatorFolder,
    store: CoordinatorStore,
    wire: Wire,
    *,
    clock: Callable[[], datetime],
    shadow: bool | None = None,
) -> CoordinatorService:
    """Build a federation's coordinator service.

    `shadow`: True puts the gate in shadow mode, False enforces it, None keeps the log's setting.
    """
    terms, protocol, key = site.terms, site.protocol(), site.signing_key()
    requests = Requests(
        terms=terms,
        key=key,
        pages=LogPages(log=protocol.log, path=site.log, key=key),
        wire=wire,
        store=store,
        clock=clock,
    )
    sharing: Sharing
    agreements = site.agreements(store)
    if terms.statistic is not None and terms.statistic.helper is not None:
        helper = HelperClient(
            terms.statistic.helper,
            coordinator=protocol.log.ledger.coordinator,
            copy=site.folder / "helper.log",
        )
        sharing = SharedGroups(
            terms=terms,
            protocol=protocol,
            requests=requests,
            agreements=agreements,
            helper=helper,
            key=key,
        )
    elif terms.statistic is not None:
        sharing = SharedStatistics(
            terms=terms, protocol=protocol, store=store, agreements=agreements
        )
    else:
        root = None
        if RULES[terms.rule].needs_root:
            windows = terms.framing.windows(_reference(site).read())
            root = RootSlice(windows, descent=terms.descent, seed=terms.seed)
        sharing = WeightUpdates(terms=terms, root=root)
    return CoordinatorService(
        intake=Intake(protocol=protocol, requests=requests, agreements=agreements),
        transport=LoggedTransport(
            terms=terms, protocol=protocol, requests=requests, sharing=sharing
        ),
        shadow=shadow,
    )


def detector(site: CoordinatorFolder, checkpoint: Checkpoint) -> Detector:
    """Return the model as a detector with a threshold from the reference's windows."""
    terms = site.terms
    if terms.statistic is not None:
        return vote_of(
            statistics_in(checkpoint.parameters, terms),
            terms,
            _reference(site).read(),
            rounds=checkpoint.round,
            rules=None,
            false_alarms_per_week=FALSE_ALARMS_PER_WEEK,
            groups=site.ledger().groups.in_force if terms.grouped else (),
        )
    training = TrainingSummary(
        records=checkpoint.admitted,
        windows=0,
        seed=terms.seed,
        clients=len(checkpoint.admitted),
        rounds=checkpoint.round,
        rule=terms.rule,
        descent=terms.descent,
    )
    clean = terms.framing.windows(_reference(site).read())
    return calibrated(Autoencoder(checkpoint.parameters), terms.framing, clean, training=training)


def _reference(site: CoordinatorFolder) -> TrainingRows:
    return read_document(TrainingRows, site.folder / REFERENCE)
