"""A whole federation from records: who is let in, what is trained on, and the same again."""

import operator
from dataclasses import replace
from functools import reduce
from pathlib import Path

import numpy as np
import pytest

import sluice
from sluice.admission.gate import Gate
from sluice.admission.policy import HardenedPolicy, PaperPolicy
from sluice.aggregation.registry import RULES
from sluice.attestation.systems.registry import find_system
from sluice.detector.autoencoder import Autoencoder, Descent, Parameters, initial
from sluice.detector.calibration import Detector, Framing
from sluice.detector.model import DetectorKind
from sluice.detector.subspace import Moments, Subspace, fit_subspace
from sluice.errors import RefusedError, SettingError
from sluice.federation.admission_check import Decision
from sluice.federation.checkpoints import CheckpointFile
from sluice.federation.federate import Federated, FederationSettings, Recipe, federate
from sluice.federation.proofs import Keyless
from sluice.federation.rounds import Checkpoint
from sluice.federation.transport import InProcess
from sluice.federation.vote import VOTE_RULES
from sluice.invariants.mining.profiles import mine
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.lab.attacks.fabrications import ChannelRoll
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.record import Record
from sluice.telemetry.windows import Scaler, Windows, feature_names

PLANT = simulate("line", seed=0, days=6)
CLIENTS = {
    "south": PLANT.rows(6_000, 6_400),
    "north": PLANT.rows(6_400, 6_800),
    "west": PLANT.rows(6_800, 7_400),
}
VALIDATION = PLANT.rows(8_000, 8_640)
FABRICATED = ChannelRoll(rows=20)(CLIENTS["west"], seed=0)
DESCENT = Descent(epochs=1, batch=128)
OPEN = FederationSettings(clients=CLIENTS, validation=VALIDATION, rounds=2, descent=DESCENT)


@pytest.fixture(scope="module")
def rules() -> RuleSet:
    return mine(PLANT.rows(0, 3_000), PLANT.rows(3_000, 6_000), profile=Profile.HARDENED)


@pytest.fixture(scope="module")
def gate(rules: RuleSet) -> Gate:
    return Gate.of(rules, HardenedPolicy())


@pytest.fixture(scope="module")
def plain() -> Federated:
    return federate(OPEN)


def weights(done: Federated) -> Parameters:
    model = done.detector.model
    assert isinstance(model, Autoencoder)
    return model.parameters


def framing(validation: Record = VALIDATION) -> Framing:
    """Readings are scaled by the validation rows, which no client can change."""
    scaler = Scaler.fit([validation], feature_names(validation))
    return Framing(scaler=scaler, stride_s=validation.stride_s)


def subspace_of(detector: Detector) -> Subspace:
    assert isinstance(detector.model, Subspace)
    return detector.model


# -- admission ------------------------------------------------------------------------------------


def test_without_a_gate_every_client_takes_part_even_a_fabricated_one() -> None:
    done = federate(replace(OPEN, clients={**CLIENTS, "west": FABRICATED}, rounds=1))
    assert done.admitted == ("north", "south", "west")
    assert done.decisions == {
        name: Decision(admitted=True, rows=len(record))
        for name, record in {**CLIENTS, "west": FABRICATED}.items()
    }


def test_the_gate_refuses_a_fabricated_client_and_says_why(gate: Gate) -> None:
    settings = replace(OPEN, clients={**CLIENTS, "west": FABRICATED}, gate=gate, rounds=1)
    done = federate(settings)
    assert done.admitted == ("north", "south")
    assert done.decisions["west"].reasons == gate.judge(FABRICATED).sentences
    assert "break a rule" in " ".join(done.decisions["west"].reasons)
    assert set(done.influence) == {"north", "south"}
    assert done.detector.training.records == ("north", "south")


def test_a_refused_clients_windows_are_not_counted(gate: Gate) -> None:
    settings = replace(OPEN, clients={**CLIENTS, "west": FABRICATED}, gate=gate, rounds=1)
    honest = {name: CLIENTS[name] for name in ("south", "north")}
    without = federate(replace(settings, clients=honest))
    assert federate(settings).detector.training.windows == without.detector.training.windows


def test_a_federation_that_nobody_may_join_is_refused_with_all_reasons(gate: Gate) -> None:
    with pytest.raises(RefusedError, match="no client was admitted.*west: .*break a rule"):
        federate(replace(OPEN, clients={"west": FABRICATED}, gate=gate))


