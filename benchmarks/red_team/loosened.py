"""Rule poisoning: a plant manipulates the clean rows that calibrate its own tolerances."""

from collections.abc import Iterator

from benchmarks.evidence.study import Study
from sluice.admission import HardenedPolicy, PaperPolicy
from sluice.lab.attacks import LOOSENINGS, POISONS, Knowledge
from sluice.lab.audits import loosening
from sluice.lab.trials import scenario

__all__ = ["loosened"]


def loosened(study: Study) -> Iterator[str]:
    """Yield the table of one plant."""
    shared = scenario(study.clean, study.test, setup=study.setup, seed=0)
    poison = POISONS["replay"](
        shared.shards[shared.malicious[0]], Knowledge(targets=shared.targets), seed=0
    )
    yield (
        f"\n## Rule poisoning on {study.name}\n\nThe plant manipulates the clean rows that "
        "calibrate its tolerances, then submits a replay. Acceptance examines the rules file "
        "alone, and compares it with the last accepted file.\n"
    )
    yield (
        "| rules | manipulated by | rules widened, and by how much at most | rules lost "
        "| replay violates, before and after | admitted after | file accepted alone "
        "| accepted beside the last |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for name, policy in (("paper", PaperPolicy()), ("hardened", HardenedPolicy())):
        for how, prepare in LOOSENINGS.items():
            parts = shared.parts
            effect = loosening(
                parts.fit, parts.calibration, poison.shown, prepare=prepare, policy=policy, seed=0
            )
            most = effect.widened[0].ratio if effect.widened else None
            wider = f"{len(effect.widened)} of {len(effect.rules)}, " + (
                f"{most:.1f} times" if most else "none"
            )
            yield (
                f"| {name} | {how} | {wider} | {len(effect.gone)} "
                f"| {effect.violating_before:.1%}, {effect.violating_after:.1%} "
                f"| {_yes(effect.admitted_after)} | {_yes(not effect.refused_alone)} "
                f"| {_yes(not effect.refused_beside_last)} |"
            )


def _yes(holds: bool) -> str:  # noqa: FBT001 - a word for a flag
    return "yes" if holds else "no"
