"""Figures from the paper and from its results files, for comparison with our measurements.

They are quoted, not reproduced: the SWaT and WADI records are available only on request.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

__all__ = [
    "ADMITTED_AFTER_PROJECTION",
    "PRINTED_DROP",
    "PrintedRemoval",
    "printed_removal",
    "recorded_recall",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedRemoval:
    """A line of the paper's removal table; None if the paper prints a dash."""

    damage_points: float | None
    projection_percent: float | None
    gate_percent: float | None


# SWaT: damage in points / removed by projection in % / removed by the gate in %.
_REMOVAL = """
paper-wide replay fedavg 13.8 24 71
paper-wide replay median 6.2 42 103
paper-wide replay norm-clipping 7.4 30 104
paper-wide replay trimmed-mean 5.1 11 91
paper-wide replay krum 7.2 0 100
paper-wide replay fltrust 2.2 75 69
paper-wide channel-roll fedavg 10.7 3 92
paper-wide channel-roll median 8.7 53 101
paper-wide channel-roll norm-clipping 10.4 45 100
paper-wide channel-roll trimmed-mean 7.1 54 89
paper-wide channel-roll krum 7.2 0 100
paper-wide channel-roll fltrust 2.2 41 54
paper-wide channel-roll foolsgold 3.5 -28 259
paper-narrow replay fedavg 13.8 22 22
paper-narrow replay median 6.2 35 35
paper-narrow replay norm-clipping 7.4 9 9
paper-narrow replay trimmed-mean 5.1 8 8
paper-narrow replay krum 7.2 0 100
paper-narrow replay fltrust 2.2 49 49
paper-narrow channel-roll fedavg 10.7 2 2
paper-narrow channel-roll median 8.7 43 43
paper-narrow channel-roll norm-clipping 10.4 30 30
paper-narrow channel-roll trimmed-mean 7.1 56 56
paper-narrow channel-roll krum 7.2 0 100
paper-narrow channel-roll fltrust 2.2 9 9
paper-narrow channel-roll foolsgold 3.5 -202 -202
"""

# Targeted recall by seed, SWaT, wide set, replay: clean honest-only naive physics-aware gated.
_SWAT = """
fedavg .3577 .2737 .2737 .2737 .2737 | .2020 .3081 .2005 .2012 .3081 | .3038 .2985 .1305 .1962 .2191
 | .1995 .1941 .1933 .1933 .1941 | .1191 .0100 .0023 .0177 .0092
krum .4285 .2737 .3344 .3344 .3344 | .2402 .2036 .2083 .2083 .2036 | .3626 .1840 .2137 .2137 .1160
 | .1964 .1917 .1200 .1200 .1917 | .1368 .0254 .0331 .0331 .0261
median .3469 .2737 .2737 .2737 .2737 | .2005 .2683 .2012 .2051 .2683 | .3038 .2969 .1901 .2641 .2992
 | .1956 .1941 .1925 .1933 .1941 | .1291 .0177 .0046 .0061 .0208
trimmed-mean .3228 .2737 .2737 .2737 .2737 | .2028 .2402 .2051 .2028 .2402
 | .3031 .2985 .1924 .2046 .2840 | .1956 .1941 .1925 .1941 .1941 | .1261 .0154 .0023 .0092 .0161
norm-clipping .3527 .2737 .2737 .2737 .2737 | .2020 .3042 .2020 .2083 .3042
 | .3061 .2985 .1916 .2481 .2977 | .1980 .1941 .1933 .1941 .1941 | .1199 .0161 .0023 .0054 .0254
fltrust .3694 .3611 .3295 .3411 .3411 | .2036 .2278 .2106 .2293 .2278
 | .3176 .3008 .3031 .3038 .3031 | .1995 .1980 .1972 .1980 .1980 | .1291 .1084 .0922 .1107 .1084
foolsgold .3078 .2737 .2737 .2737 .2737 | .1997 .2051 .1997 .1997 .2051
 | .2771 .2260 .2672 .1992 .2542 | .1933 .1949 .1949 .1894 .1949 | .0922 .0008 .0000 .0100 .0115
"""
_SWAT_MODES = ("clean", "honest-only", "naive", "physics-aware", "gated")

