"""The public BATADAL record from end to end: a detector's scores, evaluated."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from sluice.detector.alarms import Scored
from sluice.detector.alone import train
from sluice.detector.model import DetectorKind
from sluice.errors import SettingError
from sluice.evaluation.outcome import Outcome, Unlabelled
from sluice.evaluation.quality import evaluate
from sluice.evaluation.vus import vus_pr
from sluice.telemetry.reading import read_record
from sluice.telemetry.record import Label

pytestmark = pytest.mark.data
PlantData = Callable[..., Path]


def outcome_of(scored: Scored) -> Outcome:
    return Outcome(
        scores=scored.scores,
        alarms=scored.alarms,
        labels=scored.labels,
        last_rows=scored.last_rows,
        stride_s=scored.stride_s,
    )


def test_a_detector_on_the_fully_labelled_record(plant_data: PlantData) -> None:
    detector = train(
        read_record(plant_data("batadal", "dataset03.csv")), kind=DetectorKind.SUBSPACE
    )
    attacked = read_record(plant_data("batadal", "dataset04_full_labels.csv"))
    scored = detector.score(attacked)
    aimed_at = np.zeros(len(attacked), dtype=np.bool_)
    for run in attacked.attack_segments[:3]:
        aimed_at[run.slice] = True
    targets = detector.framing.windows(attacked).touching(aimed_at)
    outcome = outcome_of(scored)
    found = evaluate(outcome, targets=targets)

    assert len(found.attacks) == len(attacked.attack_segments) == 7
    for attack, run in zip(found.attacks, attacked.attack_segments, strict=True):
        assert attack.first_row == run.start
        assert attack.last_row >= run.stop - 1
    assert found.auc_pr == pytest.approx(
        average_precision_score(scored.labels == Label.ATTACK, scored.scores)
    )
    assert found.false_alarms_per_day == pytest.approx(scored.false_alarms_per_day())
    assert found.targeted_recall is not None
    assert found.untargeted_recall is not None
    aimed = int(np.sum(targets & outcome.attack))
    rest = found.attack_windows - aimed
    made = found.targeted_recall * aimed + found.untargeted_recall * rest
    assert made == pytest.approx(found.recall * found.attack_windows)
    alarming = scored.last_rows[scored.alarms]
    for attack in found.attacks:
        own = alarming[(alarming >= attack.first_row) & (alarming <= attack.last_row)]
        assert attack.delay_s == ((own[0] - attack.first_row) * 3600 if own.size else None)
    assert 0 < found.detected_attacks < 7
    assert found.auc_pr < vus_pr(outcome) < 1  # late alarms are forgiven a little


def test_the_official_labels_leave_nothing_normal(plant_data: PlantData) -> None:
    detector = train(
        read_record(plant_data("batadal", "dataset03.csv")), kind=DetectorKind.SUBSPACE
    )
    outcome = outcome_of(
        detector.score(read_record(plant_data("batadal", "BATADAL_dataset04.csv")))
    )
    with pytest.raises(SettingError, match="count them as normal, or give a record with full"):
        evaluate(outcome)
    found = evaluate(outcome, unlabelled=Unlabelled.NORMAL)
    assert len(found.attacks) == 5
    assert found.windows == len(outcome)
