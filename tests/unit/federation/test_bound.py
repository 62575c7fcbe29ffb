"""Bound statistics in one process: the vote is made of what the gate has verified."""

from dataclasses import replace

import pytest

from sluice.admission.gate import Gate
from sluice.admission.policy import HardenedPolicy
from sluice.attestation.messages.statistic_limits import StatisticLimits
from sluice.attestation.systems.full import Full, statistic_settings
from sluice.detector.calibration import Framing
from sluice.detector.moments.statistic import MomentStatistic, moment_statistic
from sluice.detector.vote import VotedModel
from sluice.errors import RefusedError, SettingError
from sluice.federation.admission_check import Decision
from sluice.federation.federate import FederationSettings, Recipe, federate
from sluice.federation.messages import Attestation
from sluice.federation.proofs import Attestor, Keyless, ProofGate
from sluice.federation.vote import VoteSettings
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile
from sluice.lab.attacks.fabrications import ChannelRoll
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.windows import Scaler, feature_names

PLANT = simulate("line", seed=0, days=6)
CLIENTS = {
    "north": PLANT.rows(6_400, 6_800),
    "south": PLANT.rows(6_000, 6_400),
    "west": PLANT.rows(6_800, 7_200),
}
VALIDATION = PLANT.rows(7_400, 8_640)
SHORT = StatisticLimits(rows_min=400, span_min_s=3_600)


@pytest.fixture(scope="module")
def gate() -> Gate:
    rules = mine(PLANT.rows(0, 3_000), PLANT.rows(3_000, 6_000), profile=Profile.HARDENED)
    return Gate.of(rules, HardenedPolicy())


@pytest.fixture(scope="module")
def settings(gate: Gate) -> FederationSettings:
    return FederationSettings(
        clients=CLIENTS,
        validation=VALIDATION,
        gate=gate,
        detector="moments",
        rule="vote",
        bound=SHORT,
    )


@pytest.fixture(scope="module")
def sides(gate: Gate) -> tuple[Attestor, ProofGate]:
    attest, admission = Keyless.bound(SHORT).sides("local", gate.rules, gate.policy, rows_max=400)
    assert isinstance(admission, ProofGate)
    return attest, admission


@pytest.fixture(scope="module")
def sent(sides: tuple[Attestor, ProofGate]) -> dict[str, Attestation]:
    attest, _ = sides
    made = {client: attest(client, batch) for client, batch in CLIENTS.items()}
    return {client: each for client, each in made.items() if each is not None}


def test_the_vote_is_that_of_the_bound_statistics(settings: FederationSettings) -> None:
    done = federate(settings)
    assert done.admitted == ("north", "south", "west")
    model = done.detector.model
    assert isinstance(model, VotedModel)
    assert model.members == ("north", "south", "west")
    assert done.detector.training.windows == 3 * (400 - 9)
    again = federate(settings)
    one, other = model.tensors(), again.detector.model.tensors()
    assert all(one[name].tobytes() == other[name].tobytes() for name in one)


def test_a_decision_holds_the_statistic_of_the_rows(
    sides: tuple[Attestor, ProofGate], sent: dict[str, Attestation]
) -> None:
    attest, admission = sides
    summed = statistic_settings(attest.circuit)
    assert summed is not None
    for client, decision in admission.decide_all(sent).items():
        assert decision.admitted
        assert decision.statistic == moment_statistic(CLIENTS[client], summed).canonical()


@pytest.mark.parametrize("statistic", ["missing", "other plant", "one integer off", "no bytes"])
def test_any_other_contribution_is_refused_at_the_step_of_the_statistic(
    sides: tuple[Attestor, ProofGate], sent: dict[str, Attestation], statistic: str
) -> None:
    own = sent["north"].statistic
    assert own is not None
    changed = bytearray(own)
    changed[-8] ^= 1
    claimed = {
        "missing": None,
        "other plant": sent["south"].statistic,
        "one integer off": bytes(changed),
        "no bytes": b"",
    }[statistic]
    decision = sides[1].decide("north", replace(sent["north"], statistic=claimed))
    assert (decision.admitted, decision.statistic) == (False, None)
    assert decision.reasons == ("its proof fails step 5.6.1",)


