"""`sluice plant borrow`: the first detector of a plant that has too few rows to join."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from sluice.cli.console import Json, emit, out
from sluice.cli.options import Every, PlantPath, SkipSeconds, open_record, range_of
from sluice.cli.paths import reads_file, reads_record, writes_file
from sluice.cli.plant.voting import thresholds_in_words, vote_payload

__all__ = ["borrow"]


def borrow(
    invitation: Annotated[
        Path,
        typer.Argument(
            help="The coordinator's invitation; it stays unused.",
            click_type=reads_file("an invitation"),
        ),
    ],
    statistics: Annotated[
        Path,
        typer.Option(
            help="The members' statistics ('sluice coordinator export-statistics').",
            click_type=reads_file("the members' statistics"),
        ),
    ],
    log: Annotated[
        Path,
        typer.Option(
            help="The federation's log ('sluice coordinator export-log').",
            click_type=reads_file("a log"),
        ),
    ],
    record: Annotated[
        Path,
        typer.Option(
            help="Clean rows of this plant; they never leave it.", click_type=reads_record()
        ),
    ],
    out_path: Annotated[
        Path,
        typer.Option(
            "--out", help="The detector to write (.safetensors).", click_type=writes_file()
        ),
    ],
    clean: Annotated[
        str | None, typer.Option(help="Clean rows A:B; B is excluded. Default: all rows.")
    ] = None,
    plant_file: PlantPath = None,
    every: Every = 1,
    skip_seconds: SkipSeconds = 0.0,
    false_alarms: Annotated[
        float,
        typer.Option(
            "--false-alarms-per-week", help="False alarms a week that the vote may raise."
        ),
    ] = 1.0,
    json: Json = False,
) -> None:
    """Borrow a first detector from a federation that this plant has too few rows to join.

    A plant with a few days of rows cannot mine rules yet, so it cannot attest a batch. It gets the
    members' statistics and the log as files from the coordinator. The command verifies the log, and
    each statistic by it. The tails that members lend set the thresholds. Nothing is sent.

    'sluice model recalibrate' replaces the thresholds when more clean rows are there. When the
    plant has mined rules, it joins with the same invitation ('sluice plant join').

    Example: [bold]sluice plant borrow north.invitation --statistics members.bin --log log.jsonl
    --record north.parquet --plant north.toml --out first.safetensors[/bold]
    """
    from sluice.detector import save_detector, voted_model
    from sluice.network import Invitation, read_document
    from sluice.network.plant import borrowed_vote
    from sluice.template import overlap_of

    document = read_document(Invitation, invitation, private=True)
    loaded = open_record(record, plant=plant_file, skip_s=skip_seconds, every=every)
    rows = loaded.rows(*range_of(clean, loaded, option="--clean")) if clean else loaded
    detector = borrowed_vote(
        document,
        rows,
        statistics=statistics,
        log=log,
        false_alarms_per_week=false_alarms,
        at=datetime.now(UTC),
    )
    save_detector(detector, out_path)
    missing = overlap_of(rows.names, document.terms.channels).missing
    if json:
        emit(
            {
                "model": str(out_path),
                "members": detector.training.clients,
                "hash": detector.training.model,
                "threshold": detector.threshold.score,
                "clean_rows": len(rows),
                "missing": list(missing),
                **vote_payload(detector),
            }
        )
        return
    voted = voted_model(detector)
    out.print(
        f"{out_path}: {voted.needed} of {len(voted.members)} plants' votes are an alarm (hash "
        f"{str(detector.training.model)[:12]}); {thresholds_in_words(detector, len(rows))}",
        markup=False,
    )
    if missing:
        out.print(f"points that this plant lacks: {', '.join(missing)}", markup=False)
    out.print(
        "Replace the thresholds with 'sluice model recalibrate' when there are more clean rows; "
        "join with 'sluice plant join' when this plant has mined its rules."
    )
