"""HAI 20.07 and 21.03: boiler, turbine, water treatment and power plant (Shin et al. 2020)."""

import numpy as np
from numpy.typing import NDArray

from sluice.telemetry.formats.format import Format
from sluice.telemetry.record import Label, Note
from sluice.telemetry.source import Source
from sluice.telemetry.table import Table, clock, delimited, labels_from

__all__ = ["HAI"]

TIME = "time"
ATTACK = "attack"
FIRST_TAGS = {"P1_B2004", "P1_B2016"}
CLOCKS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S")


def recognises(source: Source) -> bool:
    """Look for a time column and the boiler's first set-points."""
    names = set(source.cells(0))
    return TIME in names and names >= FIRST_TAGS


def load(source: Source) -> Table:
    """Read either release; labels come from `attack`, not from attack_P1.. (one per process)."""
    frame = delimited(source, header_line=0, text=[TIME])
    label_columns = [name for name in frame.columns if name.lower().startswith(ATTACK)]
    notes: list[Note] = []
    labels: NDArray[np.int8]
    if ATTACK in frame.columns:
        labels = labels_from(frame[ATTACK], _label, name=source.path.name)
    else:
        labels = np.full(len(frame), Label.UNLABELLED, np.int8)
        notes.append(Note(what="no attack column: every row is unlabelled"))
    by_process = [name for name in label_columns if name != ATTACK]
    if by_process:
        notes.append(Note(what=f"labels per process dropped: {', '.join(by_process)}"))
    return Table(
        format=HAI.name,
        frame=frame.drop(TIME, *label_columns),
        times=clock(frame[TIME], CLOCKS, name=source.path.name),
        labels=labels,
        notes=tuple(notes),
    )


def _label(value: object) -> Label | None:
    known = {0.0: Label.NORMAL, 1.0: Label.ATTACK}
    return known.get(value) if isinstance(value, float) else None


HAI = Format(name="hai", title="HAI 20.07 and 21.03", version="1", recognises=recognises, load=load)