def test_what_a_refused_client_shows_changes_nothing(gate: Gate) -> None:
    honest = {name: CLIENTS[name] for name in ("south", "north")}
    enlarged = CLIENTS["west"].with_values(1_000 * CLIENTS["west"].values)
    settings = replace(OPEN, clients=honest, gate=gate, rounds=1)
    without = federate(settings)
    for shown in (FABRICATED, enlarged):
        done = federate(replace(settings, clients={**honest, "west": shown}))
        assert done.admitted == without.admitted
        np.testing.assert_array_equal(weights(done), weights(without))
        assert done.detector.threshold == without.detector.threshold


def test_a_batch_that_is_too_short_for_the_policy_is_refused_alone(gate: Gate) -> None:
    short = {**CLIENTS, "west": PLANT.rows(6_800, 6_900)}
    done = federate(replace(OPEN, clients=short, gate=gate, rounds=1))
    assert done.admitted == ("north", "south")
    (reason,) = done.decisions["west"].reasons
    assert "has 100 rows; the policy takes 200 to" in reason


# -- rows -----------------------------------------------------------------------------------------


def test_rows_that_violate_are_not_trained_on(gate: Gate) -> None:
    done = federate(replace(OPEN, gate=gate, rounds=1))
    frame = framing()
    kept = 0
    dropped = 0
    for record in CLIENTS.values():
        own = frame.windows(record)
        clean = ~own.touching(gate.judge(record).violating)
        kept += int(clean.sum())
        dropped += int((~clean).sum())
    assert dropped > 0
    assert done.detector.training.windows == kept


def test_a_violating_row_in_an_admitted_batch_takes_its_windows_out_of_training(
    gate: Gate,
) -> None:
    values = CLIENTS["west"].values.copy()
    values[300, PLANT.index("S_PU1")] = 7.0  # a state that the pump does not have
    odd = CLIENTS["west"].with_values(values)
    verdict = gate.judge(odd)
    assert verdict.admitted
    assert verdict.violating[300]
    screened = replace(OPEN, detector="subspace", clients={"west": odd}, gate=gate)
    own = framing().windows(odd)
    clean = ~own.touching(verdict.violating)
    assert not clean[291:301].any()
    assert clean[290]
    assert clean[301]
    assert federate(screened).detector.training.windows == int(clean.sum())
    assert federate(replace(screened, gate=None)).detector.training.windows == len(own)


def test_the_papers_gate_judges_batches_and_drops_no_windows(plain: Federated) -> None:
    mined = mine(PLANT.rows(0, 3_000), PLANT.rows(3_000, 6_000), profile=Profile.PAPER_WIDE)
    paper = Gate.of(mined, PaperPolicy())
    done = federate(replace(OPEN, gate=paper))
    assert done.admitted == plain.admitted
    np.testing.assert_array_equal(weights(done), weights(plain))


# -- proofs ---------------------------------------------------------------------------------------


def test_by_proof_the_same_clients_are_admitted_and_the_same_weights_learnt(gate: Gate) -> None:
    clients = {
        "south": PLANT.rows(6_000, 6_220),
        "north": PLANT.rows(6_300, 6_520),
        "west": ChannelRoll(rows=20)(PLANT.rows(6_800, 7_020), seed=0),
    }
    settings = replace(OPEN, clients=clients, gate=gate)
    clear = federate(settings)
    proven = federate(replace(settings, proofs=Keyless(system=find_system("full"))))
    assert proven.admitted == clear.admitted == ("north", "south")
    assert proven.decisions["west"].reasons == ("it sent no proof",)
    np.testing.assert_array_equal(weights(proven), weights(clear))


# -- sums -----------------------------------------------------------------------------------------


def test_a_subspace_from_sums_is_the_one_of_the_pooled_windows() -> None:
    done = federate(replace(OPEN, detector="subspace"))
    frame = framing()
    parts = [frame.windows(record) for _, record in sorted(CLIENTS.items())]
    pooled = fit_subspace(Moments.of(Windows.joined(parts)), frame.windows(VALIDATION))
    learnt = subspace_of(done.detector)
    assert learnt.rank == pooled.rank
    np.testing.assert_allclose(learnt.mean, pooled.mean, atol=1e-12)
    projector = learnt.basis.T @ learnt.basis
    np.testing.assert_allclose(projector, pooled.basis.T @ pooled.basis, atol=1e-8)
    windows = frame.windows(VALIDATION)
    np.testing.assert_allclose(
        learnt.scores(windows), pooled.scores(windows), rtol=1e-6, atol=1e-12
    )


def test_influence_on_a_subspace_is_a_clients_share_of_the_windows() -> None:
    done = federate(replace(OPEN, detector="subspace"))
    frame = framing()
    counts = {name: len(frame.windows(record)) for name, record in CLIENTS.items()}
    total = sum(counts.values())
    assert done.influence == {name: count / total for name, count in counts.items()}
    assert done.passed == dict.fromkeys(CLIENTS, 1.0)
    assert done.detector.training.windows == total
    assert done.detector.training.descent is None


