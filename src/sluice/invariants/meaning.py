"""Rules that cannot be judged as they are written: two of one name, or limits that mean nothing."""

import math
from collections import Counter

from sluice.errors import RulesFileError
from sluice.invariants.relations import (
    Balance,
    Constant,
    Coupling,
    Invariant,
    Mean,
    Spectrum,
    SwitchBand,
    Term,
    Tie,
    Window,
)
from sluice.invariants.ruleset import RuleSet
from sluice.telemetry import Codes

__all__ = ["refuse_meaningless"]

SHORTEST_WINDOW = 2
SPECTRUM_ROWS = range(3, 4_097)
"""Rows of a spectrum's block: two rows have no second difference, and sums must not wrap."""


def refuse_meaningless(rules: RuleSet) -> None:
    """Refuse names that stand for two things, and relations that judge no row."""
    for what, names in (
        ("rules", (rule.name for rule in rules.invariants)),
        ("channels", (channel.name for channel in rules.channels)),
    ):
        for name, count in Counter(names).items():
            if count > 1:
                raise RulesFileError(
                    f"the rules of {rules.plant!r} hold {count} {what} named {name!r}, so a budget "
                    "or a span could belong to either; mine the rules again"
                )
    if not 0 < rules.stride_s < math.inf:
        raise RulesFileError(
            f"the rules of {rules.plant!r} have one row every {rules.stride_s:g} s; mine the rules "
            "again"
        )
    codes = {channel.name: channel.codes for channel in rules.channels if channel.codes}
    for rule in rules.invariants:
        wrong = _meaningless(rule, codes)
        if wrong:
            raise RulesFileError(f"rule {rule.name!r} {wrong}; mine it again")


def _meaningless(  # noqa: PLR0911 - one case a kind
    rule: Invariant, codes: dict[str, Codes]
) -> str:
    """Return why a rule cannot be judged as it is written; empty if it can."""
    if not 0 < rule.tolerance < math.inf:
        return f"has the tolerance {rule.tolerance:g}, which must be finite and above 0"
    match rule.relation:
        case Coupling() as coupling:
            return _meaningless_coupling(coupling, codes)
        case Window(rows=rows) | Mean(rows=rows) if rows < SHORTEST_WINDOW:
            return f"is a window of {rows} rows, fewer than {SHORTEST_WINDOW}"
        case Balance(terms=terms) | Window(terms=terms):
            return _meaningless_terms(terms, codes)
        case Tie() as tie:
            return _meaningless_tie(tie, codes)
        case Constant() as constant:
            return _meaningless_constant(constant, rule.tolerance, codes)
        case SwitchBand() as band:
            return _meaningless_band(band, codes)
        case Spectrum() as spectrum:
            return _meaningless_spectrum(spectrum)
        case _:
            return ""


def _meaningless_tie(tie: Tie, codes: dict[str, Codes]) -> str:
    if not tie.terms:
        return f"ties {tie.channel!r} to no other channel"
    if any(term.channel == tie.channel for term in tie.terms):
        return f"explains {tie.channel!r} by itself"
    return _meaningless_terms(tie.terms, codes)


def _meaningless_constant(constant: Constant, tolerance: float, codes: dict[str, Codes]) -> str:
    channel = constant.channel
    if channel in codes and constant.value not in codes[channel].legal:
        return f"holds {channel!r} at {constant.value:g}, which is not one of its codes"
    if channel in codes and not tolerance < 1:
        return f"has the tolerance {tolerance:g}, which hides another code of {channel!r}"
    return ""


def _meaningless_band(band: SwitchBand, codes: dict[str, Codes]) -> str:
    actuator = codes.get(band.actuator)
    if actuator is None:
        return f"reads the codes of {band.actuator!r}, which is no actuator of the file"
    if not band.on or not set(band.on) <= set(actuator.on):
        return (
            f"takes {band.actuator!r} as on at {list(band.on)}; the file describes it as on at "
            f"{list(actuator.on)}"
        )
    if not (band.on_low <= band.on_high and band.off_low <= band.off_high):
        return "has a band that ends below its beginning"
    return ""


def _meaningless_spectrum(spectrum: Spectrum) -> str:
    if spectrum.rows not in SPECTRUM_ROWS:
        return f"has blocks of {spectrum.rows} rows, not {SPECTRUM_ROWS[0]} to {SPECTRUM_ROWS[-1]}"
    if not 0 <= spectrum.offset < spectrum.rows:
        return f"begins its first block at row {spectrum.offset}, beyond one block"
    first = 0 <= spectrum.first_low <= spectrum.first_high
    if not (first and 0 <= spectrum.second_low <= spectrum.second_high):
        return "has limits that no sum of squares meets"
    return ""


def _meaningless_terms(terms: tuple[Term, ...], codes: dict[str, Codes]) -> str:
    for channel, count in Counter(term.channel for term in terms).items():
        if count > 1:
            return f"has {count} terms of {channel!r}, which could cancel"
    for term in terms:
        if term.on and term.channel not in codes:
            return f"reads the codes of {term.channel!r}, which is no actuator of the file"
        unknown = set(term.on) - set(codes[term.channel].on) if term.on else set()
        if unknown:
            return f"reads {term.channel!r} as on at {min(unknown)}, which is not its on code"
    return ""


def _meaningless_coupling(coupling: Coupling, codes: dict[str, Codes]) -> str:
    actuator = codes.get(coupling.actuator)
    states = [state.code for state in coupling.states]
    if actuator is None:
        return f"reads the codes of {coupling.actuator!r}, which is no actuator of the file"
    if coupling.off != actuator.off or not states or not set(states) <= set(actuator.on):
        return (
            f"takes {coupling.actuator!r} as off at {coupling.off} and on at {states}; the file "
            f"describes it as off at {actuator.off} and on at {list(actuator.on)}"
        )
    if len(set(states)) < len(states):
        return f"states two flows for one code of {coupling.actuator!r}"
    if coupling.settle < 0:
        return f"settles in {coupling.settle} rows"
    for pump, off in coupling.standby:
        if pump not in codes or codes[pump].off != off:
            return f"takes {pump!r} as off at {off}, which is not its off code in the file"
    return ""
