"""The page of the red team: what must hold, then every attack on every plant."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from benchmarks.red_team.attempts import SMALL, SMALL_IDLE
from benchmarks.red_team.store import Attempt, Result
from benchmarks.red_team.subjects import FIRST_KINDS, HARDENED
from sluice.lab.attacks import TAMPERINGS
from sluice.lab.audits import Proportion

__all__ = ["HALVED", "REFUSED", "Size", "page"]

HALVED = ("feasible", "ramp", "foreign-simulator")
"""What they plant and the damage are to be at most half of the first edition's."""
REFUSED = tuple(name for name in TAMPERINGS if name not in HALVED)
"""Attacks of the second round that are to be refused."""
LEAST_TOUCHED = 0.05
WANTED = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """How large a run is, for the page."""

    seeds: tuple[int, ...]
    clients: int
    left_out: tuple[str, ...]
    plants: tuple[str, ...]
    commit: str = ""  # of the code that made all results


HEAD = f"""# Which attacks pass the gate

Written by `make red-team` (`python -m benchmarks red-team`). Every attack of
[the red team](../explanation/red-team.md) submits a batch. Adaptive attacks know the rules, the
policy and every kind of rule that the gate judges, and search for their strongest variant that the
gate admits. The rules are mined from clean slices that no client owns. No setting of an attack was
chosen on the seeds of this page. BATADAL is one record: a seed draws the malicious clients and
their targets, not the rows. How rules are mined was chosen with attacks on this same record (seeds
0 to 3), so the figures of BATADAL are not blind.

A row is *touched* if a channel is changed by more than {SMALL:g} of its standard deviation or, if
the channel never moves, by more than {SMALL_IDLE:.1%} of its span. Smaller changes are within what
instruments disagree by. *First kinds* is the same gate with only the kinds of rules that the first
edition knew (couplings, balances, windows, ranges, rates), calibrated in the same way, on the same
clients and seeds. [The first edition's page](red-team-first-edition.md) has the figures of that
edition's own calibration. Intervals are Wilson's, 95 %. The detectors of this page do not read
channels that the gate's rules leave untied. [The evidence](evidence.md) compares aggregation
rules."""


def page(results: Sequence[Result], size: Size) -> Iterator[str]:
    """Write the page."""
    yield HEAD
    seeds = f"{size.seeds[0]} to {size.seeds[-1]}" if len(size.seeds) > 1 else f"{size.seeds[0]}"
    yield (
        f"\nThis run: seeds {seeds}, {size.clients} malicious client"
        f"{'s' if size.clients > 1 else ''} per seed, plants {', '.join(size.plants)}."
        + (f" It leaves out {', '.join(size.left_out)}." if size.left_out else "")
        + (f" All rows were measured at commit {size.commit}." if size.commit else "")
    )
    yield from _refusals(results)
    yield from _halves(results)
    for plant in dict.fromkeys(result.key.plant for result in results):
        yield from _plant(plant, [result for result in results if result.key.plant == plant])


def _of(results: Iterable[Result], *, attack: str, gate: str) -> list[Result]:
    return [each for each in results if each.key.attack == attack and each.key.gate == gate]


def _attempts(results: Iterable[Result]) -> list[Attempt]:
    return [each for result in results for each in result.attempts if each.admitted is not None]


def _refusals(results: Sequence[Result]) -> Iterator[str]:
    yield (
        f"\n## Must hold: refused at least {WANTED:.0%} of the time\n\nCounted are batches that "
        f"touch more than {LEAST_TOUCHED:.0%} of their rows, over all plants. An attack that "
        "finds nothing to attack submits no batch. The last column counts only batches that touch "
        "so many rows in channels that a detector reads; a change of an untied channel alone "
        "reaches no detector.\n"
    )
    yield (
        "| attack | batches | refused | share | interval | holds | admitted on "
        "| refused, of those that reach a detector |"
    )
    yield "|---|---|---|---|---|---|---|---|"
    for attack in REFUSED:
        of_attack = _of(results, attack=attack, gate=HARDENED)
        tried = [each for each in _attempts(of_attack) if each.touched > LEAST_TOUCHED]
        refused = Proportion.counted(sum(not each.admitted for each in tried), len(tried))
        where = dict.fromkeys(
            result.key.plant
            for result in of_attack
            if any(each.admitted and each.touched > LEAST_TOUCHED for each in result.attempts)
        )
        if not of_attack:
            yield f"| {attack} | not run | | | | | | |"
            continue
        holds = "none touches so many" if not tried else _yes(refused.share >= WANTED)
        share = f"{refused.share:.0%} | {_interval(refused)}" if tried else " | "
        reaching = [each for each in tried if each.touched_read > LEAST_TOUCHED]
        yield (
            f"| {attack} | {refused.of} | {refused.count} | {share} | {holds} "
            f"| {', '.join(where)} "
            f"| {sum(not each.admitted for each in reaching)} of {len(reaching)} |"
        )


