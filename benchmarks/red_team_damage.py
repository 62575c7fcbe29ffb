"""What admitted poison does to the detector.

The federation with the malicious clients that a gate admits is compared with the federation without
malicious clients.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from benchmarks.evidence.study import Study, gates
from sluice.errors import SluiceError
from sluice.lab.attacks import UPDATE_ATTACKS
from sluice.lab.trials import MODES, Contributions, Trial, run_cell, scenario

__all__ = ["DETECTORS", "Damage", "damage_table", "damages"]

DETECTORS = ("autoencoder", "subspace")


@dataclass(frozen=True, slots=True, kw_only=True)
class Damage:
    """One attack of all malicious clients at the hardened gate, and the detector it leaves."""

    attack: str
    detector: str
    seed: int
    admitted: int  # malicious clients
    targeted_before: float  # share of the targets' windows that raise an alarm
    targeted_after: float
    precision_before: float  # average precision over all labelled attacks
    precision_after: float


def damages(study: Study, seed: int, attacks: tuple[str, ...]) -> Iterator[Damage]:
    """Train with and without the admitted malicious clients, for every attack and detector.

    An attack of which no client is admitted is left out: it does no damage.
    """
    for detector in DETECTORS:
        shared = scenario(
            study.clean, study.test, setup=replace(study.setup, detector=detector), seed=seed
        )
        hardened = gates(shared)["hardened"]
        trial = Trial(contributions=Contributions(shared, own=hardened.gate), gate=hardened)
        before = run_cell(trial, trial.plan(MODES["honest-only"]), "fedavg").score
        for attack in attacks:
            if attack in UPDATE_ATTACKS:
                continue  # in a federation this name is an attack on updates
            try:
                plan = trial.plan(MODES["gated"], attack)
            except SluiceError:
                continue  # the attack makes no batch, which the table of admissions counts
            admitted = [c for c in shared.malicious if plan.decisions[c].admitted]
            if not admitted:
                continue
            after = run_cell(trial, plan, "fedavg").score
            yield Damage(
                attack=attack,
                detector=detector,
                seed=seed,
                admitted=len(admitted),
                targeted_before=before.targeted_recall or 0.0,
                targeted_after=after.targeted_recall or 0.0,
                precision_before=before.auc_pr,
                precision_after=after.auc_pr,
            )


def damage_table(found: list[Damage]) -> Iterator[str]:
    """Write one row per attack; figures are means over the seeds in which a client is admitted."""
    yield (
        "| attack | seeds | "
        + " | ".join(
            f"{detector}: targets detected | {detector}: average precision"
            for detector in DETECTORS
        )
        + " |"
    )
    yield "|---|---|" + "---|" * (2 * len(DETECTORS))
    for attack in dict.fromkeys(each.attack for each in found):
        of_attack = [each for each in found if each.attack == attack]
        seeds = len({each.seed for each in of_attack})
        cells = []
        for detector in DETECTORS:
            some = [each for each in of_attack if each.detector == detector]
            cells.append(_from_to([(e.targeted_before, e.targeted_after) for e in some], "{:.0%}"))
            cells.append(
                _from_to([(e.precision_before, e.precision_after) for e in some], "{:.3f}")
            )
        yield f"| {attack} | {seeds} | {' | '.join(cells)} |"


def _from_to(pairs: list[tuple[float, float]], form: str) -> str:
    if not pairs:
        return ""
    before, after = np.mean(pairs, axis=0)
    text = f"{form.format(before)} to {form.format(after)}"
    if len(pairs) > 1:
        low, high = min(a for _, a in pairs), max(a for _, a in pairs)
        text += f" ({form.format(low)} to {form.format(high)})"
    return text