# Mean targeted recall of the reference's BATADAL files, three seeds; every projected batch was
# admitted, so gated is physics-aware.
_BATADAL: Mapping[tuple[str, str, str], float] = MappingProxyType(
    {
        **{
            (attack, rule, "clean"): 0.3371212121212121
            for attack in ("replay", "channel-roll")
            for rule in ("fedavg", "trimmed-mean", "fltrust")
        },
        ("channel-roll", "fedavg", "naive"): 0.30556,
        ("channel-roll", "fedavg", "physics-aware"): 0.31439,
        ("channel-roll", "fedavg", "gated"): 0.31439,
        ("channel-roll", "trimmed-mean", "naive"): 0.32828,
        ("channel-roll", "fltrust", "naive"): 0.3371212121212121,
        ("replay", "fedavg", "naive"): 0.32323,
        ("replay", "fedavg", "physics-aware"): 0.32323,
        ("replay", "fedavg", "gated"): 0.32323,
        ("replay", "trimmed-mean", "naive"): 0.31566,
    }
)

PRINTED_DROP: Mapping[tuple[str, str], float] = MappingProxyType(
    {
        **{
            ("fedavg", attack): drop
            for attack, drop in (
                ("replay", 8.6),
                ("channel-roll", 6.6),
                ("permutation", 6.6),
                ("perturbation", 6.0),
                ("sign-flip", 7.1),
                ("scaling", 8.8),
                ("free-rider", 2.2),
                ("min-max", 2.6),
            )
        },
        **{
            ("krum", attack): 9.2
            for attack in ("replay", "channel-roll", "permutation", "perturbation")
        },
        ("krum", "free-rider"): 14.6,
        ("krum", "min-max"): 14.7,
    }
)
"""SWaT, three seeds: points of targeted recall lost against the clean run, by rule and attack."""

ADMITTED_AFTER_PROJECTION: Mapping[tuple[str, str], tuple[int, int]] = MappingProxyType(
    {
        ("swat", "paper-wide"): (6, 15),
        ("swat", "paper-narrow"): (12, 15),
        ("wadi", "paper-narrow"): (3, 9),
        ("batadal", "paper-wide"): (6, 6),
    }
)
"""Projected replay batches: how many the gate admits, and how many there are."""


def printed_removal(
    record: str, invariants: str | None, attack: str | None, rule: str
) -> PrintedRemoval | None:
    """Return the paper's line, or None if it has none."""
    if record != "swat":
        return None
    return _PRINTED_REMOVAL.get((str(invariants), str(attack), rule))


def recorded_recall(
    record: str, invariants: str | None, attack: str | None, rule: str, mode: str
) -> float | None:
    """Return the mean targeted recall in the reference's results files, or None if unknown."""
    if record == "batadal":
        return _BATADAL.get((str(attack), rule, mode))
    if (record, invariants, attack) == ("swat", "paper-wide", "replay"):
        return _SWAT_MEANS.get((rule, mode))
    return None


def _removals() -> Mapping[tuple[str, str, str], PrintedRemoval]:
    removals = {}
    for line in _REMOVAL.strip().splitlines():
        invariants, attack, rule, damage, projection, gate = line.split()
        removals[invariants, attack, rule] = PrintedRemoval(
            damage_points=float(damage),
            projection_percent=float(projection),
            gate_percent=float(gate),
        )
    return MappingProxyType(removals)


def _swat_means() -> Mapping[tuple[str, str], float]:
    means = {}
    for entry in _SWAT.replace("\n |", " |").strip().splitlines():
        rule, _, figures_by_seed = entry.partition(" ")
        seeds = [[float(figure) for figure in part.split()] for part in figures_by_seed.split("|")]
        for mode, figures in zip(_SWAT_MODES, zip(*seeds, strict=True), strict=True):
            means[rule, mode] = sum(figures) / len(figures)
    return MappingProxyType(means)


_PRINTED_REMOVAL = _removals()
_SWAT_MEANS = _swat_means()