def test_a_refused_client_adds_nothing_to_the_sums(gate: Gate) -> None:
    settings = replace(OPEN, detector="subspace", gate=gate)
    done = federate(replace(settings, clients={**CLIENTS, "west": FABRICATED}))
    assert set(done.influence) == set(done.passed) == {"north", "south"}
    assert sum(done.influence.values()) == pytest.approx(1)


def test_the_order_of_the_clients_does_not_matter(plain: Federated) -> None:
    turned = federate(replace(OPEN, clients=dict(reversed(CLIENTS.items()))))
    assert list(turned.decisions) == list(plain.decisions) == sorted(CLIENTS)
    np.testing.assert_allclose(weights(turned), weights(plain), rtol=1e-4, atol=1e-5)


# -- rounds ---------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(plain: Federated) -> None:
    again = federate(OPEN)
    np.testing.assert_array_equal(weights(again), weights(plain))
    assert again.detector.threshold == plain.detector.threshold
    assert again.influence == plain.influence
    assert (weights(federate(replace(OPEN, seed=1))) != weights(plain)).any()


def test_influence_under_fedavg_is_a_clients_share_of_the_rows(plain: Federated) -> None:
    counts = {name: len(record) for name, record in CLIENTS.items()}
    total = sum(counts.values())
    assert plain.influence == pytest.approx({name: n / total for name, n in counts.items()})
    assert plain.passed == dict.fromkeys(CLIENTS, 1.0)


def test_krum_uses_one_client_a_round() -> None:
    done = federate(replace(OPEN, rule="krum"))
    assert sum(done.influence.values()) == pytest.approx(1)
    assert sum(done.passed.values()) == pytest.approx(1)
    assert max(done.passed.values()) in (0.5, 1.0)


def test_every_round_is_heard_once_from_the_beginning(plain: Federated) -> None:
    heard: list[Checkpoint] = []
    done = federate(replace(OPEN, on_round=heard.append))
    assert [checkpoint.round for checkpoint in heard] == [0, 1, 2]
    np.testing.assert_array_equal(heard[0].parameters, initial(framing().width, seed=0))
    np.testing.assert_array_equal(heard[-1].parameters, weights(done))
    np.testing.assert_array_equal(weights(done), weights(plain))


def test_the_first_weights_are_drawn_by_the_seed() -> None:
    heard: list[Checkpoint] = []
    federate(replace(OPEN, seed=5, rounds=1, on_round=heard.append))
    np.testing.assert_array_equal(heard[0].parameters, initial(framing().width, seed=5))


def test_a_federation_that_was_stopped_ends_with_the_same_weights(
    tmp_path: Path, plain: Federated
) -> None:
    keeper = CheckpointFile(path=tmp_path / "checkpoint.safetensors", fingerprint="f")
    federate(replace(OPEN, rounds=1, keeper=keeper))
    heard: list[int] = []
    resumed = federate(
        replace(OPEN, keeper=keeper, on_round=lambda checkpoint: heard.append(checkpoint.round))
    )
    assert heard == [1, 2]
    np.testing.assert_array_equal(weights(resumed), weights(plain))
    assert resumed.influence == pytest.approx(plain.influence)
    assert resumed.passed == plain.passed


def test_a_federation_that_is_over_trains_no_more(tmp_path: Path, plain: Federated) -> None:
    keeper = CheckpointFile(path=tmp_path / "checkpoint.safetensors", fingerprint="f")
    federate(replace(OPEN, keeper=keeper))
    kept = keeper.path.read_bytes()
    again = federate(replace(OPEN, keeper=keeper))
    assert keeper.path.read_bytes() == kept
    np.testing.assert_array_equal(weights(again), weights(plain))
    assert again.influence == plain.influence


def test_fltrust_compares_updates_with_the_servers_own_rows() -> None:
    trusting = replace(OPEN, rule="fltrust", rounds=1)
    by_default = federate(trusting)
    named = federate(replace(trusting, root=VALIDATION))
    other = federate(replace(trusting, root=PLANT.rows(7_400, 8_000)))
    np.testing.assert_array_equal(weights(by_default), weights(named))
    assert (weights(other) != weights(named)).any()


