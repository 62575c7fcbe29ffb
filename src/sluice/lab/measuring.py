"""What a finished federation is worth on the scenario's labelled record."""

from sluice.detector import Detector
from sluice.evaluation import DetectionQuality, Outcome, Unlabelled, evaluate
from sluice.lab.scenario import Scenario

__all__ = ["measured"]


def measured(
    detector: Detector, scenario: Scenario, *, unlabelled: Unlabelled = Unlabelled.EXCLUDE
) -> DetectionQuality:
    """Score the test record; targeted are the windows that touch a row the liars would hide."""
    scored = detector.score(scenario.test)
    outcome = Outcome(
        scores=scored.scores,
        alarms=scored.alarms,
        labels=scored.labels,
        last_rows=scored.last_rows,
        stride_s=scored.stride_s,
    )
    targets = scenario.framing.windows(scenario.test).touching(scenario.targets.rows)
    return evaluate(outcome, targets=targets, unlabelled=unlabelled)
