"""The page of a certificate: what malicious members can do at worst, and what it assumes."""

from pathlib import Path

import numpy as np
import plotly.graph_objects as go

from sluice.evaluation import Ballots, VoteCertificate
from sluice.reports.drawings import Drawing, attack_times, stamps, thinned, time_axis
from sluice.reports.page import (
    Bullets,
    Cell,
    DataColumn,
    DataTable,
    Legend,
    LegendKey,
    PageSection,
    Part,
    Prose,
    ReportPage,
    Tile,
    Tone,
    write_page,
)
from sluice.telemetry import Record

__all__ = ["certificate_figures", "certificate_sections", "write_certificate_page"]

MOST_POINTS = 6_000


def write_certificate_page(  # noqa: PLR0913 - a page shows all of these
    certificate: VoteCertificate,
    ballots: Ballots,
    record: Record,
    path: Path,
    *,
    clean: Record,
    self_contained: bool = False,
) -> None:
    """Write the page of a certificate."""
    page = ReportPage(
        kind="Certificate",
        title=f"{record.name}: whatever any {certificate.malicious} of "
        f"{len(certificate.members)} members contribute",
        lead=f"An alarm needs {certificate.needed} of {certificate.voters} votes. Thresholds were "
        f"set on the clean record {clean.name!r}. All {certificate.sets:,} sets of "
        f"{certificate.malicious} members were counted.",
        tiles=_tiles(certificate),
        sections=(
            *certificate_sections(certificate),
            PageSection(
                title="Votes over time", short="Votes", parts=_drawn(ballots, certificate, record)
            ),
            PageSection(
                title="Each attack", short="Attacks", parts=(_attacks(certificate, record),)
            ),
            *_members(certificate),
            *_support(certificate),
        ),
        end="A certificate is a statement about this record. It is no statement about other "
        "records, and no statement about people.",
        shaded=attack_times(record),
    )
    write_page(page, path, self_contained=self_contained)


def certificate_sections(certificate: VoteCertificate) -> tuple[PageSection, ...]:
    """Return what a certificate says, its figures and its assumptions."""
    first, *others = certificate.sentences
    return (
        PageSection(
            title="What it promises, and what it assumes",
            short="Promise",
            parts=(
                Prose(text=first, tone=Tone.BAD if certificate.vacuous else Tone.GOOD),
                Bullets(items=tuple(others)),
            ),
        ),
        PageSection(title="Figures", parts=(certificate_figures(certificate),)),
    )


def _tiles(certificate: VoteCertificate) -> tuple[Tile, ...]:
    actual, worst = certificate.actual, certificate.certified
    attacks = len(certificate.attacks)
    return (
        Tile(
            label="recall",
            value=f"≥ {worst.recall:.3f}",
            note=f"{actual.recall:.3f} as votes stand",
            tone=Tone.BAD if certificate.can_silence else Tone.GOOD,
        ),
        Tile(
            label="attacks detected",
            value=f"≥ {worst.attacks_detected} of {attacks}",
            note=f"{actual.attacks_detected} as votes stand",
            tone=Tone.GOOD if worst.attacks_detected == attacks else Tone.WARN,
        ),
        Tile(
            label="precision",
            value=f"≥ {_number(worst.precision)}",
            note=f"{_number(actual.precision)} as votes stand",
        ),
        Tile(
            label="false alarms a week",
            value=f"≤ {_number(worst.false_alarms_per_week)}",
            note=f"{_number(actual.false_alarms_per_week)} as votes stand",
            tone=Tone.BAD if certificate.can_force else Tone.PLAIN,
        ),
        Tile(
            label="normal time in alarm",
            value="≤ " + _share(worst.time_in_alarm),
            note=f"{_share(actual.time_in_alarm)} as votes stand",
            tone=Tone.BAD if certificate.can_force else Tone.PLAIN,
        ),
    )


def certificate_figures(certificate: VoteCertificate) -> DataTable:
    """Return the table of figures: as votes stand, certified, and the set that reaches it."""
    actual, worst, sets = certificate.actual, certificate.certified, certificate.worst_sets
    attacks = len(certificate.attacks)
    rows = (
        ("recall of attack windows", f"{actual.recall:.3f}", f"≥ {worst.recall:.3f}", sets.recall),
        (
            "attacks detected",
            f"{actual.attacks_detected} of {attacks}",
            f"≥ {worst.attacks_detected} of {attacks}",
            sets.attacks_detected,
        ),
        ("precision", _number(actual.precision), f"≥ {_number(worst.precision)}", sets.precision),
        (
            "false-alarm events",
            f"{actual.false_events:,}",
            f"≤ {worst.false_events:,}",
            sets.false_events,
        ),
        (
            "false alarms a week",
            _number(actual.false_alarms_per_week),
            f"≤ {_number(worst.false_alarms_per_week)}",
            sets.false_events,
        ),
        (
            "normal time in alarm",
            _share(actual.time_in_alarm),
            f"≤ {_share(worst.time_in_alarm)}",
            sets.time_in_alarm,
        ),
        (
            "BATADAL's score",
            _number(actual.batadal_score),
            f"≥ {_number(worst.batadal_score)}",
            sets.batadal_score,
        ),
    )
    return DataTable(
        columns=(
            DataColumn(name="figure"),
            DataColumn(name="as votes stand", numeric=True),
            DataColumn(name="certified", numeric=True),
            DataColumn(name="the set that reaches it"),
        ),
        rows=tuple((*row[:3], ", ".join(row[3]) or "-") for row in rows),
        key="figures",
    )


