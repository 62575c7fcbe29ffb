"""Scenarios: malicious clients and targets are drawn as the paper's code draws them."""

from dataclasses import replace

import pytest

from sluice.detector.receiver import ReceiverMoments, summed_for
from sluice.errors import MissingChannelError, SettingError
from sluice.invariants.ruleset import Profile, RuleSet
from sluice.lab.plants.catalogue import simulate
from sluice.lab.trials.modes import MODES, Adversary, Roster
from sluice.lab.trials.scenario import Setup, client_names, malicious_clients, scenario
from sluice.telemetry.record import Label


@pytest.mark.parametrize(
    ("clients", "malicious", "seed", "expected"),
    [
        (10, 3, 0, {5, 6, 9}),
        (10, 3, 1, {3, 4, 7}),
        (10, 3, 2, {1, 2, 6}),
        (10, 3, 3, {0, 1, 6}),
        (10, 3, 4, {5, 8, 9}),
        (5, 2, 0, {3, 4}),
        (5, 2, 1, {1, 2}),
        (5, 2, 2, {1, 3}),
    ],
)
def test_the_papers_seeds_give_the_papers_malicious_clients(
    clients: int, malicious: int, seed: int, expected: set[int]
) -> None:
    drawn = malicious_clients(Setup(clients=clients, malicious=malicious), seed=seed)
    assert drawn == tuple(f"plant-{at}" for at in sorted(expected))


def test_names_sort_as_numbers_do() -> None:
    names = client_names(12)
    assert names[0] == "plant-00"
    assert list(names) == sorted(names)


def test_seeds_change_malicious_clients_and_targets_but_not_the_shards() -> None:
    clean = simulate("line", seed=0, days=4)
    test = simulate("line", seed=1, days=4, attacks=True)
    setup = Setup(clients=4, malicious=1)
    one, other = (scenario(clean, test, setup=setup, seed=seed) for seed in (0, 1))
    assert (one.shards["plant-0"].values == other.shards["plant-0"].values).all()
    assert one.malicious != other.malicious or (one.targets.rows != other.targets.rows).any()
    assert (test.labels[one.targets.rows] == Label.ATTACK).all()
    assert one.targets.rows.sum() <= round(0.25 * len(one.shards["plant-0"]))


@pytest.mark.parametrize("detector", ["autoencoder", "moments"])
def test_a_detector_reads_no_channel_that_the_rules_leave_untied(detector: str) -> None:
    clean = simulate("line", seed=0, days=4)
    shared = scenario(clean, None, setup=Setup(clients=4, malicious=1, detector=detector), seed=0)
    names = shared.framing.scaler.names
    rules = RuleSet(
        plant="line", profile=Profile.HARDENED, stride_s=60.0, channels=clean.channels,
        invariants=(), untied=("L_T2", "F_PU1"),
    )  # fmt: skip
    tied = shared.tied(rules)
    assert tied.framing.scaler.names == tuple(
        name for name in names if name not in ("L_T2", "F_PU1")
    )
    for name in tied.framing.scaler.names:
        at, was = tied.framing.scaler.names.index(name), names.index(name)
        assert tied.framing.scaler.mean[at] == shared.framing.scaler.mean[was]
        assert tied.framing.scaler.spread[at] == shared.framing.scaler.spread[was]
    if detector == "moments":
        summed = summed_for(detector, tied.framing, shared.parts.validation)
        assert isinstance(summed, ReceiverMoments)
        read = {register.channel for register in summed.settings.registers}
        assert read
        assert read <= set(tied.framing.scaler.names)
    assert shared.tied(replace(rules, untied=None)).framing.scaler.names == names
    with pytest.raises(SettingError, match="tie no channel"):
        shared.tied(replace(rules, untied=names))


def test_a_test_record_without_the_detectors_channels_is_refused() -> None:
    clean = simulate("line", seed=0, days=4)
    test = simulate("line", seed=1, days=4, attacks=True).without("F_PU1")
    with pytest.raises(MissingChannelError, match="'F_PU1'"):
        scenario(clean, test, setup=Setup(clients=4, malicious=1), seed=0)


@pytest.mark.parametrize(("clients", "malicious"), [(3, 3), (3, 4), (2, -1)])
def test_at_least_one_client_must_be_honest(clients: int, malicious: int) -> None:
    with pytest.raises(
        SettingError,
        match="clients cannot have .* malicious ones; at least one client must be honest",
    ):
        Setup(clients=clients, malicious=malicious)


def test_the_modes_are_those_of_the_paper_two_references_and_bound() -> None:
    assert list(MODES) == [
        "clean",
        "honest-only",
        "naive",
        "physics-aware",
        "gated",
        "local-only",
        "centralised",
        "bound",
    ]
    assert [name for name, mode in MODES.items() if mode.gated] == ["gated", "bound"]
    assert MODES["gated"].adversary is Adversary.PROJECTED
    assert MODES["honest-only"].roster is Roster.HONEST_ONLY
