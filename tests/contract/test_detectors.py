"""What every kind of detector must do; one that a package adds is found here by itself."""

from functools import reduce
from operator import add
from pathlib import Path

import numpy as np
import pytest

from sluice.detector.alone import train
from sluice.detector.autoencoder import Descent
from sluice.detector.calibration import Detector, Framing
from sluice.detector.modelfile import load_detector, save_detector
from sluice.detector.registry import SUMMED, detector_names
from sluice.errors import SettingError
from sluice.lab.plants.catalogue import simulate
from sluice.telemetry.record import Label, Record
from sluice.telemetry.windows import Scaler, Windows, feature_names


@pytest.fixture(scope="module")
def clean() -> Record:
    return simulate("line", seed=0, days=6)


@pytest.fixture(scope="module", params=detector_names())
def detector(request: pytest.FixtureRequest, clean: Record) -> Detector:
    return train(clean, kind=request.param, descent=Descent(epochs=8, batch=256))


@pytest.fixture(scope="module")
def windows(clean: Record) -> Windows:
    framing = Framing(scaler=Scaler.fit([clean], feature_names(clean)), stride_s=clean.stride_s)
    return framing.windows(clean)


def test_scores_are_finite_and_one_for_each_window(detector: Detector, clean: Record) -> None:
    scored = detector.score(clean)
    assert np.isfinite(scored.scores).all()
    assert len(scored.scores) == len(clean) - detector.framing.window_rows + 1
    assert (scored.alarms == (scored.scores > detector.threshold.score)).all()


def test_blame_is_a_share_of_each_channel(detector: Detector, clean: Record) -> None:
    """A channel that jumps alone gets most of the blame."""
    batch = clean.rows(3_000, 3_200)
    values = batch.values.copy()
    values[100:150:2, batch.index("L_T2")] += 5
    jumped = detector.framing.windows(batch.with_values(values))
    blame = detector.model.blame(jumped)
    assert blame.shape == (len(jumped), len(detector.framing.scaler.names))
    assert (blame >= 0).all()
    sums = blame.sum(axis=1)
    assert np.isclose(sums, 1).all() or (sums[sums < 0.5] == 0).all()
    guilty = detector.framing.scaler.names.index("L_T2")
    assert (blame[95:140].argmax(axis=1) == guilty).all()


def test_attacks_score_higher_than_clean_rows(detector: Detector, clean: Record) -> None:
    attacked = detector.score(simulate("line", seed=1, days=4, attacks=True))
    attack = attacked.labels == Label.ATTACK
    assert attack.any()
    assert np.median(attacked.scores[attack]) > np.median(detector.score(clean).scores)


def test_a_saved_detector_scores_the_same(
    detector: Detector, clean: Record, tmp_path: Path
) -> None:
    save_detector(detector, tmp_path / "model.safetensors")
    again = load_detector(tmp_path / "model.safetensors")
    assert again.model.kind == detector.model.kind
    assert np.array_equal(again.score(clean).scores, detector.score(clean).scores)
    assert again.threshold == detector.threshold


@pytest.mark.parametrize("name", sorted(SUMMED))
def test_the_sums_of_parts_are_the_sum_of_the_whole(name: str, windows: Windows) -> None:
    kind = SUMMED[name]
    order = np.arange(len(windows))
    parts = [windows.take(order % 3 == at) for at in range(3)]
    held_out = windows.take(order % 7 == 0)
    together = kind.fit(kind.summarise(windows), held_out)
    summed = kind.fit(reduce(add, [kind.summarise(part) for part in reversed(parts)]), held_out)
    assert kind.summarise(windows).count == len(windows)
    np.testing.assert_allclose(
        summed.scores(windows), together.scores(windows), rtol=1e-6, atol=1e-9
    )
    assert isinstance(together, kind.model)


def test_an_unknown_kind_is_refused_by_name(clean: Record) -> None:
    with pytest.raises(SettingError, match="unknown detector 'subspce'; known are autoencoder"):
        train(clean, kind="subspce")
