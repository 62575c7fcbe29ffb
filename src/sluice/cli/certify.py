"""`sluice certify`: what malicious members can do to a shared detector at worst."""

from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sluice.cli.console import Json, Quiet, emit, out, table, working
from sluice.cli.options import (
    Every,
    FillWith,
    FormatName,
    PlantPath,
    SelfContained,
    listed,
    open_record,
    refuse_overwriting,
    refuse_without_page,
)
from sluice.cli.paths import reads_file, reads_record, writes_file
from sluice.evaluation import Unlabelled

if TYPE_CHECKING:
    from rich.table import Table

    from sluice.detector import Detector
    from sluice.evaluation import VoteCertificate
    from sluice.telemetry import Record

__all__ = ["certificate_payload", "certify", "show_certificate"]

MOST_NAMED = 3


def certify(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL",
            help="A shared detector (.safetensors).",
            click_type=reads_file("a detector's file"),
        ),
    ],
    record: Annotated[
        list[Path],
        typer.Option("--record", help="The labelled record.", click_type=reads_record()),
    ],
    clean: Annotated[
        list[Path],
        typer.Option(
            "--clean",
            help="Clean rows of the plant that uses the detector; they set the thresholds.",
            click_type=reads_record(),
        ),
    ],
    malicious: Annotated[
        int,
        typer.Option(
            min=0, help="Members that may be malicious; count owners and integrators, not keys."
        ),
    ],
    votes: Annotated[
        int | None,
        typer.Option(min=1, help="Votes that an alarm needs; default: those of the model."),
    ] = None,
    false_alarms: Annotated[
        float | None,
        typer.Option(
            "--false-alarms-per-week",
            help="False alarms a week asked of each voter; default: as the model asks.",
        ),
    ] = None,
    unlabelled: Annotated[
        Unlabelled, typer.Option(help="How unlabelled rows are counted.")
    ] = Unlabelled.EXCLUDE,
    html: Annotated[
        Path | None,
        typer.Option(help="Write the certificate as an HTML page.", click_type=writes_file()),
    ] = None,
    self_contained: SelfContained = False,
    plant: PlantPath = None,
    format_: FormatName = None,
    fill: FillWith = None,
    every: Every = 1,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Certify a shared detector: the worst that any --malicious members can do to it.

    The figures hold whatever these members contribute. They are counted over all sets of so many
    members and not sampled. They speak of this record and of thresholds set on --clean. The model's
    file does not change.

    Example: [bold]sluice certify model.safetensors --record april.csv --clean march.csv --malicious
    2[/bold]
    """
    from sluice.detector import load_detector
    from sluice.evaluation import certify as certify_ballots
    from sluice.federation import ballots_of, supported

    quiet = quiet or json
    refuse_without_page(html, self_contained=self_contained, option="--html PAGE")
    if html:
        refuse_overwriting(html, model, *record, *clean)
    detector = load_detector(model)
    opened = []
    for paths in (record, clean):
        with working(f"reading {listed(paths)}", quiet=quiet):
            opened.append(
                open_record(paths, plant=plant, format_name=format_, fill=fill, every=every)
            )
    labelled, clean_rows = opened
    with working("calibrating on the clean rows", quiet=quiet):
        detector = _calibrated_on(clean_rows, detector, false_alarms)
    with working("counting the worst case of every set of members", quiet=quiet):
        ballots = ballots_of(detector, labelled, unlabelled=unlabelled)
        if votes is not None:
            ballots = replace(ballots, needed=votes)
        certificate = supported(certify_ballots(ballots, malicious=malicious), detector)
    if html:
        from sluice.reports import write_certificate_page

        write_certificate_page(
            certificate, ballots, labelled, html, clean=clean_rows, self_contained=self_contained
        )
    if json:
        emit(certificate_payload(certificate))
    else:
        show_certificate(certificate, labelled)


def _calibrated_on(clean: "Record", detector: "Detector", asked: float | None) -> "Detector":
    """Return the detector with thresholds from the clean record."""
    from sluice.detector import (
        RateThreshold,
        VotedModel,
        borrows_thresholds,
        calibrated,
        calibrated_with_rules,
        recalibrated,
    )

    if isinstance(detector.model, VotedModel):
        return recalibrated(
            detector,
            clean,
            time=datetime.now(UTC),
            false_alarms_per_week=asked,
            borrowed=borrows_thresholds(detector),
        )
    threshold = detector.threshold
    if asked is None and isinstance(threshold, RateThreshold):
        asked = threshold.false_alarms_per_week
    rate = 1.0 if asked is None else asked
    model, framing, training = detector.model, detector.framing, detector.training
    if detector.fusion is not None:
        return calibrated_with_rules(
            model,
            framing,
            clean,
            physics=detector.fusion.physics,
            training=training,
            false_alarms_per_week=rate,
        )
    windows = framing.windows(clean)
    return calibrated(model, framing, windows, training=training, false_alarms_per_week=rate)


def certificate_payload(certificate: "VoteCertificate") -> dict[str, object]:
    """Return a certificate as `--json` prints it."""
    actual, certified = certificate.actual, certificate.certified
    return {
        "members": len(certificate.members),
        "member_names": list(certificate.members),
        "voters": certificate.voters,
        "votes_needed": certificate.needed,
        "malicious": certificate.malicious,
        "sets": certificate.sets,
        "windows": certificate.windows,
        "attacks": len(certificate.attacks),
        **asdict(actual),
        "recall_certified": certified.recall,
        "attacks_certified": certified.attacks_detected,
        "precision_certified": certified.precision,
        "time_in_alarm_certified": certified.time_in_alarm,
        "false_events_certified": certified.false_events,
        "false_alarms_per_week_certified": certified.false_alarms_per_week,
        "batadal_score_certified": certified.batadal_score,
        "vacuous": certificate.vacuous,
        "can_silence": certificate.can_silence,
        "can_force": certificate.can_force,
        "rule_windows": certificate.rule_windows,
        "worst_sets": {
            figure: list(members) for figure, members in asdict(certificate.worst_sets).items()
        },
        "by_attack": [asdict(attack) for attack in certificate.attacks],
        "by_member": [
            {"member": risk.member, **asdict(risk.worst)} for risk in certificate.by_member
        ],
        "borrowed": certificate.borrowed,
        "points_by_member": [
            {"member": each.member, "points": list(each.points)} for each in certificate.by_support
        ],
        "points": [
            {"point": each.point, "members": list(each.members)} for each in certificate.points
        ],
        "members_by_plant": [
            {
                "plant": each.plant,
                "points": len(each.points),
                "members": list(each.members),
                "members_with_all_points": list(each.complete),
                "fewest_members": each.fewest,
                "points_with_fewest": list(each.weakest),
            }
            for each in certificate.by_plant
        ],
        "groups": {name: list(plants) for name, plants in certificate.groups},
        "sentences": list(certificate.sentences),
    }


def show_certificate(certificate: "VoteCertificate", record: "Record") -> None:
    """Print a certificate as tables and sentences."""
    out.print(
        f"[bold]{certificate.needed} of {certificate.voters} votes[/bold] are an alarm; "
        f"{certificate.malicious} of {len(certificate.members)} members may be malicious "
        f"({certificate.sets:,} sets)"
    )
    if certificate.rule_windows is not None:
        out.print(
            f"An alarm of the plant's own rules is an alarm too ({certificate.rule_windows:,} "
            "windows)."
        )
    figures = table("", "", "as votes stand", "certified", "the set that reaches it")
    for line in figure_lines(certificate):
        figures.add_row(*line)
    out.print(figures)
    attacks = table("\nAttacks", "from", "to", "detected after", "certified")
    for attack in certificate.attacks:
        attacks.add_row(
            str(record.times[attack.first_row].astype("datetime64[s]")).replace("T", " "),
            str(record.times[attack.last_row].astype("datetime64[s]")).replace("T", " "),
            _delay(attack.delay_s, "missed"),
            _delay(attack.certified_delay_s, "can be hidden"),
        )
    out.print(attacks)
    if certificate.by_member:
        out.print(_risks(certificate))
    if certificate.partial:
        out.print(_support(certificate))
    for sentence in certificate.sentences:
        out.print(f"\n{sentence}" if sentence is certificate.sentences[0] else sentence)


def _risks(certificate: "VoteCertificate") -> "Table":
    """Return the worst figures over the sets that contain each member."""
    shown = table(
        "\nIf this member is malicious, at worst",
        *("member", "recall", "attacks", "precision", "false alarms a week", "in alarm"),
    )
    for risk in certificate.by_member:
        worst = risk.worst
        shown.add_row(
            risk.member,
            f"≥ {worst.recall:.3f}",
            f"≥ {worst.attacks_detected}",
            f"≥ {_figure(worst.precision)}",
            f"≤ {_figure(worst.false_alarms_per_week)}",
            f"≤ {_figure(worst.time_in_alarm)}",
        )
    return shown


def _support(certificate: "VoteCertificate") -> "Table":
    """Return, for this plant and for each member's points, how many members a vote rests on."""
    shown = table(
        "\nMembers that a vote rests on",
        *("plant", "points", "members", "with all points", "fewest for a point", "which"),
    )
    for each in certificate.by_plant:
        named = ", ".join(each.weakest[:MOST_NAMED])
        more = len(each.weakest) - MOST_NAMED
        shown.add_row(
            each.plant or "this plant",
            str(len(each.points)),
            str(len(each.members)),
            str(len(each.complete)),
            str(each.fewest),
            named + (f" and {more} more" if more > 0 else ""),
        )
    return shown