def _attacks(certificate: VoteCertificate, record: Record) -> DataTable:
    rows = tuple(
        (
            _clock(record, attack.first_row),
            _clock(record, attack.last_row),
            "missed" if attack.delay_s is None else f"{attack.delay_s:,.0f} s",
            Cell(text="can be hidden", tone=Tone.BAD)
            if attack.certified_delay_s is None
            else f"{attack.certified_delay_s:,.0f} s",
        )
        for attack in certificate.attacks
    )
    columns = (
        DataColumn(name="from"),
        DataColumn(name="to"),
        DataColumn(name="detected after", numeric=True),
        DataColumn(name="certified: at the latest after", numeric=True),
    )
    return DataTable(columns=columns, rows=rows, key="attacks")


def _members(certificate: VoteCertificate) -> tuple[PageSection, ...]:
    if not certificate.by_member:
        return ()
    rows = tuple(
        (
            risk.member,
            f"≥ {risk.worst.recall:.3f}",
            f"≥ {risk.worst.attacks_detected}",
            f"≥ {_number(risk.worst.precision)}",
            f"≤ {_number(risk.worst.false_alarms_per_week)}",
        )
        for risk in certificate.by_member
    )
    columns = (
        DataColumn(name="member"),
        DataColumn(name="recall", numeric=True),
        DataColumn(name="attacks", numeric=True),
        DataColumn(name="precision", numeric=True),
        DataColumn(name="false alarms a week", numeric=True),
    )
    return (
        PageSection(
            title="If this member is malicious",
            short="Members",
            parts=(
                Prose(text="The worst figures over the sets that contain the member."),
                DataTable(columns=columns, rows=rows, key="members"),
            ),
        ),
    )


def _support(certificate: VoteCertificate) -> tuple[PageSection, ...]:
    """Return how many members the vote rests on, per plant and per point."""
    if not certificate.points:
        return ()
    plants = DataTable(
        columns=(
            DataColumn(name="plant"),
            DataColumn(name="points", numeric=True),
            DataColumn(name="members", numeric=True),
            DataColumn(name="members with all points", numeric=True),
            DataColumn(name="fewest members of a point", numeric=True),
        ),
        rows=tuple(
            (
                each.plant or "this plant",
                str(len(each.points)),
                str(len(each.members)),
                str(len(each.complete)),
                Cell(text=str(each.fewest), tone=Tone.WARN)
                if each.fewest < certificate.needed
                else str(each.fewest),
            )
            for each in certificate.by_plant
        ),
        key="plants",
    )
    points = DataTable(
        columns=(
            DataColumn(name="point"),
            DataColumn(name="members", numeric=True),
            DataColumn(name="without it"),
        ),
        rows=tuple(
            (
                each.point,
                f"{len(each.members)} of {len(certificate.members)}",
                ", ".join(sorted(set(certificate.members) - set(each.members))) or "-",
            )
            for each in sorted(certificate.points, key=lambda one: len(one.members))
        ),
        key="points",
    )
    return (
        PageSection(
            title="What the vote rests on",
            short="Support",
            parts=(
                Prose(
                    text="A member votes on the points that it has. A line of a member counts the "
                    "members that a plant with that member's points can rest on. Points that this "
                    "plant does not have are not counted."
                ),
                plants,
                points,
            ),
        ),
    )


def _drawn(ballots: Ballots, certificate: VoteCertificate, record: Record) -> tuple[Part, ...]:
    votes = ballots.votes.sum(axis=0).astype(np.float64)
    points = thinned(votes, MOST_POINTS)
    times = stamps(record.times[ballots.last_rows])
    figure = go.Figure(
        go.Scatter(
            x=times[points],
            y=votes[points],
            mode="lines",
            line={"color": "var(--score)", "width": 1, "shape": "hv"},
            name="votes",
        )
    )
    lines = [(ballots.needed, "limit", "dash", f"{ballots.needed} votes: an alarm")]
    safe = ballots.needed + certificate.malicious
    if certificate.malicious > 0 and safe <= certificate.voters:
        lines.append((safe, "alarm", "dot", f"{safe} votes: an alarm that survives any set"))
    for level, colour, dash, name in lines:
        figure.add_trace(
            go.Scatter(
                x=times[[0, -1]],
                y=[level, level],
                mode="lines",
                line={"color": f"var(--{colour})", "width": 1.5, "dash": dash},
                name=name,
            )
        )
    figure.update_layout(
        height=320,
        margin={"l": 60, "r": 12, "t": 16, "b": 36},
        showlegend=False,
        xaxis=time_axis(record.times),
        yaxis={"title": "votes", "range": [-0.2, certificate.voters + 0.3], "dtick": 1},
    )
    keys = [
        LegendKey(colour="score", label="votes of a window", shape="line"),
        *(LegendKey(colour=colour, label=name, shape="dash") for _, colour, _, name in lines),
        LegendKey(colour="attack", label="labelled attack"),
    ]
    return Legend(keys=tuple(keys)), Drawing(figure=figure, link="time", shaded=True)


def _clock(record: Record, row: int) -> str:
    return str(record.times[row].astype("datetime64[s]")).replace("T", " ")


def _number(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.3f}"


def _share(value: float | None) -> str:
    return "not defined" if value is None else f"{value:.2%}"
