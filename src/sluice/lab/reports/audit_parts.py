"""The audit part of a grid's report: separation and coverage, beside the paper's figures."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from sluice.lab.reports.audit_figures import (
    AuditPanel,
    Bar,
    Stem,
    coverage_figure,
    separation_figure,
)
from sluice.lab.reports.grid_figures import Drawn
from sluice.lab.reports.tables import Column, ReportTable
from sluice.lab.results import AuditedProof, AuditedSet, Audits

__all__ = ["audit_figures", "audit_tables"]

# Mean violating share and share of batches admitted, by record, rule set and kind.
_SEPARATION: Mapping[tuple[str, str], Mapping[str, tuple[float, float]]] = MappingProxyType(
    {
        ("swat", "paper-narrow"): {
            "honest": (0.00201, 1.0),
            "channel-roll": (0.281405, 0.0),
            "permutation": (0.2224, 0.0),
            "scaling": (0.88768, 0.0),
            "splicing-record": (0.002105, 1.0),
        },
        ("swat", "paper-wide"): {
            "honest": (0.00345, 1.0),
            "channel-roll": (0.298895, 0.0),
            "permutation": (0.23065, 0.0),
            "scaling": (0.907025, 0.0),
            "splicing-record": (0.003625, 1.0),
        },
        ("batadal", "paper-wide"): {  # the paper mined its ten rules from half of the record
            "honest": (0.0, 1.0),
            "channel-roll": (0.950645, 0.0),
            "permutation": (0.506455, 0.0),
            "scaling": (0.989425, 0.0),
            "splicing-record": (0.001735, 1.0),
        },
        ("wadi", "paper-narrow"): {
            "honest": (0.001185, 1.0),
            "channel-roll": (0.439155, 0.03),
            "permutation": (0.278325, 0.0),
            "scaling": (0.26939, 0.235),
            "splicing-record": (0.001175, 1.0),
        },
    }
)
# Attacks covered of all, attack rows covered of all.
_COVERAGE: Mapping[tuple[str, str], tuple[int, int, int, int]] = MappingProxyType(
    {
        ("swat", "paper-narrow"): (12, 35, 1_137, 10_931),
        ("swat", "paper-wide"): (20, 35, 8_991, 10_931),
        ("wadi", "paper-narrow"): (3, 14, 395, 1_996),
    }
)


def audit_figures(audits: Sequence[AuditedSet]) -> list[Drawn]:
    """Draw separation for all rule sets, and the coverage of each record."""
    if not audits:
        return []
    panels = [
        AuditPanel(
            title=f"{_plant(one)}, {one.invariants}",
            bars=tuple(
                Bar(
                    kind=row.kind,
                    share=row.mean_violating_share,
                    admitted_share=row.admitted_share,
                )
                for row in one.separation
            ),
        )
        for one in audits
    ]
    drawn = [
        Drawn(
            topic="separation",
            title="Separation of clean from fabricated telemetry",
            sentence="Mean share of rows that violate at least one rule (log scale; zero drawn at "
            "0.01 %). The dashed line marks 1 % of the rows.",
            figure=separation_figure(panels),
        )
    ]
    for plant in dict.fromkeys(_plant(one) for one in audits):
        sets = [one for one in audits if _plant(one) == plant][:2]
        stems = [
            Stem(index=first.index, rows=first.rows, shares=tuple(one.share for one in attack))
            for attack in zip(*(one.attacks for one in sets), strict=True)
            for first in attack[:1]
        ]
        drawn.append(
            Drawn(
                topic="coverage",
                title=f"Attacks that the rules detect: {plant}",
                sentence="Share of each attack's rows that are suspect (log scale), marker area by "
                "the attack's duration. An attack above the dashed line at 1 % is covered; for a "
                "short attack, one or two suspect rows can be enough.",
                figure=coverage_figure(stems, [one.invariants for one in sets]),
            )
        )
    return drawn


def audit_tables(audits: Audits) -> list[ReportTable]:
    """Return a table for each protocol of appendix A, and one for the cost of proofs."""
    sets = [_separation(audits.sets), _coverage(audits.sets)] if audits.sets else []
    return [*sets, _proofs(audits.proofs)] if audits.proofs else sets


def _separation(audits: Sequence[AuditedSet]) -> ReportTable:
    rows = []
    for one in audits:
        printed = {} if one.stand_in else _SEPARATION.get((one.record, one.invariants), {})
        for row in one.separation:
            share, admitted = printed.get(row.kind, (None, None))
            rows.append(
                (
                    _plant(one),
                    one.invariants,
                    row.kind,
                    row.batches,
                    100 * row.mean_violating_share,
                    None if share is None else 100 * share,
                    None if share is None else 100 * (row.mean_violating_share - share),
                    100 * row.admitted_share,
                    100 * row.low,
                    100 * row.high,
                    None if admitted is None else 100 * admitted,
                    None if admitted is None else 100 * (row.admitted_share - admitted),
                )
            )
    return ReportTable(
        slug="separation",
        title="Separation of clean from fabricated telemetry",
        sentence="The batches are at random places among the clean rows from which no rules were "
        "mined. The table shows the mean share of violating rows, and the share of batches "
        "admitted with its 95 % interval. On BATADAL the paper mined rules from half of the "
        "record; a grid mines rules from three tenths of it.",
        columns=(
            Column(name="record"),
            Column(name="rule set"),
            Column(name="telemetry"),
            Column(name="batches", digits=0),
            Column(name="violating %", digits=2),
            Column(name="paper", digits=2),
            Column(name="difference", digits=2),
            Column(name="admitted %", digits=1),
            Column(name="from", digits=1),
            Column(name="to", digits=1),
            Column(name="paper", digits=1),
            Column(name="difference", digits=1),
        ),
        rows=tuple(rows),
        finding=_separation_finding(audits),
    )


def _separation_finding(audits: Sequence[AuditedSet]) -> str:
    """State how many clean batches are refused and which fabricated kinds pass."""
    rows = [row for one in audits for row in one.separation]
    clean = [row for row in rows if row.kind == "honest"]
    refused = sum(round((1 - row.admitted_share) * row.batches) for row in clean)
    passing = sorted({row.kind for row in rows if row.kind != "honest" and row.admitted_share > 0})
    finding = f"{refused} of {sum(row.batches for row in clean)} clean batches are refused; "
    return finding + (
        f"batches of these fabricated kinds pass: {', '.join(passing)}."
        if passing
        else "no fabricated batch passes."
    )


def _coverage(audits: Sequence[AuditedSet]) -> ReportTable:
    rows = []
    for one in audits:
        printed = None if one.stand_in else _COVERAGE.get((one.record, one.invariants))
        covered = sum(attack.covered for attack in one.attacks)
        suspect = sum(attack.violating_rows for attack in one.attacks)
        total = sum(attack.rows for attack in one.attacks)
        rows.append(
            (
                _plant(one),
                one.invariants,
                one.couplings,
                one.balances,
                None if one.honest_share is None else 100 * one.honest_share,
                f"{covered} of {len(one.attacks)}",
                f"{printed[0]} of {printed[1]}" if printed else None,
                covered - printed[0] if printed else None,
                f"{suspect:,} of {total:,}",
                f"{printed[2]:,} of {printed[3]:,}" if printed else None,
                suspect - printed[2] if printed else None,
            )
        )
    return ReportTable(
        slug="coverage",
        title="Attacks that the rules detect",
        sentence="A labelled attack is covered when more than 1 % of its rows are suspect.",
        columns=(
            Column(name="record"),
            Column(name="rule set"),
            Column(name="couplings", digits=0),
            Column(name="balances", digits=0),
            Column(name="clean rows suspect %", digits=2),
            Column(name="attacks covered"),
            Column(name="paper"),
            Column(name="difference", digits=0),
            Column(name="attack rows suspect"),
            Column(name="paper"),
            Column(name="difference", digits=0),
        ),
        rows=tuple(rows),
        finding=" ".join(
            f"{one.invariants} on {_plant(one)} covers {sum(a.covered for a in one.attacks)} of "
            f"{len(one.attacks)} attacks."
            for one in audits
        ),
    )


def _proofs(proofs: Sequence[AuditedProof]) -> ReportTable:
    rows = [
        (
            _plant(one),
            one.system,
            f"all {one.rows:,}",
            one.constraints,
            one.proven_bits,
            one.prove_s,
            one.peak_mb,
            one.verify_ms,
            one.proof_bytes,
        )
        for one in proofs
    ]
    printed = ("swat (paper)", "Groth16", "32 of 1,024", 297_736, None, 12.0, 3_800.0, 290.0, 806)
    return ReportTable(
        slug="proofs",
        title="Cost of a proof",
        sentence="The table shows one clean batch of each record under its hardened rules, on this "
        "machine. The last line is the paper's figure. It is for another statement (32 sampled "
        "rows), another proof system that needs a trusted set-up, and another machine (Apple M3 "
        "Pro).",
        columns=(
            Column(name="record"),
            Column(name="system"),
            Column(name="rows checked"),
            Column(name="constraints", digits=0),
            Column(name="proven bits", digits=0),
            Column(name="prove, s", digits=1),
            Column(name="peak, MB", digits=0),
            Column(name="verify, ms", digits=0),
            Column(name="proof, bytes", digits=0),
        ),
        rows=(*rows, printed),
    )


def _plant(one: AuditedSet | AuditedProof) -> str:
    return f"{one.stand_in} for {one.record}" if one.stand_in else one.record