def _halves(results: Sequence[Result]) -> Iterator[str]:
    yield (
        "\n## Must hold: at most half of what the first kinds of rules leave\n\n*Planted* is the "
        "mean share of touched rows, 0 for a refused batch. *Shift* is the root mean square of all "
        "changes in admitted batches, in standard deviations of each channel. *Damage* is how many "
        "points of the targets' windows the detector no longer detects, mean over seeds, 0 if no "
        "client is admitted; a negative number is a gain. It compares with the federation in which "
        "the admitted clients train on their own rows. Where that detects no target, no damage can "
        "be seen. Each cell goes from the gate with the first kinds to the gate with all.\n"
    )
    yield "| plant | attack | clients | planted | half | shift | detector | damage | half |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for plant in dict.fromkeys(result.key.plant for result in results):
        of_plant = [result for result in results if result.key.plant == plant]
        for attack in HALVED:
            before = _of(of_plant, attack=attack, gate=FIRST_KINDS)
            after = _of(of_plant, attack=attack, gate=HARDENED)
            both = {each.key.seed for each in before} & {each.key.seed for each in after}
            before, after = (
                [each for each in some if each.key.seed in both] for some in (before, after)
            )
            if not both:
                continue
            planted = _planted(before), _planted(after)
            half = _yes(planted[1] <= planted[0] / 2)
            detectors = dict.fromkeys(
                each.detector for result in (*before, *after) for each in result.damages
            )
            for detector in detectors or ("",):
                hurt = _damage(before, detector), _damage(after, detector)
                hurts = f"{hurt[0]:.1f} to {hurt[1]:.1f} | {_yes(hurt[1] <= max(hurt[0], 0) / 2)}"
                yield (
                    f"| {plant} | {attack} | {len(_attempts(after))} | {planted[0]:.0%} to "
                    f"{planted[1]:.0%} | {half} | {_shift(before)} to {_shift(after)} | {detector} "
                    f"| {hurts if detector else ' | '} |"
                )


def _planted(results: Sequence[Result]) -> float:
    tried = _attempts(results)
    return float(np.mean([each.touched if each.admitted else 0.0 for each in tried] or [0.0]))


def _shift(results: Sequence[Result]) -> str:
    passed = [each.shift for each in _attempts(results) if each.admitted]
    return f"{np.mean(passed):.2f}" if passed else "none"


def _damage(results: Sequence[Result], detector: str) -> float:
    """Return the mean loss of detected targets, in percentage points."""
    lost = [
        sum(
            each.targeted_before - each.targeted_after
            for each in result.damages
            if each.detector == detector
        )
        for result in results
    ]
    return 100 * float(np.mean(lost or [0.0]))


def _plant(plant: str, results: Sequence[Result]) -> Iterator[str]:
    yield (
        f"\n## {plant}\n\n*Touched*, *channels* and *shift* describe the batches that the "
        "hardened gate admits: the share of touched rows, how many channels are changed so much, "
        "and the root mean square of all changes in standard deviations of each channel (idle "
        "channels have none). The detectors are trained by federated averaging behind the hardened "
        "gate. Each cell goes from the federation in which the admitted clients train on their own "
        "rows to the federation in which they train on their poison (means over seeds): targets "
        "detected, then average precision. The last column is the first reason of a refusal.\n"
    )
    detectors = tuple(dict.fromkeys(each.detector for result in results for each in result.damages))
    head = ["attack", "first kinds admit", "hardened admits", "touched", "channels", "shift"]
    head += [*detectors, "refused because"]
    yield f"| {' | '.join(head)} |"
    yield "|---" * len(head) + "|"
    for attack in dict.fromkeys(result.key.attack for result in results):
        after = _of(results, attack=attack, gate=HARDENED)
        cells = [
            attack,
            _admitted(_of(results, attack=attack, gate=FIRST_KINDS)),
            _admitted(after),
            *_described(_attempts(after)),
            *(_detected(after, detector) for detector in detectors),
            _first_reason(_attempts(after)),
        ]
        yield f"| {' | '.join(cells)} |"


def _admitted(results: Sequence[Result]) -> str:
    tried = _attempts(results)
    failed = sum(len(result.attempts) for result in results) - len(tried)
    if not results:
        return ""
    count = f"{sum(bool(each.admitted) for each in tried)} of {len(tried)}"
    return count + (f" ({failed} made no batch)" if failed else "")


def _described(tried: Sequence[Attempt]) -> tuple[str, str, str]:
    passed = [each for each in tried if each.admitted]
    if not passed:
        return "", "", ""
    return (
        f"{np.mean([each.touched for each in passed]):.0%}",
        f"{np.mean([each.channels for each in passed]):.0f}",
        f"{np.mean([each.shift for each in passed]):.2f}",
    )


def _detected(results: Sequence[Result], detector: str) -> str:
    found = [each for result in results for each in result.damages if each.detector == detector]
    if not found:
        return ""
    recall = [(each.targeted_before, each.targeted_after) for each in found]
    precision = [(each.precision_before, each.precision_after) for each in found]
    return f"{_from_to(recall, '{:.0%}')}, {_from_to(precision, '{:.3f}')}"


def _from_to(pairs: list[tuple[float, float]], form: str) -> str:
    before, after = np.mean(pairs, axis=0)
    text = f"{form.format(before)} to {form.format(after)}"
    if len(pairs) > 1:
        low, high = min(a for _, a in pairs), max(a for _, a in pairs)
        text += f" ({form.format(low)} to {form.format(high)})"
    return text


def _first_reason(tried: Sequence[Attempt]) -> str:
    reasons = [each.reasons[0] for each in tried if not each.admitted and each.reasons]
    return reasons[0].split(" (first at")[0].split(";")[0] if reasons else ""


def _interval(part: Proportion) -> str:
    return f"{part.low:.0%} to {part.high:.0%}"


def _yes(holds: bool) -> str:  # noqa: FBT001 - a word for a flag
    return "yes" if holds else "**no**"