def test_proofs_that_bind_nothing_are_refused(
    gate: Gate, sides: tuple[Attestor, ProofGate], sent: dict[str, Attestation]
) -> None:
    attest, _ = Keyless(system=Full()).sides("local", gate.rules, gate.policy, rows_max=400)
    unbound = attest("north", CLIENTS["north"])
    assert unbound is not None
    assert unbound.statistic is None
    for each in (unbound, replace(unbound, statistic=sent["north"].statistic)):
        decision = sides[1].decide("north", each)
        assert decision.reasons == ("its proof fails step 5.6",)


def test_a_batch_that_breaks_the_rules_has_no_vote(settings: FederationSettings) -> None:
    fabricated = ChannelRoll(rows=20)(CLIENTS["west"], seed=0)
    clients = {**CLIENTS, "west": fabricated, "east": PLANT.rows(5_600, 6_000)}
    done = federate(replace(settings, clients=clients))
    assert done.admitted == ("east", "north", "south")
    assert done.decisions["west"].reasons == ("it sent no proof",)


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        (StatisticLimits(), "at least 4,096 rows; the batch has 400"),
        (StatisticLimits(rows_min=401, span_min_s=0), "at least 401 rows"),
        (StatisticLimits(rows_min=1, span_min_s=399 * 60 + 1), "at least 23,941 s"),
    ],
)
def test_a_statistic_of_few_rows_or_little_time_is_refused(
    gate: Gate, sent: dict[str, Attestation], limits: StatisticLimits, why: str
) -> None:
    _, admission = Keyless.bound(limits).sides("local", gate.rules, gate.policy, rows_max=400)
    decision = admission.decide("north", sent["north"])
    assert not decision.admitted
    assert why in decision.reasons[0]


def test_limits_hold_exactly_at_their_value(gate: Gate, sent: dict[str, Attestation]) -> None:
    limits = StatisticLimits(rows_min=400, span_min_s=399 * 60)
    _, admission = Keyless.bound(limits).sides("local", gate.rules, gate.policy, rows_max=400)
    assert admission.decide("north", sent["north"]).admitted


def test_only_admitted_clients_with_a_statistic_vote(
    sides: tuple[Attestor, ProofGate], sent: dict[str, Attestation]
) -> None:
    summed = statistic_settings(sides[0].circuit)
    assert summed is not None
    scaler = Scaler.fit([VALIDATION], feature_names(VALIDATION))
    frame = Framing(scaler=scaler, stride_s=VALIDATION.stride_s)
    vote = VoteSettings.on(VALIDATION, rule="vote", malicious=0, false_alarms_per_week=1)
    recipe = Recipe(framing=frame, validation=frame.windows(VALIDATION), root=VALIDATION, vote=vote)
    decisions = {
        "north": Decision(admitted=False, statistic=sent["north"].statistic),
        "south": Decision(admitted=True, rows=400),
    }
    with pytest.raises(RefusedError, match="nothing to vote on"):
        recipe.from_bound(summed, decisions=decisions)


def test_without_members_there_is_no_vote(settings: FederationSettings) -> None:
    with pytest.raises(RefusedError, match="nothing to vote on"):
        federate(replace(settings, bound=StatisticLimits()))


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"detector": "autoencoder", "rule": "fedavg"}, "'autoencoder' cannot be bound"),
        ({"detector": "subspace"}, "'subspace' cannot be bound"),
        ({"rule": "fedavg"}, "rule 'fedavg' is no vote"),
        ({"gate": None}, "give a gate and no proofs"),
        ({"proofs": Keyless(system=Full())}, "give a gate and no proofs"),
    ],
)
def test_only_statistics_of_moments_are_bound(
    settings: FederationSettings, change: dict[str, object], why: str
) -> None:
    with pytest.raises(SettingError, match=why):
        federate(replace(settings, **change))  # type: ignore[arg-type]


def test_limits_below_the_defaults_are_named() -> None:
    assert StatisticLimits().lowered == ""
    assert "statistic_rows_min is 64" in StatisticLimits(rows_min=64).lowered
    assert "statistic_span_min is 0 s" in StatisticLimits(span_min_s=0).lowered
    with pytest.raises(SettingError, match="at least 1 row"):
        StatisticLimits(rows_min=0)


def test_the_canonical_form_is_what_the_vote_reads(
    sides: tuple[Attestor, ProofGate], sent: dict[str, Attestation]
) -> None:
    summed = statistic_settings(sides[0].circuit)
    statistic = sent["north"].statistic
    assert summed is not None
    assert statistic is not None
    assert MomentStatistic.from_canonical(statistic, summed).count == 400 - 9