def figure_lines(certificate: "VoteCertificate") -> tuple[tuple[str, str, str, str], ...]:
    """Return name, actual value, certified value and worst set of each figure."""
    actual, certified, sets = certificate.actual, certificate.certified, certificate.worst_sets
    attacks = len(certificate.attacks)

    def line(
        name: str, before: float | None, worst: float | None, members: tuple[str, ...], sign: str
    ) -> tuple[str, str, str, str]:
        return name, _figure(before), f"{sign} {_figure(worst)}", ", ".join(members)

    return (
        line("recall of attack windows", actual.recall, certified.recall, sets.recall, "≥"),
        (
            "attacks detected",
            f"{actual.attacks_detected} of {attacks}",
            f"≥ {certified.attacks_detected} of {attacks}",
            ", ".join(sets.attacks_detected),
        ),
        line("precision", actual.precision, certified.precision, sets.precision, "≥"),
        (
            "false-alarm events",
            f"{actual.false_events:,}",
            f"≤ {certified.false_events:,}",
            ", ".join(sets.false_events),
        ),
        line(
            "false alarms a week",
            actual.false_alarms_per_week,
            certified.false_alarms_per_week,
            sets.false_events,
            "≤",
        ),
        line(
            "share of normal windows in alarm",
            actual.time_in_alarm,
            certified.time_in_alarm,
            sets.time_in_alarm,
            "≤",
        ),
        line(
            "BATADAL's score",
            actual.batadal_score,
            certified.batadal_score,
            sets.batadal_score,
            "≥",
        ),
    )


def _figure(value: "float | None") -> str:
    return "not defined" if value is None else f"{value:.3f}"


def _delay(seconds: float | None, never: str) -> str:
    return never if seconds is None else f"{seconds:,.0f} s"