def test_scale_and_threshold_come_from_the_validation_rows(plain: Federated) -> None:
    later = PLANT.rows(7_400, 8_000)
    other = federate(replace(OPEN, validation=later))
    for done, validation in ((plain, VALIDATION), (other, later)):
        scaler = framing(validation).scaler
        np.testing.assert_array_equal(done.detector.framing.scaler.mean, scaler.mean)
        np.testing.assert_array_equal(done.detector.framing.scaler.spread, scaler.spread)
    assert other.detector.threshold != plain.detector.threshold


def test_the_detector_scores_a_record_of_the_plant(plain: Federated) -> None:
    scored = plain.detector.score(VALIDATION)
    assert np.isfinite(scored.scores).all()
    np.testing.assert_array_equal(
        scored.scores, plain.detector.model.scores(framing().windows(VALIDATION))
    )
    assert plain.detector.framing.scaler.names == feature_names(PLANT)


def test_a_recipe_over_a_transport_is_what_federate_runs(plain: Federated) -> None:
    frame = framing()
    windows = {name: frame.windows(record) for name, record in sorted(CLIENTS.items())}
    validation = frame.windows(VALIDATION)
    recipe = Recipe(
        framing=frame, validation=validation, root=VALIDATION, rounds=2, descent=DESCENT
    )
    decisions = {name: Decision(admitted=True, rows=len(CLIENTS[name])) for name in sorted(CLIENTS)}
    transport = InProcess(batches={}, windows=windows, descent=DESCENT, seed=0)
    done = recipe.in_rounds(windows, decisions=decisions, transport=transport, rule=RULES["fedavg"])
    np.testing.assert_array_equal(weights(done), weights(plain))
    assert done.detector.training.descent == DESCENT
    assert done.detector.training.seed == 0


def test_a_recipe_from_sums_adds_the_summaries_of_its_windows() -> None:
    frame = framing()
    windows = {name: frame.windows(record) for name, record in CLIENTS.items()}
    validation = frame.windows(VALIDATION)
    recipe = Recipe(
        framing=frame, validation=validation, root=VALIDATION, detector="subspace", seed=7
    )
    decisions = dict.fromkeys(CLIENTS, Decision(admitted=True, rows=1))
    done = recipe.from_sums(windows, decisions=decisions)
    total = reduce(operator.add, (Moments.of(own) for own in windows.values()))
    np.testing.assert_array_equal(subspace_of(done.detector).mean, total.mean)
    assert done.decisions is decisions
    assert done.detector.training.seed == 7


# -- what is refused ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (replace(OPEN, clients={}), "a federation needs at least one client, got none"),
        (
            replace(OPEN, rule="medain"),
            f"unknown rule 'medain'; known are {', '.join((*RULES, *VOTE_RULES))}",
        ),
        (
            replace(OPEN, detector="subspce"),
            "unknown detector 'subspce'; known are autoencoder, subspace, moments",
        ),
        (
            replace(OPEN, detector="subspace", rule="krum"),
            (
                "the detector 'subspace' is made of clients' sums, so rule 'krum' has no updates "
                "to weigh; use rule 'fedavg' (it adds the sums) or vote or any-of-subsets"
            ),
        ),
        (
            replace(OPEN, proofs=Keyless(system=find_system("full"))),
            "proofs need rules to prove; give a gate",
        ),
        (replace(OPEN, rounds=0), "a federation takes at least 1 round, got 0"),
    ],
    ids=["no clients", "rule", "detector", "sums and updates", "proofs without gate", "rounds"],
)
def test_settings_that_make_no_federation_are_refused(
    settings: FederationSettings, sentence: str
) -> None:
    with pytest.raises(SettingError) as refused:
        federate(settings)
    assert str(refused.value) == sentence


def test_no_clients_is_said_before_a_wrong_rule() -> None:
    with pytest.raises(SettingError, match="at least one client"):
        federate(replace(OPEN, clients={}, rule="medain"))


def test_a_client_without_a_channel_is_refused_and_does_not_stop_the_others() -> None:
    lacking = {**CLIENTS, "west": CLIENTS["west"].without("F_PU1")}
    done = federate(replace(OPEN, clients=lacking, rounds=1))
    assert done.admitted == ("north", "south")
    assert "'F_PU1'" in " ".join(done.decisions["west"].reasons)
    assert set(done.influence) == {"north", "south"}


def test_clients_of_another_stride_than_the_validation_are_refused() -> None:
    with pytest.raises(RefusedError, match="has a row every 60 s; the model reads one every 120"):
        federate(replace(OPEN, validation=VALIDATION.every(2)))


def test_federate_is_reached_from_the_package() -> None:
    assert sluice.federate is federate
    assert sluice.FederationSettings is FederationSettings
    assert DetectorKind(FederationSettings(clients={}, validation=VALIDATION).detector) == (
        DetectorKind.AUTOENCODER
    )
