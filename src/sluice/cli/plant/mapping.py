"""`sluice plant map`: propose which tag of a plant is which point of a federation's template."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from sluice.cli.console import Json, emit, out
from sluice.cli.options import Every, PlantPath, RecordPath, SkipSeconds, thinned, ties_in
from sluice.cli.paths import reads_file, writes_file
from sluice.errors import SettingError

if TYPE_CHECKING:
    from sluice.telemetry import PlantFile
    from sluice.template import Proposal, Template

__all__ = ["map_"]


def map_(
    record: RecordPath,
    template: Annotated[
        Path | None,
        typer.Option(help="The federation's template.", click_type=reads_file("a template")),
    ] = None,
    invitation: Annotated[
        Path | None,
        typer.Option(
            help="An invitation, whose template is used.", click_type=reads_file("an invitation")
        ),
    ] = None,
    rules: Annotated[
        Path | None,
        typer.Option(
            help="The plant's own rules, mined from these tags: which of them they tie is compared "
            "too.",
            click_type=reads_file("a rules file"),
        ),
    ] = None,
    plant_file: PlantPath = None,
    decide: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="TAG=POINT",
            help="Your decision for one tag; TAG= maps it to no point. May be repeated.",
        ),
    ] = None,
    leave: Annotated[
        bool,
        typer.Option("--leave-undecided", help="Map tags that are not decided to no point."),
    ] = False,
    out_path: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Write the mapping into this plant file.", click_type=writes_file()
        ),
    ] = None,
    every: Every = 1,
    skip_seconds: SkipSeconds = 0.0,
    json: Json = False,
) -> None:
    """Propose which tag is which point, by role, unit, range, course, correlations and rules.

    The record must be clean. A proposal with a confidence below 0.9 is not taken: decide it with
    --set, or leave the tag out with --leave-undecided. Names of tags choose only where readings
    cannot, and add nothing to a confidence. Nothing is written without --out. The plant file then
    converts readings: units first, then the plant's own size.

    Exit 0 if every tag is decided, 3 if an operator must decide some.

    Example: [bold]sluice plant map north.parquet --invitation north.invitation --out
    north.toml[/bold]
    """
    from sluice.telemetry import PlantFile, read_plant_file, read_with_settings, write_plant_file
    from sluice.template import mapped_plant_file, placements, propose

    wanted = _template(template, invitation)
    declared = read_plant_file(plant_file) if plant_file else PlantFile()
    read = read_with_settings(record, plant=_unmapped(declared))
    loaded = thinned(read.record, skip_s=skip_seconds, every=every)
    proposal = propose(loaded, wanted, ties=ties_in(rules, loaded))
    decided = _decisions(decide or [], tags=loaded.names, template=wanted)
    points, open_ = _settled(proposal, decided, leave=leave)
    hoped = {match.point for match in proposal.matches if match.tag in open_}
    missing = sorted(set(wanted.names) - set(points.values()) - hoped)
    if json:
        emit(_payload(proposal, decided, points, open_, missing))
    else:
        _show(proposal, decided, points, open_)
        _show_open(proposal, wanted, open_, missing)
    if open_:
        raise typer.Exit(3)
    if out_path is not None:
        placed = placements(loaded, wanted, points)
        file = mapped_plant_file(read.plant, placed)
        write_plant_file(read.record, out_path, plant=file)
        if not json:
            out.print(f"{out_path}: {len(placed)} of {len(loaded.names)} tags are points")


def _template(template: Path | None, invitation: Path | None) -> "Template":
    from sluice.network import Invitation, read_document
    from sluice.template import read_template

    if (template is None) == (invitation is None):
        raise SettingError("name the template with --template, or an invitation that holds one")
    if template is not None:
        return read_template(template)
    assert invitation is not None
    terms = read_document(Invitation, invitation, private=True).terms
    if terms.template is None:
        raise SettingError(
            f"federation {terms.federation!r} has no template: its plants use the same tags. Its "
            "coordinator founds one with 'sluice coordinator init --template'"
        )
    return terms.template


def _unmapped(plant: "PlantFile") -> "PlantFile":
    """Return the plant file without its points, so that the record keeps its tags."""
    channels = {name: replace(each, point=None) for name, each in plant.channels.items()}
    return replace(plant, channels=channels)


def _decisions(
    texts: list[str], *, tags: tuple[str, ...], template: "Template"
) -> dict[str, str | None]:
    decided: dict[str, str | None] = {}
    for text in texts:
        tag, equals, named = text.partition("=")
        if not equals or tag not in tags:
            raise SettingError(
                f"--set is {text!r}; write TAG=POINT with a tag of the record, such as "
                f"{tags[0]}={template.names[0]}"
            )
        point = template.point(named).name if named else None
        if tag in decided:
            raise SettingError(f"--set decides tag {tag!r} twice; keep one of the decisions")
        if point is not None and point in decided.values():
            raise SettingError(f"--set maps two tags to point {point!r}; a point is one tag")
        decided[tag] = point
    return decided


def _settled(
    proposal: "Proposal", decided: dict[str, str | None], *, leave: bool
) -> tuple[dict[str, str], list[str]]:
    """Return the points of the decided tags, and the tags that an operator must decide.

    A tag is not decided if a decision gives its proposed point to another tag.
    """
    points = {tag: point for tag, point in decided.items() if point is not None}
    taken, open_ = set(points.values()), []
    for match in proposal.matches:
        if match.tag in decided or match.point is None:
            continue
        if match.confident and match.point not in taken:
            points[match.tag] = match.point
        elif not leave:
            open_.append(match.tag)
    return points, open_


def _payload(
    proposal: "Proposal",
    decided: dict[str, str | None],
    points: dict[str, str],
    open_: list[str],
    missing: list[str],
) -> dict[str, object]:
    return {
        "template": proposal.template,
        "decided": not open_,
        "undecided": open_,
        "missing": missing,
        "tags": [
            {
                "tag": match.tag,
                "point": points.get(match.tag),
                "proposed": match.point,
                "confidence": round(match.confidence, 4),
                "instead": match.instead,
                "twins": list(match.twins),
                "by": "operator" if match.tag in decided else "proposal",
            }
            for match in proposal.matches
        ],
    }


def _show(
    proposal: "Proposal",
    decided: dict[str, str | None],
    points: dict[str, str],
    open_: list[str],
) -> None:
    table = Table("tag", "proposed", "confidence", "next best", "state")
    for match in proposal.matches:
        if match.tag in decided:
            state = f"{decided[match.tag] or 'no point'}: decided by you"
        elif match.tag in open_:
            state = "decide it with --set"
        elif match.tag in points:
            state = "taken"
        else:
            state = "no point"
        table.add_row(
            match.tag,
            match.point or "",
            f"{match.confidence:.2f}" if match.point else "",
            match.instead or "",
            state,
        )
    out.print(table)
    for match in proposal.matches:
        if match.twins and match.tag in open_:
            out.print(
                f"{match.tag} may also be {' or '.join(match.twins)}: no row here and none of the "
                "reference tells them apart; look at the plant",
                markup=False,
            )


def _show_open(
    proposal: "Proposal", template: "Template", open_: list[str], missing: list[str]
) -> None:
    """Print which open proposals are guesses, and which points are left without a tag."""
    still = {point.name for point in template.points if point.still}
    guesses = [each.tag for each in proposal.matches if each.tag in open_ and each.point in still]
    if guesses:
        out.print(
            f"guesses, because their points never change in the reference: {', '.join(guesses)}; "
            "look at the plant",
            markup=False,
        )
    if missing:
        out.print(f"points without a tag: {', '.join(missing)}", markup=False)
    if open_:
        out.print(
            f"{len(open_)} proposals are not certain; decide them with --set TAG=POINT, or leave "
            "them out with --leave-undecided"
        )
