"""What the plant's commands print of a vote: who votes, and where its thresholds come from."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from sluice.detector import Detector

__all__ = ["thresholds_in_words", "vote_payload"]


def thresholds_in_words(detector: "Detector", rows: int) -> str:
    """Return where the thresholds of a vote come from, in words."""
    from sluice.detector import borrows_thresholds, voted_model

    if not borrows_thresholds(detector):
        return f"the thresholds are from {rows:,} clean rows of this plant"
    voters = voted_model(detector).voters
    lend = sum(voter.tail is not None for voter in voters)
    short, asked = _short_tails(detector)
    further = (
        f" ({short} of them from a batch that is too short for {asked:g} alarms a week, so their "
        "votes come more often)"
        if short
        else ""
    )
    return (
        f"the thresholds are borrowed: {lend} of {len(voters)} members lend the tail of their "
        f"scores{further}, and {rows:,} clean rows of this plant give the usual score"
    )


def _short_tails(detector: "Detector") -> tuple[int, float]:
    """Return how many lent tails set no threshold of the asked rate, and this rate."""
    from sluice.detector import voted_model

    model = voted_model(detector)
    asked = model.calibration.false_alarms_per_week
    tails = [voter.tail for voter in model.voters if voter.tail is not None]
    return sum(tail.rarest_rate > asked for tail in tails), asked


def vote_payload(detector: "Detector") -> dict[str, object]:
    """Return who votes, as JSON; nothing for a detector that is no vote."""
    from sluice.detector import VotedModel, borrows_thresholds

    model = detector.model
    if not isinstance(model, VotedModel):
        return {}
    return {
        "kind": detector.kind,
        "member_names": list(model.members),
        "votes_needed": model.needed,
        "malicious": model.malicious,
        "borrowed": borrows_thresholds(detector),
        "tails_lent": sum(voter.tail is not None for voter in model.voters),
        "tails_short": _short_tails(detector)[0],
        "rules": detector.fusion is not None,
        "statistics": {each.member: each.statistic for each in detector.training.contributions},
    }
